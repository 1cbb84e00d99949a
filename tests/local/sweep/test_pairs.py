"""Pairs are sorted by counting as by comparing."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from epsjoin.kernels.pairs import sort_pairs
from epsjoin.local.sweep import pairs as sweep_pairs
from epsjoin.local.sweep.pairs import Pairs, collect

PAIR_BYTES = 24


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize(("n", "share"), [(1, 1.0), (40, 0.1), (60, 0.9), (300, 0.5), (5000, 0.0005)])
def test_collect__is_that_of_lexsort(n, share, counted):
    random = np.random.default_rng(n)
    left, right = np.nonzero(random.random((n, n)) < share)
    order = random.permutation(len(left))
    pairs = Pairs(left[order], right[order], random.random(len(left)))
    before = [column.copy() for column in pairs]
    size = max(1, len(left) // 3)
    batches = [Pairs(*(c[i : i + size] for c in pairs)) for i in range(0, len(left), size)]
    expected = np.lexsort((pairs.right, pairs.left))
    for found, column in zip(collect(iter(batches), (n, n) if counted else None), pairs, strict=True):
        assert (found == column[expected]).all()
        assert found.dtype == column.dtype
    for column, copy in zip(pairs, before, strict=True):
        assert (column == copy).all()


def test_collect__without_distances_has_the_same_rows(monkeypatch):
    monkeypatch.setattr(sweep_pairs, "_MIN_BLOCK", 7)
    left, right = np.nonzero(np.random.default_rng(0).random((50, 60)) < 0.2)
    order = np.random.default_rng(1).permutation(len(left))
    batches = [Pairs(left[of], right[of], np.ones(len(of))) for of in np.array_split(order, 9)]
    found = collect(iter(batches), (50, 60), with_distance=False)
    assert (found.left.tolist(), found.right.tolist()) == (left.tolist(), right.tolist())
    assert found.distance.shape == (0,)


def test_collect__of_row_numbers_takes_little_more_memory_than_its_result():
    n, m = 50_000, 2_000_000
    random = np.random.default_rng(0)
    size = 100_000

    def batches():
        for _ in range(m // size):
            left, right = random.integers(0, n, (2, size))
            yield Pairs(left, right, random.random(size))

    tracemalloc.start()
    try:
        pairs = collect(batches(), (n, n))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(pairs.left) == m
    assert (np.diff(pairs.left * n + pairs.right) >= 0).all()
    # 28 bytes for each pair while they are sorted, and a few for each row
    assert peak < 1.25 * m * PAIR_BYTES


def test_collect__keeps_pairs_in_blocks_of_any_size(monkeypatch):
    monkeypatch.setattr(sweep_pairs, "_MIN_BLOCK", 3)
    monkeypatch.setattr(sweep_pairs, "_MAX_BLOCK", 8)
    left, right = np.nonzero(np.ones((7, 5), np.bool_))
    order = np.random.default_rng(0).permutation(35)
    columns = left[order], right[order], np.arange(35.0)[order]
    for sizes in ([35], [1] * 35, [2, 20, 13], [11, 24]):
        ends = np.cumsum(sizes)
        batches = [
            Pairs(*(c[end - size : end] for c in columns)) for size, end in zip(sizes, ends, strict=True)
        ]
        found = collect(iter(batches), (7, 5))
        assert [column.tolist() for column in found] == [left.tolist(), right.tolist(), list(range(35))]


@pytest.mark.parametrize("largest", [5, 4])
def test_collect__takes_row_numbers_that_int32_does_not_hold(monkeypatch, largest):
    monkeypatch.setattr(sweep_pairs, "_INT32_ROWS", largest)
    kept = []
    pack = sort_pairs.pack

    def watched(left, right, distance, begin, block, filled):
        kept.append(block.left.dtype)
        return pack(left, right, distance, begin, block, filled)

    monkeypatch.setattr(sort_pairs, "pack", watched)
    found = collect(iter([Pairs(np.array([2, 1]), np.array([3, 4]), np.array([0.5, 0.25]))]), (3, 5))
    assert [column.tolist() for column in found] == [[1, 2], [4, 3], [0.25, 0.5]]
    assert kept == [np.int32 if largest == 5 else np.int64]


@pytest.mark.parametrize("n_rows", [None, (0, 0), (3, 0), (0, 3), (3, 2)])
def test_collect__takes_none(n_rows):
    pairs = collect(iter([]), n_rows)
    assert [(len(column), column.dtype) for column in pairs] == [
        (0, np.int64),
        (0, np.int64),
        (0, np.float64),
    ]
