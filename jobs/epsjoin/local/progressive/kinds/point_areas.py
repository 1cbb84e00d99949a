"""Sweep areas of points: the compiled sweeps of :mod:`epsjoin.kernels.sweep`, behind the one protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from epsjoin.kernels.arrays import Bools, Bytes, Ints
from epsjoin.kernels.codes import cube_corners, hold_cubes, range_ends
from epsjoin.kernels.plan.cuts import MAX_AXES
from epsjoin.kernels.plan.stack_rows import FIRST_FREE, LEFT, RIGHT, StackRows
from epsjoin.kernels.projection import axes_by_variance
from epsjoin.kernels.sweep.window import window_rows
from epsjoin.local.join.options import BATCH_ROWS
from epsjoin.local.join.partners import find_partners
from epsjoin.local.metric import Metric
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.plan.split_rules.encode import Space
from epsjoin.local.progressive.rows import NO_RUN, Met, SweepRows, concat
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import SweepOptions, sweep_stack, sweep_window

_BATCH_FRACTION = 1 / 4
"""Minimum number of pairs in a batch of a sweep for each of its rows."""
_MIN_BATCH = 1 << 12
_GROUP_BITS = 8
"""Groups of a row of the stack sweep."""


class DecidesPoints(Protocol):
    """What an area asks a kind of join of points."""

    @property
    def metric(self) -> Metric:
        """The metric."""

    @property
    def eps(self) -> float:
        """The threshold in the metric's unit."""


class PointsArea(ABC):
    """Rows that a compiled sweep compares: those that are held, and those of a query.

    Parameters
    ----------
    kind : decides.
    counters : ``candidates`` and ``distance_computations`` are added to them.
    two_tables : whether rows of the right table are compared with those of the left, not all with all.

    Notes
    -----
    Rows that have met share a bit, and the sweep drops such candidates before it applies the metric. For runs
    for which no bit is left, they are dropped afterwards.
    """

    def __init__(self, kind: DecidesPoints, counters: dict[str, Any], two_tables: bool) -> None:
        self.kind: Any = kind
        self._counters, self._two_tables = counters, two_tables
        self._held: list[SweepRows] = []

    @property
    def size(self) -> int:
        """See :class:`~epsjoin.local.sweep.area.SweepArea`."""
        return sum(rows.n for rows in self._held)

    def insert(self, rows: SweepRows) -> None:
        """See :class:`~epsjoin.local.sweep.area.SweepArea`."""
        if rows.n:
            self._held.append(rows)

    def query(self, rows: SweepRows) -> Iterator[Met]:
        """See :class:`~epsjoin.local.sweep.area.SweepArea`."""
        both = concat([*self._held, rows])
        held = both.n - rows.n
        counts: dict[str, int] = {}
        batch_rows = min(BATCH_ROWS, max(_MIN_BATCH, int(both.n * _BATCH_FRACTION)))
        try:
            for first, second, distance in self._sweep(both, held, SweepOptions(batch_rows, counts)):
                run = both.run[first]
                new = ((run == NO_RUN) | (run != both.run[second])) & ((first >= held) | (second >= held))
                yield (
                    Met(both, first[new], second[new], distance[new])
                    if not new.all()
                    else Met(both, first, second, distance)
                )
        finally:  # also if the caller does not take the rest
            for name in ("candidates", "distance_computations"):
                self._counters[name] = self._counters.get(name, 0) + counts.get(name, 0)

    @abstractmethod
    def _sweep(self, rows: SweepRows, n_held: int, options: SweepOptions) -> Iterator[Pairs]:
        """Compare the rows from ``n_held`` on with those before and with one another: pairs of places."""

    @abstractmethod
    def expire(self, key: Any) -> SweepRows | None:
        """See :class:`~epsjoin.local.sweep.area.SweepArea`."""


class WindowArea(PointsArea):
    """The rows of one part, swept together by the compiled window sweep.

    Parameters
    ----------
    kind, counters, two_tables : see :class:`PointsArea`.
    first_free : first bit of the marks that no cut of the plan uses.
    """

    def __init__(
        self, kind: DecidesPoints, counters: dict[str, Any], two_tables: bool, first_free: int
    ) -> None:
        super().__init__(kind, counters, two_tables)
        self._first_free = first_free

    def expire(self, key: Any) -> SweepRows | None:
        """See :class:`~epsjoin.local.sweep.area.SweepArea`; a block of rows has one key."""
        dropped = [rows for rows in self._held if key is None or rows.key[-1] < key]
        self._held = [rows for rows in self._held if not (key is None or rows.key[-1] < key)]
        return concat(dropped) if dropped else None

    def _sweep(self, rows: SweepRows, n_held: int, options: SweepOptions) -> Iterator[Pairs]:
        metric, eps = self.kind.metric, self.kind.eps
        reach = metric.embedded_eps(eps)
        embedded = metric.embed(rows.values)
        projection = choose_projection(embedded, rows.n, reach, metric.norm).projection
        ordered = window_rows(
            rows.values,
            embedded,
            np.arange(rows.n),
            _mark_runs(rows, n_held, self._first_free),
            reach,
            projection,
            rows.is_right if self._two_tables else None,
        )
        return sweep_window(ordered, metric.decision(eps), options)


class PartnerArea(WindowArea):
    """The rows of one part, of which a semi or anti join asks which ones have a partner.

    Each row that lacks one looks for it from its own place outwards, until it has found the first. So among
    dense rows few pairs are compared. A row may be compared in vain with rows of its own run.

    Parameters
    ----------
    kind, counters, two_tables : see :class:`PointsArea`.
    lack_partner : see :meth:`~epsjoin.local.progressive.kinds.kind.SweepKind.new_partner_area`.
    """

    def __init__(
        self,
        kind: DecidesPoints,
        counters: dict[str, Any],
        two_tables: bool,
        lack_partner: Callable[[SweepRows], Bools],
    ) -> None:
        super().__init__(kind, counters, two_tables, 1)
        self._lack_partner = lack_partner

    def query(self, rows: SweepRows) -> Iterator[Met]:
        """See :class:`~epsjoin.local.sweep.area.SweepArea`; of pairs, a row that has found its first partner.

        It stands on both sides, and its distance is 0, as that of a pair that no lowered eps rules out.
        """
        both = concat([*self._held, rows])
        asking = self._lack_partner(both)
        others = both.is_right if self._two_tables else np.ones(both.n, np.bool_)
        if not (asking.any() and others.any()):
            return
        sides = [np.flatnonzero(asking), np.flatnonzero(others)]
        at = np.concatenate(sides)
        counts: dict[str, int] = {}
        found = find_partners(
            both.values[at],
            both.number[at],
            np.arange(len(at)) >= len(sides[0]),
            self.kind.eps,
            self.kind.metric,
            SweepOptions(BATCH_ROWS, counts),
            is_self=not self._two_tables,
        )
        for name in ("candidates", "distance_computations"):
            self._counters[name] = self._counters.get(name, 0) + counts.get(name, 0)
        places = np.flatnonzero(asking & np.isin(both.number, found))
        if len(places):
            yield Met(both, places, places, np.zeros(len(places)))


class StackArea(PointsArea):
    """Rows by the codes of their cells, swept by the compiled stack sweep.

    Parameters
    ----------
    kind, counters, two_tables : see :class:`PointsArea`.
    space : how points become codes.

    Notes
    -----
    What is left when the area has been told the next key is a stack: codes of which each is a prefix of the
    next, and of that key.
    """

    def __init__(self, kind: DecidesPoints, counters: dict[str, Any], two_tables: bool, space: Space) -> None:
        super().__init__(kind, counters, two_tables)
        self._space = space

    def expire(self, key: Any) -> SweepRows | None:
        """See :class:`~epsjoin.local.sweep.area.SweepArea`."""
        if not self._held:
            return None
        held = concat(self._held)
        ends = range_ends(_codes(held)).view(held.key.dtype).reshape(held.n)
        stays = np.zeros(held.n, np.bool_) if key is None else ends >= key
        self._held = [held.take(stays)] if stays.any() else []
        return held.take(~stays)

    def _sweep(self, rows: SweepRows, n_held: int, options: SweepOptions) -> Iterator[Pairs]:
        space, metric, eps = self._space, self.kind.metric, self.kind.eps
        embedded = metric.embed(rows.values)
        codes = _codes(rows)
        lower, upper = cube_corners(embedded, space.axes, space.low, space.width, space.eps)
        near = np.ascontiguousarray(embedded[:, axes_by_variance(embedded)])
        stacked = StackRows(
            rows.values, near, codes, lower, ~hold_cubes(codes, lower, upper), self._groups(rows)
        )
        return sweep_stack(
            stacked, np.arange(rows.n), metric.embedded_eps(eps), metric.decision(eps), options, n_held
        )

    def _groups(self, rows: SweepRows) -> Bytes:
        """The groups of rows: their table, where there are two, and one for each of the first runs."""
        groups = np.zeros(rows.n, np.uint8)
        if self._two_tables:
            groups |= np.where(rows.is_right, RIGHT, LEFT).astype(np.uint8)
        has_bit = (rows.run != NO_RUN) & (rows.run < _GROUP_BITS - FIRST_FREE.bit_length() + 1)
        return groups | np.where(has_bit, FIRST_FREE << np.where(has_bit, rows.run, 0), 0).astype(np.uint8)


def _codes(rows: SweepRows) -> Bytes:
    """The codes that are the keys of rows: (n, w)."""
    return np.ascontiguousarray(rows.key).view(np.uint8).reshape(rows.n, rows.key.dtype.itemsize)


def _mark_runs(rows: SweepRows, n_held: int, free: int) -> Ints:
    """Masks of rows: the first free bit for those that were held, and one for each run of the others."""
    mask = rows.mark.copy() if len(rows.mark) else np.zeros(rows.n, np.int64)
    if free <= MAX_AXES:
        mask[:n_held] |= np.int64(1) << free
    bit = free + 1 + rows.run[n_held:].astype(np.int64)
    has_bit = (rows.run[n_held:] != NO_RUN) & (bit <= MAX_AXES)
    mask[n_held:] |= np.where(has_bit, np.int64(1) << np.where(has_bit, bit, 0), 0)
    return mask
