"""A sorted run on disk: pages of plain columns of NumPy, one behind the other.

A page is read by one call into the arrays that are swept, and a row takes as many bytes as its columns have.
Another kind of file would be decoded into a second copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from epsjoin.local.progressive.rows import NO_RUN, SweepRows


class Layout(NamedTuple):
    """Columns of a row on disk, as NumPy names types.

    Parameters
    ----------
    key, values : types; columns : columns of the values.
    has_numbers : whether ids are others than the row numbers.
    has_marks : whether rows have marks.
    """

    key: str
    values: str
    columns: int
    has_numbers: bool
    has_marks: bool

    @classmethod
    def of(cls, rows: SweepRows, has_numbers: bool) -> Layout:
        """The layout of such rows."""
        marks = len(rows.mark) > 0
        return cls(rows.key.dtype.str, rows.values.dtype.str, rows.values.shape[1], has_numbers, marks)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self._size(1)

    def _columns(self, n: int) -> list[tuple[str, np.dtype[Any], int]]:
        found = [("key", np.dtype(self.key), n), ("ids", np.dtype(np.int64), n)]
        if self.has_numbers:
            found.append(("number", np.dtype(np.int64), n))
        found.append(("values", np.dtype(self.values), n * self.columns))
        if self.has_marks:
            found.append(("mark", np.dtype(np.int64), n))
        return [*found, ("flags", np.dtype(np.uint8), n)]

    def _size(self, n: int) -> int:
        return sum(dtype.itemsize * count for _, dtype, count in self._columns(n))

    def write(self, rows: SweepRows) -> bytes:
        """The bytes of a page."""
        named = rows._asdict()
        return b"".join(np.ascontiguousarray(named[name]).tobytes() for name, *_ in self._columns(rows.n))

    def read(self, page: bytes | bytearray, n: int) -> SweepRows:
        """The rows of a page; they are views of it."""
        begin, found = 0, dict[str, Any]()
        for name, dtype, count in self._columns(n):
            found[name] = np.frombuffer(page, dtype, count, begin)
            begin += dtype.itemsize * count
        found.setdefault("number", found["ids"])
        found.setdefault("mark", np.empty(0, np.int64))
        found["values"] = found["values"].reshape(n, self.columns)
        return SweepRows(**found, run=np.full(n, NO_RUN, np.int32))


class Page(NamedTuple):
    """A page of a run: its place in the file, its rows, its checksum, and its key where all rows have one."""

    begin: int
    rows: int
    crc: int
    key: int | None


class SortedRun(NamedTuple):
    """A run on disk.

    Parameters
    ----------
    name : of its file.
    level : how many merges its rows have been through.
    rows : number of rows of the left and of the right table that it holds, without replicas.
    pairs : pairs whose rows both are in it.
    at_key : pairs by the bins of their keys, see :mod:`epsjoin.local.progressive.running`.
    pages : in order.
    """

    name: str
    level: int
    rows: tuple[int, int]
    pairs: int
    at_key: list[float]
    pages: list[Page]


def cut_into_pages(rows: SweepRows, page_rows: int, by_key: bool) -> Iterator[tuple[int, int, int | None]]:
    """Yield the first row of each page, the one behind its last row, and its key where all rows have one.

    Parameters
    ----------
    rows : by ascending key.
    page_rows : maximum number of rows of a page.
    by_key : whether each key has pages of its own.
    """
    starts = np.array([0])
    if by_key:
        starts = np.concatenate(([0], np.flatnonzero(rows.key[1:] != rows.key[:-1]) + 1))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), rows.n], strict=True):
        key = int(rows.key[start]) if by_key else None
        for begin in range(start, stop, page_rows):
            yield begin, min(begin + page_rows, stop), key
