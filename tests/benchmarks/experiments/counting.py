"""The work of GESS under a rule: rows, comparisons, the largest sweep area; no distance is computed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels import codes
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.sweep.stack_sweep import stack_comparisons
from epsjoin.local.plan.split_rules.encode import CodedRows, replicate_cubes
from epsjoin.local.plan.split_rules.rules import NO_LIMIT, make_split_rule

_TRIED_ROWS = 1000


class Work(NamedTuple):
    """What one table with itself costs; ``largest_area`` counts rows, the current one included."""

    points: int
    rows: int
    comparisons: int
    largest_area: int

    @property
    def rows_per_point(self) -> float:
        """1 without replicas."""
        return self.rows / self.points


class Cubes(NamedTuple):
    """The cubes of all points in a space, and its deepest level."""

    lower: Ints
    upper: Ints
    levels: int

    def encode(self, k: int, msl: int, decisions: str = "global") -> CodedRows:
        """Replicate under strategy 3, without a budget."""
        return replicate_cubes(
            self.lower, self.upper, self.levels, make_split_rule(k, msl, NO_LIMIT), decisions
        )

    def some(self, n: int) -> Cubes:
        """About ``n`` of them, at equal distances in the order of the rows."""
        step = max(1, len(self.lower) // n)
        return Cubes(self.lower[::step].copy(), self.upper[::step].copy(), self.levels)

    def is_too_many(self, k: int, msl: int, most: float) -> bool:
        """Whether some of the cubes become more than ``most`` rows each in the mean."""
        some = self.some(_TRIED_ROWS)
        try:
            return len(some.encode(k, msl).row) > most * len(some.lower)
        except OverflowError:
            return True


def cubes_of(points: Floats, eps: float) -> Cubes:
    """Cubes of side ``eps`` in the space of the points."""
    low = points.min(axis=0)
    width = float((points.max(axis=0) - low).max())
    axes = np.arange(points.shape[1])
    return Cubes(
        *codes.cube_corners(points, axes, low, width, eps), codes.deepest_level(width, eps, points.shape[1])
    )


def cubes_within(n: int, d: int, eps: float, seed: int) -> Cubes:
    """Uniform cubes that lie within the space, as the model has them."""
    low, width = np.full(d, -eps / 2), 1.0 + eps
    points = np.random.default_rng(seed).random((n, d))
    return Cubes(
        *codes.cube_corners(points, np.arange(d), low, width, eps), codes.deepest_level(width, eps, d)
    )


def rows_by_level(cubes: Cubes, k: int, msl: int) -> Ints:
    """(levels + 1,) int64, rows whose code ends at each level."""
    bits = cubes.encode(k, msl).codes[:, -2:].astype(np.int64) @ np.array([256, 1])
    return np.bincount(bits // cubes.lower.shape[1], minlength=cubes.levels + 1)


def count_work(cubes: Cubes, k: int, msl: int, decisions: str = "global") -> Work:
    """Rows, comparisons and the largest area of the merge."""
    coded = cubes.encode(k, msl, decisions).codes
    compared = stack_comparisons(coded[codes.code_order(coded)])
    return Work(len(cubes.lower), len(coded), int(compared.sum()), int(compared.max()) + 1)
