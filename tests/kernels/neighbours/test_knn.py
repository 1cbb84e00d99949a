"""Nearest neighbours by looking at every point, block by block: against sorting everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.accelerate import plain, read_only
from epsjoin.kernels.distances import CHEBYSHEV, EUCLIDEAN, MANHATTAN, MINKOWSKI, make_decision
from epsjoin.kernels.neighbours.heaps import NearestLists, sort_nearest
from epsjoin.kernels.neighbours.knn import BLOCK, count_within, find_surplus, scan_nearest
from oracles import examples

NORMS = {EUCLIDEAN: 2, MANHATTAN: 1, CHEBYSHEV: np.inf, MINKOWSKI: 3}


def all_distances(metric, queries, points):
    return np.linalg.norm(queries[:, None] - points[None], NORMS[metric], axis=2)


@pytest.mark.parametrize("metric", sorted(NORMS))
@pytest.mark.parametrize("n", [5, BLOCK, 2 * BLOCK + 1])
def test_scan_nearest__keeps_the_k_nearest_other_rows_the_smallest_row_first(metric, n):
    points = read_only(np.random.default_rng(n).integers(0, 6, (n, 2)) * 1.0)  # many ties, many equal points
    k, rows = 4, np.array([3, 0])
    sizes = np.zeros(n, np.int64)
    ids, distances = np.full((n, k), -1), np.full((n, k), -1.0)
    decision, lists = make_decision(metric, 3.0, np.inf), NearestLists(sizes, ids, distances)
    scan_nearest(plain(decision), points, rows, points, np.arange(n), plain(lists))
    expected = all_distances(metric, points, points).round(9)
    for row in rows:
        order = [i for i in np.lexsort((np.arange(n), expected[row])) if i != row][:k]
        mine, its_distances = ids[row].copy(), distances[row].copy()
        sort_nearest(np.array([0, k]), mine, its_distances)
        assert mine.tolist() == order
        assert its_distances == pytest.approx(expected[row, order])
    assert sizes.tolist() == [k if row in rows else 0 for row in range(n)], "no other list is touched"


@pytest.mark.parametrize("metric", sorted(NORMS))
def test_count_within__counts_pairs_within_each_radius(metric):
    random = np.random.default_rng(0)
    queries, points = random.random((9, 3)), random.random((20, 3))
    rows, chosen, radius = np.array([1, 5, 8]), np.arange(0, 20, 2), np.array([0.1, 0.4, 0.4, 0.9])
    queries, points = queries[rows], points[chosen]
    found = count_within(make_decision(metric, 3.0, np.inf), queries, points, radius)
    near = all_distances(metric, queries, points)
    assert found.tolist() == [(near <= bound).sum() for bound in radius]


@examples(200)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=30), st.integers(1, 4))
def test_find_surplus__names_the_first_equal_row_where_enough_come_before(rows, most):
    points = np.array(rows, np.float64)
    groups = np.unique(points, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(groups, kind="stable")
    start = np.concatenate(([0], np.cumsum(np.bincount(groups))))
    expected = [rows.index(row) if rows[:i].count(row) >= most else -1 for i, row in enumerate(rows)]
    assert find_surplus(points, order, start, most).tolist() == expected


def test_find_surplus__leaves_rows_of_a_group_that_are_unlike_its_first():
    points = np.array([[0.0], [1.0], [-0.0], [0.0], [1.0], [0.0]])
    assert find_surplus(points, np.arange(6), np.array([0, 6]), 3).tolist() == [-1] * 5 + [0]
