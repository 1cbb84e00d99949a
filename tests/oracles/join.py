"""The join by its definition: distances, brute force, what each kind of join has of the pairs; points."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

EARTH_RADIUS_KM = 6371.0088


def distance(x: list[float], y: list[float], metric: str, p: float = 0.0) -> float:
    """The distance that is reported: each metric by its formula in float64, terms in column order."""
    differences = [abs(a - b) for a, b in zip(x, y, strict=True)]
    if metric == "euclidean":
        return math.sqrt(_sum(t * t for t in differences))
    if metric == "manhattan":
        return _sum(differences)
    if metric == "chebyshev":
        return max(differences)
    if metric == "minkowski":
        return _sum(t**p for t in differences) ** (1.0 / p)
    if metric == "cosine":
        dot = _sum(a * b for a, b in zip(x, y, strict=True))
        x_square, y_square = _sum(a * a for a in x), _sum(b * b for b in y)
        if dot == x_square == y_square:  # of equal vectors, also where the roots' product is another number
            return 0.0
        cosine = dot / (math.sqrt(x_square) * math.sqrt(y_square))
        return min(2.0, max(0.0, 1.0 - cosine))  # rounding takes the cosine out of -1 to 1
    assert metric in ("haversine", "haversine_radians")
    in_degrees = metric == "haversine"
    lat_x, lon_x, lat_y, lon_y = (math.radians(t) if in_degrees else t for t in (*x, *y))
    half_lat, half_lon = math.sin(abs(lat_x - lat_y) / 2.0), math.sin(abs(lon_x - lon_y) / 2.0)
    square = half_lat * half_lat + (math.cos(lat_x) * math.cos(lat_y)) * (half_lon * half_lon)
    return (2.0 * EARTH_RADIUS_KM if in_degrees else 2.0) * math.asin(min(1.0, math.sqrt(square)))


def is_within(x: list[float], y: list[float], eps: float, metric: str, p: float = 0.0) -> bool:
    """Within eps: the distance that is reported, a float64, is at most eps."""
    return distance(x, y, metric, p) <= eps


BY_COLUMNS = ("euclidean", "manhattan", "chebyshev", "cosine")
"""Metrics without powers and sines, which NumPy rounds otherwise than Python."""


def all_distances(
    x: NDArray[np.float64], y: NDArray[np.float64], metric: str, p: float = 0.0
) -> NDArray[np.float64]:
    """Distances of all rows of two tables, (n, m): :func:`distance`, bit for bit.

    The terms of all pairs are added column by column, so that every sum runs in column order.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if metric not in BY_COLUMNS:
        rows = [[distance(a, b, metric, p) for b in y.tolist()] for a in x.tolist()]
        return np.array(rows, np.float64).reshape(len(x), len(y))
    total, x_square, y_square = np.zeros((len(x), len(y))), np.zeros(len(x)), np.zeros(len(y))
    with np.errstate(over="ignore", divide="raise", invalid="raise"):  # as Python does
        for a, b in zip(x.T, y.T, strict=True):
            terms = a[:, None] * b if metric == "cosine" else np.abs(a[:, None] - b)
            if metric == "chebyshev":
                np.maximum(total, terms, out=total)
            else:
                total += terms * terms if metric == "euclidean" else terms
            x_square += a * a
            y_square += b * b
        if metric == "cosine":
            cosine = total / (np.sqrt(x_square)[:, None] * np.sqrt(y_square))
            is_same = (total == x_square[:, None]) & (total == y_square)
            return np.where(is_same, 0.0, np.minimum(2.0, np.maximum(0.0, 1.0 - cosine)))
    return np.sqrt(total) if metric == "euclidean" else total


def scaled_sum(
    x: list[float], y: list[float], divisors: list[float], weights: list[float], metric: str, p: float = 0.0
) -> float:
    """The sum of ``w_i (|x_i - y_i| / e_i)^p``, without a root; for chebyshev the largest term."""
    ratios = [abs(a - b) / e for a, b, e in zip(x, y, divisors, strict=True)]
    powers = {"euclidean": [t * t for t in ratios], "minkowski": [_power(t, p) for t in ratios]}
    terms = [w * t for w, t in zip(weights, powers.get(metric, ratios), strict=True) if w > 0.0]
    return max(terms, default=0.0) if metric == "chebyshev" else _sum(terms)


def root(total: float, metric: str, p: float = 0.0) -> float:
    """The distance whose power is this sum."""
    if metric == "euclidean":
        return math.sqrt(total)
    return total ** (1.0 / p) if metric == "minkowski" else total


def _power(base: float, p: float) -> float:
    try:
        return base**p
    except OverflowError:
        return math.inf


def scaled_pairs(
    points: NDArray[np.float64],
    eps: float | list[float],
    weights: list[float] | None,
    metric: str,
    p: float = 0.0,
) -> dict[tuple[int, int], float]:
    """All pairs under weights, with one eps per dimension or with one for all, and their distances.

    The distance that is reported, the root of the sum, is at most eps, or 1 with one eps per dimension; under
    chebyshev that is ``|x_i - y_i| <= eps_i``.
    """
    rows = np.asarray(points, np.float64).tolist()
    d = np.shape(points)[1]
    weighing = weights or [1.0] * d
    divisors = eps if isinstance(eps, list) else [1.0] * d
    found = {}
    for j in range(len(rows)):
        for i in range(j):
            total = scaled_sum(rows[i], rows[j], divisors, weighing, metric, p)
            reported = root(total, metric, p)
            is_pair = reported <= (1.0 if isinstance(eps, list) else eps)
            if metric == "chebyshev" and weights is None and isinstance(eps, list):
                is_pair = all(abs(a - b) <= e for a, b, e in zip(rows[i], rows[j], eps, strict=True))
            if is_pair:
                found[i, j] = reported
    return found


def _sum(terms: object) -> float:
    total = 0.0
    for term in terms:  # sum() compensates rounding since Python 3.12
        total += term
    return total


def brute_force(
    points: NDArray[np.float64], eps: float, metric: str = "euclidean", p: float = 0.0
) -> dict[tuple[int, int], float]:
    """All pairs of row numbers within eps, with their distance: every row against every later row."""
    found = between(points, points, eps, metric, p)
    return {(i, j): apart for (i, j), apart in found.items() if i < j}


def between(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    eps: float,
    metric: str = "euclidean",
    p: float = 0.0,
) -> dict[tuple[int, int], float]:
    """All pairs (left row, right row) within eps, with their distance: every row against every row."""
    distances = all_distances(left, right, metric, p)
    rows, others = np.nonzero(distances <= eps)
    pairs = zip(rows.tolist(), others.tolist(), strict=True)
    return dict(zip(pairs, distances[rows, others].tolist(), strict=True))


def joined(pairs: Iterable[tuple[int, int]], n_left: int, n_right: int, how: str) -> list[tuple[int, int]]:
    """The rows of a join as SQL has them, in the documented order; -1 is nobody, also for semi and anti."""
    inner = sorted(pairs)
    lonely_left = sorted(set(range(n_left)) - {i for i, _ in inner})
    lonely_right = sorted(set(range(n_right)) - {j for _, j in inner})
    if how == "semi":
        return [(i, -1) for i in range(n_left) if i not in lonely_left]
    if how == "anti":
        return [(i, -1) for i in lonely_left]
    found = list(inner)
    if how in ("left", "outer"):
        found += [(i, -1) for i in lonely_left]
    if how in ("right", "outer"):
        found += [(-1, j) for j in lonely_right]
    return found


def awkward_points(kind: str, n: int, d: int, seed: int) -> tuple[NDArray[np.float64], float]:
    """Points of a kind that joins get wrong, and an eps that suits them."""
    random = np.random.default_rng(seed)
    if kind == "uniform":
        return random.random((n, d)), float(random.choice([0.02, 0.1, 0.3]) * math.sqrt(d))
    if kind == "lattice":  # ties at exactly eps everywhere; 3-4-5
        return random.integers(0, 7, (n, d)).astype(np.float64), float(random.choice([1.0, 3.0, 5.0]))
    if kind == "dyadic":  # on the borders of cells, cubes ending exactly on cuts
        return random.integers(0, 17, (n, d)) / 16.0, float(random.choice([1 / 16, 1 / 8, 1 / 4]))
    if kind == "equal":
        return np.full((n, d), 0.3), 0.1
    if kind == "few":  # many copies of few points
        return random.random((3, d))[random.integers(0, 3, n)], 0.05
    if kind == "constant":  # one dimension says nothing
        points = random.random((n, d))
        points[:, random.integers(d)] = 5.0
        return points, 0.2 * math.sqrt(d)
    if kind == "far":  # large values, small differences: 1e9 has an ulp of 1.2e-7
        return 1e9 + random.integers(0, 40, (n, d)) * 2.0**-20, float(random.choice([3.0, 5.0]) * 2.0**-20)
    if kind == "tiny":
        return random.random((n, d)) * 1e-12, 1e-13 * math.sqrt(d)
    if kind == "huge_eps":
        return random.normal(size=(n, d)), 1e6
    if kind == "tiny_eps":
        points = random.random((n, d))
        points[n // 2 :] = points[: n - n // 2]  # each point twice
        return points, 1e-12
    if kind == "hot":  # a ball smaller than eps, and a background
        points = random.random((n, d))
        points[: n // 2] = 0.5 + random.normal(size=(n // 2, d)) * 1e-3
        return points, 0.05
    assert kind == "mixed_scale"
    return random.normal(size=(n, d)) * np.logspace(-6, 6, d), 1.0


KINDS = [
    *(
        "uniform",
        "lattice",
        "dyadic",
        "equal",
        "few",
        "constant",
        "far",
        "tiny",
        "huge_eps",
        "tiny_eps",
        "hot",
    ),
    "mixed_scale",
]
