"""Eight pairs side by side are decided as one after the other, to the last bit."""

import math

import numba
import numpy as np
import pytest

from epsjoin.kernels.simd.read_ahead import read_ahead
from epsjoin.kernels.sweep.near_pairs import write_near_pairs

_GUARD = -7


@numba.njit
def _write(points, row, ids, place, other, at, count, bound, is_self, left, right, distance):
    read_ahead(points, points.size - 1)
    return write_near_pairs(
        points,
        points.shape[1],
        row,
        ids,
        place,
        other,
        at,
        count,
        bound,
        is_self,
        left,
        right,
        distance,
        1,
    )


def _square(one, other):
    total = 0.0
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        total += (a - b) * (a - b)
    return total


@pytest.mark.parametrize("is_self", [0, 1])
@pytest.mark.parametrize("d", [1, 7, 8, 9, 64, 75])
def test_write_near_pairs__writes_what_is_up_to_the_bound_bit_for_bit_and_nothing_behind(d, is_self):
    random = np.random.default_rng(d)
    points = random.random((30, d))
    row, ids = random.permutation(30), random.permutation(30) + 100
    place, other = random.integers(0, 30, (2, 21), np.uint32)
    squares = [_square(points[row[a]], points[row[b]]) for a, b in zip(place, other, strict=True)]
    bound = sorted(squares)[12]
    for at, count in ((0, 21), (8, 21), (16, 21), (16, 17), (0, 3), (8, 16)):
        expected = []
        for pair in range(at, min(at + 8, count)):
            one, two = int(ids[place[pair]]), int(ids[other[pair]])
            if squares[pair] <= bound:
                ends = (min(one, two), max(one, two)) if is_self else (one, two)
                expected.append((*ends, math.sqrt(squares[pair])))
        left, right, distance = np.full(12, _GUARD), np.full(12, _GUARD), np.full(12, float(_GUARD))
        kept = _write(points, row, ids, place, other, at, count, bound, is_self, left, right, distance)
        assert kept == len(expected)
        found = list(zip(left.tolist(), right.tolist(), distance.tolist(), strict=True))
        assert found == [(_GUARD,) * 3, *expected, *[(_GUARD,) * 3] * (11 - kept)]


def test_write_near_pairs__adds_from_the_first_dimension_to_the_last():
    points = np.zeros((2, 16))
    points[1, 0] = 2.0**27  # its square, 2**54, swallows each 1 that is added to it
    points[1, 1:] = 1.0
    ids, place, other = np.arange(2), np.zeros(1, np.uint32), np.ones(1, np.uint32)
    pairs = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2)
    assert _write(points, ids, ids, place, other, 0, 1, 2.0**54, 1, *pairs) == 1
    assert _write(points[:, ::-1].copy(), ids, ids, place, other, 0, 1, 2.0**54, 1, *pairs) == 0
