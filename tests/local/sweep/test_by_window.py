"""A window sweep to its end: the pairs of its batches, sorted, and an end as soon as there are too many."""

from __future__ import annotations

import numpy as np
import pytest

from epsjoin.errors import BudgetError
from epsjoin.local.join.arrays import iter_self_join, self_join
from epsjoin.local.sweep import by_window


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_window_blocks__have_the_pairs_of_the_batches_and_counted_like_them(n_jobs):
    points = np.random.default_rng(1).random((20_000, 4))
    counters: tuple[dict[str, int], dict[str, int]] = ({}, {})
    pairs = self_join(points, 0.05, n_jobs=n_jobs, counters=counters[0])
    batches = list(iter_self_join(points, 0.05, counters=counters[1]))
    left, right, distance = (np.concatenate(column) for column in zip(*batches, strict=True))
    order = np.lexsort((right, left))
    for column, expected in zip(pairs, (left, right, distance), strict=True):
        assert column.tolist() == expected[order].tolist()
    assert counters[0] == counters[1]
    assert counters[0]["pairs"] == len(pairs.left) > 5000


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_window_blocks__end_within_a_chunk_that_has_too_many(monkeypatch, n_jobs):
    found = []
    sweep = by_window.window.window_sweep

    def count(*given):
        found.append(sweep(*given))
        return found[-1]

    monkeypatch.setattr(by_window.window, "window_sweep", count)
    with pytest.raises(BudgetError, match="max_pairs = 1000"):
        self_join(np.zeros((5000, 4)), 1.0, max_pairs=1000, n_jobs=n_jobs)
    assert sum(found) < 100_000
