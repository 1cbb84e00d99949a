"""What the kinds of joins say of two rows, in plain Python; all pairs by every row against every row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oracles import join as twin

Row = list[Any]


def equi(x: Row, y: Row) -> float | None:
    return 0.0 if x[0] == y[0] else None


def band(eps: float, below: float) -> Callable[[Row, Row], float | None]:
    def near(x: Row, y: Row) -> float | None:
        apart = y[0] - x[0]
        return abs(apart) if -below <= apart <= eps else None

    return near


def temporal(x: Row, y: Row) -> float | None:
    return 0.0 if x[0] <= y[1] and y[0] <= x[1] else None


def temporal_open(x: Row, y: Row) -> float | None:
    return 0.0 if x[0] < y[1] and y[0] < x[1] else None


def spatial(x: Row, y: Row) -> float | None:
    d = len(x) // 2
    return 0.0 if all(x[i] <= y[d + i] and y[i] <= x[d + i] for i in range(d)) else None


def similarity(eps: float, metric: str = "euclidean") -> Callable[[Row, Row], float | None]:
    def near(x: Row, y: Row) -> float | None:
        apart = twin.distance(x, y, metric)
        return apart if apart <= eps else None

    return near


def pairs(
    joins: Callable[[Row, Row], float | None], left: np.ndarray[Any, Any], right: np.ndarray[Any, Any] | None
) -> dict[tuple[int, int], float]:
    """All pairs of row numbers, with their distance; of one table with itself the smaller number first."""
    rows = left.tolist()
    found = {}
    both = itertools.combinations(range(len(rows)), 2)
    others = rows if right is None else right.tolist()
    for i, j in both if right is None else itertools.product(range(len(rows)), range(len(others))):
        apart = joins(rows[i], others[j])
        if apart is not None:
            found[i, j] = apart
    return found


def answer(found: dict[tuple[int, int], float], n_left: int, n_right: int | None, how: str) -> list[Any]:
    """What a join of these pairs gives, sorted; -1 is nobody."""
    if n_right is None:
        met = {row for pair in found for row in pair}
        if how == "semi":
            return sorted(met)
        if how == "anti":
            return sorted(set(range(n_left)) - met)
        return sorted(found)
    joined = twin.joined(found, n_left, n_right, how)
    return sorted(i for i, _ in joined) if how in ("semi", "anti") else sorted(joined)


def awkward(kind: str, n: int, seed: int) -> np.ndarray[Any, Any]:
    """Rows with ties, for a kind of join that is not about points."""
    random = np.random.default_rng(seed)
    if kind == "numbers":
        return np.where(random.random((n, 1)) < 0.1, -0.0, random.integers(-3, 4, (n, 1)) / 2.0)
    if kind == "integers":
        return random.integers(0, 9, (n, 1)) + 2**60
    if kind == "with nan":
        numbers = random.integers(0, 5, (n, 1)).astype(np.float64)
        numbers[random.random((n, 1)) < 0.3] = math.nan
        return numbers
    if kind == "far apart":
        return random.choice([0.0, 1e-17, -1.0, 1.0, 1e16, 1e16 + 2.0, 0.1, 0.3], (n, 1))
    if kind == "intervals":
        low = random.integers(0, 20, (n, 1)).astype(np.float64)
        return np.concatenate(
            (low, low + random.integers(1, 5, (n, 1)) * random.choice([1, 8], (n, 1))), axis=1
        )
    assert kind == "boxes"
    low = random.integers(0, 9, (n, 3)).astype(np.float64)
    return np.concatenate((low, low + random.integers(0, 4, (n, 3))), axis=1)
