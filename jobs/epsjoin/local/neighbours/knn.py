"""The exact k nearest neighbours of points: of all queries, of some of the points, and the distance alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.neighbours.heaps import NearestLists
from epsjoin.local.arguments import MAX_COLUMNS, check_count
from epsjoin.local.coordinates import check_coordinates, check_dimensions
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.neighbours.lent import LentPoints
from epsjoin.local.neighbours.nearest import KNearest, SearchOptions
from epsjoin.local.neighbours.search import fill_lists, find_nearest
from epsjoin.local.progress import ProgressArgument, check_progress
from epsjoin.local.scale import check_weights, weigh_metric
from epsjoin.local.scratch import MakeArray
from epsjoin.local.sweep.sweeping import check_counters, check_n_jobs


def knn_join(
    queries: npt.ArrayLike | None,
    points: npt.ArrayLike,
    k: int,
    metric: str | Metric = "euclidean",
    *,
    weights: npt.ArrayLike | None = None,
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
    weights : (d,) numbers of at least 0 that weigh the dimensions, see :func:`epsjoin.self_join`; not for
        cosine and the haversine metrics.
    n_jobs : number of threads, 1 by default; -1 is one per processor. The result is the same for any number.
    progress : True draws a bar on stderr for each search in the tree and each join. A function is called with
        the fraction of each that is done, from 0 to 1.
    counters : dictionary to whose entries the work is added: ``comparisons`` (outside of joins), ``rounds``
        (joins), ``pairs`` (found by the joins), ``products`` (pairs filtered by products of matrices).

    Returns
    -------
    KNearest
        Exactly k neighbours of each query; of points at the same distance, those with the smallest rows.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; a coordinate is NaN or infinite; the metric is not
        defined for a point, or has no weights; k is larger than the number of points that can be neighbours.

    See Also
    --------
    k_distance : the distances to the k-th neighbour alone.
    join : all pairs within an eps.

    Notes
    -----
    The square of a distance below 1e-150 or above 1e150 does not fit into float64, and so for minkowski the
    p-th power of a difference: such distances become 0 or infinite, and such neighbours count as equally far.
    With weights that holds of weighted powers, too.

    A tree of boxes over the points finds the neighbours; boxes beyond a query's own radius are left out. In
    eight and more dimensions that are all alike, a query reaches many boxes. The comparisons of 192 queries
    in the tree show whether joins cost less: each join is for all queries whose neighbours are not known yet,
    with an eps for which at most about 8 k pairs per query are expected. If no box and no pair can be left
    out, all distances are computed, in O(q n d).

    From 32 dimensions on, and with some thousand queries and points from 12 on, euclidean and cosine have one
    more way: products of blocks of queries and points in float32, with a proven slack, leave few points whose
    distance is computed. The sample of a tree shows when that costs less. Then queries and points that are
    both float32 stay float32. If the points search among themselves, each product serves both of its points.

    With weights other than 0 and 1, points are compared one by one, which takes several times as long. Points
    that you multiply beforehand, for euclidean by the roots of the weights, are compared as fast as others;
    but that rounds coordinates, and so distances.

    Memory: the tree, with at most two copies of the points; 16 bytes per query and neighbour; if joins cost
    less, a copy of the queries and the join of a round. By products, at most d + 6 float32 per row instead of
    the tree; if the points search among themselves, at most twice as much, and the bytes of the points.

    Examples
    --------
    >>> found = knn_join(None, [[0.0], [1.0], [3.0], [5.0]], k=2)
    >>> found.neighbour.tolist(), found.distance.tolist()
    ([[1, 2], [0, 2], [1, 3], [2, 1]], [[1.0, 3.0], [1.0, 2.0], [2.0, 2.0], [2.0, 4.0]])
    >>> knn_join([[0.0, 0.0]], [[2.0, 0.0], [0.0, 3.0]], k=1, weights=[4, 1]).neighbour.tolist()
    [[1]]
    """
    k = check_count("k", k, most=MAX_COLUMNS)
    check_progress(progress)
    options = SearchOptions(check_n_jobs(n_jobs), progress, check_counters(counters))
    chosen = get_metric(metric)
    values = check_coordinates("points", points)
    chosen.check(values, "points")
    query_points = values if queries is None else check_coordinates("queries", queries)
    check_dimensions(points=values.shape[1], queries=query_points.shape[1])
    chosen.check(query_points, "queries")
    given = check_weights(chosen, values.shape[1], weights)
    if given is not None:
        if not given.all():  # columns of weight 0 do not count; if there are no others, one stays
            columns = np.flatnonzero(given) if given.any() else np.arange(1)
            weighed, given = values.take(columns, axis=1), given[columns]
            query_points = weighed if query_points is values else query_points.take(columns, axis=1)
            values = weighed
        chosen = weigh_metric(chosen, values, given)
    if query_points.dtype != values.dtype:
        query_points, values = np.asarray(query_points, np.float64), np.asarray(values, np.float64)
    n_others = len(values) - (queries is None)
    if not len(query_points):
        return KNearest(np.empty((0, k), dtype=np.int64), np.empty((0, k)))
    if k > n_others:
        raise ArgumentError(f"k must be at most the number of other points, {n_others}, not {k}")
    itself = np.arange(len(values)) if queries is None else np.full(len(query_points), -1)
    return find_nearest(query_points, values, itself, k, chosen, options)


def search_rows(
    points: Floats | LentPoints,
    rows: Ints,
    lists: NearestLists,
    metric: Metric,
    *,
    n_jobs: int | None = 1,
    counters: dict[str, int] | None = None,
    make: MakeArray = np.zeros,
) -> None:
    """Find the k nearest other points of some of the points.

    Parameters
    ----------
    points : (n, d) float64, for which the metric is defined; this is not checked. A tree may take the memory
        of lent points.
    rows : (m,) int64, the rows of these points, each once.
    lists : of all points, with room for k neighbours each, 1 to n - 1. Those of ``rows`` become heaps of the
        neighbours that ``knn_join(None, points, k)`` finds, the farthest first; the others stay.
    metric, n_jobs : see :func:`knn_join`.
    counters : dictionary to whose entries the work is added, see :func:`knn_join`.
    make : makes the arrays that have a row for each point.
    """
    options = SearchOptions(check_n_jobs(n_jobs), False, check_counters(counters), make)
    fill_lists(points, points, np.arange(points.shape[0]), rows, lists, metric, options)


def k_distance(
    points: npt.ArrayLike,
    k: int,
    metric: str | Metric = "euclidean",
    *,
    weights: npt.ArrayLike | None = None,
    n_jobs: int | None = 1,
    progress: ProgressArgument = False,
) -> Floats:
    """Compute the distance of every point to its k-th nearest neighbour, the point itself not counted.

    Parameters
    ----------
    points, k, metric, weights, n_jobs, progress : see :func:`knn_join`; k is at most n - 1.

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
    how: dict[str, Any] = {"weights": weights, "n_jobs": n_jobs, "progress": progress}
    return knn_join(None, points, k, metric, **how).distance[:, -1].copy()
