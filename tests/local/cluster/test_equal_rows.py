"""Equal points: one stands for all, and clusters are those of all pairs."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epsjoin
from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.cluster import dbscan as cluster_dbscan
from epsjoin.local.cluster import equal_rows, hdbscan, spanning
from epsjoin.local.cluster.equal_rows import find_equal_rows
from oracles import cluster as twin
from oracles import examples
from oracles import join as join_twin

SEEDS = st.integers(0, 10**6)
METRICS = ["euclidean", "manhattan", "chebyshev", "cosine", "haversine"]


@pytest.fixture
def few_rows():
    """Equal points are looked for among few rows, too."""
    with mock.patch.object(equal_rows, "_MIN_ROWS", 0):
        yield


def crowded(n, n_places, seed):
    """Points on some of a few places, so that many are equal, also as 0.0 and -0.0."""
    random = np.random.default_rng(seed)
    points = random.integers(0, 3, (n_places, 2))[random.integers(0, n_places, n)].astype(float) + 1.0
    points[random.random(n) < 0.2, 1] = 0.0
    points[random.random(n) < 0.5] *= [1.0, -1.0]
    return points


@pytest.mark.usefixtures("few_rows")
@examples(200)
@given(
    st.sampled_from(METRICS),
    st.integers(1, 60),
    st.integers(1, 12),
    st.integers(1, 20),
    st.sampled_from(["none", "whole", "decimal", "falling", "cancelling"]),
    SEEDS,
)
def test_dbscan__of_equal_points_is_the_definition(metric, n, n_places, min_pts, weights, seed):
    points, random = crowded(n, n_places, seed), np.random.default_rng(seed)
    weight = {
        "none": None,
        "whole": random.integers(0, 4, n),
        "decimal": random.integers(0, 30, n) / 10,
        "falling": random.integers(-2, 4, n) * 0.7,
        "cancelling": random.choice([1e17, -1e17, 0.25, 1.0], n),
    }[weights]
    eps = {"cosine": 0.05, "haversine": 120.0}.get(metric, 1.0)
    found = epsjoin.dbscan(points, eps, min_pts, metric, sample_weight=weight)
    pairs = [(i, j, away) for (i, j), away in join_twin.brute_force(points, eps, metric, 0.0).items()]
    by_row = None if weight is None else dict(enumerate(weight.tolist()))
    expected = twin.dbscan(list(range(n)), pairs, min_pts, by_row)
    assert found.degree.tolist() == [expected[row][2] for row in range(n)]
    assert found.is_core.tolist() == [expected[row][1] == "core" for row in range(n)]
    assert found.labels.tolist() == twin.numbered([expected[row][0] for row in range(n)])
    assert found.degree.dtype == (np.int64 if weight is None else np.float64)


def columns_of(found):
    """All numbers of a result, however deep it is nested."""
    return [columns_of(each) if isinstance(each, tuple) else each.tolist() for each in found]


@examples(200)
@given(
    st.sampled_from(METRICS),
    st.integers(2, 60),
    st.integers(1, 12),
    st.integers(1, 9),
    st.sampled_from([1.0, 0.6, 1.7]),
    st.booleans(),
    SEEDS,
)
def test_hdbscan__of_equal_points_is_that_of_all_pairs(metric, n, n_places, samples, alpha, by_boxes, seed):
    """Down to the edges of the tree: of edges as light, those with the smallest rows."""
    points = crowded(n, n_places, seed)
    of = points, 3, min(samples, n), metric
    with mock.patch.object(spanning, "_FEW_ROWS", 0 if by_boxes else 512):
        with mock.patch.object(spanning, "find_equal_rows", return_value=None):
            expected = epsjoin.hdbscan(*of, alpha=alpha)
        with mock.patch.object(equal_rows, "_MIN_ROWS", 0):
            found = epsjoin.hdbscan(*of, alpha=alpha)
    assert columns_of(found) == columns_of(expected)


def hot(n_equal, n_others):
    """Points of which many are at one place, dealt among the others."""
    random = np.random.default_rng(4)
    points = np.vstack((np.full((n_equal, 2), 0.5), random.random((n_others, 2))))
    return points[random.permutation(len(points))]


def test_dbscan__makes_no_pairs_of_equal_points(monkeypatch):
    points, join, n_pairs = hot(20_000, 2000), cluster_dbscan.iter_self_join, 0

    def counted(*given_points, **options):
        nonlocal n_pairs
        for batch in join(*given_points, **options):
            n_pairs += len(batch.left)
            yield batch

    monkeypatch.setattr(cluster_dbscan, "iter_self_join", counted)
    found = epsjoin.dbscan(points, 0.01, 30)
    assert n_pairs < 2000  # of 200 million
    is_hot = (points == 0.5).all(axis=1)
    near = np.sqrt(((points - 0.5) ** 2).sum(axis=1)) <= 0.01
    assert set(found.degree[is_hot].tolist()) == {int(near.sum())}
    assert set(found.labels[is_hot].tolist()) == {0}


def test_hdbscan__spans_one_of_equal_points(monkeypatch):
    spanned, span = [], spanning._span

    def watched(points, *of):
        spanned.append(len(points))
        return span(points, *of)

    monkeypatch.setattr(spanning, "_span", watched)
    points = hot(20_000, 2000)
    found = hdbscan.hdbscan(points, 5)
    assert spanned == [2001]
    is_hot = (points == 0.5).all(axis=1)
    assert len(found.tree.left) == len(points) - 1
    assert (found.tree.weight == 0.0).sum() == 19_999
    assert len(set(found.labels[is_hot].tolist())) == 1


def test_equal_rows__are_looked_for_where_a_sample_has_many():
    points = np.random.default_rng(0).random((40_960, 2))
    assert find_equal_rows(points) is None
    points[:100] = 0.5  # 4,950 pairs
    assert find_equal_rows(points) is None
    points[101::2] = 0.5  # at a constant step, of which every fifth is that of a sample
    found = find_equal_rows(points)
    assert len(found.firsts) == 1 + 20_430
    assert (points[found.firsts[found.group]] == points).all()
    assert (found.sizes == np.bincount(found.group)).all()
    assert sorted(found.firsts.tolist()) == found.firsts.tolist()
    assert (found.firsts[found.group] <= np.arange(len(points))).all()


def test_dbscan__of_equal_points_refuses_as_ever():
    points = np.ones((3000, 2))
    with pytest.raises(BudgetError, match=r"more than max_pairs = 1000 pairs within eps = 1; about 4.5e\+06"):
        epsjoin.dbscan(points, 1.0, 3, max_pairs=1000)
    points[2000] = 0.0
    with pytest.raises(ArgumentError, match=r"points: cosine needs vectors .*; row 2000 breaks this"):
        epsjoin.dbscan(points, 1.0, 3, "cosine")
