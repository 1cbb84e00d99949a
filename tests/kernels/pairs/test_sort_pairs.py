"""Pairs grouped by counting and sorted by group against one comparison sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.pairs.sort_pairs import (
    Block,
    count,
    fill_left,
    group_by_left,
    pack,
    sort_group,
    sort_groups,
)
from oracles import examples

N_LEFT, N_RIGHT = 7, 60


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@examples(100)
@given(
    st.lists(st.tuples(st.integers(0, N_LEFT - 1), st.integers(0, N_RIGHT - 1)), max_size=200, unique=True)
)
def test_groups_that_are_sorted__are_a_sort_by_both(kind, pairs):
    left, right = (np.array([pair[i] for pair in pairs], kind) for i in (0, 1))
    distance = np.arange(len(pairs), dtype=np.float64)  # tells pairs apart
    places = np.zeros(N_LEFT, np.int64)
    count(left, places)
    assert places.tolist() == [sum(pair[0] == row for pair in pairs) for row in range(N_LEFT)]

    places = np.concatenate(([0], np.cumsum(places)[:-1]))
    to_right, to_distance = np.empty_like(right), np.empty_like(distance)
    group_by_left(Block(left, right, distance), places, to_right, to_distance)
    sort_groups(places, to_right, to_distance)
    to_left = np.empty(len(pairs), np.int64)
    fill_left(places, to_left)
    expected = sorted((*pair, float(place)) for place, pair in enumerate(pairs))
    found = zip(to_left.tolist(), to_right.tolist(), to_distance.tolist(), strict=True)
    assert list(found) == expected


@pytest.mark.parametrize("with_distance", [True, False])
@pytest.mark.parametrize("step", [-1, 1, 7])
def test_sort_groups__sorts_long_groups_in_any_order(step, with_distance):
    k = 1000
    right = (np.arange(3 * k) * step % k).astype(np.int32)
    distance = right + 0.5 if with_distance else np.empty(0)
    sort_groups(np.array([0, k, 3 * k]), right, distance)  # of two rows the second has each partner twice
    assert right.tolist() == [*range(k), *np.repeat(np.arange(k), 2)]
    assert distance.tolist() == ((right + 0.5).tolist() if with_distance else [])


@pytest.mark.parametrize("with_distance", [True, False])
@pytest.mark.parametrize("span", [100, 2**9, 20_000, 2**31 - 1])
def test_sort_group__sorts_a_row_of_very_many_pairs_in_parts(span, with_distance):
    random = np.random.default_rng(span)
    right = random.integers(0, span, 30_000).astype(np.int32)
    distance = right + 0.5 if with_distance else np.empty(0)
    expected = sorted(right.tolist())
    sort_group(right, distance, 0, len(right))
    assert right.tolist() == expected
    assert distance.tolist() == [row + 0.5 for row in expected] * with_distance


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("span", [2, 255, 256, 257, 2**16, 2**24 + 1, 2**31 - 1])
def test_sort_group__sorts_rows_of_any_range_and_leaves_the_others(span, kind):
    random = np.random.default_rng(span)
    right, distance = random.integers(2**31 - 1 - span, 2**31 - 1, 500).astype(kind), random.random(500)
    expected = right.copy(), distance.copy()
    order = 100 + np.argsort(right[100:400], kind="stable")
    expected[0][100:400], expected[1][100:400] = right[order], distance[order]
    sort_group(right, distance, 100, 400)
    assert right.tolist() == expected[0].tolist()
    assert distance.tolist() == expected[1].tolist()
    sort_group(right, distance, 7, 8)
    sort_group(right, distance, 7, 7)
    assert right.tolist() == expected[0].tolist()


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
