"""Sections of a large file of lines: stretches of whole records, each to be read by a task of its own.

Where a record ends is known only to who knows whether a line end lies within quotes, and a task in the middle
of a file does not. So the file is surveyed first, in ranges of any bytes, each for both cases: that it begins
outside of quotes, and within. The numbers of quotes then tell which case each range is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source.blocks import find_misplaced
from epsjoin.source.bounds import BYTE_ORDER_MARK
from epsjoin.source.json_ import require_keys
from epsjoin.source.rules import Ints, is_read_by_columns
from epsjoin.source.untyped import FoundColumns

CHUNK = 4 << 20
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
    firsts : the place behind the first line end outside of quotes, and the number of line ends up to it.
    """

    n_quotes: int
    n_lines: int
    is_plain: tuple[bool, bool]
    firsts: tuple[tuple[int, int] | None, tuple[int, int] | None]


def can_be_divided(source: SourceContract, name: str) -> bool:
    """Whether a file may have sections.

    Not if it is compressed, nor of Parquet; nor if a record's place in the file, or a text of it that no
    column keeps, makes its id.
    """
    return bool(
        source.format in ("csv", "json")
        and not name.endswith(".gz")
        and source.key
        and is_read_by_columns(source)
    )


def survey(read_at: ReadAt, begin: int, end: int, format_: str) -> Survey:
    """Survey the bytes of a file from ``begin`` to ``end``; one beside them on either side is looked at, too.

    A line end of JSON lines is never within quotes, so they are not looked for.
    """
    n_quotes = n_lines = 0
    is_plain = [True, True]
    firsts: list[tuple[int, int] | None] = [None, None]
    for place in range(begin, end, CHUNK):
        n = min(CHUNK, end - place)
        before = read_at(1, place - 1) if place else b""
        data = read_at(n + 1, place)
        data, behind = data[:n], data[n:]
        if not place and data.startswith(BYTE_ORDER_MARK):
            data, place = data[len(BYTE_ORDER_MARK) :], len(BYTE_ORDER_MARK)
        quotes = np.empty(0, np.int64)
        if format_ == "csv":
            n_returns = data.count(b"\r")
            if b"\0" in data or (n_returns and n_returns != (data + behind).count(b"\r\n")):
                is_plain = [False, False]
            if b'"' in data:
                quotes = np.flatnonzero(np.frombuffer(data, np.uint8) == ord('"'))
                opens = (np.arange(len(quotes)) + n_quotes) % 2 == 0
                for case in (0, 1):
                    is_plain[case] &= not find_misplaced(
                        before, data, behind, quotes, opens ^ bool(case)
                    ).size
        for case in (0, 1):
            if firsts[case] is None:
                at = _find_line_end(data, quotes, (case + n_quotes) % 2 == 1)
                if at is not None:
                    firsts[case] = place + at + 1, n_lines + data.count(b"\n", 0, at + 1)
        n_quotes += len(quotes)
        n_lines += data.count(b"\n")
    return Survey(n_quotes, n_lines, (is_plain[0], is_plain[1]), (firsts[0], firsts[1]))


def _find_line_end(data: bytes, quotes: Ints, within: bool) -> int | None:
    """The first line end outside of quotes; ``within``: whether the data begin within some."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) if quotes.size else None
    if ends is None:
        at = -1 if within else data.find(b"\n")
        return None if at < 0 else at
    ends = ends[(np.searchsorted(quotes, ends) + within) % 2 == 0]
    return int(ends[0]) if ends.size else None


def cut(surveys: Sequence[Survey], size: int) -> list[Section]:
    """Cut a file behind the first record that ends in each range but the first.

    Parameters
    ----------
    surveys : of ranges that follow one another from the file's begin to its end.
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
