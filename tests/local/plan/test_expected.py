"""Expected pairs: those of a sample, and by the power law where it holds hardly any."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial import cKDTree

from epsjoin.local.metric import get_metric
from epsjoin.local.plan.expected import decided_pairs, expected_pairs
from epsjoin.local.plan.projection import choose_projection


def expect(sample, n_rows, eps, metric="euclidean"):
    chosen = get_metric(metric)
    embedded = chosen.embed(sample)
    projection = choose_projection(embedded, len(sample), chosen.embedded_eps(eps), chosen.norm).projection
    return expected_pairs(sample, embedded, n_rows, eps, chosen, projection, 0)


def test_expected_pairs__of_all_rows_are_counted():
    points = np.random.default_rng(0).random((3000, 2))
    assert expect(points, 3000, 0.01) == len(cKDTree(points).query_pairs(0.01))
    assert expect(points, 3000, 1e-9) == 0.0


@pytest.mark.parametrize(("d", "volume"), [(2, math.pi), (3, 4.0 / 3.0 * math.pi)])
@pytest.mark.parametrize("n_rows", [10**7, 10**9, 10**10])
def test_expected_pairs__follow_the_power_law_where_the_sample_holds_none(d, volume, n_rows):
    # five neighbours of each among very many, of which the sample has ten thousand
    eps = (5.0 / (n_rows * volume)) ** (1.0 / d)
    sample = np.random.default_rng(1).random((10_000, d))
    assert len(cKDTree(sample).query_pairs(eps)) < 50
    assert 0.5 < expect(sample, n_rows, eps) / (2.5 * n_rows) < 2.0


def test_expected_pairs__of_many_are_within_a_factor_of_two_in_clusters():
    random = np.random.default_rng(2)
    centres = random.random((50, 6))
    points = centres[random.integers(0, 50, 200_000)] + random.normal(0.0, 0.02, (200_000, 6))
    sample = points[:10_000]
    assert len(cKDTree(sample).query_pairs(0.004)) < 50
    found = cKDTree(points).count_neighbors(cKDTree(points), 0.004)
    assert 0.5 < expect(sample, 200_000, 0.004) / ((found - 200_000) / 2) < 2.0


def test_expected_pairs__end_where_no_distance_has_more():
    assert expect(np.zeros((5, 2)), 10**9, 1.0) == pytest.approx(10**18 / 2, rel=1e-6)
    assert expect(np.zeros((1, 2)), 10**9, 1.0) == 0.0
    assert expect(np.array([[0.0, 0.0], [0.0, 90.0]]), 10**9, 1.0, "haversine") == 0.0


def test_expected_pairs__end_where_a_power_is_no_float_any_more():
    sample = np.random.default_rng(3).uniform(0.0, 1e6, (20_000, 2))
    minkowski = get_metric("minkowski", 100)
    with pytest.raises(OverflowError):
        minkowski.decision(1500.0)
    embedded = minkowski.embed(sample)
    projection = choose_projection(
        embedded, len(sample), minkowski.embedded_eps(1.0), minkowski.norm
    ).projection
    assert expected_pairs(sample, embedded, 100_000, 1.0, minkowski, projection, 0) >= 0.0


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
