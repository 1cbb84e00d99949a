"""Expected pairs: those of a sample, and by the power law where it holds hardly any."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy.spatial import cKDTree

from epsjoin.local.metric import get_metric
from epsjoin.local.plan.expected import (
    count_pairs,
    count_sample_pairs,
    decided_pairs,
    expect_pairs,
    expected_pairs_of_tables,
)
from epsjoin.local.plan.projection import choose_projection, simple_projection

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


@pytest.mark.parametrize("n", [2, 100])
def test_count_pairs__counts_more_than_a_batch_holds(n):
    points, euclidean = np.zeros((n * 5, 3)), get_metric("euclidean")
    projection = simple_projection(points, euclidean.norm)
    degree = np.zeros(n * 5, np.int64)
    found = count_pairs(points, points, 1.0, euclidean, projection, degree=degree)
    assert found == 5 * n * (5 * n - 1) // 2
    assert (degree == 5 * n - 1).all()


def test_count_pairs__ends_soon_after_too_many():
    points, euclidean = np.zeros((3000, 2)), get_metric("euclidean")
    projection = simple_projection(points, euclidean.norm)
    assert 1000 < count_pairs(points, points, 1.0, euclidean, projection, max_pairs=1000) < 3000 * 2999 // 2


def test_count_sample_pairs__takes_fewer_rows_while_these_have_too_many():
    points, euclidean = np.zeros((900, 2)), get_metric("euclidean")
    limits = {"max_pairs": 2000, "divisor": 3}
    assert count_sample_pairs(points, 1.0, euclidean, min_rows=1, **limits) == (
        33,
        33 * 32 // 2,
        33 * 32 // 2,
    )
    assert count_sample_pairs(points, 1.0, euclidean, min_rows=200, **limits)[:2] == (200, 200 * 199 // 2)
    assert count_sample_pairs(points, 1.0, euclidean)[:2] == (900, 900 * 899 // 2)


@pytest.mark.parametrize(("max_pairs", "rows"), [(math.inf, 400), (20_000, 200), (10_000, 100), (1, 50)])
def test_count_sample_pairs__of_two_tables_takes_fewer_of_the_right_one(max_pairs, rows):
    left, right, euclidean = np.zeros((100, 2)), np.ones((400, 2)), get_metric("euclidean")
    found = count_sample_pairs(right, 1.5, euclidean, left=left, max_pairs=max_pairs, min_rows=50)
    assert (found.rows, found.pairs) == (rows, 100 * rows)
    assert found.variance == found.pairs, "all degrees are equal: a count is all that varies"
    assert count_sample_pairs(right, 1.4, euclidean, left=left, max_pairs=max_pairs).pairs == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("d", [2, 32, 300])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_count_sample_pairs__counts_those_of_few_rows_in_any_dimensions(n, d):
    points, others = np.random.default_rng(n).random((2, n, d))
    eps = math.sqrt(d / 6)  # about the median distance
    for right in (None, others[:1], others):
        is_near = (np.linalg.norm(points[:, None] - (points if right is None else right), axis=2)) <= eps
        pairs = np.count_nonzero(is_near) if right is not None else (np.count_nonzero(is_near) - n) // 2
        rows, left = (points, None) if right is None else (right, points)
        assert count_sample_pairs(rows, eps, EUCLIDEAN, left=left)[:2] == (len(rows), pairs)


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
