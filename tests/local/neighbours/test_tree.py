"""The tree of boxes finds the k nearest, ties by the smallest row, and looks at few boxes."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.neighbours import grow
from epsjoin.kernels.neighbours import tree as kernels
from epsjoin.kernels.neighbours.heaps import sort_nearest
from epsjoin.kernels.paired import paired_distances
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours import search
from epsjoin.local.neighbours import tree as local_tree
from epsjoin.local.neighbours.knn import knn_join, search_rows
from epsjoin.local.neighbours.nearest import KNearest
from epsjoin.local.neighbours.tree import LEAF_POINTS, PointTree, count_leaves, make_lists, order_by_place
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


def nearest_of(points, rows, k, metric, **how):
    """What a search finds of some rows; the lists of all others must stay empty."""
    lists = make_lists(len(points), k)
    search_rows(points, rows, lists, metric, **how)
    assert lists.sizes.sum() == k * len(rows)
    found = KNearest(lists.ids[rows], lists.distances[rows])
    sort_nearest(np.arange(len(rows) + 1) * k, found.neighbour.reshape(-1), found.distance.reshape(-1))
    return found


@pytest.mark.parametrize("metric", METRICS, ids=lambda each: f"{each.name}{each.p or ''}")
@examples(60)
@given(st.sampled_from(join_twin.KINDS), st.integers(2, 300), st.integers(1, 4), st.integers(1, 9), SEEDS)
def test_search_rows__are_rows_of_the_knn_join(metric, kind, n, d, k, seed):
    points = awkward(kind, n, d, seed, metric)
    k = min(k, n - 1)
    rows = np.random.default_rng(seed).permutation(n)[: 1 + n // 2]
    whole = knn_join(None, points, k, metric)
    for are_few in (lambda *_: False, search._are_few):  # by the tree, and by a scan where there are few rows
        with mock.patch.object(search, "_are_few", are_few):
            found = nearest_of(points, rows, k, metric, n_jobs=2)
        assert found.neighbour.tolist() == whole.neighbour[rows].tolist()
        assert found.distance.tolist() == whole.distance[rows].tolist()


@pytest.mark.parametrize("n", [320, 360])  # fewer would be scanned
def test_search_rows__finds_as_many_rows_as_asked_of_points_that_are_all_equal(n):
    rows = np.arange(n)[::-1].copy()
    counters = {}
    found = nearest_of(np.zeros((n, 2)), rows, 2, get_metric("euclidean"), counters=counters)
    assert found.neighbour[-1].tolist() == [1, 2]
    assert found.neighbour[0].tolist() == [0, 1]
    assert (found.neighbour[:-2] == [0, 1]).all()
    assert counters["comparisons"] <= 8 * n, "three rows of them are enough"


def test_search_rows__compares_few_points_of_many():
    """Twelve coordinates of a surface: each row should meet a small fraction of the points."""
    random = np.random.default_rng(8)
    points = np.sin(random.random((20_000, 2)) @ random.normal(size=(2, 12)) * 3)
    counters = {}
    nearest_of(points, np.arange(5000), 4, get_metric("euclidean"), counters=counters)
    assert counters["comparisons"] < 300 * 5000


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("d", [8, 12, 17])
def test_search_rows__of_many_dimensions_are_the_definition(name, d):
    """After some axes a leaf is left out, unless one of its points may be near: also one exactly as far."""
    random = np.random.default_rng(d)
    points = random.integers(0, 3, (600, d)) * np.where(np.arange(d) < 8, 1.0, 0.5)
    points[::3, 8:] = 0
    found = nearest_of(points, np.arange(600), 7, get_metric(name))
    gaps = np.abs(points[:, None] - points[None])
    wanted = {"euclidean": (gaps * gaps).sum(2), "manhattan": gaps.sum(2), "chebyshev": gaps.max(2)}[name]
    np.fill_diagonal(wanted, np.inf)
    nearest = np.argsort(wanted, axis=1, kind="stable")[:, :7]
    distances = np.take_along_axis(wanted, nearest, axis=1)
    assert found.neighbour.tolist() == nearest.tolist()
    assert found.distance.tolist() == (np.sqrt(distances) if name == "euclidean" else distances).tolist()


@examples(100)
@given(st.sampled_from(join_twin.KINDS), st.integers(1, 200), st.integers(1, 6), st.integers(1, 5), SEEDS)
def test_search__adds_the_points_of_one_tree_after_another(kind, n, k, n_trees, seed):
    """Lists that go from tree to tree end as those of all points, whatever the names are."""
    points, _ = join_twin.awkward_points(kind, n, 2, seed)
    random = np.random.default_rng(seed)
    names = random.permutation(n) * 3
    dealt = random.integers(0, n_trees, n)
    lists, metric = make_lists(n, k), get_metric("euclidean")
    for number in range(n_trees):
        mine = np.flatnonzero(dealt == number)
        mine = mine[np.argsort(names[mine])]
        if len(mine):
            tree = PointTree.grow(points[mine], names[mine], k + 1, metric)
            times = 1 if lists.sizes.any() else 2  # where a bound did not hold, a query looks again
            assert tree.search(points, names, random.permutation(n), lists) <= times * n * len(mine)
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


def search_both_ways(points, k, itself, rows):
    """Lists of queries that share their boxes, of queries that do not, and the points that each compared."""
    metric = get_metric("euclidean")
    tree = PointTree.grow(points, np.arange(len(points)), k + 1, metric)
    found = []
    for points_per_query in (1000, 0):
        lists = make_lists(len(points), k)
        with mock.patch.object(local_tree, "_POINTS_PER_QUERY", points_per_query):
            found.append((tree.search(points, itself, rows, lists), *map(np.ndarray.tolist, lists)))
    (compared, *shared), (compared_alone, *alone) = found
    assert shared == alone
    return compared, compared_alone


@examples(100)
@given(
    st.sampled_from([*join_twin.KINDS, "grid"]),
    st.integers(1, 4000),
    st.integers(5, 40),
    st.booleans(),
    SEEDS,
)
def test_search__of_queries_that_share_their_boxes_finds_what_each_finds_alone(kind, n, k, is_ordered, seed):
    """Some queries may find themselves, and then the bounds that they give others need not hold."""
    random = np.random.default_rng(seed)
    if kind == "grid":
        points = random.integers(0, 1 + n // 8, (n, 2)) / 8.0  # many as far, and equal ones
    else:
        points, _ = join_twin.awkward_points(kind, n, 2, seed)
    itself = np.where(random.random(n) < 0.9, np.arange(n), -1)
    rows = order_by_place(points, get_metric("euclidean")) if is_ordered else random.permutation(n)
    search_both_ways(points, k, itself, rows)


def test_search__in_the_plane_shares_boxes():
    """A query compares some more points than on its own, since its bound is not its k-distance."""
    points = np.random.default_rng(3).random((20_000, 2))
    rows = order_by_place(points, get_metric("euclidean"))
    compared, compared_alone = search_both_ways(points, 10, np.arange(20_000), rows)
    assert compared_alone < compared < 1.4 * compared_alone


@examples(200)
@given(st.sampled_from([each for each in METRICS if not each.is_on_sphere]), st.floats(0, 1e4))
def test_reach__is_at_least_what_the_join_allows(metric, distance):
    found = kernels.reaches(metric.decision(math.inf), metric.norm, np.array([distance]), 2)[0]
    allowed = metric.embedded_eps(distance)
    assert found >= (allowed * allowed if metric.norm == kernels.SQUARES else allowed)


@examples(300)
@given(
    st.sampled_from([1, 2, 3, 8, 40, 500]), st.sampled_from([0, 1e-16, 1e-15, 1e-12, 1e-8, 1e-4, 1]), SEEDS
)
def test_reach__is_at_least_the_chord_of_two_directions(d, noise, seed):
    random, metric, n = np.random.default_rng(seed), get_metric("cosine"), 16
    length = 10.0 ** random.uniform(-140, 140, (n, 1))
    points = random.normal(size=d) * (1 + noise * random.normal(size=(n, d))) * length
    left, right = (side.ravel() for side in np.meshgrid(np.arange(n), np.arange(n)))
    distance = paired_distances(metric.decision(math.inf), points, left, right)
    embedded = metric.embed(points)
    limit = kernels.reaches(metric.decision(math.inf), metric.norm, distance, d)
    assert (np.square(embedded[left] - embedded[right]).sum(axis=1) <= limit).all()


def test_search_rows__compares_few_directions_that_are_close_together():
    """Twenty bundles of 500: their distances of 1e-11 are far above what the cosine rounds."""
    random = np.random.default_rng(0)
    points = np.repeat(random.normal(size=(20, 3)), 500, axis=0) + 3e-5 * random.normal(size=(10_000, 3))
    counters = {}
    nearest_of(points, np.arange(10_000), 5, get_metric("cosine"), counters=counters)
    assert counters["comparisons"] < 60 * 10_000


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 200])
def test_grow__has_each_point_once_inside_its_boxes(n_jobs):
    points = np.random.default_rng(1).random((1000, 3))
    grown = PointTree.grow(points, np.arange(1000) * 2, 1, get_metric("euclidean"), n_jobs)
    tree = grown.boxes
    assert grown.names.tolist() == (2 * tree.order).tolist()
    assert sorted(tree.order.tolist()) == list(range(1000))
    n_leaves = (len(tree.low) + 1) // 2
    assert n_leaves == count_leaves(1000)
    for leaf in range(n_leaves):
        mine = points[tree.order[1000 * leaf // n_leaves : 1000 * (leaf + 1) // n_leaves]]
        assert 0 < len(mine) <= LEAF_POINTS
        node = n_leaves - 1 + leaf
        np.testing.assert_array_equal(tree.low[node], mine.min(axis=0))
        np.testing.assert_array_equal(tree.high[node], mine.max(axis=0))
        while node:
            node = (node - 1) // 2
            assert (tree.low[node] <= mine.min(axis=0)).all()
            assert (tree.high[node] >= mine.max(axis=0)).all()


def test_grow__holds_names_that_are_rows_once():
    """They are the order of the rows itself: millions of points have no array of their own for it."""
    points = np.random.default_rng(1).random((1000, 3))
    grown = PointTree.grow(points, np.arange(1000), 1, get_metric("euclidean"))
    assert grown.names is grown.boxes.order


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 40])
@pytest.mark.parametrize("metric", METRICS[::4], ids=lambda each: each.name)
def test_grow__is_one_tree_however_few_points_are_copied_at_once(metric, n_jobs):
    points = awkward("uniform", 3000, 2, 4, metric)
    of = points, np.arange(3000), 5, metric
    found = []
    for copied in (1 << 12, 100, 1):
        with mock.patch.object(local_tree, "_COPIED_POINTS", copied):
            found.append([each.tolist() for each in PointTree.grow(*of, n_jobs).boxes])
    assert found[0] == found[1] == found[2]
    assert found[0][0] == PointTree.grow(*of).boxes.order.tolist()


@pytest.mark.parametrize("d", [1, 3, 4, 6, 13])
def test_widest_axis__is_the_first_one_on_which_the_rows_lie_widest_apart(d):
    random = np.random.default_rng(d)
    order = random.permutation(50)
    for _ in range(5 * d):
        points = random.integers(-9, 9, (50, d)) * random.integers(1, 4, d) * 1.0
        widest = int(np.ptp(points[order[10:40]], axis=0).argmax())
        assert grow._widest_axis(points, order, 10, 40) == widest


class Counting(list):
    """A list that counts how often it is read."""

    reads = 0

    def __getitem__(self, place):
        self.reads += 1
        return super().__getitem__(place)


@pytest.mark.parametrize(
    "values",
    [
        list(range(3000)),
        list(range(3000, 0, -1)),
        [*range(0, 3000, 2), *range(1, 3000, 2)],  # two sorted files
        [*range(0, 3000, 2), *range(2999, 0, -2)],
        [1] * 3000,
        [i % 7 for i in range(3000)],
    ],
    ids=["rising", "falling", "two runs", "up and down", "equal", "few"],
)
def test_halve__takes_work_that_grows_with_the_values_in_any_order(values, monkeypatch):
    halve, move = (getattr(each, "py_func", each) for each in (grow._halve, grow._move_smaller))
    monkeypatch.setattr(grow, "_move_smaller", move)
    for middle in (1, 1500, 2900):
        counted, order = Counting(values), list(range(3000))
        halve(counted, order, 0, 3000, middle, np.empty(grow._DRAWN))
        assert counted.reads < 6 * 3000
        assert [values[row] for row in order] == list(counted)
        assert max(counted[:middle]) <= min(counted[middle:])


def test_grow__keeps_as_many_equal_points_as_a_query_needs():
    points = np.repeat(np.random.default_rng(1).random((10, 3)), 100, axis=0)
    grown = PointTree.grow(points, np.arange(1000) + 7, 3, get_metric("euclidean"))
    assert sorted(grown.names.tolist()) == [100 * i + j + 7 for i in range(10) for j in range(3)]
