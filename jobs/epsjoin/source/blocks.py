"""Blocks of whole lines: what a file of lines is cut into, to be taken at once instead of line by line."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from epsjoin.errors import DataRefusedError
from epsjoin.source import bounds
from epsjoin.source.bounds import BYTE_ORDER_MARK, PieceStream
from epsjoin.source.csv_ import Line, decode_lines

_LF = ord("\n")

BLOCK = 4 << 20
"""Number of bytes at which a block is complete; a block with a longer line has more."""


@dataclass(frozen=True)
class OpenSection:
    """What a reader of a section of a file must know besides its bytes.

    Parameters
    ----------
    line : number of its first line; 1 if the file begins with it.
    head : the file from its beginning, where the header is; not read if the section has it.
    """

    line: int
    head: IO[bytes]


class Blocks:
    """The lines of a file: block by block, or one by one wherever that is needed.

    Parameters
    ----------
    pieces : the file, as :func:`epsjoin.source.bounds.open_pieces` has it.
    line : number of the first line.

    Attributes
    ----------
    line : number of the line with which the next block begins.
    has_only_lines : whether what is left has no blocks: no line end, or none before the file breaks off.
    """

    def __init__(self, pieces: PieceStream, line: int = 1) -> None:
        self.line = line
        self.has_only_lines = False
        self._rest = _Rest(pieces)
        if line == 1:
            self._rest.skip(BYTE_ORDER_MARK)

    def take(self) -> bytes:
        """The next block, which ends with a line end or with the file; nothing at the file's end.

        The caller counts its lines. Nothing is returned, either, if ``has_only_lines`` has become true.
        """
        block = self._rest.take(BLOCK)
        self.has_only_lines = not block and not self._rest.is_whole
        return block

    def give_back(self, data: bytes) -> None:
        """Put back the end of the block that was taken last."""
        self._rest.give_back(data)

    def lines(self, taken: list[Line] | None = None) -> Generator[Line, None, None]:
        """The lines from here on, counted; what is not taken of a block is given back when this is closed.

        Parameters
        ----------
        taken : the lines of the record that is being read: where a block ends and there are none, the lines
            end, too. If it is ``None``, they go on to the end of the file.
        """
        while block := self.take():
            end = 0
            try:
                for number, line in decode_lines(io.BytesIO(block), first=self.line):
                    end += len(line) if line.isascii() else len(line.encode("utf-8", "surrogateescape"))
                    self.line += 1
                    yield number, line
            finally:
                self.give_back(block[end:])
            if taken is not None and not taken:
                return
        if self.has_only_lines:
            yield from decode_lines(self.rest(), first=self.line)

    def rest(self) -> io.BufferedReader:
        """What is left of the file, where it has only lines."""
        return io.BufferedReader(self._rest)


def is_utf8(data: bytes) -> bool:
    """Whether the bytes are UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def count_signs(data: bytes, sign: int) -> int:
    """How often a byte occurs in the data; ``bytes.count`` takes three times as long."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == sign))


def are_at_ends(signs: NDArray[np.uint8], quotes: NDArray[np.int64], within: bool, delimiter: str) -> bool:
    """Whether each quote of CSV is at an end of a field.

    Within a quoted field two quotes stand for one; the first then closes the field and the second opens it
    again. So quotes open and close fields in turns.

    Parameters
    ----------
    signs : bytes of CSV; where a quote is the first or the last of them, there is nothing beside it.
    quotes : places of all quotes in them, rising.
    within : whether the first of them closes a field.
    delimiter : what stands between two fields.
    """
    opens, closes = quotes[within::2], quotes[not within :: 2]
    before = signs[opens - 1]
    if opens.size and opens[0] == 0:
        before[0] = _LF
    # where a quote is the last byte, "clip" looks at it again, and a quote fits
    behind = signs.take(closes + 1, mode="clip")
    beside = delimiter.encode() + b'\n"'
    return bool(_are_among(before, beside) and _are_among(behind, beside + b"\r"))


def _are_among(signs: NDArray[np.uint8], wanted: bytes) -> bool:
    return bool(np.logical_or.reduce([signs == sign for sign in wanted]).all())


def rows_at(places: NDArray[np.int64], begins: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows, which begin at ``begins``, in which these places are, rising; each once."""
    return np.unique(np.searchsorted(begins, places, "right") - 1)


def find_bad(data: bytes, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each row of the data has bytes that are not UTF-8."""
    bad = np.zeros(len(begins), bool)
    places = np.flatnonzero(np.frombuffer(data, np.uint8) >= 0x80)
    for row in rows_at(places, begins).tolist():
        bad[row] = not is_utf8(data[begins[row] : ends[row]])
    return bad


class _Rest(io.RawIOBase):
    """Pieces of a file that have been read and are still held, then its rest; a fault comes last.

    Attributes
    ----------
    is_whole : whether the file ends with what is held, in good order.
    """

    def __init__(self, pieces: PieceStream) -> None:
        self.is_whole = False
        self._held: list[bytes] = []
        self._begun = memoryview(b"")
        self._pieces = pieces
        self._fault: Exception | None = None

    def take(self, size: int) -> bytes:
        """Take whole lines, of so many bytes or what one line has: all that are left at the file's end.

        Nothing is taken if there is no line end within ``size`` and ``MAX_LINE``, or before the fault.
        """
        self._fill(size, b"\n")
        behind: list[bytes] = []
        if not self.is_whole:
            while self._held and not (cut := self._held[-1].rfind(b"\n") + 1):
                behind.append(self._held.pop())
            if self._held:
                last = self._held.pop()
                behind.append(last[cut:])
                self._held.append(last[:cut])
        taken = b"".join(self._held)
        self._held = behind[::-1]
        return taken

    def give_back(self, data: bytes) -> None:
        """Put bytes before those that are held."""
        self._held.insert(0, data)

    def skip(self, mark: bytes) -> None:
        """Skip these bytes if the file goes on with them."""
        self._fill(len(mark), b"")
        held = b"".join(self._held)
        self._held = [held.removeprefix(mark)]

    def readable(self) -> bool:
        """True: a raw stream must say so."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what is held, then from the file; then raise the fault, if there is one.

        Whoever has begun to read with this must go on with it, to the file's end.
        """
        while not self._begun and (self._held or self._may_have_more()):
            self._begun = memoryview(self._held.pop(0) if self._held else self._read())
        if not self._begun and self._fault:
            raise self._fault
        data = self._begun[: len(buffer)]
        buffer[: len(data)] = data
        self._begun = self._begun[len(data) :]
        return len(data)

    def _fill(self, size: int, needed: bytes) -> None:
        """Read until so many bytes are held, and ``needed`` is in one piece of them, or ``MAX_LINE``."""
        n, is_found = sum(map(len, self._held)), any(needed in piece for piece in self._held)
        while (n < size or not is_found) and n <= max(size, bounds.MAX_LINE) and self._may_have_more():
            piece = self._read()
            self._held.append(piece)
            n, is_found = n + len(piece), is_found or needed in piece

    def _may_have_more(self) -> bool:
        return not self.is_whole and self._fault is None

    def _read(self) -> bytes:
        try:
            data = self._pieces.take()
        except (EOFError, zlib.error, gzip.BadGzipFile, DataRefusedError) as error:
            self._fault = error
            return b""
        self.is_whole = not data
        return data
