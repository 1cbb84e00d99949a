"""The k nearest by products are those of the definition: by distance, then by row, bit for bit."""

from __future__ import annotations

import threading
import tracemalloc
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.neighbours.heaps import sort_nearest
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours import by_product, product_choice, search
from epsjoin.local.neighbours.by_product import search_by_product
from epsjoin.local.neighbours.knn import knn_join
from epsjoin.local.neighbours.product_choice import plan_before_tree
from epsjoin.local.neighbours.tree import make_lists
from oracles import examples
from oracles import join as twin
from tests.local.join.many_dimensions import KINDS, any_space, awkward_rows, features, in_groups, uniform

SEEDS = st.integers(0, 10**6)
NOBODY = np.empty(0, np.int64)


def nearest(queries, points, k, metric, itself):
    """The k nearest by the definition."""
    distances = twin.all_distances(queries, points, metric)
    known = np.flatnonzero(itself >= 0)
    distances[known, itself[known]] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(distances, order, axis=1)


@examples(100)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(["euclidean", "cosine"]),
    st.tuples(st.integers(1, 90), st.integers(9, 140)),
    st.sampled_from([12, 32, 60]),
    st.sampled_from([0, 1, 5, 12]),
    st.integers(1, 8),
    st.booleans(),
    SEEDS,
)
def test_product_search__is_the_definition_bit_for_bit(kind, metric, sizes, d, m, k, is_self, seed):
    rows = awkward_rows(kind, sum(sizes), d, seed)
    if metric == "cosine":
        rows[~rows.any(axis=1)] = 1.0
    points = rows[sizes[0] :]
    queries = points if is_self else rows[: sizes[0]]
    itself = np.arange(len(points)) if is_self else np.full(len(queries), -1)
    lists = make_lists(len(queries), k, np.zeros)
    asked = np.random.default_rng(seed).permutation(len(queries))
    space = any_space(rows, metric, m, seed)
    with patch.multiple(by_product, BLOCK_ROWS=64, QUERY_ROWS=64, _MIN_QUERY_ROWS=16):
        of = itself, lists, space, get_metric(metric), seed % 50
        search_by_product(queries, points, asked, *of).run(1 + seed % 2, False)
    sort_nearest(np.arange(len(queries) + 1) * k, lists.ids.reshape(-1), lists.distances.reshape(-1))
    neighbours, distances = nearest(queries, points, k, metric, itself)
    np.testing.assert_array_equal(lists.distances, distances)
    np.testing.assert_array_equal(lists.ids, neighbours)


@examples(60)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(["euclidean", "cosine"]),
    st.integers(70, 200),
    st.sampled_from([0, 5, 30]),
    st.integers(1, 8),
    st.sampled_from(["its own", "another", "none"]),
    SEEDS,
)
def test_product_search__of_most_points_makes_each_product_once(kind, metric, n, m, k, missing, seed):
    rows = awkward_rows(kind, n, 32, seed)
    if metric == "cosine":
        rows[~rows.any(axis=1)] = 1.0
    random = np.random.default_rng(seed)
    asked = random.permutation(n)[: n - seed % 3]
    itself = {"its own": np.arange(n), "another": random.permutation(n), "none": np.full(n, -1)}[missing]
    lists, space = make_lists(n, k, np.zeros), any_space(rows, metric, m, seed)
    with patch.multiple(by_product, BLOCK_ROWS=64, QUERY_ROWS=64, _MIN_QUERY_ROWS=16):
        of = itself, lists, space, get_metric(metric)
        work = search_by_product(rows, rows, asked, *of).run(1 + seed % 2, False)
    sort_nearest(np.arange(n + 1) * k, lists.ids.reshape(-1), lists.distances.reshape(-1))
    neighbours, distances = nearest(rows, rows, k, metric, itself)
    np.testing.assert_array_equal(lists.distances[asked], distances[asked])
    np.testing.assert_array_equal(lists.ids[asked], neighbours[asked])
    once = sum(min(64, n - begin) * (n - begin) for begin in range(0, n, 64))
    assert (work.products - once) % n == 0, "beside those of queries that are searched for again"
    assert once <= work.products <= once + n * len(asked)


@examples(40)
@given(st.sampled_from([0, 5]), st.integers(1, 8), SEEDS)
def test_product_search__is_the_definition_where_squares_underflow(m, k, seed):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(150, 32)) * 10.0 ** random.uniform(-162, -160, (150, 1))
    everyone, lists = np.arange(150), make_lists(150, k, np.zeros)
    space = any_space(rows, "euclidean", m, seed)._replace(radius=2.0**-500)
    of = everyone, lists, space, get_metric("euclidean")
    search_by_product(rows, rows, everyone, *of).run(1, False)
    sort_nearest(np.arange(151) * k, lists.ids.reshape(-1), lists.distances.reshape(-1))
    neighbours, distances = nearest(rows, rows, k, "euclidean", everyone)
    np.testing.assert_array_equal(lists.distances, distances)
    np.testing.assert_array_equal(lists.ids, neighbours)


def test_product_search__shows_how_far_it_is_and_makes_its_arrays_as_it_is_told():
    rows, shown, made = features(1100, 32, 3), [], []

    def make(shape, dtype=np.float64):
        made.append((shape, np.dtype(dtype)))
        return np.zeros(shape, dtype)

    lists, everyone = make_lists(len(rows), 2, np.zeros), np.arange(len(rows))
    of = everyone, lists, any_space(rows, "euclidean", 5, 0), get_metric("euclidean"), 0.0, make
    found = search_by_product(rows, rows, everyone, *of)
    found.run(1, shown.append)
    of_blocks, of_queries = shown[:3], shown[3:]
    assert len(of_blocks) == 3
    assert of_blocks[-1] <= 0.95 < of_queries[0]
    assert shown == sorted(shown)
    assert shown[-1] == 1.0
    pools = [((1100, found.room), np.int64), ((1100, found.room), np.float64)]
    assert made == [((1152, 6), np.float32), *pools]


def test_product_search__that_is_interrupted_leaves_no_threads():
    def interrupt(_):
        raise InterruptedError

    rows = features(200, 32, 3).astype(np.float64)
    lists = make_lists(len(rows), 2, np.zeros)
    of = np.arange(len(rows)), lists, any_space(rows, "euclidean", 5, 0), get_metric("euclidean")
    found = search_by_product(rows, rows, np.arange(len(rows)), *of)
    with patch.object(by_product, "QUERY_ROWS", 64), pytest.raises(InterruptedError) as interrupted:
        found.run(2, interrupt)
    assert interrupted.tb is not None, "the error keeps all that the search had begun"
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("epsjoin")]


@pytest.mark.parametrize("is_sure", [True, False])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_knn_join__of_many_dimensions_goes_through_products(metric, is_sure, monkeypatch):
    """Before a tree is grown, if that is surely cheaper, or after it."""
    rows = features(1600, 128, 24)
    queries, points = rows[:900].astype(np.float64), rows[900:].astype(np.float64)
    counters, shown = {}, []
    monkeypatch.setitem(product_choice._NS_PER_WORK, metric, 1.0)  # of so few points, trees are cheap
    if not is_sure:
        monkeypatch.setattr(search, "plan_before_tree", lambda *_: None)
    found = knn_join(queries, points, 3, metric, n_jobs=2, counters=counters, progress=shown.append)
    neighbours, distances = nearest(queries, points, 3, metric, NOBODY)
    np.testing.assert_array_equal(found.distance, distances)
    np.testing.assert_array_equal(found.neighbour, neighbours)
    assert counters["products"] == (900 if is_sure else 900 - 32) * 700
    assert counters["comparisons"] < 900 * 700 / 5, "few products are let through"
    assert shown[-1] == 1.0


def test_knn_join__does_not_copy_float32_to_float64_as_a_whole():
    points = np.random.default_rng(4).standard_normal((40_000, 64)).astype(np.float32)
    queries = points[:300]
    knn_join(queries, points, 2)  # loads what is compiled
    tracemalloc.start()
    try:
        found = knn_join(queries, points, 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * points.nbytes, "one copy in float64 would be as much"
    as_float64 = queries[:3].astype(np.float64), points.astype(np.float64)
    neighbours, distances = nearest(*as_float64, 2, "euclidean", NOBODY)
    np.testing.assert_array_equal(found.distance[:3], distances)
    np.testing.assert_array_equal(found.neighbour[:3], neighbours)


@pytest.mark.parametrize("is_alike", [True, False])
def test_plan_before_tree__grows_a_second_tree_only_where_one_does_not_tell(is_alike, monkeypatch):
    random = np.random.default_rng(5)
    points = random.standard_normal((6000, 128)) if is_alike else random.random((6000, 1)) * np.ones(128)
    asked, ask = [], product_choice._ask_tree
    monkeypatch.setattr(product_choice, "_ask_tree", lambda few, *of: asked.append(len(few)) or ask(few, *of))
    nobody = np.full(6000, -1)
    plan = plan_before_tree(points, points, np.arange(6000), nobody, 5, get_metric("euclidean"))
    assert (plan is not None) == is_alike
    assert asked == ([750] if is_alike else [750, 1500]), "a quarter of the points, and half of these"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [1, 3, 130])
def test_knn_join__of_many_queries_and_few_points_in_many_dimensions(n):
    queries = features(300, 40, 6).astype(np.float64)
    found = knn_join(queries, queries[:n], 1)
    neighbours, distances = nearest(queries, queries[:n], 1, "euclidean", NOBODY)
    np.testing.assert_array_equal(found.distance, distances)
    np.testing.assert_array_equal(found.neighbour, neighbours)


@pytest.mark.parametrize(
    ("n", "make", "is_multiplied"), [(1400, uniform, False), (4000, uniform, True), (4000, in_groups, False)]
)
def test_knn_join__of_a_dozen_dimensions_multiplies_many_points_that_a_tree_cannot_part(
    n, make, is_multiplied
):
    points, counters = make(n, 16), {}
    found = knn_join(None, points, 3, counters=counters)
    assert ("products" in counters) == is_multiplied
    neighbours, distances = nearest(points[:400], points, 3, "euclidean", np.arange(400))
    np.testing.assert_array_equal(found.distance[:400], distances)
    np.testing.assert_array_equal(found.neighbour[:400], neighbours)


def test_knn_join__of_few_dimensions_that_look_many_is_searched_in_the_tree():
    random = np.random.default_rng(3)
    points = random.random((1200, 1)) @ random.standard_normal((1, 40))
    counters = {}
    found = knn_join(None, points, 2, counters=counters)
    np.testing.assert_array_equal(
        found.distance, nearest(points, points, 2, "euclidean", np.arange(len(points)))[1]
    )
    assert "products" not in counters


def test_plan__is_for_the_queries_outside_of_clusters_too():
    """Two thirds lie in clusters; by a filter for their distances the others were compared with everybody."""
    random = np.random.default_rng(0)
    points = random.standard_normal((4000, 768))
    points[:2800] = random.standard_normal((50, 768))[random.integers(50, size=2800)] + 0.25 * points[:2800]
    counters: dict[str, int] = {}
    knn_join(None, points, 4, "cosine", counters=counters)
    assert 4 * 4000 <= counters["comparisons"] < 8 * 4000


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("far", [1e25, 1e150, 1e200])
def test_knn_join__of_many_dimensions_with_rows_far_away_warns_of_nothing(far: float) -> None:
    random = np.random.default_rng(1)
    points = random.standard_normal((1000, 64))
    points[::50] *= far
    queries = points[:500].copy()
    found = knn_join(queries, points, 3)
    with np.errstate(over="ignore"):
        expected = nearest(queries, points, 3, "euclidean", np.full(500, -1))
    assert np.array_equal(found.neighbour, expected[0])
    assert np.array_equal(found.distance, expected[1])
