"""DBSCAN of an array of points, from the pairs of their join; and the check of clusters that callers pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.arguments import as_array, bool_column, check_count, check_lengths, int_column
from epsjoin.local.cluster.batches import Dbscan, cluster_rows
from epsjoin.local.cluster.equal_rows import find_equal_rows
from epsjoin.local.coordinates import check_points, is_rounded
from epsjoin.local.join.arrays import iter_self_join
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.progress import ProgressArgument
from epsjoin.vocabulary import NOISE


def check_dbscan(clusters: Dbscan, *, are_numbers: bool = False) -> Dbscan:
    """Return clusters as callers pass them as arrays; without a copy where that is possible.

    Parameters
    ----------
    are_numbers : whether the labels must be numbers that :func:`dbscan` can give to this many points;
        otherwise they may be names, and the points may be some of those that were clustered.

    Raises
    ------
    ArgumentError
        They are not three columns of one length, of the types of :class:`Dbscan`; a core point has no
        cluster; or, with ``are_numbers``, a label cannot be one of this many points, or its cluster has no
        core point.
    """
    if not isinstance(clusters, (tuple, list)) or len(clusters) != 3:
        raise ArgumentError(
            "clusters must be (labels, is_core, degree), as dbscan returns them, not "
            f"{type(clusters).__name__}"
        )
    labels = int_column("labels of clusters", clusters[0])
    is_core = bool_column("is_core of clusters", clusters[1])
    degree = as_array("degree of clusters", clusters[2])
    if degree.ndim != 1 or (degree.size and degree.dtype.kind not in "iuf"):
        raise ArgumentError(
            f"degree of clusters must be a one-dimensional array of numbers, not {degree.ndim}-dimensional "
            f"{degree.dtype}"
        )
    check_lengths(labels=labels, is_core=is_core, degree=degree)
    is_wrong = is_core & (labels == NOISE)
    if are_numbers:
        is_wrong |= (labels < NOISE) | (labels >= len(labels))
    if are_numbers and not is_wrong.any():
        has_core = np.zeros(len(labels) + 1, np.bool_)  # the last place is that of noise
        has_core[labels[is_core]] = has_core[NOISE] = True
        is_wrong = ~has_core[labels]
    if is_wrong.any():
        row = int(is_wrong.argmax())
        kinds = f"from 0 to {len(labels) - 1} with a core point each, or " if are_numbers else ""
        raise ArgumentError(
            f"labels of clusters must be {kinds}{NOISE} for noise, which has no core point; row {row} has "
            f"{labels[row]}"
        )
    return Dbscan(labels, is_core, degree)


def dbscan(
    points: npt.ArrayLike,
    eps: float | npt.ArrayLike,
    min_pts: int,
    metric: str | Metric = "euclidean",
    *,
    weights: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_jobs: int | None = 1,
    progress: ProgressArgument = False,
    max_pairs: int | None = None,
) -> Dbscan:
    """Find the density clusters of points.

    Parameters
    ----------
    points : (n, d) array of finite floats or integers; not modified. Integers beyond 2**53 that float64 would
        round are refused.
    eps : threshold in the metric's unit, finite and above 0, or (d,) thresholds, one per dimension; see
        :func:`epsjoin.self_join`. A point at exactly eps is within it.
    min_pts : minimum number of points within eps, the point itself included, that makes a point a core point;
        at least 1.
    metric : name of a metric (see :func:`epsjoin.get_metric`), or a :class:`epsjoin.Metric`; "euclidean" by
        default.
    weights : (d,) numbers of at least 0, the weights of the dimensions; see :func:`epsjoin.self_join`.
    sample_weight : (n,) finite numbers that may be 0 or negative; 1 by default. A point counts as its weight
        says, also for itself. It is a core point if the weights within eps add up to at least ``min_pts``.
        Integers that float64 would round are refused.
    n_jobs : number of threads, 1 by default; -1 is one per processor. The result is the same for any number.
    progress : True draws a bar on stderr. A function is called with the fraction of the work that is done,
        from 0 to 1.
    max_pairs : maximum number of pairs within eps; by default there is no limit.

    Returns
    -------
    Dbscan
        A label for each point. A border point has the label of its nearest core point; of several at the same
        distance, the label of that with the smallest row.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; a coordinate is NaN or infinite; the metric is not
        defined for a point.
    BudgetError
        There are more than ``max_pairs`` pairs.

    See Also
    --------
    lof : a factor for each point instead of a cluster.
    fit_epsilon : an eps for a given min_pts.

    Notes
    -----
    The costs are those of the join, some 10 to 30 ns for each pair, and 41 bytes of memory for each point.
    Where many points are equal, one of them stands for all: their pairs are made only under ``max_pairs``.

    A pair waits in memory until it is known whether its points are core points. There are at most
    ``n (min_pts - 2)`` waiting pairs, of 16 bytes each (24 from 2**31 points on). With sample weights there
    may be more. With a negative weight no point is known to be core before the last pair, so all pairs wait.

    Weights are added in twice the precision of float64 and rounded once: ten weights of 0.1 add up to exactly
    1. So the degree does not depend on the order of points and pairs, as long as the square of a point's
    number of neighbours, times the largest of their weights, is at most 2**53 times the smallest one other
    than 0 (without their signs). Beyond that it may.

    Examples
    --------
    >>> found = dbscan([[0.0], [1.0], [2.0], [3.5], [9.0]], eps=1.5, min_pts=3)
    >>> found.labels.tolist(), found.is_core.tolist(), found.degree.tolist()
    ([0, 0, 0, 0, -1], [False, True, True, False, False], [2, 3, 3, 2, 1])
    """
    min_pts = check_count("min_pts", min_pts)
    values = check_points("points", points)
    n = len(values)
    weight = None if sample_weight is None else check_weights(sample_weight, n)
    get_metric(metric).check(values, "points")  # whose message has a row of all points
    # with a limit on pairs all are made, since the limit and its error are about the pairs of all points
    equal = find_equal_rows(values) if max_pairs is None else None
    batches = iter_self_join(
        values if equal is None else values[equal.firsts],
        eps,
        metric,
        weights=weights,
        n_jobs=n_jobs,
        progress=progress,
        max_pairs=max_pairs,
    )
    return cluster_rows(batches, n, min_pts, weight, equal)


def check_weights(sample_weight: npt.ArrayLike, n: int) -> Floats:
    """Return the weights of points as callers give them, in float64.

    Raises
    ------
    ArgumentError
        They are not one finite number for each of ``n`` points, or integers that float64 would round, or
        their sum is not finite.
    """
    given = as_array("sample_weight", sample_weight)
    if given.shape != (n,) or given.dtype.kind not in "fiub" or given.dtype.itemsize > 8:
        raise ArgumentError(
            f"sample_weight must be one number per point, {n}, of at most 64 bits, "
            f"not {given.dtype} of shape {given.shape}"
        )
    weight = given.astype(np.float64)
    if given.dtype.kind in "iu" and is_rounded(given, weight).any():
        raise ArgumentError("sample_weight must be integers that float64 can hold, or floats")
    with np.errstate(over="ignore"):
        total = np.abs(weight).sum()
    if not np.isfinite(total):
        raise ArgumentError("sample_weight must be finite numbers with a finite sum")
    return weight
