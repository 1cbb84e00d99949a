"""Inputs of a progressive join: rows come from them a few at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.local.arguments import as_array, int_column
from epsjoin.local.coordinates import check_points, unrounded

PAUSE = 0.005
"""Seconds to wait for an input that has nothing."""

NUMBERS = "numbers"
"""The kind of values that are not times."""


class Chunk(NamedTuple):
    """Rows of a table.

    Parameters
    ----------
    values : (n, ...) as they came.
    ids : (n,) int64; None for the row numbers.
    is_null : (n,) bool, which rows lack a number, so that their integers mean nothing; None if no row does.
    units : what the values of each column were before they became integers; None where their type still
        says so.
    """

    values: NDArray[Any]
    ids: Ints | None = None
    is_null: Bools | None = None
    units: tuple[str, ...] | None = None

    @property
    def kind(self) -> str:
        """What the values are, in words: rows of different kinds are not compared."""
        if self.units is None:
            return {"M": "times in ns", "m": "durations in ns"}.get(self.values.dtype.kind, NUMBERS)
        return " and ".join(sorted({*self.units} - {NUMBERS})) or NUMBERS

    def take(self, rows: Ints | slice) -> Chunk:
        """Take some rows."""
        columns: list[Any] = [None if column is None else column[rows] for column in self[:3]]
        return Chunk(*columns)._replace(units=self.units)

    def copied(self) -> Chunk:
        """The same rows in arrays of their own."""
        columns: list[Any] = [None if column is None else column.copy() for column in self[:3]]
        return Chunk(*columns)._replace(units=self.units)


class Source(Protocol):
    """A table that is read from front to back, once.

    Attributes
    ----------
    n_rows : number of its rows, None if it is unknown.
    columns : numbers of a row.
    has_ids : whether its rows have ids of their own.
    seed : of the random order in which rows come, None if they come in their own order.
    has_even_sample : whether each row is as likely as any other to be in a sample.
    file, names : the file whose rows they are, and the names of its columns; None for other tables.
    """

    file: str | None
    names: Sequence[str] | None
    n_rows: int | None
    columns: int
    has_ids: bool
    seed: int | None
    has_even_sample: bool

    def read(self, most: int) -> Chunk | None:
        """Read at most this number of rows; no rows if there are none now; None at the end."""

    def sample(self, n: int) -> Chunk | None:
        """Draw rows from the whole table, in any order; None if it cannot be read twice."""


def _rows(values: ArrayLike) -> NDArray[Any]:
    array = as_array("a table", values)
    if array.ndim == 0:
        raise ArgumentError("a table must be an array of rows, an iterator of them, or a path")
    exact = unrounded(values, array)
    if exact is array:
        return array
    return check_points("a table", exact.reshape(len(exact), -1)).reshape(exact.shape)


class ArraySource:
    """Rows of an array.

    Parameters
    ----------
    values : (n, ...) rows.
    ids : (n,) integers; None for the row numbers.
    seed : rows come in the random order of this seed; None: in their own order.
    """

    has_even_sample = True
    file: str | None = None
    names: Sequence[str] | None = None

    def __init__(self, values: ArrayLike, ids: ArrayLike | None = None, seed: int | None = None) -> None:
        self._values = _rows(values)
        self.n_rows: int | None = len(self._values)
        self.seed = seed
        self._order = None if seed is None else np.random.default_rng(seed).permutation(self.n_rows)
        self._ids = None if ids is None else int_column("ids", ids)
        if self._ids is None and seed is not None:
            self._ids = np.arange(self.n_rows)
        if self._ids is not None and len(self._ids) != self.n_rows:
            raise ArgumentError(f"ids must be one per row, {self.n_rows}, not {len(self._ids)}")
        self.has_ids = self._ids is not None
        self.columns = 1 if self._values.ndim == 1 else self._values.shape[1]
        self._at = 0

    def read(self, most: int) -> Chunk | None:
        """See :class:`Source`."""
        if self.n_rows is None or self._at >= self.n_rows:
            return None
        some: Any = slice(self._at, self._at + most)
        self._at += most
        if self._order is not None:
            some = self._order[some]
        return Chunk(self._values[some], None if self._ids is None else self._ids[some])

    def sample(self, n: int) -> Chunk | None:
        """See :class:`Source`."""
        rows = len(self._values)
        if rows <= n:
            return Chunk(self._values)
        return Chunk(self._values[np.sort(np.random.default_rng(0).choice(rows, n, replace=False))])


class IteratorSource:
    """Rows of an iterator of chunks.

    Parameters
    ----------
    chunks : values, (ids, values), or a :class:`Chunk`; None where nothing has come yet.
    n_rows, file, names : see :class:`Source`.
    """

    has_even_sample = False

    def __init__(
        self,
        chunks: Iterator[Any],
        n_rows: int | None = None,
        file: str | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self._chunks = chunks
        self.n_rows, self.file, self.names = n_rows, file, names
        self.seed: int | None = None
        self._left: Chunk | None = None
        while self._left is None and self._fetch():
            if self._left is None:
                time.sleep(PAUSE)
        first = self._left if self._left is not None else Chunk(np.empty((0, 1)))
        self.has_ids = first.ids is not None
        self.columns = 1 if first.values.ndim == 1 else first.values.shape[1]

    def _fetch(self) -> bool:
        """Wait for the next chunk, which may be nothing; false at the end."""
        try:
            chunk = next(self._chunks)
        except StopIteration:
            return False
        if chunk is not None:
            if isinstance(chunk, Chunk):
                fetched = chunk
            else:
                if isinstance(chunk, tuple) and len(chunk) != 2:
                    raise ArgumentError(f"a chunk must be (ids, rows) or rows, not a tuple of {len(chunk)}")
                ids, values = chunk if isinstance(chunk, tuple) else (None, chunk)
                fetched = Chunk(_rows(values), None if ids is None else int_column("ids", ids))
            if fetched.ids is not None and len(fetched.ids) != len(fetched.values):
                raise ArgumentError(f"ids must be one per row, {len(fetched.values)}, not {len(fetched.ids)}")
            if len(fetched.values):
                self._left = fetched
        return True

    def read(self, most: int) -> Chunk | None:
        """See :class:`Source`."""
        if self._left is None and not self._fetch():
            return None
        if self._left is None:
            return Chunk(np.empty(0))
        chunk = self._left
        if (chunk.ids is not None) != self.has_ids:
            raise ArgumentError("chunks must all have ids, or none: row numbers are no ids")
        rest = chunk.take(slice(most, None))
        self._left = rest if len(rest.values) else None
        return chunk.take(slice(most)).copied()  # an iterator may reuse the array of its chunk

    def sample(self, n: int) -> Chunk | None:  # noqa: ARG002  # as of ArraySource
        """See :class:`Source`."""
        return None
