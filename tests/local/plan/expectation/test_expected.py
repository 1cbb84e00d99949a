"""Expected pairs: those of a sample, and by the power law where it holds hardly any."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from epsjoin.local.metric import get_metric
from epsjoin.local.plan.expectation.expected import expect_pairs, expected_pairs_of_tables

EUCLIDEAN = get_metric("euclidean")


def test_expect_pairs__of_all_rows_are_counted_and_certain():
    points = np.random.default_rng(0).random((3000, 2))
    found = expect_pairs(points, 3000, 0.01, EUCLIDEAN)
    assert found.pairs == found.low == found.high == len(cKDTree(points).query_pairs(0.01))
    assert found.suffices
    none = expect_pairs(points, 3000, 1e-9, EUCLIDEAN)
    assert none[:3] == (0.0, 0.0, 0.0)
    assert none.suffices


@pytest.mark.parametrize(("eps", "suffices"), [(0.001, False), (0.01, True)])
def test_expect_pairs__of_a_sample_suffice_from_thirty_on(eps, suffices):
    sample = np.random.default_rng(0).random((3000, 2))
    found = expect_pairs(sample, 6000, eps, EUCLIDEAN)
    assert found.sample_rows == 3000
    assert found.sample_pairs == len(cKDTree(sample).query_pairs(eps))
    assert found.pairs == pytest.approx(found.sample_pairs * 6000 * 5999 / (3000 * 2999))
    assert found.low < found.pairs < found.high
    assert found.suffices == (found.sample_pairs >= 30) == suffices


@pytest.mark.parametrize("n", [0, 1])
def test_expect_pairs__of_no_pair_of_rows_are_none(n):
    assert expect_pairs(np.zeros((n, 2)), 10**9, 1.0, EUCLIDEAN)[:3] == (0.0, 0.0, 0.0)


def test_expect_pairs__of_no_rows_are_none_and_not_below_zero():
    assert str(expect_pairs(np.zeros((0, 2)), 0, 1.0, EUCLIDEAN)[:3]) == "(0.0, 0.0, 0.0)"


@pytest.mark.parametrize("n_right", [0, 5000])
def test_expected_pairs_of_tables__are_near_those_of_all_rows(n_right):
    points = np.random.default_rng(4).random((30_000 + n_right, 2))
    left, right = cKDTree(points[:30_000]), cKDTree(points[30_000:])
    pairs = left.count_neighbors(right, 0.02) if n_right else len(left.query_pairs(0.02))
    others = points[30_000:] if n_right else None
    expected = expected_pairs_of_tables(points[:30_000], others, 0.02, get_metric("euclidean"))
    assert expected == pytest.approx(pairs, rel=0.05)
    nobody = points[:0]
    assert expected_pairs_of_tables(points[:30_000], nobody, 0.02, get_metric("euclidean")) == 0.0
