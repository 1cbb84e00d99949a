"""The sweep area of any kind of join: rows by key, and what the kind decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.local.progressive.rows import NO_RUN, Keys, Met, SweepRows, concat
from epsjoin.local.sweep.area import SweepArea

MAX_CANDIDATES = 1 << 17
"""Maximum number of candidates that are decided at once."""


class KindArea(SweepArea[SweepRows, Met], Protocol):
    """A sweep area of a kind of join.

    Attributes
    ----------
    kind : the kind of join, which may be replaced by one with a lower eps.
    """

    kind: Any


class Decides(Protocol):
    """What an area asks a kind of join."""

    def expire_of(self, rows: SweepRows) -> Keys:
        """The last key of each row that a later row may have to meet it (condition 4.2)."""

    def meet(self, rows: SweepRows, first: Ints, second: Ints) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Distance of each candidate, the row with the earlier key first; NaN where it is no pair."""


class SortedArea:
    """Rows in the order in which they came, for any kind of join.

    Parameters
    ----------
    kind : decides.
    counters : ``candidates``, and as ``distance_computations`` those of different runs, are added to them.
    two_tables : whether rows of the right table are compared with those of the left, not all with all.

    Notes
    -----
    Candidates of a row are the later rows up to the key at which it expires: nothing but NumPy, and no row is
    visited alone.
    """

    def __init__(self, kind: Decides, counters: dict[str, Any], two_tables: bool) -> None:
        self.kind: Any = kind
        self._counters, self._two_tables = counters, two_tables
        self._held: SweepRows | None = None
        self._expires: Keys = np.empty(0)

    @property
    def size(self) -> int:
        """See :class:`~epsjoin.local.sweep.area.SweepArea`."""
        return 0 if self._held is None else self._held.n

    def expire(self, key: Any) -> SweepRows | None:
        """See :class:`~epsjoin.local.sweep.area.SweepArea`."""
        if self._held is None:
            return None
        stays = np.zeros(self._held.n, np.bool_) if key is None else self._expires >= key
        dropped = self._held.take(~stays)
        self._held, self._expires = self._held.take(stays), self._expires[stays]
        return dropped

    def insert(self, rows: SweepRows) -> None:
        """See :class:`~epsjoin.local.sweep.area.SweepArea`."""
        expires = self.kind.expire_of(rows)
        if self._held is None:
            self._held, self._expires = rows, expires
        else:
            self._held = concat([self._held, rows])
            self._expires = np.concatenate((self._expires, expires))

    def query(self, rows: SweepRows) -> Iterator[Met]:
        """See :class:`~epsjoin.local.sweep.area.SweepArea`."""
        n_held = self.size
        both = rows if self._held is None else concat([self._held, rows])
        expires = self.kind.expire_of(both)
        is_new = np.arange(both.n) >= n_held
        is_right = both.is_right if self._two_tables else None
        for first, second, begin in _meetings(is_right, is_new):
            keys = both.key[second]
            end = np.searchsorted(keys, expires[first], "right")
            yield from self._decide(both, first, second, begin(both.key[first], keys), end)

    def _decide(self, rows: SweepRows, first: Ints, second: Ints, begin: Ints, end: Ints) -> Iterator[Met]:
        """Decide the candidates ``second[begin:end]`` of each row of ``first``, some at a time."""
        ends = np.cumsum(np.maximum(end - begin, 0))
        total = int(ends[-1]) if len(ends) else 0
        shift = begin - np.concatenate(([0], ends[:-1]))  # from a candidate's number to its place in second
        for some in range(0, total, MAX_CANDIDATES):
            number = np.arange(some, min(some + MAX_CANDIDATES, total))
            self._count("candidates", len(number))
            of = np.searchsorted(ends, number, "right")
            earlier, later = first[of], second[number + shift[of]]
            run = rows.run[earlier]
            new = (run == NO_RUN) | (run != rows.run[later])
            earlier, later = earlier[new], later[new]
            self._count("distance_computations", len(earlier))
            distance = self.kind.meet(rows, earlier, later)
            found = ~np.isnan(distance)
            earlier, later = earlier[found], later[found]
            swap = (rows.flags[earlier] & 1) > (rows.flags[later] & 1)
            left, right = np.where(swap, later, earlier), np.where(swap, earlier, later)
            if len(left):
                yield Met(rows, left, right, distance[found])

    def _count(self, name: str, n: int) -> None:
        self._counters[name] = self._counters.get(name, 0) + n


def _meetings(is_right: Bools | None, is_new: Bools) -> Iterator[tuple[Ints, Ints, Any]]:
    """Places of the earlier and of the later rows, and where the later ones of each earlier one begin."""
    held, new = ~is_new, is_new

    def from_first(keys: Keys, _: Keys) -> Ints:
        return np.zeros(len(keys), np.int64)

    if is_right is None:
        later = np.flatnonzero(new)
        yield np.flatnonzero(held), later, from_first
        yield later, later, lambda keys, _: np.arange(1, len(keys) + 1)
        return
    sides = (~is_right, is_right)
    for mine, theirs, ties in ((0, 1, "left"), (1, 0, "right")):
        later = np.flatnonzero(new & sides[theirs])
        yield np.flatnonzero(held & sides[mine]), later, from_first
        yield (
            np.flatnonzero(new & sides[mine]),
            later,
            lambda keys, others, ties=ties: np.searchsorted(others, keys, ties),
        )
