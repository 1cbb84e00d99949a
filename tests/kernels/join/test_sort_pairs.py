"""Two counting sorts of pairs against one comparison sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.join.sort_pairs import Block, count, fill_left, pack, sort_by_left, sort_by_right
from oracles import examples

N_LEFT, N_RIGHT = 7, 5


def begins(counts):
    return np.concatenate(([0], np.cumsum(counts)[:-1]))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@examples(100)
@given(st.lists(st.tuples(st.integers(0, N_LEFT - 1), st.integers(0, N_RIGHT - 1)), max_size=40))
def test_sorts__by_right_then_by_left_are_a_sort_by_both(kind, pairs):
    left, right = (np.array([pair[i] for pair in pairs], kind) for i in (0, 1))
    distance = np.arange(len(pairs), dtype=np.float64)  # tells pairs apart that come twice
    of_left, of_right = np.zeros(N_LEFT, np.int64), np.zeros(N_RIGHT, np.int64)
    count(left, of_left)
    count(right, of_right)
    assert of_left.tolist() == [sum(pair[0] == row for pair in pairs) for row in range(N_LEFT)]

    by_right, its_distance = np.empty_like(left), np.empty_like(distance)
    sort_by_right(Block(left, right, distance), begins(of_right), by_right, its_distance)
    to_right, to_distance = np.empty(len(pairs), np.int64), np.empty_like(distance)
    sort_by_left(np.cumsum(of_right), by_right, its_distance, begins(of_left), to_right, to_distance)
    to_left = np.empty(len(pairs), np.int64)
    fill_left(np.cumsum(of_left), to_left)
    expected = sorted((*pair, float(place)) for place, pair in enumerate(pairs))
    found = zip(to_left.tolist(), to_right.tolist(), to_distance.tolist(), strict=True)
    assert list(found) == expected


@pytest.mark.parametrize(
    ("begin", "filled", "copied"), [(0, 0, 4), (3, 0, 2), (0, 3, 1), (5, 1, 0), (2, 4, 0)]
)
def test_pack__copies_what_there_is_as_far_as_there_is_room(begin, filled, copied):
    left, right, distance = np.arange(5), np.arange(5) + 10, np.arange(5) + 0.5
    block = Block(np.full(4, -1, np.int32), np.full(4, -1, np.int32), np.full(4, -1.0))
    assert pack(left, right, distance, begin, block, filled) == copied
    for column, source in zip(block, (left, right, distance), strict=True):
        expected = [-1] * 4
        expected[filled : filled + copied] = source[begin : begin + copied].tolist()
        assert column.tolist() == expected
