"""Distances of sampled points to their k nearest others, and what follows: quantile, knee, exponents."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

import numpy as np

from epsjoin.console import counted
from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.paired import paired_distances
from epsjoin.local.epsilon.power_law import BY_HAND
from epsjoin.local.metric import Metric
from epsjoin.local.plan.expectation.expected import draw_rows

TYPED_DIGITS = 6
"""Significant digits of an eps that is to be typed."""

ALL_DIGITS = 17
"""Significant digits with which every double is written exactly."""

_MAX_QUERIES = 1_000
"""Maximum number of points with k-distances: a quantile's fraction is then known to a hundredth."""

_BATCH_NUMBERS = 1 << 21
"""Maximum number of distances in the temporary array of one step."""


class Knee(NamedTuple):
    """The knee of a k-distance curve, where it begins to rise faster; made by :meth:`EpsilonFit.knee`.

    Parameters
    ----------
    eps : the k-distance at the knee, rounded up to 6 significant digits.
    share : fraction of the points with a k-distance of at most ``eps``.
    """

    eps: float
    share: float


class PointExponents(NamedTuple):
    """Exponents of single points; made by :meth:`EpsilonFit.point_exponents`.

    Parameters
    ----------
    row : (n,) int64, row numbers of the points.
    exponent : (n,) float64, NaN where unknown.
    """

    row: Ints
    exponent: Floats


def nearest_distances(sample: Floats, metric: Metric, max_k: int) -> Floats:
    """Compute the distances of the first points of a sample to their nearest others.

    Parameters
    ----------
    sample : (m, d) float64, m at least 2; not modified.
    metric : the metric of the distances.
    max_k : number of nearest others; the others are at most m - 1.

    Returns
    -------
    (min(m, 1000), min(max_k, m - 1)) float64, ascending in each row.

    Notes
    -----
    Every query is compared with every point: O(1,000 m d).
    """
    return nearest_between(sample, sample, metric, max_k + 1)[:, 1:]  # the first is the point itself


def nearest_between(left: Floats, right: Floats, metric: Metric, max_k: int) -> Floats:
    """Measure the distances of the first 1,000 left points to their nearest right points.

    Parameters
    ----------
    left, right : (l, d) and (r, d) float64, neither empty; not modified.
    metric : the metric of the distances.
    max_k : number of nearest points.

    Returns
    -------
    (min(l, 1000), min(max_k, r)) float64, ascending in each row.
    """
    r, decision = len(right), metric.decision(math.inf)
    ranks, queries = min(max_k, r), min(len(left), _MAX_QUERIES)
    both = np.concatenate((right, left[:queries]))
    nearest = np.empty((queries, ranks))
    step = max(1, _BATCH_NUMBERS // r)
    for begin in range(0, queries, step):
        rows = np.arange(begin, min(begin + step, queries))
        ends = np.repeat(r + rows, r), np.tile(np.arange(r), rows.size)
        distance = paired_distances(decision, both, *ends).reshape(rows.size, r)
        distance.partition(ranks - 1, axis=1)
        nearest[rows] = np.sort(distance[:, :ranks], axis=1)
    return nearest


def quantile(ascending: Floats, fraction: float, k: int) -> float:
    """Find the smallest k-distance that this fraction of the points does not exceed.

    Parameters
    ----------
    ascending : (n,) float64, k-distances of n points.
    fraction : above 0 and below 1.
    k : rank of the neighbours, for the message.

    Raises
    ------
    ArgumentError
        That k-distance is 0, or infinite.
    """
    found = float(ascending[max(0, math.ceil(fraction * ascending.size) - 1)])
    if found == 0:
        raise ArgumentError(
            f"a fraction of {fraction:g} of the points, or more, has {counted(k, 'equal point')}: the "
            "k-distance is 0"
        )
    if found == math.inf:
        raise ArgumentError(
            f"the {k}-distance at a fraction of {fraction:g} of the points is infinite; {BY_HAND}"
        )
    return found


def quantile_of_all(
    points: Floats, metric: Metric, fraction: float, k: int, digits: int = TYPED_DIGITS, seed: int = 0
) -> float:
    """Choose eps as a quantile of the k-distances of a whole set: without a power law.

    Parameters
    ----------
    points : (n, d) float64, all points of the set; not modified.
    metric : the metric of the distances.
    fraction : above 0 and below 1.
    k : rank of the neighbours, 1 for the nearest.
    digits : number of significant digits; the quantile is rounded up to them.
    seed : draws the 1,000 points whose k-distances are measured, if there are more. They are those of
        :func:`epsjoin.fit_epsilon`.

    Raises
    ------
    ArgumentError
        There are no k + 1 points; or the k-distance is 0, or infinite.
    """
    if len(points) <= k:
        raise ArgumentError(f"a {k}-distance needs at least {k + 1} points, not {len(points)}; {BY_HAND}")
    in_random_order = np.ascontiguousarray(points[draw_rows(len(points), len(points), seed)])
    nearest = nearest_distances(in_random_order, metric, k)
    return round_up(quantile(np.sort(nearest[:, k - 1]), fraction, k), digits)


def find_knee(ascending: Floats, k: int) -> Knee:
    """Find the knee of a curve of k-distances, as :meth:`epsjoin.EpsilonFit.knee` defines it.

    Parameters
    ----------
    ascending : (n,) float64, k-distances of n points.
    k : rank of the neighbours, for the messages.

    Raises
    ------
    ArgumentError
        All k-distances are equal, or the one at the knee is 0.
    """
    if ascending[0] == ascending[-1]:
        raise ArgumentError(f"all {k}-distances are {ascending[0]:.6g}: their curve has no knee; {BY_HAND}")
    fraction = np.linspace(0.0, 1.0, ascending.size)
    with np.errstate(invalid="ignore"):
        height = (ascending - ascending[0]) / (ascending[-1] - ascending[0])
    height[np.isinf(ascending)] = 1.0  # squares of distances beyond 1e150 do not fit into float64
    at = int(np.argmax(fraction - height))
    if ascending[at] == 0:
        raise ArgumentError(f"the {k}-distance at the knee is 0, of equal points; {BY_HAND}")
    eps = round_up(float(ascending[at]))
    return Knee(eps, float(np.searchsorted(ascending, eps, "right")) / ascending.size)


def round_up(distance: float, digits: int = TYPED_DIGITS) -> float:
    """Round to a number of significant digits, never down, so that the distance is within eps."""
    rounded = float(f"{distance:.{digits}g}")
    if rounded < distance:
        exact = Decimal(distance)
        rounded = float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), ROUND_CEILING))
    return rounded


def exponents_from(nearest: Floats) -> Floats:
    """Estimate the exponent around each point, by the formula of :meth:`epsjoin.EpsilonFit.point_exponents`.

    Parameters
    ----------
    nearest : (n, k) float64, distances to the k nearest others, ascending in each row; k is at least 3.

    Returns
    -------
    (n,) float64, NaN where unknown.
    """
    is_apart = nearest > 0
    count = is_apart.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.where(is_apart, np.log(nearest[:, -1:]) - np.log(nearest), 0.0).sum(axis=1)
        return np.where((count >= 3) & (total > 0), (count - 2) / total, np.nan)
