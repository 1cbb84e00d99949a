"""What sets clusters apart: the dimensions in which their medians deviate most from that of all points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.arguments import int_column
from epsjoin.local.coordinates import check_points
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.neighbours.rank import (
    cut_longitudes,
    deviating_dimensions,
    robust_spread,
    shrink_of,
    turn_to,
)
from epsjoin.vocabulary import NOISE


class Described(NamedTuple):
    """Clusters by what sets them apart from all points; made by :func:`describe_clusters`.

    Parameters
    ----------
    label : (c,) int64, the labels of the clusters, ascending; noise is none of them.
    size : (c,) int64, numbers of their points.
    median : (c, d) float64, the median of a cluster's points in each dimension. A longitude may be beyond a
        half turn, so that it differs from that of ``centre`` by the shorter way round.
    dimension : (c, min(2, d)) int64, numbers of the dimensions in which the median deviates most, counted
        from 0; the most deviating first.
    z : (c, min(2, d)) float64, signed deviations there, in units of the spread of all points.
    centre, spread : (d,) float64, median and spread of all points in each dimension.
    """

    label: Ints
    size: Ints
    median: Floats
    dimension: Ints
    z: Floats
    centre: Floats
    spread: Floats


def describe_clusters(
    points: npt.ArrayLike, labels: npt.ArrayLike, metric: str | Metric = "euclidean"
) -> Described:
    """Find what sets each cluster apart: the two dimensions in which it deviates most from all points.

    Parameters
    ----------
    points : (n, d) array of finite floats or integers; not modified. Integers beyond 2**53 that float64 would
        round are refused.
    labels : (n,) whole numbers, the cluster of each point; ``NOISE`` (-1) for noise, which is not a cluster,
        but counts among all points. They may come from any algorithm.
    metric : name of the metric of the points (see :func:`epsjoin.get_metric`), or a :class:`epsjoin.Metric`;
        "euclidean" by default. It is only used to know whether the second dimension is a longitude
        (``haversine``, ``haversine_radians``).

    Returns
    -------
    Described
        The clusters by ascending label.

    Raises
    ------
    ArgumentError
        points or labels are not as above, or not equally many; the metric is unknown or not defined for a
        point; or float64 does not hold the spread of coordinates.

    See Also
    --------
    dbscan, hdbscan : clusters, whose ``labels`` these may be.

    Notes
    -----
    In dimension j let m be the median of all points, s = 1.4826 times the median of their distances to m, and
    c the median of a cluster's points. Then ``z = (c - m) / s``: on normal data s is the standard deviation,
    but a few far points hardly move it. Where s is 0 (more than half of all points have one value), z is 0 if
    c = m, and infinite otherwise. The two dimensions with the largest ``|z|`` are returned; of equal ones
    those with the larger ``|c - m|``, then the lower ones. No weight or unit of a dimension changes its z.

    A cluster can be set apart by a combination of values that are each common; then all z are small.

    Longitudes of a cluster are put together across 180°, cut where their widest gap is, and their median
    differs from that of all points by the shorter way round.

    O(n d), and O(n log n) to bring the points of each cluster together; a few copies of the points in memory.

    Examples
    --------
    >>> points = [[0, 5], [1, 5], [2, 6], [1, 60], [2, 61], [0, 62], [1, 7]]
    >>> found = describe_clusters(points, [0, 0, 0, 3, 3, 3, -1])
    >>> found.label.tolist(), found.median.tolist()
    ([0, 3], [[1.0, 5.0], [1.0, 61.0]])
    >>> found.dimension[:, 0].tolist(), found.z[:, 0].round(2).tolist()
    ([1, 1], [-0.67, 18.21])
    >>> np.array(["age", "income"])[found.dimension].tolist()
    [['income', 'age'], ['income', 'age']]
    """
    values, numbers, metric = check_points("points", points), int_column("labels", labels), get_metric(metric)
    if len(numbers) != len(values):
        raise ArgumentError(f"labels must be one per point, {len(values)}, not {len(numbers)}")
    metric.check(values, "points")
    turn, is_clustered = metric.full_turn, numbers != NOISE
    centre, spread = robust_spread(values, turn)
    is_lost = ~np.isfinite(spread)
    if is_lost.any():
        raise ArgumentError(
            f"points differ by so much in dimension {is_lost.argmax()} that float64 does not hold their "
            "spread; divide all coordinates by one number"
        )
    label, size, median = cluster_medians(values[is_clustered], numbers[is_clustered], turn)
    median = turn_to(median, centre, turn)
    return Described(label, size, median, *deviating_dimensions(median, centre, spread), centre, spread)


def cluster_medians(points: Floats, labels: Ints, turn: float) -> tuple[Ints, Ints, Floats]:
    """Find the median of each cluster's points in each dimension.

    Parameters
    ----------
    points, labels : (n, d) float64 and (n,) int64, the points of clusters and their labels.
    turn : full turn of the second dimension where it is a longitude; else 0.

    Returns
    -------
    labels (c,) int64, ascending; sizes (c,) int64; medians (c, d) float64.

    Notes
    -----
    Clusters of one size are looked at together: there are fewer than the square root of 2 n sizes, whatever
    the number of clusters.
    """
    order = np.argsort(labels, kind="stable")
    label, begin, size = np.unique(labels[order], return_index=True, return_counts=True)
    median = np.empty((len(label), points.shape[1]))
    for each in np.unique(size).tolist():
        alike = np.flatnonzero(size == each)
        rows = order[begin[alike, np.newaxis] + np.arange(each)]
        cut = cut_longitudes(points[rows], turn)
        shrink = shrink_of(cut)
        median[alike] = np.median(cut * shrink, axis=1) / shrink
    return label, size.astype(np.int64), median
