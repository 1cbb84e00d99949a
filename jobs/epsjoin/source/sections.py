"""Sections of a large file of lines: stretches of whole records, each to be read by a task of its own.

To know where a record ends, one must know whether a line end lies within quotes, and a task in the middle of
a file does not know that. So the file is surveyed first, in ranges of bytes that may begin anywhere, each for
both cases: that it begins outside of quotes, and within. The numbers of quotes then tell which case each
range is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source.blocks import are_at_ends
from epsjoin.source.bounds import BYTE_ORDER_MARK
from epsjoin.source.json_ import require_keys
from epsjoin.source.rules import Ints, is_read_by_columns
from epsjoin.source.untyped import FoundColumns

_LF, _CR, _QUOTE = b'\n\r"'

CHUNK = 1 << 20
"""Number of bytes that are surveyed at once."""

ReadAt = Callable[[int, int], bytes]
"""Reads so many bytes of a file, or as many as there are, from a place on."""


class Section(NamedTuple):
    """A section of a file: its number, the places of its first byte and behind its last, its first line."""

    number: int
    begin: int
    end: int
    line: int


class Survey(NamedTuple):
    """What a range of a file has. Pairs are for a range that begins outside of quotes, and within.

    Parameters
    ----------
    n_quotes, n_lines : number of quotes and of line ends.
    is_plain : whether each quote is at an end of a field, so that the quotes tell where records end.
    firsts : the place behind the first line end outside of quotes, and the number of line ends up to it; of a
        case that is not plain perhaps ``None``.
    """

    n_quotes: int
    n_lines: int
    is_plain: tuple[bool, bool]
    firsts: tuple[tuple[int, int] | None, tuple[int, int] | None]


def can_be_divided(source: SourceContract, name: str) -> bool:
    """Whether a file may have sections.

    It may not if it is compressed or of Parquet; nor without a key, as a record's place in the file then
    makes its id; nor with documents, which are read record by record.
    """
    return bool(
        source.format in ("csv", "json")
        and not name.endswith(".gz")
        and source.key
        and is_read_by_columns(source)
    )


class _Chunk(NamedTuple):
    """Bytes that are surveyed at once.

    Parameters
    ----------
    data : the bytes, and one beside them on either side where the file has one.
    begin, end : the places in ``data`` of the first of them and behind the last.
    place : the place in the file of the first byte of ``data``.
    """

    data: bytes
    begin: int
    end: int
    place: int

    @property
    def signs(self) -> NDArray[np.uint8]:
        """The data as an array."""
        return np.frombuffer(self.data, np.uint8)

    def has(self, sign: bytes) -> bool:
        """Whether this byte is among them."""
        return self.data.find(sign, self.begin, self.end) >= 0

    def find(self, sign: int) -> Ints:
        """The places in ``data`` of a byte."""
        return np.flatnonzero(self.signs[self.begin : self.end] == sign) + self.begin

    def count(self, sign: int) -> int:
        """How often a byte is among them."""
        return int(np.count_nonzero(self.signs[self.begin : self.end] == sign))

    def is_odd(self) -> bool:
        """Whether there are bytes that no plain CSV has: NUL, or a carriage return before no line end."""
        has_lone = self.has(b"\r") and self.count(_CR) != self.data.count(b"\r\n", self.begin, self.end + 1)
        return has_lone or self.has(b"\0")

    def find_line_end(self, quotes: Ints, within: bool) -> tuple[int, int] | None:
        """The first line end outside of quotes: the place behind it in the file; how many there are so far.

        Parameters
        ----------
        quotes : places of quotes in ``data``.
        within : whether the bytes begin within quotes.
        """
        ends = self.find(_LF)
        outside = np.flatnonzero((np.searchsorted(quotes, ends) + within) % 2 == 0)
        return (self.place + int(ends[outside[0]]) + 1, int(outside[0]) + 1) if outside.size else None


def _read_chunks(read_at: ReadAt, begin: int, end: int) -> Iterator[_Chunk]:
    for place in range(begin, end, CHUNK):
        n, n_before = min(CHUNK, end - place), min(place, 1)
        data = read_at(n_before + n + 1, place - n_before)
        if not place and data.startswith(BYTE_ORDER_MARK) and n >= len(BYTE_ORDER_MARK):
            n_mark = len(BYTE_ORDER_MARK)
            yield _Chunk(data[n_mark:], 0, n - n_mark, n_mark)
        else:
            yield _Chunk(data, n_before, n_before + n, place - n_before)


def survey(read_at: ReadAt, begin: int, end: int, delimiter: str | None) -> Survey:
    """Survey the bytes of a file from ``begin`` to ``end``; one beside them on either side is looked at, too.

    Parameters
    ----------
    delimiter : of CSV: what stands between two fields; ``None``: the file is of JSON lines. A line end of
        theirs is never within quotes, so they are not looked for.
    """
    n_quotes = n_lines = 0
    is_plain = [True, True]
    firsts: list[tuple[int, int] | None] = [None, None]
    for chunk in _read_chunks(read_at, begin, end):
        quotes = np.empty(0, np.int64)
        if delimiter is not None:
            if chunk.is_odd():
                is_plain = [False, False]
            if chunk.has(b'"'):
                quotes = chunk.find(_QUOTE)
        for case in (0, 1):
            within = (case + n_quotes) % 2 == 1
            if delimiter is not None:
                is_plain[case] = is_plain[case] and are_at_ends(chunk.signs, quotes, within, delimiter)
            if is_plain[case] and firsts[case] is None and (first := chunk.find_line_end(quotes, within)):
                firsts[case] = first[0], n_lines + first[1]
        n_quotes += len(quotes)
        n_lines += chunk.count(_LF)
    return Survey(n_quotes, n_lines, (is_plain[0], is_plain[1]), (firsts[0], firsts[1]))


def cut(surveys: Sequence[Survey], size: int) -> list[Section]:
    """Cut a file behind the first record that ends in each range, the first one excepted.

    Parameters
    ----------
    surveys : of ranges that follow one another from the file's beginning to its end.
    size : number of the file's bytes.

    Returns
    -------
    The sections; none if the file must be read by one task.
    """
    begins = [(0, 1)]
    case, line = 0, 1
    for number, found in enumerate(surveys):
        if not found.is_plain[case]:
            return []
        first = found.firsts[case]
        if number and first and first[0] < size:
            begins.append((first[0], line + first[1]))
        case = (case + found.n_quotes) % 2
        line += found.n_lines
    if case or len(begins) < 2:
        return []
    ends = [begin for begin, _ in begins[1:]] + [size]
    return [
        Section(i, begin, end, line) for i, ((begin, line), end) in enumerate(zip(begins, ends, strict=True))
    ]


def merge_columns(name: str, source: SourceContract, found: Sequence[list[str]]) -> list[str] | None:
    """The columns of a file whose sections have these; ``None`` if one task must say what is wrong."""
    if source.format == "csv":
        return found[0]  # all have the same header
    columns = FoundColumns(name)
    try:
        columns.add(dict.fromkeys(each for names in found for each in names))
        require_keys(source, columns)
    except DataRefusedError:
        return None
    is_plain = not any("\\" in each for each in columns.names)  # two keys may be shown as one name
    return columns.names if is_plain else None
