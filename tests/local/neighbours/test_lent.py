"""Points that are lent are held once while a tree has them, and are the same by row, wherever they stand."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.neighbours.heaps import sort_nearest
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours import lent as lent_points
from epsjoin.local.neighbours import search
from epsjoin.local.neighbours import tree as local_tree
from epsjoin.local.neighbours.knn import knn_join, search_rows
from epsjoin.local.neighbours.lent import LentPoints
from epsjoin.local.neighbours.tree import PointTree, make_lists
from local.neighbours.knn_cases import SEEDS, WAYS, by
from oracles import examples
from oracles import join as join_twin

EUCLIDEAN = get_metric("euclidean")


def grow(points, n_jobs=1, metric=EUCLIDEAN, **how):
    return PointTree.grow(points, np.arange(points.shape[0]), 3, metric, n_jobs, **how)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize(("n", "copied"), [(2, 8), (31, 8), (1000, 8), (1000, 1 << 12), (3001, 300)])
def test_grow__of_lent_points_takes_their_memory_and_makes_the_same_tree(n, copied, n_jobs):
    points = np.random.default_rng(n).random((n, 3))
    own, shapes = points.copy(), []

    def make(shape, dtype=np.float64):
        shapes.append(shape)
        return np.zeros(shape, dtype)

    lent = LentPoints(own)
    with mock.patch.object(local_tree, "_COPIED_POINTS", copied):
        tree, expected = grow(lent, n_jobs, make=make), grow(points, n_jobs)
    assert [each.tobytes() for each in tree.boxes] == [each.tobytes() for each in expected.boxes]
    assert np.shares_memory(tree.boxes.places, own)
    assert (n, 3) not in shapes, "no array of all points is made"


@examples(100)
@given(st.sampled_from(join_twin.KINDS), st.integers(1, 300), st.integers(1, 4), st.integers(1, 50), SEEDS)
def test_lent_points__are_those_of_the_rows_wherever_they_stand(kind, n, d, at_once, seed):
    points, _ = join_twin.awkward_points(kind, n, d, seed)
    rows = np.random.default_rng(seed).permutation(n)[: n // 2 + 1]
    lent = LentPoints(points.copy())
    assert lent.take(rows).tobytes() == points[rows].tobytes()
    tree = grow(lent)
    places = tree.boxes.places.copy()
    assert lent.take(rows).tobytes() == points[rows].tobytes()
    with mock.patch.object(lent_points, "_AT_ONCE", at_once):
        by_row = lent.by_row()
    assert by_row.tobytes() == points.tobytes()
    assert lent.take(rows).tobytes() == points[rows].tobytes()
    assert tree.boxes.places.tobytes() == places.tobytes(), "the tree still has what it had"


@pytest.mark.parametrize("metric", ["haversine", "cosine"])
def test_grow__of_lent_points_that_are_embedded_leaves_them_where_they_are(metric):
    points = np.random.default_rng(5).random((500, 2)) + 1.0
    own = points.copy()
    tree = grow(LentPoints(own), metric=get_metric(metric))
    assert own.tobytes() == points.tobytes()
    assert not np.shares_memory(tree.boxes.places, own)


def nearest_of_all(points, k, metric, n_jobs=2):
    n = points.shape[0]
    lists = make_lists(n, k)
    search_rows(points, np.arange(n), lists, get_metric(metric), n_jobs=n_jobs)
    sort_nearest(np.arange(n + 1) * k, lists.ids.reshape(-1), lists.distances.reshape(-1))
    return lists.ids.tolist(), lists.distances.tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@examples(25)
@given(st.sampled_from(join_twin.KINDS), st.integers(2, 200), st.integers(1, 4), st.integers(1, 40), SEEDS)
def test_search_rows__of_lent_points_finds_the_same_in_whatever_way(way, metric, kind, n, d, k, seed):
    points, _ = join_twin.awkward_points(kind, n, d, seed)
    k = min(k, n - 1)
    lent, expected = LentPoints(points.copy()), knn_join(None, points, k, metric)
    for _ in range(2):  # the second search begins where the first has left them
        with by(way):
            found = nearest_of_all(lent, k, metric)
        assert found == (expected.neighbour.tolist(), expected.distance.tolist())
    assert lent.by_row().tobytes() == points.tobytes()


def test_search_rows__of_lent_points_moves_them_and_leaves_them_there():
    random = np.random.default_rng(6)
    points = random.random((5000, 2)) @ random.random((2, 16))  # a plane, so that a tree compares few
    lent, expected = LentPoints(points.copy()), knn_join(None, points, 4)
    found = nearest_of_all(lent, 4, "euclidean")
    assert found == (expected.neighbour.tolist(), expected.distance.tolist())
    assert lent._moved is not None, "nobody has asked for them by row once they had moved"


def test_search_rows__of_lent_points_by_products_after_a_tree():
    points = np.random.default_rng(7).random((600, 40))
    lent, expected = LentPoints(points.copy()), knn_join(None, points, 3)
    with (
        mock.patch.object(search, "plan_before_tree", return_value=None),
        mock.patch.dict("epsjoin.local.neighbours.product_choice._NS_PER_WORK", euclidean=100.0),
        mock.patch.object(search, "fill_by_product", side_effect=search.fill_by_product) as filled,
    ):
        found = nearest_of_all(lent, 3, "euclidean")
    assert filled.called
    assert found == (expected.neighbour.tolist(), expected.distance.tolist())
