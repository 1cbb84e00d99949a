"""Distances and the decision "within eps": one metric, one function, its formula as docstring.

Every sum runs in column order in float64, and every function gives the same bits for (x, y) as for
(y, x), so that a pair at exactly eps is decided alike wherever and in whichever order it is met.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit

EUCLIDEAN, MANHATTAN, CHEBYSHEV, MINKOWSKI, COSINE, HAVERSINE = range(6)
EARTH_RADIUS_KM = 6371.0088


class Decision(NamedTuple):
    """What a sweep needs to decide a pair.

    Parameters
    ----------
    metric : one of the constants of this module.
    p : exponent of Minkowski's metric; not read by the others.
    bound : the number that the metric's formula is compared with: ``eps * eps`` for Euclid, ``eps ** p``
        for Minkowski, ``eps`` for the others.
    """

    metric: int
    p: float
    bound: float


def make_decision(metric: int, p: float, eps: float) -> Decision:
    """Give the decision "within eps", its bound computed once and by the same formula everywhere.

    Raises
    ------
    OverflowError
        ``eps ** p`` is too large for a float64.
    """
    bound = eps
    if metric == EUCLIDEAN:
        bound = eps * eps
    elif metric == MINKOWSKI:
        bound = eps**p
    return Decision(metric, p, bound)


@njit
def squared_euclidean(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """``sum((x_i - y_i)**2)``."""
    total = 0.0
    for i in range(x.shape[0]):
        difference = x[i] - y[i]
        total += difference * difference
    return total


@njit
def manhattan(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """``sum(|x_i - y_i|)``."""
    total = 0.0
    for i in range(x.shape[0]):
        total += abs(x[i] - y[i])
    return total


@njit
def chebyshev(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """``max(|x_i - y_i|)``."""
    largest = 0.0
    for i in range(x.shape[0]):
        largest = max(largest, abs(x[i] - y[i]))
    return largest


@njit
def minkowski_power(x: NDArray[np.float64], y: NDArray[np.float64], p: float) -> float:
    """``sum(|x_i - y_i|**p)``, the p-th power of the distance."""
    total = 0.0
    for i in range(x.shape[0]):
        total += abs(x[i] - y[i]) ** p
    return total


@njit
def cosine(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """``max(0, 1 - x.y / (|x| |y|))``; 0 for the same direction, 2 for the opposite one."""
    dot = 0.0
    x_square = 0.0
    y_square = 0.0
    for i in range(x.shape[0]):
        dot += x[i] * y[i]
        x_square += x[i] * x[i]
        y_square += y[i] * y[i]
    return max(0.0, 1.0 - dot / (math.sqrt(x_square) * math.sqrt(y_square)))


@njit
def haversine(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """``2 R asin(min(1, sqrt(sin²(Δlat/2) + cos lat_x cos lat_y sin²(Δlon/2))))`` in km.

    Points are (lat, lon) in degrees; R is the earth's mean radius, 6371.0088 km.
    """
    x_lat = math.radians(x[0])
    y_lat = math.radians(y[0])
    # |Δ| before the sine: sin is odd, but only |Δ| makes the mirrored pair bit for bit the same
    half_lat = math.sin(abs(x_lat - y_lat) / 2.0)
    half_lon = math.sin(abs(math.radians(x[1]) - math.radians(y[1])) / 2.0)
    square = half_lat * half_lat + (math.cos(x_lat) * math.cos(y_lat)) * (half_lon * half_lon)
    return 2.0 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(square)))


@njit
def decide(decision: Decision, x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Give the distance of x and y when they are within eps, else -1.

    Parameters
    ----------
    decision : metric and bound.
    x, y : (d,) float64, the coordinates as they came; not modified.

    Returns
    -------
    float
        The distance in the metric's unit (>= 0), or -1.0. Exactly at eps is within.

    Notes
    -----
    O(d), no allocation. Euclid and Minkowski are decided on the power, without the root, so the
    distance given for a pair at eps may exceed eps by a rounding error of the root.
    """
    metric = decision.metric
    if metric == EUCLIDEAN:
        value = squared_euclidean(x, y)
        return math.sqrt(value) if value <= decision.bound else -1.0
    if metric == MANHATTAN:
        value = manhattan(x, y)
    elif metric == CHEBYSHEV:
        value = chebyshev(x, y)
    elif metric == MINKOWSKI:
        value = minkowski_power(x, y, decision.p)
        return value ** (1.0 / decision.p) if value <= decision.bound else -1.0
    elif metric == COSINE:
        value = cosine(x, y)
    else:
        value = haversine(x, y)
    return value if value <= decision.bound else -1.0


@njit
def embed_directions(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors scaled to length 1, for the cosine metric: chord² = 2 x cosine distance.

    Parameters
    ----------
    points : (n, d) float64; no row may be a zero vector. Not modified.

    Returns
    -------
    (n, d) float64. Row by row, so that the result of a row does not depend on the others.
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
def embed_sphere(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points (lat, lon) in degrees as points on the unit sphere, for the haversine metric.

    Parameters
    ----------
    points : (n, 2) float64; not modified.

    Returns
    -------
    (n, 3) float64. The chord between two points at distance s is ``2 sin(s / 2R)``.
    """
    n = points.shape[0]
    embedded = np.empty((n, 3), np.float64)
    for row in range(n):
        lat = math.radians(points[row, 0])
        lon = math.radians(points[row, 1])
        embedded[row, 0] = math.cos(lat) * math.cos(lon)
        embedded[row, 1] = math.cos(lat) * math.sin(lon)
        embedded[row, 2] = math.sin(lat)
    return embedded
