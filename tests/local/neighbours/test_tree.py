"""The tree of boxes finds the k nearest, ties by the smallest row, and looks at few boxes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.neighbours import tree as kernels
from epsjoin.kernels.neighbours.heaps import NearestLists, sort_nearest
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours import knn
from epsjoin.local.neighbours.knn import knn_join, nearest_of
from epsjoin.local.neighbours.tree import grow_tree, has_leaf_of_equal, search
from oracles import examples
from oracles import join as join_twin

SEEDS = st.integers(0, 10**6)
METRICS = [
    *(get_metric(name) for name in ("euclidean", "manhattan", "chebyshev", "cosine", "haversine")),
    *(get_metric("haversine_radians"), get_metric("minkowski", 1.5), get_metric("minkowski", 3)),
]


def awkward(kind, n, d, seed, metric):
    """Points for which the metric is defined."""
    points, _ = join_twin.awkward_points(kind, n, d, seed)
    if metric.name.startswith("haversine"):
        half = 90.0 if metric.name == "haversine" else math.pi / 2
        points = np.resize(points, (n, 2))
        points = points / max(1.0, np.abs(points).max()) * half
    if metric.name == "cosine":
        points = np.where(np.abs(points).sum(axis=1, keepdims=True) > 1e-100, points, 1.0)
    return points


@pytest.mark.parametrize("metric", METRICS, ids=lambda each: f"{each.name}{each.p or ''}")
@examples(60)
@given(st.sampled_from(join_twin.KINDS), st.integers(2, 300), st.integers(1, 4), st.integers(1, 9), SEEDS)
def test_nearest_of__are_rows_of_the_knn_join(metric, kind, n, d, k, seed):
    points = awkward(kind, n, d, seed, metric)
    k = min(k, n - 1)
    rows = np.random.default_rng(seed).permutation(n)[: 1 + n // 2]
    whole = knn_join(None, points, k, metric)
    scanned = knn._MIN_SCANNED_QUERIES
    for few in (0, scanned):  # by the tree, and by a scan where there are few rows
        knn._MIN_SCANNED_QUERIES = few
        try:
            found = nearest_of(points, rows, k, metric, n_jobs=2)
        finally:
            knn._MIN_SCANNED_QUERIES = scanned
        assert found.neighbour.tolist() == whole.neighbour[rows].tolist()
        assert found.distance.tolist() == whole.distance[rows].tolist()


@pytest.mark.parametrize("n", [65, 300])
def test_nearest_of__finds_as_many_rows_as_asked_of_points_that_are_all_equal(n):
    rows = np.arange(n)[::-1].copy()
    counters = {}
    found = nearest_of(np.zeros((n, 2)), rows, 2, get_metric("euclidean"), counters=counters)
    assert found.neighbour[-1].tolist() == [1, 2]
    assert found.neighbour[0].tolist() == [0, 1]
    assert (found.neighbour[:-2] == [0, 1]).all()
    assert counters["comparisons"] <= 8 * n, "three rows of them are enough"


def test_nearest_of__goes_by_rounds_where_no_box_can_be_left_out(monkeypatch):
    points = np.random.default_rng(5).normal(size=(6000, 40))
    rows = np.arange(0, 6000, 2)
    taken = []
    by_rounds = knn._nearest_by_rounds
    monkeypatch.setattr(knn, "_nearest_by_rounds", lambda *given: taken.append(1) or by_rounds(*given))
    monkeypatch.setattr(knn, "_MAX_SCAN_COMPARISONS", 1 << 10)
    found = nearest_of(points, rows, 3, get_metric("euclidean"))
    assert taken
    np.testing.assert_array_equal(found.neighbour, knn_join(None, points, 3).neighbour[rows])


def test_nearest_of__compares_few_points_of_many():
    """Twelve coordinates of a surface: each row should meet a small fraction of the points."""
    random = np.random.default_rng(8)
    points = np.sin(random.random((20_000, 2)) @ random.normal(size=(2, 12)) * 3)
    counters = {}
    nearest_of(points, np.arange(5000), 4, get_metric("euclidean"), counters=counters)
    assert counters["comparisons"] < 300 * 5000


@examples(100)
@given(st.sampled_from(join_twin.KINDS), st.integers(1, 200), st.integers(1, 6), st.integers(1, 5), SEEDS)
def test_search__adds_the_points_of_one_tree_after_another(kind, n, k, n_trees, seed):
    """Lists that go from tree to tree end as those of all points, whatever the names are."""
    points, _ = join_twin.awkward_points(kind, n, 2, seed)
    random = np.random.default_rng(seed)
    names = random.permutation(n) * 3
    dealt = random.integers(0, n_trees, n)
    lists = NearestLists(np.zeros(n, np.int64), np.empty((n, k), np.int64), np.zeros((n, k)))
    metric = get_metric("euclidean")
    for number in range(n_trees):
        mine = np.flatnonzero(dealt == number)
        if len(mine):
            tree = grow_tree(points[mine], metric)
            search(tree, names[mine][tree.order], points, names, lists, metric)
    wanted = [
        sorted((math.dist(points[i], points[j]), int(names[j])) for j in range(n) if j != i)[:k]
        for i in range(n)
    ]
    assert lists.sizes.tolist() == [len(each) for each in wanted]
    for i, each in enumerate(wanted):
        size = len(each)
        starts = np.array([0, size])
        ids, distances = lists.ids[i, :size].copy(), lists.distances[i, :size].copy()
        sort_nearest(starts, ids, distances)
        assert ids.tolist() == [name for _, name in each]
        assert distances.tolist() == pytest.approx([distance for distance, _ in each])


@examples(200)
@given(st.sampled_from(METRICS), st.floats(0, 1e4), SEEDS)
def test_reach__is_at_least_what_the_join_allows(metric, distance, seed):
    number = metric.decision(math.inf).metric
    found = kernels.reach(number, metric.norm, distance)
    allowed = metric.embedded_eps(distance)
    assert found >= (allowed * allowed if metric.norm == kernels.SQUARES else allowed)


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 200])
def test_grow_tree__has_each_point_once_inside_its_boxes(n_jobs):
    points = np.random.default_rng(1).random((1000, 3))
    tree = grow_tree(points, get_metric("euclidean"), n_jobs)
    assert sorted(tree.order.tolist()) == list(range(1000))
    n_leaves = (len(tree.low) + 1) // 2
    assert n_leaves == kernels.count_leaves(1000)
    for leaf in range(n_leaves):
        mine = points[tree.order[1000 * leaf // n_leaves : 1000 * (leaf + 1) // n_leaves]]
        assert 0 < len(mine) <= kernels.LEAF_POINTS
        node = n_leaves - 1 + leaf
        np.testing.assert_array_equal(tree.low[node], mine.min(axis=0))
        np.testing.assert_array_equal(tree.high[node], mine.max(axis=0))
        while node:
            node = (node - 1) // 2
            assert (tree.low[node] <= mine.min(axis=0)).all()
            assert (tree.high[node] >= mine.max(axis=0)).all()
    assert not has_leaf_of_equal(tree)
    assert has_leaf_of_equal(grow_tree(np.repeat(points[:10], 100, axis=0), get_metric("euclidean")))
