"""How a snapshot differs from the one before it: numbers and arrays, wherever they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from epsjoin.kernels.arrays import Floats


@dataclass(frozen=True)
class Matched:
    """How many records of two snapshots were matched by their ids, and what became of them.

    Parameters
    ----------
    kept : records in both.
    updated, moved : those of them with another value, with other coordinates.
    taken_over : new or moved records at the place of an earlier record that was deleted or has moved.
    distance : of their orders, see :func:`epsjoin.local.snapshots.order_distance`; ``None``: not known.
    """

    kept: int
    updated: int
    moved: int
    taken_over: int
    distance: float | None = None


@dataclass(frozen=True)
class Values:
    """Values of some records before and now.

    Parameters
    ----------
    names : of the columns.
    before, now : (n, c) float64; NaN where there is none.
    """

    names: tuple[str, ...] = ()
    before: Floats = field(default_factory=lambda: np.empty((0, 0)))
    now: Floats = field(default_factory=lambda: np.empty((0, 0)))


@dataclass(frozen=True)
class Seen:
    """How a snapshot differs from the one before it.

    Parameters
    ----------
    what : name of the snapshot.
    against : run of the snapshot before; ``None``: there is none, and nothing else is looked at.
    n_before, n_now : numbers of records.
    matched : ``None`` if records cannot be matched: only their numbers are compared then.
    moved : coordinates of records that moved.
    updated : numbers of records that were updated.
    changed : names of columns with the number of records of that sample in which they changed.
    n_updated : size of that sample.
    columns_before, columns_now : names of the columns found in the files.
    left_out_before, left_out_now : fractions of records that the contract leaves out; ``None``: not
        comparable.
    most_lost : the largest fraction that earlier runs have lost.
    same_as : an earlier run that had the very same files, though the run before had others; ``None``: none.
    """

    what: str
    against: str | None = None
    n_before: int = 0
    n_now: int = 0
    matched: Matched | None = None
    moved: Values = field(default_factory=Values)
    updated: Values = field(default_factory=Values)
    changed: Mapping[str, int] = field(default_factory=dict)
    n_updated: int = 0
    columns_before: Sequence[str] = ()
    columns_now: Sequence[str] = ()
    left_out_before: float | None = None
    left_out_now: float | None = None
    most_lost: float = 0.0
    same_as: str | None = None

    @property
    def lost(self) -> int:
        """Number of records that are gone; at least so many, if records cannot be matched."""
        return self.n_before - self.matched.kept if self.matched else max(0, self.n_before - self.n_now)

    @property
    def new(self) -> int:
        """Number of records that came; at least so many, if records cannot be matched."""
        return self.n_now - self.matched.kept if self.matched else max(0, self.n_now - self.n_before)
