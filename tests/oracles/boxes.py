"""Joins of objects with extent as their definition says: every object against every other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oracles.join import distance, is_within

Found = dict[tuple[int, int], float]


def gaps(
    lower_x: list[float], upper_x: list[float], lower_y: list[float], upper_y: list[float]
) -> list[float]:
    """How far two boxes are apart on each axis: 0 where they meet."""
    found = []
    for i in range(len(lower_x)):
        if lower_y[i] > upper_x[i]:
            found.append(lower_y[i] - upper_x[i])
        elif lower_x[i] > upper_y[i]:
            found.append(lower_x[i] - upper_y[i])
        else:
            found.append(0.0)
    return found


def box_pairs(
    left: tuple[NDArray[np.float64], NDArray[np.float64]],
    right: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    eps: float = 0.0,
    metric: str = "euclidean",
    p: float = 0.0,
) -> Found:
    """Pairs of boxes that meet (eps 0) or whose gaps, as a vector, are within eps of nothing."""
    found: Found = {}
    other = left if right is None else right
    lower_x, upper_x, lower_y, upper_y = (np.asarray(a, np.float64).tolist() for a in (*left, *other))
    for i in range(len(lower_x)):
        for j in range(i + 1 if right is None else 0, len(lower_y)):
            gap = gaps(lower_x[i], upper_x[i], lower_y[j], upper_y[j])
            zero = [0.0] * len(gap)
            if gap == zero:
                found[i, j] = 0.0
            elif eps > 0.0 and (apart := distance(gap, zero, metric, p)) <= eps:
                found[i, j] = apart
    return found


def ball_pairs(
    points: NDArray[np.float64],
    eps: NDArray[np.float64],
    right: NDArray[np.float64] | None = None,
    right_eps: NDArray[np.float64] | None = None,
    metric: str = "euclidean",
    p: float = 0.0,
) -> Found:
    """Pairs of points within half the sum of their eps; on coordinates, 0 means equal."""
    found: Found = {}
    x, x_eps = np.asarray(points, np.float64).tolist(), np.asarray(eps, np.float64).tolist()
    y, y_eps = x, x_eps
    if right is not None:
        y, y_eps = np.asarray(right, np.float64).tolist(), np.asarray(right_eps, np.float64).tolist()
    for i in range(len(x)):
        for j in range(i + 1 if right is None else 0, len(y)):
            threshold = (x_eps[i] + y_eps[j]) / 2.0
            if threshold == 0.0 and metric not in ("cosine", "haversine"):
                is_pair = x[i] == y[j]
            else:
                is_pair = is_within(x[i], y[j], threshold, metric, p)
            if is_pair:
                found[i, j] = distance(x[i], y[j], metric, p)
    return found


def awkward_boxes(
    kind: str, n: int, d: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Lower and upper sides of boxes of a kind that joins get wrong, and an eps that suits them."""
    random = np.random.default_rng(seed)
    lower = random.random((n, d))
    extent = random.random((n, d))
    eps = 0.05 * d**0.5
    if kind == "small":
        extent *= 0.1
    elif kind == "large":  # nearly all meet on an axis
        extent *= 0.7
    elif kind == "lattice":  # touching everywhere, ties at exactly eps: 3-4-5
        lower = random.integers(0, 14, (n, d)).astype(np.float64)
        extent = random.integers(0, 3, (n, d)).astype(np.float64)
        eps = float(random.choice([1.0, 3.0, 5.0]))
    elif kind == "dyadic":
        lower = random.integers(0, 17, (n, d)) / 16.0
        extent = random.integers(0, 3, (n, d)) / 16.0
        eps = float(random.choice([1 / 16, 1 / 8]))
    elif kind == "tiles":  # each box touches its neighbours
        lower = random.integers(0, 6, (n, d)) / 10.0
        extent = np.full((n, d), 0.1)
        eps = 0.1
    elif kind == "points":
        extent[:] = 0.0
    elif kind == "flat":  # no extent on some axes
        extent[random.random((n, d)) < 0.5] = 0.0
        extent *= 0.3
    elif kind == "equal":
        lower[:], extent[:] = 0.3, 0.1
    elif kind == "giant":
        extent *= 0.05
        lower[: 1 + n // 20], extent[: 1 + n // 20] = -1.0, 3.0
    elif kind == "nested":
        half = (np.arange(n) % 7 + 1.0)[:, None] / 16.0
        lower, extent = 0.5 - half + random.integers(0, 2, (n, d)), np.repeat(2 * half, d, axis=1)
    elif kind == "plates":  # long in all axes but one
        lower[:], extent[:] = 0.0, 1.0
        thin = random.integers(0, d, n)
        lower[np.arange(n), thin], extent[np.arange(n), thin] = random.random(n), 1e-3
    elif kind == "hot":  # 30 % in one spot
        extent *= 0.05
        lower[: n // 3], extent[: n // 3] = 0.5, 0.0
    elif kind == "many_scales":
        extent = 10.0 ** random.uniform(-6, 0, (n, 1)) * extent
    elif kind == "far":  # large values, small differences: 1e9 has an ulp of 1.2e-7
        lower = 1e9 + random.integers(0, 40, (n, d)) * 2.0**-20
        extent = random.integers(0, 4, (n, d)) * 2.0**-20
        eps = float(random.choice([3.0, 5.0]) * 2.0**-20)
    elif kind == "tiny":
        lower, extent, eps = lower * 1e-140, extent * 1e-141, 1e-141
    elif kind == "tiniest":  # the square of a gap is 0
        lower, extent, eps = lower * 1e-200, extent * 1e-201, 1e-140
    elif kind == "huge":  # differences overflow
        lower, extent, eps = (2.0 * lower - 1.0) * 1.7e308, extent * 1e306, 1e149
    else:
        assert kind == "uniform"
    return lower, lower + extent, eps


KINDS = [
    *("small", "large", "lattice", "dyadic", "tiles", "points", "flat", "equal", "giant", "nested"),
    *("plates", "hot", "many_scales", "far", "tiny", "tiniest", "huge", "uniform"),
]
