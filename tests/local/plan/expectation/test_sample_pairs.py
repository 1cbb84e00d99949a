"""The pairs of a sample, or of fewer of its rows where these have too many."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsjoin.local.metric import get_metric
from epsjoin.local.plan.expectation.sample_pairs import count_pairs, count_sample_pairs
from epsjoin.local.plan.projection import simple_projection

EUCLIDEAN = get_metric("euclidean")


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
