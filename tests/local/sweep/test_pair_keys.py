"""Pairs sorted as keys against one sort of rows, and the memory that it takes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from epsjoin.local.sweep import pair_keys
from epsjoin.local.sweep.pair_keys import PairKeys
from epsjoin.local.sweep.threads import in_ranges

N_LEFT, N_RIGHT = 30_000, 50_000


def _distances(points: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    gaps = points[left] - points[N_LEFT + right]
    return np.sqrt(sum(gaps[:, j] * gaps[:, j] for j in range(points.shape[1])))


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("max_buckets", [0, 1 << 12])
@pytest.mark.parametrize(("m", "d"), [(0, 2), (1, 1), (300_000, 2), (300_000, 3)])
def test_sort__sorts_by_both_rows_in_little_memory(m, d, max_buckets, n_jobs, monkeypatch):
    monkeypatch.setattr(pair_keys, "_MAX_BUCKETS", max_buckets)
    random = np.random.default_rng(m)
    points = random.random((N_LEFT + N_RIGHT, d))
    rows = np.unique(random.integers(0, N_LEFT * N_RIGHT, m))
    left, right = np.divmod(rows, N_RIGHT)
    keys = PairKeys.of(N_LEFT, N_RIGHT)
    mixed = random.permutation(left << keys.right_bits | right)
    keys.sort([mixed[:250_000]], points, N_LEFT, in_ranges(n_jobs))  # loaded kernels take memory, too
    tracemalloc.start()
    try:
        blocks = [some.copy() for some in np.split(mixed, [m // 3, m // 3, m // 2])]
        tracemalloc.reset_peak()
        pairs = keys.sort(blocks, points, N_LEFT, in_ranges(n_jobs))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert blocks == []
    assert [column.dtype for column in pairs] == [np.int64, np.int64, np.float64]
    for found, expected in zip(pairs, (left, right, _distances(points, left, right)), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert peak < 28 * m + 300_000, (peak / max(1, m), m)


@pytest.mark.parametrize("n_right", [1, 2, 2**30 + 1])
def test_keys__hold_the_last_rows(n_right):
    assert n_right - 1 < 1 << PairKeys.of(1, n_right).right_bits
