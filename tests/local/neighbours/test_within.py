"""Counting what is within eps: against every distance, and by how little is compared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epsjoin
from epsjoin.errors import ArgumentError
from epsjoin.local.neighbours import within
from oracles import examples
from oracles.join import between, scaled_pairs

METRICS = [
    ("euclidean", 0.0),
    ("manhattan", 0.0),
    ("chebyshev", 0.0),
    ("minkowski", 1.5),
    ("minkowski", 3.0),
    ("cosine", 0.0),
    ("haversine", 0.0),
]


def points_of(metric, n, random):
    """Few distinct values, so that distances tie; on the sphere all over it, for every eps."""
    if metric == "haversine":
        return random.integers(-9, 10, (n, 2)) * [10.0, 20.0]
    return random.integers(1, 6, (n, 3)).astype(np.float64)


@examples(80)
@given(st.sampled_from(METRICS), st.integers(1, 20), st.integers(1, 90), st.booleans(), st.data())
def test_degree__is_the_number_of_distances_of_at_most_eps(metric, n, m, is_by_tree, data):
    (name, p), random = metric, np.random.default_rng(data.draw(st.integers(0, 10**6)))
    points, others = points_of(name, n, random), points_of(name, m, random)
    every = between(points, others, float("inf"), name, p)
    eps = data.draw(st.sampled_from(sorted({d for d in every.values() if d > 0} or {1.0})))  # a tie at eps
    expected = np.zeros(n, int)
    for (i, _), distance in every.items():
        expected[i] += distance <= eps
    chosen = epsjoin.get_metric(name, p or None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(within, "_FEW_PAIRS", -1 if is_by_tree else 1000)
        assert epsjoin.degree(points, eps, chosen, right=others).tolist() == expected.tolist()


@pytest.mark.parametrize("few_pairs", [-1, 1000])
def test_degree__of_one_table_is_that_of_dbscan_with_any_number_of_threads(few_pairs, monkeypatch):
    monkeypatch.setattr(within, "_FEW_PAIRS", few_pairs)
    points = np.random.default_rng(0).random((4500, 2))
    found = epsjoin.degree(points, 0.02, n_jobs=3)
    assert found.tolist() == epsjoin.dbscan(points, 0.02, 3).degree.tolist()
    assert found.tolist() == epsjoin.degree(points, 0.02).tolist()


@pytest.mark.parametrize("few_pairs", [-1, 1000])
def test_degree__of_equal_points_counts_them_within_any_eps(few_pairs, monkeypatch):
    monkeypatch.setattr(within, "_FEW_PAIRS", few_pairs)
    points = [[1.0, 1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]  # 1 - 2 / (sqrt(2) sqrt(2)) is above 1e-16
    assert epsjoin.degree(points, 1e-16, "cosine").tolist() == [2, 2, 2, 2]
    assert epsjoin.degree(points, 1e-16, "cosine", right=points).tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("few_pairs", [-1, 1000])
def test_degree__takes_weights_and_one_eps_per_dimension(few_pairs, monkeypatch):
    monkeypatch.setattr(within, "_FEW_PAIRS", few_pairs)
    points = np.random.default_rng(1).integers(0, 8, (60, 2)).astype(float)
    expected = np.ones(60, int)
    for pair in scaled_pairs(points, [2.0, 3.0], [1.0, 0.5], "euclidean"):
        expected[list(pair)] += 1
    assert epsjoin.degree(points, [2.0, 3.0], weights=[1.0, 0.5]).tolist() == expected.tolist()


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "cosine", "haversine"])
def test_degree__counts_whole_boxes_without_comparing_their_points(metric):
    points = np.random.default_rng(2).random((4000, 2)) + 0.1
    eps = {"cosine": 0.5, "haversine": 100.0}.get(metric, 0.7)
    work = {}
    n_pairs = int(epsjoin.degree(points, eps, metric, counters=work).sum())
    assert n_pairs > 4000 * 1000
    assert work["comparisons"] < n_pairs / 2


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_degree__in_many_dimensions_counts_by_products_what_the_tree_counts(metric, monkeypatch):
    points = np.random.default_rng(5).standard_normal((1500, 40))
    eps, work = {"euclidean": 7.3, "cosine": 0.76}[metric], {}
    monkeypatch.setattr(within, "_FEW_PAIRS", 0)  # for few dimensions, these are many
    found = epsjoin.degree(points, eps, metric, counters=work)
    assert 40 < found.mean() < 150
    assert "comparisons" not in work, "no tree"
    monkeypatch.setattr(within, "_FEW_FRACTION", 0.0)
    assert epsjoin.degree(points, eps, metric, counters=work).tolist() == found.tolist()
    assert work["comparisons"] > 0


@pytest.mark.parametrize(("d", "is_joined"), [(11, False), (12, True), (12, False)])
def test_degree__of_a_dozen_dimensions_is_counted_by_a_join_up_to_a_quarter_of_all(d, is_joined):
    points, work = np.random.default_rng(5).random((1500, d)), {}
    fraction = 0.3 if d == 12 and not is_joined else 0.22
    eps = float(np.quantile(np.linalg.norm(points[:500, None] - points[None, 500:1000], axis=-1), fraction))
    found = epsjoin.degree(points, eps, counters=work)
    assert found.mean() == pytest.approx(fraction * 1500, rel=0.1)
    assert ("comparisons" not in work) == is_joined, "that is what a tree counts"


@pytest.mark.parametrize("scale", [1e-170, 1e170])
def test_degree__counts_by_the_tree_where_squares_of_lengths_are_no_numbers(scale, monkeypatch):
    monkeypatch.setattr(within, "_FEW_PAIRS", -1)
    points = np.random.default_rng(3).random((200, 2)) * scale
    metric, eps = epsjoin.get_metric("minkowski", 1.5), 0.3 * scale
    expected = epsjoin.dbscan(points, eps, 1, metric).degree
    assert 2 < expected.max() < 200
    assert epsjoin.degree(points, eps, metric).tolist() == expected.tolist()


def test_degree__of_nothing_is_nothing():
    none = np.empty((0, 2))
    assert epsjoin.degree(none, 1.0).tolist() == []
    assert epsjoin.degree([[0.0, 0.0]], 1.0, right=none).tolist() == [0]


@pytest.mark.parametrize(
    ("right", "says"),
    [
        ([[1.0, 0.0, 0.0]], "same dimensions, not 2 and 3"),
        ([[1.0, 0.0], [0.0, 0.0]], "right: cosine needs vectors with a length .*; row 1 breaks this"),
    ],
)
def test_degree__refuses_points_that_cannot_be_compared(right, says):
    with pytest.raises(ArgumentError, match=says):
        epsjoin.degree([[1.0, 0.0]], 1.0, "cosine", right=right)


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "chebyshev"])
def test_leaves__of_many_dimensions_are_left_out_only_where_no_point_is_within_eps(name, monkeypatch):
    """By eight axes, many pairs are exactly as far as eps; by all of them, some are farther."""
    monkeypatch.setattr(within, "_FEW_PAIRS", -1)
    points = np.random.default_rng(4).integers(0, 3, (400, 12)).astype(np.float64)
    points[::3, 8:] = 0.0
    gaps = np.abs(points[:, None] - points[None])
    distances = {
        "euclidean": np.sqrt((gaps * gaps).sum(2)),
        "manhattan": gaps.sum(2),
        "chebyshev": gaps.max(2),
    }
    index = epsjoin.Index(points, metric=name)
    for eps in np.unique(distances[name])[1:].tolist():
        is_near = distances[name] <= eps
        assert epsjoin.degree(points, eps, epsjoin.get_metric(name)).tolist() == is_near.sum(1).tolist()
        assert len(index.join(points, eps).left) == is_near.sum()
        assert len(index.self_join(eps).left) == np.triu(is_near, 1).sum()
