"""What is written as instructions on vectors does what its text in Python says, lane by lane."""

import numba
import numpy as np
import pytest

from epsjoin.kernels.join.projection import FILTER_SIZES, MAXIMUM, SQUARES, SUM
from epsjoin.kernels.join.vectors import BLOCK, filter_block, lowest_lane, skip_below

_NORMS = {
    SQUARES: lambda gaps: (gaps**2).sum(axis=0),
    SUM: lambda gaps: np.abs(gaps).sum(axis=0),
    MAXIMUM: lambda gaps: np.abs(gaps).max(axis=0),
}


@numba.njit
def _near_lanes(near, stride, block, row, bound, norm, size):
    lanes = []
    bits = filter_block(near, stride, block, row, bound, norm, size)
    while bits != 0:
        lanes.append(lowest_lane(bits))
        bits &= bits - 1
    return np.array(lanes)


@pytest.mark.parametrize("norm", _NORMS)
def test_filter_block__has_a_bit_for_each_row_up_to_the_bound(norm):
    for size in FILTER_SIZES:
        coordinates = np.random.default_rng(size).integers(-3, 4, (size, 40)).astype(np.float32)
        distances = _NORMS[norm](coordinates[:, 5 : 5 + BLOCK] - coordinates[:, 2:3])
        bound = np.sort(distances)[BLOCK // 2]  # whole numbers: many are at the bound
        assert (distances == bound).any()
        assert (distances > bound).any()
        found = _near_lanes(coordinates.ravel(), 40, 5, 2, bound, norm, size)
        np.testing.assert_array_equal(found, np.flatnonzero(distances <= bound))


@pytest.mark.parametrize("end", [0, 3, 8, 9, 40])
def test_skip_below__stops_at_the_first_place_that_is_not_below(end):
    place = np.sort(np.random.default_rng(end).integers(0, 30, 40))
    for at in range(end + 1):
        for value in range(-1, 32):
            expected = at + np.searchsorted(place[at:end], value)
            assert skip_below(place, at, end, value) == expected
