"""Joins of few rows, which one call of a kernel finds sooner than a sweep chooses its coordinates."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.distances import BY_AXIS, CHEBYSHEV, EUCLIDEAN, MANHATTAN, Decision
from epsjoin.kernels.join.few_rows import (
    Line,
    Near,
    Windows,
    count_few,
    count_near,
    find_windows,
    join_few,
    mark_few,
)
from epsjoin.kernels.join.projection import MAXIMUM, SQUARES, SUM
from epsjoin.local.metric import Metric
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import Counters, add_counts

_MAX_WORK, _WORK_PER_CANDIDATE = 3 << 23, 24
"""Maximum work, beyond which a sweep is sooner; that of each candidate beside its coordinates."""
MAX_ORDERED = 1 << 12
"""Maximum number of rows that are put in order: a sweep has a grid, too."""
_COMPARED_PAIRS, _COMPARED_PER_ROW = 20_000, 32
"""Number of pairs of rows, in all and for each row, up to which all are compared: that takes no order."""
_DENSE = 0.5
"""Fraction of all pairs that are compared from which on all are: they need not be sorted then."""
_SAMPLED = np.arange(64) * 2_654_435_761
"""Numbers, modulo that of all, of rows that show which axis tells most of them apart. By a prime: rows of one
kind may come at any regular distance."""
_METRIC_OF = {SQUARES: EUCLIDEAN, SUM: MANHATTAN, MAXIMUM: CHEBYSHEV}
"""Metrics that sum differences as the norms of embedded coordinates do."""


class FewRows(NamedTuple):
    """A join of few rows that is ready to run; made by :meth:`of`.

    Parameters
    ----------
    decision, near, queries, points, windows, is_one, is_left : see
        :func:`epsjoin.kernels.join.few_rows.join_few`.
    compared : number of rows in all windows.
    """

    decision: Decision
    near: Near
    queries: Line
    points: Line
    windows: Windows
    is_one: bool
    is_left: bool
    compared: int

    @classmethod
    def of(
        cls,
        points: Floats,
        n_left: int,
        is_one: bool,
        eps: float,
        metric: Metric,
        *,
        of_left: bool = False,
        both_ways: bool = False,
    ) -> FewRows | None:
        """Put rows in the order of an axis, if they are few; None where a sweep is sooner.

        Parameters
        ----------
        points : (n, d) float64; of two tables the left one's first. Not modified.
        n_left : number of rows of the left table, or of the only one.
        is_one : whether there is one table.
        eps, metric : threshold and metric; see :class:`epsjoin.local.join.array_join.ArrayJoin`.
        of_left : whether the left rows are the queries, as :meth:`degrees` and :meth:`mark` need it, instead
            of those of the smaller table.
        both_ways : whether windows of one table have all rows that are near, as :meth:`mark` needs it,
            instead of those behind the query.
        """
        n, d = points.shape
        n_pairs = n * n // 2 if is_one else n_left * (n - n_left)
        is_ordered = n_pairs > max(_COMPARED_PAIRS, _COMPARED_PER_ROW * n)
        work = _WORK_PER_CANDIDATE + d
        if n_pairs * work > _MAX_WORK and (n > MAX_ORDERED or not is_ordered):
            return None
        decision, embedded = metric.decision(eps), points
        near = Near(decision.metric, decision.bound)
        if decision.metric not in BY_AXIS:
            embedded, near = metric.embed(points), Near(_METRIC_OF[metric.norm], metric.embedded_bound(eps))
        is_left = is_one or of_left or n_left <= n - n_left
        left, right = slice(0, n_left), slice(0 if is_one else n_left, n)
        first, second = (left, right) if is_left else (right, left)
        is_ahead = is_one and not both_ways
        if is_ordered:
            reach = metric.embedded_eps(eps)
            place = embedded[:, _choose_axis(embedded, reach)]
            # pairs are sorted afterwards, but which partner is met first must not depend on the machine
            kind: Literal["stable", "quicksort"] = "stable" if both_ways else "quicksort"
            of_first, of_second = (np.argsort(place[each], kind=kind) for each in (first, second))
            along = place[first][of_first], place[second][of_second]
            windows, compared = find_windows(*along, reach, is_ahead)
            is_dense = compared >= _DENSE * n_pairs and n_pairs * work <= _MAX_WORK
            is_ordered = both_ways or of_left or not is_dense
        if not is_ordered:
            of_first, of_second = (np.arange(each.stop - each.start) for each in (first, second))
            begin = of_first + 1 if is_ahead else np.zeros(len(of_first), np.int64)
            windows = Windows(begin, np.full(len(begin), len(of_second)))
            compared = n * (n - 1) // 2 if is_ahead else len(of_first) * len(of_second)
        if compared * work > _MAX_WORK:
            return None
        queries = Line(points[first], embedded[first], of_first)
        others = queries if is_one else Line(points[second], embedded[second], of_second)
        return cls(decision, near, queries, others, windows, is_one, is_left, compared)

    def pairs(self) -> Pairs:
        """Find all pairs, sorted by both rows."""
        left, right, distance = join_few(*self._tables, self.is_one, self.is_left)
        return Pairs(left, right, distance)

    def degrees(self) -> Ints:
        """Count the partners of each left row, which is a query."""
        return count_few(*self._tables, self.is_one)

    def mark(self) -> tuple[Bools, int]:
        """Tell which left rows have a partner, and how many rows were compared for that."""
        marked = np.zeros(len(self.queries.order), np.bool_)
        return marked, mark_few(*self._tables, self.is_one, marked)

    @property
    def _tables(self) -> tuple[Decision, Near, Line, Line, Windows]:
        return self.decision, self.near, self.queries, self.points, self.windows

    def count_work(self, counters: Counters, compared: int, n_pairs: int) -> None:
        """Add the work to counters."""
        n_rows = len(self.queries.order) + (0 if self.is_one else len(self.points.order))
        add_counts(
            counters,
            rows=n_rows,
            carried_rows=0,
            candidates=compared,
            distance_computations=compared,
            largest_stack=0,
            pairs=n_pairs,
        )


def _choose_axis(embedded: Floats, eps: float) -> int:
    """The axis on which the fewest pairs of a sample are within eps."""
    return int(np.argmin(count_near(embedded[_SAMPLED % len(embedded)], eps)))
