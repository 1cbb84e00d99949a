"""Distances and the decision "within eps": each metric is one function, whose docstring is its formula.

Every sum runs in column order in float64, and every function returns the same bits for (x, y) as for
(y, x), so that a pair at exactly eps is decided alike wherever and in whichever order it is met.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_inner
from epsjoin.kernels.arrays import Floats

EUCLIDEAN, MANHATTAN, CHEBYSHEV, MINKOWSKI, COSINE, HAVERSINE, HAVERSINE_RADIANS = range(7)
BY_AXIS = (EUCLIDEAN, MANHATTAN, CHEBYSHEV)
"""Metrics whose distances are sums or maxima over axes, or roots of them."""
OF_PLACES = (HAVERSINE, HAVERSINE_RADIANS)
"""Metrics of places (latitude, longitude)."""
SCALED = 8
"""Added to the number of a metric whose differences are divided by an eps per dimension, or weighted."""
EARTH_RADIUS_KM = 6371.0088
_UNSCALED = np.empty((2, 0))


class Decision(NamedTuple):
    """What a sweep needs to decide a pair: "within eps" means that the computed distance is at most eps.

    Parameters
    ----------
    metric : one of the constants of this module, plus ``SCALED`` if there is a scale.
    p : exponent of Minkowski's metric; not read by the others.
    bound : what the sum is compared with before its root is taken. For Euclid, the largest number whose root
        is at most eps; for Minkowski, a little more than ``eps ** p``, since its root decides; ``eps`` for
        the others.
    eps : what the distance of Minkowski is compared with; for the others, the bound has decided.
    scale : (2, d) float64, the divisor of the difference in each dimension, and the weight of its power;
        (2, 0) if no difference is scaled.
    """

    metric: int
    p: float
    bound: float
    eps: float
    scale: Floats = _UNSCALED


NOTHING_IS_WITHIN = Decision(EUCLIDEAN, 0.0, -1.0, -1.0)
"""A decision that no pair meets, for sweeps that only count what a filter lets through."""


def make_decision(metric: int, p: float, eps: float) -> Decision:
    """Make the decision "within eps", its bound computed once and by the same formula everywhere."""
    bound = eps
    if metric == EUCLIDEAN:
        bound = _largest_square(eps)
    elif metric == MINKOWSKI:
        bound = power(eps * (1.0 + _ROOT_SLACK), p)
    return Decision(metric, p, bound, eps)


def make_scaled_decision(metric: int, p: float, eps: float, divisors: Floats, weights: Floats) -> Decision:
    """Make the decision of differences that are scaled: ``sum(weight (|x_i - y_i| / divisor)**p)``.

    Parameters
    ----------
    metric : EUCLIDEAN, MANHATTAN, CHEBYSHEV or MINKOWSKI.
    p, eps : as for :func:`make_decision`; eps is 1 for divisors that are one eps per dimension.
    divisors, weights : (d,) float64; divisors are above 0, weights at least 0.
    """
    decision = make_decision(metric, p, eps)
    return decision._replace(metric=SCALED + metric, scale=np.stack((divisors, weights)))


_ROOT_SLACK = 1e-12
"""More than the relative error of ``v ** (1 / p)``, which is that of ``1 / p`` times the logarithm of v."""


def power(eps: float, p: float) -> float:
    """Compute ``eps ** p``, infinite where it is too large for a float64."""
    try:
        return math.pow(eps, p)
    except OverflowError:
        return math.inf


def _largest_square(eps: float) -> float:
    """Compute the largest number whose root, a float64, is at most eps: ``eps * eps``, or a little more."""
    largest = eps * eps
    while largest < math.inf and math.sqrt(math.nextafter(largest, math.inf)) <= eps:
        largest = math.nextafter(largest, math.inf)
    return largest


@njit
def squared_euclidean(left: Floats, x: int, right: Floats, y: int, bound: float) -> float:
    """``sum((x_i - y_i)**2)``, or a partial sum above ``bound``: rounded sums of squares never fall."""
    total = 0.0
    d = left.shape[1]
    i = 0
    while i < d:
        for j in range(i, min(i + 8, d)):
            difference = left[x, j] - right[y, j]
            total += difference * difference
        if total > bound:
            return total
        i += 8
    return total


@njit
def manhattan(left: Floats, x: int, right: Floats, y: int) -> float:
    """``sum(|x_i - y_i|)``."""
    total = 0.0
    for i in range(left.shape[1]):
        total += abs(left[x, i] - right[y, i])
    return total


@njit
def chebyshev(left: Floats, x: int, right: Floats, y: int) -> float:
    """``max(|x_i - y_i|)``."""
    largest = 0.0
    for i in range(left.shape[1]):
        largest = max(largest, abs(left[x, i] - right[y, i]))
    return largest


@njit
def minkowski_power(left: Floats, x: int, right: Floats, y: int, p: float) -> float:
    """``sum(|x_i - y_i|**p)``, the p-th power of the distance."""
    total = 0.0
    for i in range(left.shape[1]):
        total += abs(left[x, i] - right[y, i]) ** p
    return total


@njit
def cosine(left: Floats, x: int, right: Floats, y: int) -> float:
    """``min(2, max(0, 1 - x.y / (|x| |y|)))``; 0 for the same direction, 2 for the opposite one.

    Exactly 0 where x.y, x.x and y.y are the same number, as for equal vectors: the product of their roots may
    be another number.
    """
    dot = 0.0
    x_square = 0.0
    y_square = 0.0
    for i in range(left.shape[1]):
        dot += left[x, i] * right[y, i]
        x_square += left[x, i] * left[x, i]
        y_square += right[y, i] * right[y, i]
    return cosine_of_sums(dot, x_square, y_square)


@njit_inner
def cosine_of_sums(dot: float, x_square: float, y_square: float) -> float:
    """The distance of :func:`cosine` from its three sums."""
    if dot == x_square and dot == y_square:
        return 0.0
    return min(2.0, max(0.0, 1.0 - dot / (math.sqrt(x_square) * math.sqrt(y_square))))


@njit
def _half_angle(x_lat: float, x_lon: float, y_lat: float, y_lon: float) -> float:
    """Half the angle between two points on a sphere, all in radians."""
    # |Δ| before the sine: sin is odd, but only |Δ| makes the mirrored pair bit for bit the same
    half_lat = math.sin(abs(x_lat - y_lat) / 2.0)
    half_lon = math.sin(abs(x_lon - y_lon) / 2.0)
    square = half_lat * half_lat + (math.cos(x_lat) * math.cos(y_lat)) * (half_lon * half_lon)
    return math.asin(min(1.0, math.sqrt(square)))


@njit
def haversine(left: Floats, x: int, right: Floats, y: int) -> float:
    """``2 R asin(min(1, sqrt(sin²(Δlat/2) + cos lat_x cos lat_y sin²(Δlon/2))))`` in km.

    Points are (lat, lon) in degrees; R is the earth's mean radius, 6371.0088 km.
    """
    x_lat, x_lon = math.radians(left[x, 0]), math.radians(left[x, 1])
    y_lat, y_lon = math.radians(right[y, 0]), math.radians(right[y, 1])
    return 2.0 * EARTH_RADIUS_KM * _half_angle(x_lat, x_lon, y_lat, y_lon)


@njit
def haversine_radians(left: Floats, x: int, right: Floats, y: int) -> float:
    """The angle of :func:`haversine`, in radians, of points (lat, lon) in radians."""
    return 2.0 * _half_angle(left[x, 0], left[x, 1], right[y, 0], right[y, 1])


@njit_inner
def latitude_cosine(metric: int, points: Floats, row: int) -> float:
    """Compute the cosine of the latitude of a point, for either haversine metric."""
    return math.cos(math.radians(points[row, 0]) if metric == HAVERSINE else points[row, 0])


_BOUND_SLACK = 1e-11
"""More than the rounding errors of haversine's formula and of its bound, relative to a square."""


@njit_inner
def are_surely_beyond(
    metric: int, left: Floats, x: int, right: Floats, y: int, x_cosine: float, distance: float
) -> bool:
    """Whether a lower bound of a haversine distance is beyond another distance; no sine is computed.

    ``sin²(t) >= t² (1 - t²/3)`` and ``asin(t) >= t``; the cosine of the other latitude is smaller by
    the difference of the two latitudes at most.

    Parameters
    ----------
    metric : one of :data:`OF_PLACES`.
    left, x, right, y : see :func:`decide`.
    x_cosine : from :func:`latitude_cosine`.
    distance : what the distance is compared with; may be infinite.
    """
    lat, lon = abs(left[x, 0] - right[y, 0]), abs(left[x, 1] - right[y, 1])
    radius = 1.0
    if metric == HAVERSINE:
        lat = abs(math.radians(left[x, 0]) - math.radians(right[y, 0]))
        lon = abs(math.radians(left[x, 1]) - math.radians(right[y, 1]))
        radius = EARTH_RADIUS_KM
    square = lat * lat * (1.0 - lat * lat / 12.0)
    if lon < 3.0:
        least_cosine = max(0.0, x_cosine * (1.0 - _BOUND_SLACK) - lat)
        square += x_cosine * least_cosine * lon * lon * (1.0 - lon * lon / 12.0)
    return bool(square * (radius * radius) * (1.0 - _BOUND_SLACK) > distance * distance)


@njit
def scaled_power(decision: Decision, left: Floats, x: int, right: Floats, y: int) -> float:
    """``sum(w_i (|x_i - y_i| / e_i)**p)``, or a partial sum above the bound; for Chebyshev the largest term.

    Terms of weight 0 are left out, however large the difference is.
    """
    metric = decision.metric - SCALED
    divisor, weight = decision.scale[0], decision.scale[1]
    total = 0.0
    for i in range(left.shape[1]):
        if weight[i] > 0.0:
            term: float = abs(left[x, i] - right[y, i]) / divisor[i]
            if metric == EUCLIDEAN:
                term *= term
            elif metric == MINKOWSKI:
                term = term**decision.p
            term *= weight[i]
            total = max(total, term) if metric == CHEBYSHEV else total + term
            if total > decision.bound:
                return total
    return total


@njit_inner
def decide(decision: Decision, left: Floats, x: int, right: Floats, y: int) -> float:
    """Compute the distance of two points when it is at most eps, else return -1.

    Parameters
    ----------
    decision : metric, bound and scale.
    left, right : (n, d) and (m, d) float64, the coordinates as they came; may be one array. Not modified.
    x, y : rows of them. Rows, not vectors: a view of a row costs more than the distance in few dimensions.

    Returns
    -------
    float
        The distance in the metric's unit (>= 0), or -1.0. Exactly at eps is within.

    Notes
    -----
    O(d), no allocation. With a returned distance as eps, the same pair is found again.
    """
    metric = decision.metric
    if metric >= SCALED:
        metric -= SCALED
        value = scaled_power(decision, left, x, right, y)
    elif metric == EUCLIDEAN:
        value = squared_euclidean(left, x, right, y, decision.bound)
    elif metric == MANHATTAN:
        value = manhattan(left, x, right, y)
    elif metric == CHEBYSHEV:
        value = chebyshev(left, x, right, y)
    elif metric == MINKOWSKI:
        value = minkowski_power(left, x, right, y, decision.p)
    elif metric == COSINE:
        value = cosine(left, x, right, y)
    elif metric == HAVERSINE:
        value = haversine(left, x, right, y)
    else:
        value = haversine_radians(left, x, right, y)
    if value > decision.bound:
        return -1.0
    if metric == EUCLIDEAN:
        return math.sqrt(value)
    if metric == MINKOWSKI:
        value = value ** (1.0 / decision.p)
        return value if value <= decision.eps else -1.0
    return value


@njit
def embed_directions(points: Floats) -> Floats:
    """Vectors scaled to length 1, for the cosine metric: chord² = 2 x cosine distance.

    Parameters
    ----------
    points : (n, d) float64; no row may be a zero vector. Not modified.

    Returns
    -------
    (n, d) float64. Computed row by row, so that the result of a row does not depend on the others.
    """
    n, d = points.shape
    embedded = np.empty((n, d), np.float64)
    for row in range(n):
        square = 0.0
        for i in range(d):
            square += points[row, i] * points[row, i]
        norm = math.sqrt(square)
        for i in range(d):
            embedded[row, i] = points[row, i] / norm
    return embedded


@njit
def embed_sphere(points: Floats) -> Floats:
    """Points (lat, lon) in radians as points on the unit sphere, for the haversine metrics.

    Parameters
    ----------
    points : (n, 2) float64; not modified.

    Returns
    -------
    (n, 3) float64. The chord between two points at the angle a is ``2 sin(a / 2)``.
    """
    n = points.shape[0]
    embedded = np.empty((n, 3), np.float64)
    for row in range(n):
        lat = points[row, 0]
        lon = points[row, 1]
        embedded[row, 0] = math.cos(lat) * math.cos(lon)
        embedded[row, 1] = math.cos(lat) * math.sin(lon)
        embedded[row, 2] = math.sin(lat)
    return embedded
