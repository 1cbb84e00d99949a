"""Joins of few rows, which one call of a kernel finds sooner than a sweep chooses its coordinates."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import plain, read_only
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.distances import BY_AXIS, CHEBYSHEV, EUCLIDEAN, MANHATTAN
from epsjoin.kernels.projection import MAXIMUM, SQUARES, SUM
from epsjoin.kernels.sweep.few_rows import (
    Tables,
    Windows,
    choose_axis,
    count_few,
    find_windows,
    join_few,
    mark_few,
)
from epsjoin.kernels.sweep.row_windows import MAX_DIMENSIONS
from epsjoin.local.metric import Metric
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import UNREAD, Counters, add_counts

_MAX_WORK, _WORK_PER_CANDIDATE, _WORK_BESIDE_ROWS = 7 << 23, 24, 60
"""Maximum work, beyond which a sweep is faster; the work of each candidate beside that of its coordinates,
and this in so few dimensions that rows are swept one by one, which is faster than other sweeps."""
MAX_ORDERED = 1 << 12
"""Maximum number of rows that are sorted along one axis: a sweep has a grid, too."""
_COMPARED_PAIRS, _COMPARED_PER_ROW = 20_000, 32
"""Number of pairs of rows, in all and for each row, up to which all are compared, without sorting."""
_DENSE = 0.5
"""Fraction of compared pairs from which on all pairs are compared, since rows need not be sorted then."""
_METRIC_OF = {SQUARES: EUCLIDEAN, SUM: MANHATTAN, MAXIMUM: CHEBYSHEV}
"""Metrics that sum differences as the norms of embedded coordinates do."""
_NO_ROWS = np.empty(0, np.int64)
_ALL = plain(Windows(_NO_ROWS, _NO_ROWS, _NO_ROWS, _NO_ROWS))
"""Each query is compared with all points."""


class FewRows(Tables):
    """A join of few rows that is ready to run; made by :meth:`of`."""

    __slots__ = ()

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
        """Put rows in the order of an axis, if they are few; None if a sweep is faster.

        Parameters
        ----------
        points : (n, d) float64; for two tables, the left one's come first. Not modified.
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
        work = d + (_WORK_BESIDE_ROWS if d <= MAX_DIMENSIONS else _WORK_PER_CANDIDATE)
        if n_pairs * work > _MAX_WORK and (n > MAX_ORDERED or not is_ordered):
            return None
        decision, points = metric.decision(eps), read_only(points)
        near_metric, near_bound, embedded = decision.metric, decision.bound, points
        if near_metric not in BY_AXIS:
            embedded = read_only(metric.embed(points))
            near_metric, near_bound = _METRIC_OF[metric.norm], metric.embedded_bound(eps)
        is_left = is_one or of_left or n_left <= n - n_left
        sides = 0, n, 0, n
        if not is_one:
            sides = (0, n_left, n_left, n - n_left) if is_left else (n_left, n - n_left, 0, n_left)
        is_ahead = is_one and not both_ways
        n_compared = n * (n - 1) // 2 if is_ahead else sides[1] * sides[3]
        near = plain(decision), near_metric, near_bound, points, embedded
        found = cls(*near, *sides, is_one, is_left, is_ahead, _ALL, n_compared)
        if is_ordered:
            in_order = found._in_order(metric.embedded_eps(eps))
            is_dense = in_order.compared >= _DENSE * n_pairs and n_pairs * work <= _MAX_WORK
            found = found if is_dense and not (both_ways or of_left) else in_order
        return found if found.compared * work <= _MAX_WORK else None

    def _in_order(self, eps: float) -> FewRows:
        """Put queries and points in the order of the axis that tells most of them apart.

        Equal places stay in the order of their numbers: which partner is met first must not depend on the
        machine.

        Parameters
        ----------
        eps : threshold of embedded coordinates.
        """
        axis = choose_axis(self.embedded, eps)
        place = self.embedded[:, axis]
        queries = points = place[self.first_query : self.first_query + self.n_queries].argsort(kind="stable")
        if not self.is_one:
            points = place[self.first_point : self.first_point + self.n_points].argsort(kind="stable")
        begin, end, compared = find_windows(plain(self), axis, queries, points, eps)
        return self._replace(windows=plain(Windows(queries, points, begin, end)), compared=compared)

    def pairs(self) -> Pairs:
        """Find all pairs, sorted by both rows."""
        return Pairs(*join_few(plain(self)))

    def degrees(self) -> Ints:
        """Count the partners of each left row, which is a query."""
        return count_few(plain(self))

    def mark(self) -> tuple[Bools, int]:
        """Tell which left rows have a partner, and how many rows were compared for that."""
        marked = np.zeros(self.n_queries, np.bool_)
        return marked, mark_few(plain(self), marked)

    def count_work(self, counters: Counters, compared: int, n_pairs: int) -> None:
        """Add the work to counters."""
        if counters is UNREAD:  # quicker here than in the function that makes the message
            return
        add_counts(
            counters,
            rows=len(self.points),
            carried_rows=0,
            candidates=compared,
            distance_computations=compared,
            largest_stack=0,
            pairs=n_pairs,
        )
