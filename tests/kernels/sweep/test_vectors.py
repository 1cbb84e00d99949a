"""What is written as instructions on vectors does what its text in Python says, lane by lane."""

import numba
import numpy as np
import pytest
from llvmlite import ir

from epsjoin.kernels.accelerate import njit_as
from epsjoin.kernels.projection import FILTER_SIZES, MAXIMUM, PRODUCTS, SQUARES, SUM, add_half_squares
from epsjoin.kernels.simd import lanes
from epsjoin.kernels.sweep.row_vectors import (
    keep_lanes_2,
    keep_lanes_3,
    near_keys_2,
    near_keys_3,
    near_lanes_2,
    near_lanes_3,
    rows_below,
)
from epsjoin.kernels.sweep.vectors import (
    BLOCK,
    add_lanes,
    filter_block,
    lowest_lane,
    skip_below,
)

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


@pytest.mark.parametrize("length", [1.0, 20.0, 150.0])
def test_filter_block__by_products_lets_all_within_pass_and_little_else(length):
    for size in FILTER_SIZES:
        random = np.random.default_rng(size)
        rows = random.normal(size=(4000, size))
        rows *= length / np.linalg.norm(rows, axis=1, keepdims=True)
        rows[1::2] = rows[::2] + random.normal(size=(2000, size)) * 0.7 / size**0.5  # some 1 apart
        near = np.append(rows.astype(np.float32).T.ravel(), np.zeros(4000, np.float32))
        square = add_half_squares(near, size, 4000, 4000)
        exact = near.reshape(size + 1, 4000)[:size].astype(np.float64)
        assert square == pytest.approx((exact**2).sum(axis=0).max(), rel=1e-12)
        slack = 2.0**-19 * square
        n_near = 0
        for row in range(0, 3900, 2):
            distances = ((exact[:, row + 1 : row + 1 + BLOCK] - exact[:, [row]]) ** 2).sum(axis=0)
            bound = np.float32((1.0 + slack) / 2.0)
            passed = _near_lanes(near, 4000, row + 1, row, bound, PRODUCTS, size).astype(np.int64)
            assert set(np.flatnonzero(distances <= 1.0)) <= set(passed.tolist())
            assert (distances[passed] <= 1.0 + 2.0 * slack).all()
            n_near += len(passed)
        assert n_near > 300


@numba.njit
def _wait(bits, place, other):
    return add_lanes(bits, 5, 2**32 - 40, place, other, 3)


@pytest.mark.parametrize("lanes", [[], [0], [31], [3, 15, 16, 30], list(range(32))])
def test_add_lanes__lets_those_wait_whose_bits_are_set(lanes):
    place, other = np.zeros(40, np.uint32), np.zeros(40, np.uint32)
    assert _wait(sum(1 << lane for lane in lanes), place, other) == 3 + len(lanes)
    assert place[: 3 + len(lanes)].tolist() == [0, 0, 0, *[5] * len(lanes)]
    assert other[: 3 + len(lanes)].tolist() == [0, 0, 0, *(2**32 - 40 + lane for lane in lanes)]
    assert (place[35:] == 0).all()
    assert (other[35:] == 0).all()


@pytest.mark.parametrize("end", [0, 3, 8, 9, 40])
def test_skip_below__stops_at_the_first_place_that_is_not_below(end):
    place = np.sort(np.random.default_rng(end).integers(0, 30, 40))
    for at in range(end + 1):
        for value in range(-1, 32):
            expected = at + np.searchsorted(place[at:end], value)
            assert skip_below(place, at, end, value) == expected


@numba.njit
def _ranks(rows, at, count, values):
    return np.array([rows_below(rows, at, count, value) for value in values])


def test_rows_below__counts_those_of_at_most_eight_rows():
    rows = np.random.default_rng(8).integers(0, 5, 20).astype(np.int32)
    rows[6] = np.iinfo(np.int32).max
    for at in range(13):
        for count in (0, 1, 7, 8, 12):
            expected = [(rows[at : at + min(count, 8)] < value).sum() for value in rows]
            np.testing.assert_array_equal(_ranks(rows, at, count, rows), expected)


@numba.njit
def _keep(near, row, last, bound, least, n, d):
    found, squares = np.full(12, -1, np.int32), np.zeros(12)
    if d == 2:
        bits = near_lanes_2(near, row, 1, 3, last, bound, least, n)
        count = keep_lanes_2(near, row, 1, 3, bits, found, squares, 4, n)
    else:
        bits = near_lanes_3(near, row, 1, 3, last, bound, least, n)
        count = keep_lanes_3(near, row, 1, 3, bits, found, squares, 4, n)
    return bits, found[: 4 + count], squares[: 4 + count]


def _rows_at_the_bound(d):
    """(generator, columns of twelve points, squared distances to row 1): rows 4 and 5 are equally far."""
    random = np.random.default_rng(d)
    points = random.random((d, 12))
    points[:, 5] = points[:, 4] = points[:, 1] + 0.1  # two at the bound
    squares = np.zeros(12)
    for axis in range(d):
        squares += (points[axis, 1] - points[axis]) ** 2
    return random, points, squares


@pytest.mark.parametrize("d", [2, 3])
def test_lanes__are_those_of_later_rows_up_to_the_bound_bit_for_bit(d):
    random, points, squares = _rows_at_the_bound(d)
    row = random.permutation(12).astype(np.int32)
    for last in (3, 4, 7, 11, 12):
        places = np.arange(3, min(last, 11))
        for least in (-1, 5):
            expected = places[(squares[places] <= squares[4]) & (row[places] > least)]
            bits, found, near = _keep(points.ravel(), row, last, squares[4], least, 12, d)
            assert bits == sum(1 << place - 3 for place in expected)
            np.testing.assert_array_equal(found, [-1] * 4 + row[expected].tolist())
            np.testing.assert_array_equal(near[4:], squares[expected])


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="plain Python writes no instructions")
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_store_packed__packs_whichever_lanes_are_set_on_any_processor(is_shuffled, monkeypatch):
    monkeypatch.setattr(lanes, "_IS_SHUFFLED", is_shuffled)

    def write(builder, numbers, rows, bits, squares, found):
        is_stored = builder.bitcast(builder.trunc(bits, ir.IntType(8)), ir.VectorType(lanes.BIT, 8))
        first = ir.Constant(lanes.INT, 0)
        every = ir.Constant(is_stored.type, [1] * 8)
        for values, array in ((numbers, squares), (rows, found)):
            lanes.store_packed(
                builder, lanes.load_some(builder, values, first, every), is_stored, array, first
            )
        return first

    @njit_as(write)
    def store(numbers, rows, bits, squares, found):
        raise AssertionError("only its instructions run")

    @numba.njit
    def packed(numbers, rows, bits):
        squares, found = np.empty(16), np.empty(16, np.int32)
        store(numbers, rows, bits, squares, found)
        return squares, found

    numbers, rows = np.arange(8) + 0.5, np.arange(8, dtype=np.int32) + 7
    for bits in range(256):
        places = [lane for lane in range(8) if bits >> lane & 1]
        squares, found = packed(numbers, rows, bits)
        np.testing.assert_array_equal(squares[: len(places)], numbers[places])
        np.testing.assert_array_equal(found[: len(places)], rows[places])


@numba.njit
def _keys(near, row, last, bound, is_self, n, d):
    keys = np.full(12, -1, np.int64)
    if d == 2:
        count = near_keys_2(near, row, 1, 3, last, bound, is_self, 31, keys, 4, n)
    else:
        count = near_keys_3(near, row, 1, 3, last, bound, is_self, 31, keys, 4, n)
    return keys[: 4 + count]


@pytest.mark.parametrize("d", [2, 3])
def test_keys__are_pairs_of_those_up_to_the_bound_the_smaller_row_of_one_table_first(d):
    random, points, squares = _rows_at_the_bound(d)
    row = (random.permutation(12) + 2**31 - 12).astype(np.int32)
    for last in (3, 4, 7, 11, 12):
        places = np.arange(3, min(last, 11))
        others = row[places[squares[places] <= squares[4]]].tolist()
        for is_self in (0, 1):
            pairs = [sorted((int(row[1]), other)) if is_self else (int(row[1]), other) for other in others]
            expected = [-1] * 4 + [left * 2**31 + right for left, right in pairs]
            found = _keys(points.ravel(), row, last, squares[4], is_self, 12, d)
            assert found.tolist() == expected
