"""Which of 8 values are within a bound: what the text in Python says, and what NumPy does."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from epsjoin.kernels.simd.lanes import PLACES
from epsjoin.kernels.simd.near_values import keep_near, near_lanes


@numba.njit
def _near(values, at, size, bound):
    return near_lanes(values, at, size, bound)


@numba.njit
def _keep(values, at, size, bound, number, numbers, kept, count):
    return keep_near(values, at, size, bound, number, numbers, kept, count)


@pytest.mark.parametrize("size", [1, 3, 7, 8, 9, 100])
def test_near_values__are_those_up_to_the_bound_of_the_first_that_are_meant(size):
    random = np.random.default_rng(size)
    for bound in (0.0, 2.0, 3.0, np.inf):
        values = random.integers(0, 5, 20).astype(np.float64)  # many are at the bound
        values[random.integers(0, 20, 3)] = np.inf
        values[random.integers(0, 20, 2)] = np.nan  # is within no bound
        for at in (0, 5, 12):
            near = np.flatnonzero(values[at : at + min(size, PLACES)] <= bound)
            assert _near(values, at, size, bound) == sum(1 << lane for lane in near.tolist())
            numbers, kept = np.full(12, -1), np.full(12, -1.0)
            assert _keep(values, at, size, bound, 40, numbers, kept, 2) == near.size
            assert numbers[: 2 + near.size].tolist() == [-1, -1, *(40 + near).tolist()]
            assert kept[2 : 2 + near.size].tolist() == values[at + near].tolist()
            assert kept[:2].tolist() == [-1.0, -1.0], "nothing is written before the first"
            assert (numbers[2 + PLACES :] == -1).all(), "nothing is written behind the last of 8"
