"""The k nearest of many lists against sorted lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.neighbours.heaps import (
    NearestLists,
    keep_in_order,
    keep_nearest,
    keep_one,
    order_heap,
    sort_nearest,
    sort_nearest_in_rows,
)
from oracles import examples
from tests.kernels.columns import columns


def nearest_by_kernel(entries, k, n_rows):
    counts = np.bincount([row for row, _, _ in entries], minlength=n_rows)
    starts = np.concatenate(([0], np.cumsum(np.minimum(counts, k))))
    sizes, ids, distances = lists = NearestLists(
        np.zeros(n_rows, dtype=np.int64), np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1])
    )
    row, neighbour = columns([entry[:2] for entry in entries])
    distance = np.array([entry[2] for entry in entries], dtype=np.float64)
    keep_nearest((row, read_only(neighbour), read_only(distance)), starts, lists)
    assert sizes.tolist() == np.diff(starts).tolist()
    sort_nearest(starts, ids, distances)
    pairs = list(zip(distances.tolist(), ids.tolist(), strict=True))
    return [pairs[starts[row] : starts[row + 1]] for row in range(n_rows)]


@examples(300)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 20), st.sampled_from([0.0, 0.5, 1.0, 2.0])), max_size=80
    ),
    st.integers(1, 9),
)
def test_keep_nearest__keeps_the_k_smallest_by_distance_then_id(entries, k):
    expected = [
        sorted((distance, other) for at, other, distance in entries if at == row)[:k] for row in range(5)
    ]
    assert nearest_by_kernel(entries, k, 5) == expected


@pytest.mark.parametrize("order", [1, -1])
def test_keep_nearest__takes_entries_in_rising_and_falling_order(order):
    entries = [(0, other, float(other)) for other in range(500)][::order]
    assert nearest_by_kernel(entries, 40, 1) == [[(float(other), other) for other in range(40)]]


@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_sort_nearest_in_rows__puts_heaps_in_order_and_keeps_those_of_other_rows_apart(k):
    random = np.random.default_rng(k)
    ids, distances = np.empty((6, k), np.int64), np.empty((6, k))
    expected = []
    for row in range(6):
        entries = list(zip(random.integers(0, 3, 50) / 2, random.permutation(50).tolist(), strict=True))
        if row == 0:
            entries.sort(reverse=True)  # leaves a list in order, which is a heap, too
        size = 0
        for distance, other in entries:
            size = keep_one(ids[row], distances[row], 0, k, size, other, distance)
        expected.append(sorted(entries)[:k])
    sort_nearest_in_rows(ids, distances)
    assert [
        list(zip(*each, strict=True)) for each in zip(distances.tolist(), ids.tolist(), strict=True)
    ] == expected


@examples(300)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.integers(0, 20)), max_size=30, unique=True),
    st.integers(1, 12),
    st.integers(0, 30),
)
def test_keep_in_order__goes_on_where_a_heap_ends_and_has_the_farthest_first(entries, k, n_heaped):
    low, room = 3, slice(3, 3 + k)  # the list lies between others
    ids, distances, size = np.full(k + 6, -7), np.full(k + 6, -7.0), 0
    for distance, other in entries[:n_heaped]:
        size = keep_one(ids, distances, low, k, size, other, distance)
    order_heap(ids, distances, low, size)
    for distance, other in entries[n_heaped:]:
        size = keep_in_order(ids, distances, low, k, size, other, distance)
    kept = list(zip(distances[room].tolist(), ids[room].tolist(), strict=True))
    assert kept[:size] == sorted(entries)[:k][::-1]
    for column in (ids, distances):
        assert (np.delete(column, room) == -7).all(), "lists beside it stay"
