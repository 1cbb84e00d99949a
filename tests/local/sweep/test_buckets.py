"""Pairs sorted in buckets against one comparison sort, and the memory that it takes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from epsjoin.kernels.pairs.sort_pairs import Block
from epsjoin.local.sweep import buckets

N_RIGHT = 1 << 17


def _rows(kind: str, m: int) -> tuple[np.ndarray, int]:
    """Left rows of m pairs, and how many rows there are."""
    random = np.random.default_rng(0)
    if kind == "anywhere":
        return random.integers(0, 40_000, m), 40_000
    if kind == "few rows":
        return random.integers(0, 100, m), 100
    if kind == "mostly one row":
        return np.where(random.random(m) < 0.9, 12_345, random.integers(0, 40_000, m)), 40_000
    return np.where(random.random(m) < 0.9, random.integers(70, 140, m), 39_999), 40_000


def _blocks(key: np.ndarray, with_distance: bool) -> list[Block]:
    blocks = []
    for some in np.split(key, [5, 5, len(key) // 3, len(key) // 3 + 1]):
        left, right = ((rows).astype(np.int32) for rows in divmod(some, N_RIGHT))
        blocks.append(Block(left, right, some + 0.5 if with_distance else np.empty(0)))
    return blocks


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("with_distance", "into", "peak_bytes"), [(True, np.int64, 28), (False, np.int32, 12)]
)
@pytest.mark.parametrize("kind", ["anywhere", "few rows", "mostly one row", "mostly rows side by side"])
def test_sort_blocks__sorts_by_both_rows_in_little_memory(kind, with_distance, into, peak_bytes, n_jobs):
    left, n_left = _rows(kind, 200_000)
    random = np.random.default_rng(1)
    expected = np.unique(left * N_RIGHT + random.integers(0, N_RIGHT, len(left)))
    key, n_rows = random.permutation(expected), (n_left, N_RIGHT)
    m = len(key)

    def sort(blocks: list[Block]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return buckets.sort_blocks(blocks, n_rows, with_distance=with_distance, into=into, n_jobs=n_jobs)

    sort(_blocks(key[:9], with_distance))  # kernels that are loaded take memory, too
    tracemalloc.start()
    try:
        blocks = _blocks(key, with_distance)
        tracemalloc.reset_peak()
        left, right, distance = sort(blocks)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert blocks == []
    assert left.dtype == right.dtype == into
    np.testing.assert_array_equal(left.astype(np.int64) * N_RIGHT + right, expected)
    np.testing.assert_array_equal(distance, expected + 0.5 if with_distance else [])
    assert peak < peak_bytes * m + 40 * n_left + 300_000, (peak / m, m)
