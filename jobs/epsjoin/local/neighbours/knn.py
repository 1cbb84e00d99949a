"""The k nearest neighbours of many points, exactly, by joins with an eps made for the points still open.

1. *Surplus* points go first: of more than k equal points only the k with the smallest rows can be neighbours.
2. A few of the open queries are compared with all points. That finishes them, and shows how the k-distances
   spread.
3. An *eps* is chosen from these k-distances: the largest at which the join stays small.
4. A join finds all points within eps of the open queries; a heap per query keeps its k nearest, the pairs
   themselves are not kept.
5. A query whose k-th neighbour lies within eps is *finished*: all other points are farther. The others go
   back to 2, with a larger eps, as theirs are the sparse regions.
6. Where few queries are left (far points), or every eps that helps would find a large share of all pairs,
   the rest is compared with all points.

References
----------
Dittrich's dissertation, section 3.5: a k-nearest-neighbour join "by an individually computed eps for each
point (or subspace)". Departure: not one eps per point but one per round for all points still open, so that
any eps-join serves.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.neighbours import knn
from epsjoin.kernels.neighbours.heaps import keep_nearest_of, sort_nearest
from epsjoin.kernels.paired import paired_distances
from epsjoin.local.arguments import FloatColumn, IntColumn, check_count, check_points
from epsjoin.local.join.arrays import iter_join, iter_self_join
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.progress import ProgressArgument

_FEW_COMPARISONS = 1 << 24  # a scan of so many is over before a join has begun
_SAMPLE_QUERIES, _SAMPLE_POINTS = 192, 4096  # at a time, of a round
_PAIRS_PER_NEIGHBOUR = 8  # pairs of a round, per open query and neighbour wished
_LARGE_SHARE = 1 / 16  # of all points, as pairs per query finished: a scan is faster
_SHARES = (1, 15 / 16, 7 / 8, 3 / 4, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64)  # finished by a round
# Distances are rounded roots, so eps is a little larger than the k-distance it shall reach, and what lies
# within a rounding error of eps is left open.
_EPS_SLACK, _CERTAIN = 1 + 4e-12, 1 - 1e-12
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, odd


class KNearest(NamedTuple):
    """The k nearest points of every query, in the order of the queries.

    Parameters
    ----------
    neighbour : (q, k) int64, rows of the points, the nearest first, ties: the smallest row first.
    distance : (q, k) float64, in the metric's unit.
    """

    neighbour: IntColumn
    distance: FloatColumn


def knn_join(
    queries: npt.ArrayLike | None,
    points: npt.ArrayLike,
    k: int,
    metric: str | Metric = "euclidean",
    *,
    n_jobs: int = 1,
    progress: ProgressArgument = False,
    counters: dict[str, int] | None = None,
) -> KNearest:
    """Find the k nearest points of every query.

    Parameters
    ----------
    queries : (q, d) floats or integers; not modified. None: the points themselves; a point is then not its
        own neighbour, though points equal to it are.
    points : (n, d) floats or integers, see :func:`epsjoin.local.arguments.check_points`; not modified.
    k : neighbours wished, 1 to n (with ``queries=None`` to n - 1).
    metric : a name for :func:`epsjoin.local.metric.get_metric`, or what it returned.
    n_jobs, progress : of every round's join, see :func:`epsjoin.local.join.arrays.iter_join`.
    counters : added to: ``rounds`` (joins), ``pairs`` (found by them), ``comparisons`` (outside of them).

    Returns
    -------
    KNearest
        Exactly k neighbours each, ties by the smallest row: the result depends on nothing but the points.

    Raises
    ------
    ArgumentError
        A wrong argument, a value that is NaN or infinite, a point for which the metric is not defined; more
        neighbours are wished than there are points.

    Notes
    -----
    Distances whose square leaves float64 (below 1e-150, above 1e150) are 0 or infinite, hence tied.

    32 bytes per query and neighbour at most, beside a copy of the queries and the join. A round's join is
    expected to find at most 8 k pairs per open query, more only where no eps has fewer for the queries that
    it finishes. Data in which every query is equally far from most points costs O(q n d), as a scan does.

    Examples
    --------
    >>> found = knn_join(None, [[0.0], [1.0], [3.0], [5.0]], k=2)
    >>> found.neighbour.tolist(), found.distance.tolist()
    ([[1, 2], [0, 2], [1, 3], [2, 1]], [[1.0, 3.0], [1.0, 2.0], [2.0, 2.0], [2.0, 4.0]])
    """
    k = check_count("k", k)
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    values = check_points("points", points)
    chosen.check(values)
    asked = values if queries is None else check_points("queries", queries)
    if asked.shape[1] != values.shape[1]:
        raise ArgumentError(
            f"queries must have as many columns as points, {values.shape[1]}, not {asked.shape[1]}"
        )
    chosen.check(asked)
    n_others = len(values) - (queries is None)
    if not len(asked):
        return KNearest(np.empty((0, k), dtype=np.int64), np.empty((0, k)))
    if k > n_others:
        raise ArgumentError(f"k must be at most the number of other points, {n_others}, not {k}")
    options = {"n_jobs": n_jobs, "progress": progress}
    # A point's own row is no neighbour of it, so one equal point more may be.
    first_equal = _surplus(values, k + 1 if queries is None else k)
    kept = np.flatnonzero(first_equal < 0)
    if queries is not None:
        itself = np.full(len(asked), -1)
        found = _Search(asked, values[kept], itself, k, chosen, options, counters).run()
        return KNearest(kept[found.neighbour], found.distance)
    if len(kept) == len(values):
        return _Search(values, values, kept, k, chosen, options, counters).run()
    rest = values[kept]
    found = _Search(rest, rest, np.arange(len(kept)), k, chosen, options, counters).run()
    return _with_surplus(values, kept, first_equal, found, chosen)


def k_distance(
    points: npt.ArrayLike,
    k: int,
    metric: str | Metric = "euclidean",
    *,
    n_jobs: int = 1,
    progress: ProgressArgument = False,
) -> FloatColumn:
    """Distance of every point to its k-th nearest neighbour, the point itself not counted.

    Parameters
    ----------
    points, k, metric, n_jobs, progress : see :func:`knn_join`; k is at most n - 1.

    Returns
    -------
    (n,) float64, in the metric's unit, in the order of the points.

    Raises
    ------
    ArgumentError
        See :func:`knn_join`.

    Examples
    --------
    >>> k_distance([[0.0], [1.0], [3.0], [5.0]], k=2).tolist()
    [3.0, 2.0, 2.0, 4.0]
    """
    return knn_join(None, points, k, metric, n_jobs=n_jobs, progress=progress).distance[:, -1].copy()


class _Search:
    """The lists of all queries, and the ways to fill them.

    Parameters
    ----------
    itself : (q,) int64, the row of points that a query must not find, -1 for none.
    options : of the joins.
    """

    def __init__(
        self,
        queries: FloatColumn,
        points: FloatColumn,
        itself: IntColumn,
        k: int,
        metric: Metric,
        options: dict[str, Any],
        counters: dict[str, int] | None,
    ) -> None:
        self.queries, self.points, self.itself, self.k = queries, points, itself, k
        self.metric, self.options = metric, options
        self.decision = metric.decision(math.inf)
        self.counters = {} if counters is None else counters
        self.size = np.zeros(len(queries), dtype=np.int64)
        self.neighbour = np.empty((len(queries), k), dtype=np.int64)
        self.distance = np.empty((len(queries), k))  # of an open query: a heap, the farthest first
        self.random = np.random.default_rng(0)

    def run(self) -> KNearest:
        """All lists, each in order."""
        rows = np.arange(len(self.queries))  # still open
        while rows.size * len(self.points) > _FEW_COMPARISONS and rows.size > _SAMPLE_QUERIES:
            is_sampled = np.zeros(rows.size, dtype=np.bool_)
            is_sampled[self.random.choice(rows.size, _SAMPLE_QUERIES, replace=False)] = True
            sample, rows = rows[is_sampled], rows[~is_sampled]
            self.scan(sample)
            eps = self.choose_eps(sample)
            if eps is None:
                break
            self.join(rows, eps)
            # A list's farthest entry stands first.
            is_done = (self.size[rows] == self.k) & (self.distance[rows, 0] <= eps * _CERTAIN)
            rows = rows[~is_done]
        self.scan(rows)
        starts = np.arange(len(self.queries) + 1) * self.k
        sort_nearest(starts, self.neighbour.reshape(-1), self.distance.reshape(-1))
        return KNearest(self.neighbour, self.distance)

    def scan(self, rows: IntColumn) -> None:
        """Fill the lists of these queries by comparing them with all points."""
        self.size[rows] = 0
        knn.scan_nearest(
            self.decision,
            self.queries,
            rows,
            self.points,
            self.itself,
            self.size,
            self.neighbour,
            self.distance,
        )
        self._count("comparisons", rows.size * len(self.points))

    def choose_eps(self, sample: IntColumn) -> float | None:
        """The eps of the next round; None where a scan of all open queries is the better way.

        Parameters
        ----------
        sample : finished queries, a uniform sample of those open before.
        """
        k_distances = np.sort(self.distance[sample, 0])
        places = [math.ceil(share * sample.size) - 1 for share in _SHARES]
        radius = np.unique(k_distances[places]) * _EPS_SLACK
        radius = radius[[self._is_threshold(each) for each in radius]]
        if not radius.size:
            return None
        n = len(self.points)
        some = np.arange(n)
        if n > _SAMPLE_POINTS:
            some = self.random.choice(n, _SAMPLE_POINTS, replace=False)
        counts = knn.count_within(self.decision, self.queries, sample, self.points, some, radius)
        self._count("comparisons", sample.size * some.size)
        per_query = counts * (n / some.size / sample.size)
        per_finished = per_query * sample.size / np.searchsorted(k_distances, radius, side="right")
        is_small = per_query <= _PAIRS_PER_NEIGHBOUR * self.k
        best = int(np.flatnonzero(is_small)[-1]) if is_small.any() else int(np.argmin(per_finished))
        return float(radius[best]) if per_finished[best] <= _LARGE_SHARE * n else None

    def join(self, rows: IntColumn, eps: float) -> None:
        """Fill the lists of these queries with their points within eps."""
        self.size[rows] = 0
        self._count("rounds", 1)
        is_open = np.zeros(len(self.queries), dtype=np.bool_)
        is_open[rows] = True
        is_self = self.queries is self.points
        if is_self and 2 * rows.size > len(self.queries):  # each pair once serves both its ends
            for left, right, distance in iter_self_join(self.points, eps, self.metric, **self.options):
                self._keep(left, right, distance, is_open)
                self._keep(right, left, distance, is_open)
                self._count("pairs", left.size)
            return
        for left, right, distance in iter_join(
            self.queries[rows], self.points, eps, self.metric, **self.options
        ):
            self._keep(rows[left], right, distance, is_open)
            self._count("pairs", left.size)

    def _keep(
        self, query: IntColumn, point: IntColumn, distance: FloatColumn, is_open: npt.NDArray[np.bool_]
    ) -> None:
        keep_nearest_of(
            query, point, distance, self.itself, is_open, self.size, self.neighbour, self.distance
        )

    def _is_threshold(self, eps: float) -> bool:
        try:
            self.metric.check_eps(float(eps))
        except ArgumentError:
            return False
        return True

    def _count(self, name: str, more: int) -> None:
        self.counters[name] = self.counters.get(name, 0) + more


def _surplus(points: FloatColumn, most: int) -> IntColumn:
    """For each row with ``most`` equal rows before it the first of them, -1 for the others.

    No query finds a surplus row: the ``most`` rows before it are exactly as far, whatever the metric.
    """
    hashes = np.zeros(len(points), dtype=np.uint64)
    for column in points.T:
        hashes ^= (column + 0.0).view(np.uint64)  # -0.0 becomes 0.0, its equal
        hashes *= _GOLDEN
        hashes ^= hashes >> np.uint64(32)
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    start = np.concatenate(([0], np.flatnonzero(hashes[1:] != hashes[:-1]) + 1, [len(points)]))
    return knn.find_surplus(points, order, start, most)


def _with_surplus(
    points: FloatColumn, kept: IntColumn, first_equal: IntColumn, found: KNearest, metric: Metric
) -> KNearest:
    """Results of all rows of a self join, from those of the kept rows.

    A surplus row has the neighbours of the first row equal to it, and that row itself.
    """
    n, k = len(points), found.distance.shape[1]
    neighbour, distance = np.empty((n, k), dtype=np.int64), np.empty((n, k))
    neighbour[kept], distance[kept] = kept[found.neighbour], found.distance
    surplus = np.flatnonzero(first_equal >= 0)
    first, of_first = np.unique(first_equal[surplus], return_inverse=True)
    # Cosine's distance of equal points may be a rounding error above 0.
    own = paired_distances(metric.decision(math.inf), points, first, first)
    rows = np.column_stack((neighbour[first], first))
    distances = np.column_stack((distance[first], own))
    order = np.lexsort((rows, distances), axis=1)[:, :k]
    neighbour[surplus] = np.take_along_axis(rows, order, axis=1)[of_first]
    distance[surplus] = np.take_along_axis(distances, order, axis=1)[of_first]
    return KNearest(neighbour, distance)
