"""Rows of a progressive join: their columns, in the order of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.arrays import Bools, Bytes, Ints, Ints32

Values = NDArray[Any]
"""(n, c) float64 or int64: what a kind of join decides on."""
Keys = NDArray[Any]
"""(n,) numbers or byte strings that NumPy sorts."""

IS_RIGHT, HAS_MORE, IS_NULL = np.uint8(1), np.uint8(2), np.uint8(4)
"""Flags of a row: it is of the right table; its point has another row with a later key; it has no value."""
NO_RUN = -1
"""Run of a row that is compared with every other one."""


class SweepRows(NamedTuple):
    """Rows to sweep, by ascending key.

    Parameters
    ----------
    key : (n,) what the rows are sorted by.
    ids : (n,) int64, what pairs consist of.
    number : (n,) int64, the row's number in its table.
    flags : (n,) uint8, ``IS_RIGHT``, ``HAS_MORE`` and ``IS_NULL``; rows with a key are not null.
    values : (n, c), what the kind of join decides on.
    mark : (n,) int64, or (0,) where the kind has none: more that the kind knows of a replica.
    run : (n,) int32. Rows of one run have met before: they are not compared again, unless it is ``NO_RUN``.
    """

    key: Keys
    ids: Ints
    number: Ints
    flags: Bytes
    values: Values
    mark: Ints
    run: Ints32

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.ids)

    @property
    def is_right(self) -> Bools:
        """Whether each row is one of the right table."""
        return (self.flags & IS_RIGHT).astype(np.bool_)

    def take(self, at: Ints | Bools | slice) -> SweepRows:
        """Take some rows, in ascending order."""
        columns: list[Any] = [column[at] if len(column) else column for column in self]
        return SweepRows(*columns)

    def of_run(self, run: int) -> SweepRows:
        """The same rows, all of one run."""
        return self._replace(run=np.full(self.n, run, np.int32))

    def sorted(self) -> SweepRows:
        """The same rows by key; rows of one key stay in their order."""
        return self.take(np.argsort(self.key, kind="stable"))


def concat(parts: Sequence[SweepRows]) -> SweepRows:
    """Concatenate rows, of at least one part; they are not sorted."""
    return parts[0] if len(parts) == 1 else SweepRows(*map(np.concatenate, zip(*parts, strict=True)))


class Met(NamedTuple):
    """Pairs that a sweep has found.

    Parameters
    ----------
    rows : the rows that it compared.
    first, second : (m,) int64, places in ``rows``; of two tables the left row is ``first``.
    distance : (m,) float64; 0 where the kind of join knows no distance.
    """

    rows: SweepRows
    first: Ints
    second: Ints
    distance: NDArray[np.float64]
