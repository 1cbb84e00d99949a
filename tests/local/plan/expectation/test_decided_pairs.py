"""The pairs of a sample that a join will decide."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.spatial import cKDTree

from epsjoin.local.metric import get_metric
from epsjoin.local.plan.expectation.decided_pairs import decided_pairs
from epsjoin.local.plan.projection import choose_projection


@pytest.mark.parametrize("eps", [0.001, 0.02, 0.1, 0.3])
def test_decided_pairs__stand_for_all_in_bounded_memory(eps):
    points = np.random.default_rng(0).random((30_000, 2))
    projection = choose_projection(points, len(points), eps, get_metric("euclidean").norm).projection
    found = decided_pairs(points, points, eps, projection, 0)
    near = cKDTree(points)
    pairs = (near.count_neighbors(near, eps) - len(points)) / 2
    assert len(found.left) == len(found.right) <= 200_000
    assert found.weight * len(found.left) == pytest.approx(pairs, rel=0.15)
    assert eps > 0.001 or found.weight == 1.0


def test_decided_pairs__of_many_dimensions_compares_few_pairs_at_once():
    """Where nearly all rows are outliers in some dimension; all pairs together took 64 numbers each."""
    points = np.random.default_rng(0).standard_normal((2000, 64))
    eps = 8.5
    projection = choose_projection(points, len(points), eps, get_metric("euclidean").norm).projection
    tracemalloc.start()
    try:
        found = decided_pairs(points, points, eps, projection, 0)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.weight * len(found.left) > 1_000_000
    assert most < 150 << 20  # of the pairs alone
