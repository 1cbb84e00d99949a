"""What is within eps of a query, for a tree of boxes, and how many points that is: without making pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import EARTH_RADIUS_KM
from epsjoin.kernels.neighbours.within import Reach, count_within_tree
from epsjoin.kernels.pairs.sort_pairs import count
from epsjoin.kernels.projection import SQUARES
from epsjoin.local.coordinates import check_dimensions, check_points
from epsjoin.local.join.arrays import iter_join, iter_self_join
from epsjoin.local.join.few_rows import FewRows
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.tree import grow_boxes, order_by_place
from epsjoin.local.plan.expectation.expected import expected_pairs_of_tables
from epsjoin.local.plan.product import MIN_DIMENSIONS, has_products
from epsjoin.local.progress import Progress, ProgressArgument
from epsjoin.local.scale import ScaledMetric, scale_metric
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import Counters, add_counts
from epsjoin.local.sweep.threads import in_order

_FEW_PAIRS = 50
"""Number of expected pairs per point up to which a join finds them faster than a tree counts them."""

_FEW_FRACTION = 1 / 8
"""Expected pairs per point, as a fraction of the counted points, up to which a join is faster in a dozen
dimensions and more. In one table, each pair counts for two points."""

_QUERIES_AT_ONCE = 4096
"""Number of queries that a thread counts for before it takes the next ones."""

_MIN_SQUARE = 1e-300
"""Square of a length from which on the squares of its parts have all their digits, except for negligible
ones."""

_SLACK, _COSINE_SLACK, _STEEPEST = 1e-9, 4e-9, 1.5
"""More than all rounding errors between a box and the reported distance. On the sphere they hold up to half
an angle of 1.5; beyond it, a chord hardly determines the angle."""


def reach_of(metric: Metric, eps: float, d: int) -> Reach:
    """Compute the limits by which boxes are out of reach of eps, or lie within it as a whole.

    Parameters
    ----------
    metric : the metric of the distances.
    eps : threshold that the metric can decide.
    d : number of coordinates of a point.

    Notes
    -----
    A whole box needs an upper bound of the distance. A power mean of d differences is at most ``d**(1/p)``
    times the largest and ``d**(1/p - 1/2)`` times the Euclidean length (p up to 2). Clipped, scaled
    coordinates give no upper bound.
    """
    near = metric.embedded_bound(eps)
    length = eps * (1.0 - _SLACK)
    if isinstance(metric, ScaledMetric):
        length = -1.0
    elif metric.name == "minkowski":
        length /= d ** (1.0 / metric.p - (0.5 if metric.norm == SQUARES else 0.0))
    elif metric.name == "cosine":
        length = math.sqrt(2.0 * (eps - _COSINE_SLACK)) if eps > _COSINE_SLACK else -1.0
    elif metric.name in ("haversine", "haversine_radians"):
        half = eps / (2.0 * (EARTH_RADIUS_KM if metric.name == "haversine" else 1.0))
        length = 2.0 * math.sin(half) * (1.0 - _SLACK) - _SLACK if half <= _STEEPEST else -1.0
    if metric.norm != SQUARES:
        return Reach(metric.norm, near, length)
    square = length * length
    is_sure = length > 0.0 and _MIN_SQUARE <= square < math.inf  # where all gaps underflow, none is large
    return Reach(SQUARES, near, square if is_sure else -1.0)


def degree(
    points: ArrayLike,
    eps: float | ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    right: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    n_jobs: int | None = 1,
    progress: ProgressArgument = False,
    counters: Counters | None = None,
) -> Ints:
    """Count the points within eps of every point, without making pairs.

    Parameters
    ----------
    points : (n, d) array of finite floats or integers; not modified.
    eps, metric, weights : see :func:`epsjoin.self_join`. A point at exactly eps is within it.
    right : (m, d) the points that are counted; by default ``points`` themselves, each of which then counts
        itself, as in :class:`epsjoin.Dbscan`.
    n_jobs : number of threads, 1 by default; -1 is one per processor. The result is the same for any number.
    progress : True draws a bar on stderr. A function is called with the fraction of the work that is done,
        from 0 to 1.
    counters : dictionary to whose entries the work is added: ``comparisons`` in the tree, or that of a join.

    Returns
    -------
    (n,) int64, in the order of ``points``.

    Raises
    ------
    ArgumentError
        See :func:`epsjoin.self_join`.

    See Also
    --------
    row_pairs : the pairs themselves.
    estimate : about how many pairs there will be, from a sample.

    Notes
    -----
    Few rows are joined in one call. For more rows, if a sample shows few pairs per point, the batches of a
    join are counted and dropped: at the cost of the join, in the memory of a batch. If it shows many, they
    are counted by a tree of boxes over the counted points: a box that lies within eps as a whole is counted
    at once, so that points inside a large eps cost nothing. From 12 dimensions on few boxes are within eps as
    a whole, so a join counts up to a quarter of all pairs, or for two tables an eighth; with weights or one
    eps per dimension no box is.

    Examples
    --------
    >>> degree([[0.0], [1.0], [2.0], [9.0]], eps=1.0).tolist()
    [2, 3, 2, 1]
    >>> degree([[0.5]], eps=1.0, right=[[0.0], [1.0], [9.0]]).tolist()
    [2]
    """
    options = JoinOptions.of(metric, n_jobs, None, progress, counters)
    queries = check_points("points", points)
    others = queries if right is None else check_points("right", right)
    check_dimensions(points=queries.shape[1], right=others.shape[1])
    both = queries if right is None else np.concatenate((queries, others))
    scaled, threshold = scale_metric(options.metric, both, eps, weights)
    scaled.check(queries, "points")
    if right is not None:
        scaled.check(others, "right")
    few_rows = FewRows.of(both, len(queries), right is None, threshold, scaled, of_left=True)
    if few_rows is not None:
        with Progress(options.progress, "degree"):
            degrees = few_rows.degrees()
        n_pairs = int(degrees.sum()) // (2 if right is None else 1)
        few_rows.count_work(options.counters, few_rows.compared, n_pairs)
        return degrees + int(right is None)
    expected = expected_pairs_of_tables(queries, None if right is None else others, threshold, scaled)
    few = float(_FEW_PAIRS)
    if queries.shape[1] >= MIN_DIMENSIONS and has_products(scaled):
        few = max(few, _FEW_FRACTION * len(others))
    if expected > few * len(queries):
        itself = right is None
        return _count_by_tree(queries, others, itself, scaled, threshold, options)
    how: dict[str, Any] = {"weights": weights, "n_jobs": n_jobs, "progress": progress, "counters": counters}
    if right is None:
        return _count(iter_self_join(queries, eps, options.metric, **how), len(queries), True)
    return _count(iter_join(queries, others, eps, options.metric, **how), len(queries), False)


def _count(batches: Iterable[Pairs], n: int, is_one: bool) -> Ints:
    """Count the partners of each left row; of one table, both ends and each row itself."""
    counts = np.full(n, int(is_one))
    for pairs in batches:
        count(pairs.left, counts)
        if is_one:
            count(pairs.right, counts)
    return counts


def _count_by_tree(
    queries: Floats, others: Floats, is_one: bool, metric: Metric, eps: float, options: JoinOptions
) -> Ints:
    tree = grow_boxes(others, metric, options.n_jobs)
    rows = tree.order if is_one else order_by_place(queries, metric)
    decision, reach = metric.decision(eps), reach_of(metric, eps, others.shape[1])
    counts = np.zeros(len(queries), np.int64)

    def work(some: Ints) -> Iterator[int]:
        mine = queries[some]
        embedded = read_only(metric.embed(mine))
        yield count_within_tree(decision, reach, tree, read_only(mine), embedded, read_only(some), counts)

    starts = range(0, len(rows), _QUERIES_AT_ONCE)
    batches = (work(rows[begin : begin + _QUERIES_AT_ONCE]) for begin in starts)
    with (
        Progress(options.progress, "degree") as shown,
        closing(in_order(batches, options.n_jobs)) as compared,
    ):
        for number, comparisons in enumerate(compared, 1):
            add_counts(options.counters, comparisons=comparisons)
            shown.show(number / len(starts))
    return counts
