"""The exact k nearest neighbours of many points, by joins: each round chooses an eps for the open queries.

1. *Surplus* points are removed: of more than k equal points only the k with the smallest rows can be
   neighbours.
2. A few of the open queries are compared with all points. That finishes them, and it shows how the
   k-distances are distributed.
3. An *eps* is chosen from these k-distances: the largest for which the join stays small.
4. A join finds all points within eps of the open queries. A heap per query keeps its k nearest; the pairs
   themselves are not kept.
5. A query whose k-th neighbour lies within eps is *finished*: all other points are farther. The other queries
   are in sparser regions; for them step 2 begins again, with a larger eps.
6. Where few queries are left (far points), or every useful eps would find a large fraction of all pairs, the
   remaining queries are compared with all points.

References
----------
Dittrich's dissertation, section 3.5: a k-nearest-neighbour join "by an individually computed eps for each
point (or subspace)". Departure: not one eps per point, but one per round for all open queries, so that any
eps-join can be used.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.neighbours import knn
from epsjoin.kernels.neighbours.heaps import NearestLists, keep_nearest_of, sort_nearest
from epsjoin.kernels.paired import paired_distances
from epsjoin.local.arguments import check_count, check_points
from epsjoin.local.join.arrays import iter_join, iter_self_join
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.neighbours.tree import grow_tree, has_leaf_of_equal, make_lists, search
from epsjoin.local.progress import ProgressArgument
from epsjoin.local.sweep.sweeping import check_counters, check_n_jobs

_MAX_SCAN_COMPARISONS = 1 << 24
"""Maximum number of comparisons of a scan of all open queries: a join would take longer to begin."""

_MAX_TERMS_AT_ONCE, _MIN_SCANNED_QUERIES = 1 << 26, 64
"""Maximum number of coordinates that a scan compares in one call, tenths of a second; but at least so many
queries, since each call copies all points once."""

_SAMPLE_QUERIES, _SAMPLE_POINTS = 192, 4096
"""Number of queries that a round scans first, and of points with which it estimates the size of its join."""

_MAX_PAIRS_PER_NEIGHBOUR = 8
"""Maximum expected number of pairs of a round, per open query and requested neighbour."""

_MAX_JOIN_FRACTION = 1 / 16
"""Maximum fraction of all points that a join may find per finished query; beyond it a scan is faster."""

_MAX_TREE_FRACTION = 1 / 16
"""Maximum fraction of all points that the tree compares with a query; beyond it rounds are faster."""

_FINISHED_FRACTIONS = (1, 15 / 16, 7 / 8, 3 / 4, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64)
"""Fractions of the open queries that a round may finish; each stands for one eps to choose from."""

# Distances are rounded roots. So eps is a little larger than the k-distance that it has to reach, and a query
# whose k-th neighbour is within a rounding error of eps stays open.
_EPS_SLACK, _CERTAIN = 1 + 4e-12, 1 - 1e-12

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio, an odd number."""


class KNearest(NamedTuple):
    """The k nearest points of every query, in the order of the queries; made by :func:`knn_join`.

    Parameters
    ----------
    neighbour : (q, k) int64, row numbers of the points, the nearest first; of points at the same distance the
        smallest row first.
    distance : (q, k) float64, in the metric's unit.
    """

    neighbour: Ints
    distance: Floats


def knn_join(
    queries: npt.ArrayLike | None,
    points: npt.ArrayLike,
    k: int,
    metric: str | Metric = "euclidean",
    *,
    n_jobs: int | None = 1,
    progress: ProgressArgument = False,
    counters: dict[str, int] | None = None,
) -> KNearest:
    """Find the k nearest points of every query.

    Parameters
    ----------
    queries : (q, d) array of finite floats or integers; not modified. None: the points themselves are the
        queries. Then a point is not its own neighbour, but other points equal to it are.
    points : (n, d) array of finite floats or integers; not modified. Integers beyond 2**53 that float64 would
        round are refused.
    k : number of neighbours of each query, 1 to n (to n - 1 if queries is None).
    metric : name of a metric (see :func:`epsjoin.get_metric`), or a :class:`epsjoin.Metric`; "euclidean" by
        default.
    n_jobs : number of threads of each join, 1 by default; -1 is one per processor. The result is the same for
        any number.
    progress : True draws a bar on stderr for each join. A function is called with the fraction of each join
        that is done, from 0 to 1.
    counters : dictionary to whose entries the work is added: ``rounds`` (joins), ``pairs`` (found by the
        joins), ``comparisons`` (outside of the joins).

    Returns
    -------
    KNearest
        Exactly k neighbours of each query; of points at the same distance, those with the smallest rows.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; a coordinate is NaN or infinite; the metric is not
        defined for a point; k is larger than the number of points that can be neighbours.

    See Also
    --------
    k_distance : the distances to the k-th neighbour alone.
    join : all pairs within an eps.

    Notes
    -----
    The square of a distance below 1e-150 or above 1e150 does not fit into float64: such distances become 0 or
    infinite, and such neighbours count as equally far.

    The neighbours are found in rounds. Each round is a join, for the queries whose neighbours are not known
    yet, with an eps for which about 8 k pairs per query are expected at most. Where many points are equal or
    equally far, there may be more. Memory: a copy of the queries, the join of a round, and at most 32 bytes
    per query and neighbour. Where every query is about equally far from most points, no eps helps: all
    distances are computed, in O(q n d).

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
    query_points = values if queries is None else check_points("queries", queries)
    if query_points.shape[1] != values.shape[1]:
        raise ArgumentError(
            f"queries must have as many columns as points, {values.shape[1]}, not {query_points.shape[1]}"
        )
    chosen.check(query_points)
    n_others = len(values) - (queries is None)
    if not len(query_points):
        return KNearest(np.empty((0, k), dtype=np.int64), np.empty((0, k)))
    if k > n_others:
        raise ArgumentError(f"k must be at most the number of other points, {n_others}, not {k}")
    options = {"n_jobs": n_jobs, "progress": progress}
    # A point is not its own neighbour, so that one more equal point may be one.
    first_equal = _find_surplus(values, k + 1 if queries is None else k)
    kept = np.flatnonzero(first_equal < 0)
    if queries is not None:
        itself = np.full(len(query_points), -1)
        found = _Search(query_points, values[kept], itself, k, chosen, options, counters).run()
        return KNearest(kept[found.neighbour], found.distance)
    if len(kept) == len(values):
        return _Search(values, values, kept, k, chosen, options, counters).run()
    rest = values[kept]
    found = _Search(rest, rest, np.arange(len(kept)), k, chosen, options, counters).run()
    return _with_surplus(values, kept, first_equal, found, chosen)


def nearest_of(
    points: Floats,
    rows: Ints,
    k: int,
    metric: Metric,
    *,
    n_jobs: int | None = 1,
    counters: dict[str, int] | None = None,
) -> KNearest:
    """Find the k nearest other points of some of the points.

    Parameters
    ----------
    points : (n, d) float64, for which the metric is defined; this is not checked.
    rows : (m,) int64, the rows of these points, each once.
    k : number of neighbours of each, 1 to n - 1.
    metric, n_jobs : see :func:`knn_join`.
    counters : dictionary to whose entries the work is added: ``comparisons``; where most points are as far
        as any, also what :func:`knn_join` counts.

    Returns
    -------
    KNearest
        In the order of ``rows``; the same as in the rows of ``knn_join(None, points, k)``.

    Notes
    -----
    By a tree of boxes over the points. Where a few rows show that their radius reaches many boxes, as in many
    dimensions that are all alike, the rounds of :func:`knn_join` are faster; for a few rows a scan is.
    """
    n_threads, found = check_n_jobs(n_jobs), check_counters(counters)
    if len(rows) <= _MIN_SCANNED_QUERIES:
        options = {"n_jobs": n_threads, "progress": False}
        one = _Search(points[rows], points, rows, k, metric, options, found)
        one.scan(np.arange(len(rows)))
        return one.sorted()
    tree = grow_tree(points, metric, n_threads)
    kept = None
    if has_leaf_of_equal(tree):
        # a surplus row has k + 1 kept rows that are as far from all points as it is, and so finds k of them
        kept = np.flatnonzero(_find_surplus(points, k + 1) < 0)
        tree = grow_tree(points[kept], metric, n_threads)
    names = tree.order if kept is None else kept[tree.order]
    is_wanted = np.zeros(len(points), np.bool_)
    is_wanted[rows] = True
    near_to_far = names[is_wanted[names]]
    is_wanted[near_to_far] = False  # surplus rows remain
    queries = np.concatenate([near_to_far, np.flatnonzero(is_wanted)])
    lists = make_lists(len(queries), k)
    step = max(1, len(queries) // _SAMPLE_QUERIES)
    tried = make_lists(len(queries[::step]), k)
    compared = search(tree, names, points[queries[::step]], queries[::step], tried, metric, n_threads)
    per_query = compared / len(tried.sizes)
    if per_query > _MAX_TREE_FRACTION * len(points) and per_query * len(queries) > _MAX_SCAN_COMPARISONS:
        return _nearest_by_rounds(points, rows, k, metric, n_threads, found)
    compared += search(tree, names, points[queries], queries, lists, metric, n_threads)
    found["comparisons"] = found.get("comparisons", 0) + compared
    sort_nearest(np.arange(len(queries) + 1) * k, lists.ids.reshape(-1), lists.distances.reshape(-1))
    place = np.empty(len(points), np.int64)
    place[queries] = np.arange(len(queries))
    return KNearest(lists.ids[place[rows]], lists.distances[place[rows]])


def _nearest_by_rounds(
    points: Floats, rows: Ints, k: int, metric: Metric, n_jobs: int, counters: dict[str, int]
) -> KNearest:
    options = {"n_jobs": n_jobs, "progress": False}
    kept = np.flatnonzero(_find_surplus(points, k + 1) < 0)
    place = np.full(len(points), -1)
    place[kept] = np.arange(len(kept))
    found = _Search(points[rows], points[kept], place[rows], k, metric, options, counters).run()
    return KNearest(kept[found.neighbour], found.distance)


def k_distance(
    points: npt.ArrayLike,
    k: int,
    metric: str | Metric = "euclidean",
    *,
    n_jobs: int | None = 1,
    progress: ProgressArgument = False,
) -> Floats:
    """Compute the distance of every point to its k-th nearest neighbour, the point itself not counted.

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

    See Also
    --------
    knn_join : the neighbours, too.
    fit_epsilon : an eps from the k-distances of a sample.

    Examples
    --------
    >>> k_distance([[0.0], [1.0], [3.0], [5.0]], k=2).tolist()
    [3.0, 2.0, 2.0, 4.0]
    """
    return knn_join(None, points, k, metric, n_jobs=n_jobs, progress=progress).distance[:, -1].copy()


class _Search:
    """The k nearest found so far of all queries, and the two ways to find more: a scan and a join.

    Parameters
    ----------
    queries, points : (q, d) and (n, d) float64.
    itself : (q,) int64, the row of the point that a query must not find; -1 for none.
    k : number of neighbours of each query.
    metric : the metric of the distances.
    options : further arguments of the joins.
    counters : the caller's counters, or None.
    """

    def __init__(
        self,
        queries: Floats,
        points: Floats,
        itself: Ints,
        k: int,
        metric: Metric,
        options: dict[str, Any],
        counters: dict[str, int] | None,
    ) -> None:
        self.queries, self.points, self.itself, self.k = queries, points, itself, k
        self.metric, self.options = metric, options
        self.decision = metric.decision(math.inf)
        self.counters = check_counters(counters)
        self.size = np.zeros(len(queries), dtype=np.int64)
        self.neighbour = np.empty((len(queries), k), dtype=np.int64)
        self.distance = np.empty((len(queries), k))  # of an open query: a heap, the farthest first
        self.lists = NearestLists(self.size, self.neighbour, self.distance)
        self.random = np.random.default_rng(0)

    def run(self) -> KNearest:
        """Find the k nearest of all queries."""
        rows = np.arange(len(self.queries))  # still open
        while rows.size * len(self.points) > _MAX_SCAN_COMPARISONS and rows.size > _SAMPLE_QUERIES:
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
        return self.sorted()

    def sorted(self) -> KNearest:
        """Return what was found of all queries, the nearest first."""
        starts = np.arange(len(self.queries) + 1) * self.k
        sort_nearest(starts, self.neighbour.reshape(-1), self.distance.reshape(-1))
        return KNearest(self.neighbour, self.distance)

    def scan(self, rows: Ints) -> None:
        """Find the k nearest of these queries by comparing them with all points."""
        self.size[rows] = 0
        step = max(_MIN_SCANNED_QUERIES, _MAX_TERMS_AT_ONCE // self.points.size)
        for begin in range(0, rows.size, step):  # between two calls, an interrupt from the keyboard is seen
            some = rows[begin : begin + step]
            knn.scan_nearest(self.decision, self.queries, some, self.points, self.itself, self.lists)
        self._add_to_counter("comparisons", rows.size * len(self.points))

    def choose_eps(self, sample: Ints) -> float | None:
        """Choose the eps of the next round; None where a scan of all open queries is faster.

        Parameters
        ----------
        sample : finished queries, a uniform sample of the queries that were open before.
        """
        k_distances = np.sort(self.distance[sample, 0])
        places = [math.ceil(fraction * sample.size) - 1 for fraction in _FINISHED_FRACTIONS]
        radius = np.unique(k_distances[places]) * _EPS_SLACK
        radius = radius[[self._is_threshold(each) for each in radius]]
        if not radius.size:
            return None
        n = len(self.points)
        some = self.points
        if n > _SAMPLE_POINTS:
            some = self.points[self.random.choice(n, _SAMPLE_POINTS, replace=False)]
        counts = knn.count_within(self.decision, self.queries[sample], some, radius)
        self._add_to_counter("comparisons", sample.size * len(some))
        per_query = counts * (n / len(some) / sample.size)
        per_finished = per_query * sample.size / np.searchsorted(k_distances, radius, side="right")
        is_small = per_query <= _MAX_PAIRS_PER_NEIGHBOUR * self.k
        best = int(np.flatnonzero(is_small)[-1]) if is_small.any() else int(np.argmin(per_finished))
        return float(radius[best]) if per_finished[best] <= _MAX_JOIN_FRACTION * n else None

    def join(self, rows: Ints, eps: float) -> None:
        """Find the points within eps of these queries, and keep the k nearest of each."""
        self.size[rows] = 0
        self._add_to_counter("rounds", 1)
        is_open = np.zeros(len(self.queries), dtype=np.bool_)
        is_open[rows] = True
        is_self = self.queries is self.points
        if is_self and 2 * rows.size > len(self.queries):  # each pair once serves both its ends
            for left, right, distance in iter_self_join(self.points, eps, self.metric, **self.options):
                self._keep(left, right, distance, is_open)
                self._keep(right, left, distance, is_open)
                self._add_to_counter("pairs", left.size)
            return
        for left, right, distance in iter_join(
            self.queries[rows], self.points, eps, self.metric, **self.options
        ):
            self._keep(rows[left], right, distance, is_open)
            self._add_to_counter("pairs", left.size)

    def _keep(self, query: Ints, point: Ints, distance: Floats, is_open: Bools) -> None:
        keep_nearest_of((query, point, distance), self.itself, is_open, self.lists)

    def _is_threshold(self, eps: float) -> bool:
        try:
            self.metric.check_eps(float(eps))
        except ArgumentError:
            return False
        return True

    def _add_to_counter(self, name: str, more: int) -> None:
        self.counters[name] = self.counters.get(name, 0) + more


def _find_surplus(points: Floats, most: int) -> Ints:
    """Find the surplus rows: those with at least ``most`` equal rows before them.

    No query finds a surplus row, because ``most`` rows before it are exactly as far, whatever the metric.

    Returns
    -------
    (n,) int64, for a surplus row the first row equal to it, for all others -1.
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


def _with_surplus(points: Floats, kept: Ints, first_equal: Ints, found: KNearest, metric: Metric) -> KNearest:
    """Complete the results of the kept rows by those of the surplus rows.

    The neighbours of a surplus row are those of the first row equal to it, and that row itself.
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
