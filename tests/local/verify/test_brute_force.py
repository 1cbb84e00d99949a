"""Brute force of ``verify``: its neighbours and outlier factors are those of the definition, bit for bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.local.join.arrays import self_join
from epsjoin.local.neighbours.knn import knn_join
from epsjoin.local.neighbours.lof import lof
from epsjoin.local.verify.brute_force import (
    QueryPairs,
    Scores,
    keep_nearest,
    nearest_by_brute_force,
    neighbours_by_brute_force,
    no_pairs,
    outlier_factors,
)
from oracles import examples, outliers
from oracles import join as twin

METRICS = ["euclidean", "manhattan", "chebyshev", "haversine"]
NOTHING = Scores(np.empty(0, np.int64), np.empty(0), np.empty(0))


def rows(found):
    return list(zip(*(column.tolist() for column in found), strict=True))


def neighbours(points, eps, metric, queries=None):
    ids = np.arange(len(points))
    queries = ids if queries is None else queries
    return neighbours_by_brute_force(queries, points[queries], ids, points, eps, metric)


@examples(100)
@given(
    st.sampled_from([*METRICS, "cosine"]),
    st.integers(2, 4),
    st.lists(st.tuples(*[st.one_of(st.integers(-4, 4).map(float), st.floats(-80, 80))] * 4), max_size=12),
    st.one_of(st.sampled_from([1.0, 2.0, 5.0]), st.floats(0.01, 100)),
)
def test_neighbours__is_the_definition_bit_for_bit(metric, d, drawn, eps):
    d = 2 if metric == "haversine" else d
    eps = eps * 100 if metric == "haversine" else eps
    points = np.array(drawn).reshape(-1, 4)[:, :d]
    if metric == "cosine":
        points, eps = points[(np.abs(points) > 1e-100).any(axis=1)], eps / 100
    expected = {
        (i, j, twin.distance(x, y, metric))
        for i, x in enumerate(points.tolist())
        for j, y in enumerate(points.tolist())
        if i != j and twin.is_within(x, y, eps, metric)
    }
    assert set(rows(neighbours(points, eps, metric))) == expected


@pytest.mark.parametrize(
    ("metric", "eps"),
    [("euclidean", 5.0), ("manhattan", 7.0), ("chebyshev", 4.0), ("cosine", 1e-5), ("haversine", 1000.0)],
)
def test_neighbours__has_the_bits_of_the_join(metric, eps):
    """More points than a batch has, ties at eps, equal points."""
    random = np.random.default_rng(1)
    points = np.r_[random.integers(-60, 60, (9000, 2)), random.integers(-60, 60, (9000, 2))] * 1.0
    points = points[points.any(axis=1)]  # what has no direction has no cosine
    queries = np.arange(0, len(points), 1500)
    left, right, distance = self_join(points, eps, metric)
    is_left, is_right = np.isin(left, queries), np.isin(right, queries)
    joined = QueryPairs(
        np.r_[left[is_left], right[is_right]],
        np.r_[right[is_left], left[is_right]],
        np.r_[distance[is_left], distance[is_right]],
    )
    assert set(rows(neighbours(points, eps, metric, queries))) == set(rows(joined))


@examples(100)
@given(
    st.sampled_from(METRICS),
    st.integers(1, 4),
    st.lists(st.tuples(*[st.one_of(st.integers(-4, 4).map(float), st.floats(-80, 80))] * 2), max_size=12),
)
def test_nearest__are_those_of_the_definition_ties_by_id(metric, k, points):
    points = np.array(points).reshape(-1, 2)
    ids = np.arange(len(points))[::-1] * 3
    expected = []
    for i, x in zip(ids.tolist(), points.tolist(), strict=True):
        others = [
            (twin.distance(x, y, metric), j) for j, y in zip(ids.tolist(), points.tolist(), strict=True)
        ]
        near = sorted((distance, j) for distance, j in others if j != i)[:k]
        expected += [(i, j, distance) for distance, j in near]
    found = nearest_by_brute_force(ids, points, ids, points, k, metric)
    assert rows(found) == sorted(expected, key=lambda row: (row[0], row[2], row[1]))


@pytest.mark.parametrize("metric", METRICS)
def test_nearest__of_several_batches_have_the_bits_of_the_library(metric):
    """More points than a batch has, many ties, equal points; and in two parts, as tasks find them."""
    random = np.random.default_rng(1)
    points = np.r_[random.integers(-60, 60, (30_000, 2)), random.uniform(-60, 60, (6000, 2))] * 1.0
    ids, queries, k = np.arange(len(points)), np.arange(0, len(points), 900), 7
    found = nearest_by_brute_force(queries, points[queries], ids, points, k, metric)
    expected = knn_join(None, points, k, metric)
    assert found.query.tolist() == np.repeat(queries, k).tolist()
    assert found.other.tolist() == expected.neighbour[queries].ravel().tolist()
    assert found.distance.tobytes() == expected.distance[queries].ravel().tobytes()
    halves = [
        nearest_by_brute_force(queries, points[queries], ids[part], points[part], k, metric)
        for part in (slice(0, 20_000), slice(20_000, None))
    ]
    assert rows(keep_nearest(halves, k)) == rows(found)


def test_nearest__of_few_points_are_all_others_and_of_none_none():
    found = nearest_by_brute_force(
        np.array([5]), np.array([[0.0]]), np.array([5, 6]), np.array([[0.0], [2.0]]), 3, "euclidean"
    )
    assert rows(found) == [(5, 6, 2.0)]
    empty = np.empty(0, np.int64)
    assert (
        rows(nearest_by_brute_force(empty, np.empty((0, 1)), empty, np.empty((0, 1)), 3, "euclidean")) == []
    )
    assert rows(keep_nearest([no_pairs()], 3)) == []


@examples(100)
@given(st.integers(1, 4), st.lists(st.tuples(*[st.integers(-4, 4)] * 2), min_size=6, max_size=25))
def test_factors__are_those_of_the_definition_of_equal_points_too(k, points):
    points = np.array(points, float)
    n = len(points)
    ids = np.arange(n)
    pairs = [(i, j, math.dist(points[i], points[j])) for i in range(n) for j in range(i + 1, n)]
    expected = outliers.lof(list(range(n)), pairs, k)
    near = nearest_by_brute_force(ids, points, ids, points, k, "euclidean")
    found = outlier_factors(near, k, NOTHING)
    assert list(zip(found.k_distance.tolist(), found.lof.tolist(), strict=True)) == list(expected.values())


@pytest.mark.parametrize("metric", METRICS)
def test_factors__of_some_points_need_no_more_than_two_rounds_and_stored_k_distances(metric):
    points = np.random.default_rng(2).normal(0, 20, (500, 2))
    ids, k, queries = np.arange(500), 5, np.arange(0, 500, 50)
    right = lof(points, k, metric)
    near = nearest_by_brute_force(queries, points[queries], ids, points, k, metric)
    more = np.setdiff1d(near.other, queries)
    near = keep_nearest([near, nearest_by_brute_force(more, points[more], ids, points, k, metric)], k)
    found = outlier_factors(near, k, Scores(ids, right.k_distance, right.lof))
    at = found.of(queries)
    assert found.lof[at].tobytes() == right.lof[queries].tobytes()
    assert found.k_distance.tobytes() == right.k_distance[found.ids].tobytes()
    assert np.isnan(found.lof[~np.isin(found.ids, queries)]).any()  # their neighbours were not searched
