"""Pair counts by brute force, and point sets whose correlation dimension is known from their construction."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]


def distances(points: Points) -> list[tuple[int, int, float]]:
    """All pairs (row, row, Euclidean distance), a loop."""
    rows = points.tolist()
    return [(i, j, math.dist(rows[i], rows[j])) for i, j in itertools.combinations(range(len(rows)), 2)]


def pairs_within(distance: list[float], radius: float) -> int:
    """How many of the distances are at most the radius."""
    return sum(1 for each in distance if each <= radius)


def slope(x: list[float], y: list[float]) -> float:
    """Slope of the least-squares line, by its normal equation."""
    x_mean, y_mean = math.fsum(x) / len(x), math.fsum(y) / len(y)
    return math.fsum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True)) / math.fsum(
        (a - x_mean) ** 2 for a in x
    )


def k_distances(points: Points, k: int) -> list[float]:
    """Distances of all points to their k-th nearest neighbour, rising."""
    # Place 0 of a row's ordered distances is the point itself.
    return sorted(float(np.partition(((points - row) ** 2).sum(axis=1), k)[k]) ** 0.5 for row in points)


def quantile(rising: list[float], share: float) -> float:
    """The value that this share of all values does not exceed."""
    return rising[math.ceil(share * len(rising)) - 1]


def share_of_cube(radius: float, d: int) -> float:
    """Chance that two points of the unit cube are within a radius below 1 under L∞, its border included."""
    return (2 * radius - radius * radius) ** d


def cube(n: int, d: int, random: np.random.Generator) -> Points:
    """Uniform in the unit cube: dimension d."""
    return random.random((n, d))


def line(n: int, d: int, random: np.random.Generator) -> Points:
    """Uniform on a straight line through d-dimensional space: dimension 1."""
    return random.random((n, 1)) * random.normal(size=(1, d)) + random.normal(size=d)


def sierpinski(n: int, random: np.random.Generator) -> Points:
    """The chaos game on a triangle: dimension log 3 / log 2 = 1.585."""
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(0.75)]])
    points = np.zeros((n, 2))
    for _ in range(50):
        points = (points + corners[random.integers(0, 3, n)]) / 2
    return points


def cantor_dust(n: int, d: int, random: np.random.Generator) -> Points:
    """Middle thirds left out on each of d axes: dimension d log 2 / log 3 = 0.631 d."""
    points = np.zeros((n, d))
    for _ in range(34):
        points = (points + 2 * random.integers(0, 2, (n, d))) / 3
    return points


def circle(n: int, random: np.random.Generator) -> Points:
    """Uniform on a circle: dimension 1, without a border that cuts balls off."""
    angle = random.random(n) * 2 * math.pi
    return np.column_stack((np.cos(angle), np.sin(angle)))


def sphere(n: int, random: np.random.Generator) -> Points:
    """Uniform on the unit sphere: dimension 2, without a border either."""
    points = random.normal(size=(n, 3))
    return np.asarray(points / np.linalg.norm(points, axis=1)[:, None])
