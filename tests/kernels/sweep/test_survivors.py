"""Survivors of a filter are decided in their order, each by mask and distance."""

from __future__ import annotations

import numpy as np
import pytest

from epsjoin.kernels.distances import make_decision
from epsjoin.kernels.pairs.batch import PairBatch
from epsjoin.kernels.sweep.survivors import DecidedRows, decide_survivors, new_survivors
from oracles import join as twin
from tests.kernels.sweeps import NORMS


@pytest.mark.parametrize("is_self", [True, False])
@pytest.mark.parametrize(
    ("metric", "d"), [("euclidean", 2), ("euclidean", 9), ("euclidean", 65), ("manhattan", 3)]
)
def test_decide_survivors__writes_those_within_eps_and_counts_the_distances(metric, d, is_self):
    n, count = 40, 300
    random = np.random.default_rng(d)
    points = random.integers(0, 3, (n, d)) / 4.0  # many ties
    row, ids = random.permutation(n), random.permutation(n)
    mask = random.integers(0, 4, n)
    gaps = np.abs(points[:, None] - points)[np.triu_indices(n, 1)]
    lengths = np.sqrt((gaps**2).sum(axis=1)) if metric == "euclidean" else gaps.sum(axis=1)
    eps = float(np.sort(lengths)[len(lengths) // 2])  # pairs at exactly eps are within
    survivors = new_survivors()
    survivors.place[:count], survivors.other[:count] = random.integers(0, n, (2, count))
    asked = list(zip(survivors.place[:count].tolist(), survivors.other[:count].tolist(), strict=True))
    batch = PairBatch(np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count))
    rows = DecidedRows(points, row, ids, mask, is_self)
    written, distances = decide_survivors(
        rows, make_decision(NORMS[metric][1], 0.0, eps), survivors, count, batch
    )
    within = set(twin.brute_force(points, eps, metric)) | {(i, i) for i in range(n)}
    disjoint = [(a, b) for a, b in asked if not mask[a] & mask[b]]
    expected = [(ids[a], ids[b]) for a, b in disjoint if (min(row[a], row[b]), max(row[a], row[b])) in within]
    if is_self:
        expected = [(min(pair), max(pair)) for pair in expected]
    found = list(zip(batch.left[:written].tolist(), batch.right[:written].tolist(), strict=True))
    assert found == expected
    assert 0 < written < distances == len(disjoint) < count
