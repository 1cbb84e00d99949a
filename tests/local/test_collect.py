"""Pairs are sorted by counting as by comparing."""

from __future__ import annotations

import numpy as np
import pytest

from epsjoin.local.sweeping import Pairs, collect


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
    for found, column in zip(collect(iter(batches), n if counted else None), pairs, strict=True):
        assert (found == column[expected]).all()
        assert found.dtype == column.dtype
    for column, copy in zip(pairs, before, strict=True):
        assert (column == copy).all()


@pytest.mark.parametrize("n_left", [None, 0, 3])
def test_collect__takes_none(n_left):
    pairs = collect(iter([]), n_left)
    assert [(len(column), column.dtype) for column in pairs] == [
        (0, np.int64),
        (0, np.int64),
        (0, np.float64),
    ]
