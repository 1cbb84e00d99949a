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


def line_patch_cube(n: int, random: np.random.Generator) -> tuple[Points, list[int]]:
    """A line, a plane patch and a cube side by side along the first axis, and the dimension at each row."""
    line = random.random((n, 1)) * np.array([[1.0, 0.5, 0.3]])
    patch = np.column_stack((2 + random.random(n), random.random(n), np.zeros(n)))
    cube = random.random((2 * n, 3)) + np.array([4.0, 0.0, 0.0])
    return np.vstack((line, patch, cube)), [1] * n + [2] * n + [3] * (2 * n)


def boxes(points: Points, parts: int) -> list[list[int]]:
    """Rows of each occupied box when the bounding cube has so many parts per axis."""
    low, width = points.min(axis=0), float(np.ptp(points, axis=0).max())
    found: dict[tuple[int, ...], list[int]] = {}
    for row, point in enumerate(points):
        box = tuple(min(int(float(x) * parts), parts - 1) for x in (point - low) / width)
        found.setdefault(box, []).append(row)
    return list(found.values())


def knee(rising: list[float]) -> int:
    """Place farthest from the chord between the first and the last, both axes scaled to [0, 1]."""
    last = len(rising) - 1
    below = [i / last - (each - rising[0]) / (rising[-1] - rising[0]) for i, each in enumerate(rising)]
    return below.index(max(below))


def likelihood_exponent(distances_to_others: list[float], k: int) -> float:
    """Levina and Bickel's estimate from the k nearest others, free of bias."""
    nearest = [each for each in sorted(distances_to_others)[:k] if each > 0]
    return (len(nearest) - 2) / math.fsum(math.log(nearest[-1] / each) for each in nearest)
