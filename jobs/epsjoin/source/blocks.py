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
from epsjoin.source.bounds import BYTE_ORDER_MARK
from epsjoin.source.csv_ import Line, decode_lines

BLOCK = 4 << 20
"""Number of bytes at which a block is complete; those of a longer line are more."""


@dataclass(frozen=True)
class OpenSection:
    """What whoever reads a section of a file must know beside its bytes.

    Parameters
    ----------
    line : number of its first line; 1 if the file begins with it.
    head : the file from its begin, where the header is; not read if the section has it.
    """

    line: int
    head: IO[bytes]


class Blocks:
    """The lines of a file: block by block, or one by one wherever that is needed.

    Parameters
    ----------
    stream : the file's bytes, decompressed, as :func:`epsjoin.source.bounds.open_lines` has them.
    line : number of the first line.

    Attributes
    ----------
    line : number of the line with which the next block begins.
    has_only_lines : whether what is left has no blocks: no line end, or none before the file breaks off.
    """

    def __init__(self, stream: IO[bytes], line: int = 1) -> None:
        self.line = line
        self.has_only_lines = False
        self._rest = _Rest(stream)
        if line == 1 and self._rest.fill(len(BYTE_ORDER_MARK), b"").startswith(BYTE_ORDER_MARK):
            self._rest.held = self._rest.held[len(BYTE_ORDER_MARK) :]

    def take(self) -> bytes:
        """The next block, which ends with a line end or with the file; nothing at the file's end.

        The caller counts its lines. Nothing is returned, either, if ``has_only_lines`` has become true.
        """
        rest = self._rest
        held = rest.fill(BLOCK, b"\n")
        cut = len(held) if rest.is_whole else held.rfind(b"\n") + 1
        self.has_only_lines = cut == 0 and not rest.is_whole
        rest.held = held[cut:]
        return held if cut == len(held) else held[:cut]

    def give_back(self, data: bytes) -> None:
        """Put back the end of the block that was taken last."""
        if data:
            self._rest.held = data + self._rest.held

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


def find_misplaced(
    before: bytes, data: bytes, behind: bytes, quotes: NDArray[np.int64], opens: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Quotes of CSV that are not at an end of a field.

    Within a quoted field two quotes stand for one; the first then closes the field and the second opens it
    again.

    Parameters
    ----------
    before, behind : the byte before the data and the one behind them, if there are such.
    quotes : places of the quotes in the data.
    opens : of every quote: whether it would open a field; otherwise it would close one.
    """
    signs = np.frombuffer((before or b"\n") + data + (behind or b"\n"), np.uint8)
    fits = np.where(opens, _OPENS_AFTER[signs[quotes]], _CLOSES_BEFORE[signs[quotes + 2]])
    misplaced: NDArray[np.int64] = quotes[~fits]
    return misplaced


def _flags_of(signs: bytes) -> NDArray[np.bool_]:
    flags = np.zeros(256, bool)
    flags[list(signs)] = True
    return flags


_OPENS_AFTER, _CLOSES_BEFORE = _flags_of(b',\n"'), _flags_of(b',\n\r"')


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
    """What has been read of a stream and is still held, then the rest of the stream; a fault comes last.

    Attributes
    ----------
    held : bytes that have been read.
    is_whole : whether the file ends with them, in good order.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.held = b""
        self.is_whole = False
        self._stream = stream
        self._fault: Exception | None = None

    def fill(self, size: int, needed: bytes) -> bytes:
        """Read until so many bytes are held, and ``needed`` is among them, or ``MAX_LINE``; return them."""
        pieces, n, is_found = [self.held], len(self.held), needed in self.held
        while (n < size or not is_found) and n <= max(size, bounds.MAX_LINE) and self._may_have_more():
            pieces.append(self._read())
            n += len(pieces[-1])
            is_found = is_found or needed in pieces[-1]
        self.held = b"".join(pieces)
        return self.held

    def readable(self) -> bool:
        """True: a raw stream must say so."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what is held, then from the stream; then raise the fault, if there is one."""
        if not self.held and self._may_have_more():
            self.held = self._read()
        if not self.held and self._fault:
            raise self._fault
        data = self.held[: len(buffer)]
        buffer[: len(data)] = data
        self.held = self.held[len(data) :]
        return len(data)

    def _may_have_more(self) -> bool:
        return not self.is_whole and self._fault is None

    def _read(self) -> bytes:
        try:
            data = self._stream.read1(bounds.PIECE)  # type: ignore[attr-defined]  # of a BufferedReader
        except (EOFError, zlib.error, gzip.BadGzipFile, DataRefusedError) as error:
            self._fault = error
            return b""
        self.is_whole = not data
        return bytes(data)
