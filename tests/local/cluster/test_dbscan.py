"""DBSCAN of an array: the definition, with and without weights, and few pairs waiting."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import DBSCAN

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.cluster import batches as cluster_batches
from epsjoin.local.cluster import dbscan as cluster_dbscan
from epsjoin.local.cluster.batches import Dbscan
from epsjoin.local.cluster.dbscan import dbscan
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours.knn import k_distance
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.vocabulary import NOISE
from oracles import cluster as twin
from oracles import examples
from oracles import join as join_twin

SEEDS = st.integers(0, 10**6)
BATCHES = st.sampled_from([1, 7, 1 << 18])
KINDS = st.sampled_from(join_twin.KINDS)


def pairs_of(points, eps, metric="euclidean", p=0.0):
    found = join_twin.brute_force(points, eps, metric, p)
    return [(left, right, distance) for (left, right), distance in found.items()]


def assert_is_the_definition(found, points, eps, min_pts, weight=None, metric="euclidean", p=0.0):
    rows = list(range(len(points)))
    weights = None if weight is None else dict(enumerate(weight.tolist()))
    expected = twin.dbscan(rows, pairs_of(points, eps, metric, p), min_pts, weights)
    assert found.degree.tolist() == [expected[row][2] for row in rows]
    assert found.is_core.tolist() == [expected[row][1] == "core" for row in rows]
    assert found.labels.tolist() == twin.numbered([expected[row][0] for row in rows])


@pytest.mark.parametrize(
    "metric", ["euclidean", "manhattan", "chebyshev", "cosine", get_metric("minkowski", 3.0)]
)
def test_dbscan__at_the_k_distance_of_a_point_makes_it_core(metric):
    points = np.random.default_rng(7).random((150, 5))
    for point, eps in enumerate(k_distance(points, 4, metric).tolist()):
        assert dbscan(points, eps, 5, metric).is_core[point]
        assert not dbscan(points, np.nextafter(eps, 0.0), 5, metric).is_core[point]


def in_batches_of(rows):
    """The join with batches of so many pairs."""
    join = cluster_dbscan.iter_self_join

    def cut_small(*given, **options):
        for batch in join(*given, **options):
            for first in range(0, len(batch.left), rows):
                yield Pairs(*(column[first : first + rows] for column in batch))

    return mock.patch.object(cluster_dbscan, "iter_self_join", cut_small)


@examples(200)
@given(KINDS, st.integers(0, 60), st.integers(1, 4), st.integers(1, 12), BATCHES, SEEDS)
def test_dbscan__is_the_definition(kind, n, d, min_pts, batch_rows, seed):
    points, eps = join_twin.awkward_points(kind, n, d, seed)
    with in_batches_of(batch_rows):
        found = dbscan(points, eps, min_pts)
    assert_is_the_definition(found, points, eps, min_pts)
    assert (found.labels.dtype, found.is_core.dtype, found.degree.dtype) == (np.int64, np.bool_, np.int64)


@examples(40)
@given(
    st.sampled_from(["manhattan", "chebyshev", "minkowski"]),
    st.sampled_from(["lattice", "dyadic", "few", "hot"]),
    st.integers(1, 8),
    SEEDS,
)
def test_dbscan__is_the_definition_for_other_metrics(name, kind, min_pts, seed):
    points, eps = join_twin.awkward_points(kind, 50, 2, seed)
    metric = get_metric("minkowski", 3.0) if name == "minkowski" else name
    found = dbscan(points, eps, min_pts, metric)
    assert_is_the_definition(found, points, eps, min_pts, metric=name, p=3.0)


@examples(150)
@given(
    st.sampled_from(["lattice", "few", "hot", "uniform", "equal"]),
    st.integers(0, 60),
    st.integers(1, 8),
    st.sampled_from(["whole", "decimal", "falling", "zero", "cancelling"]),
    st.sampled_from([3, 1 << 18]),
    SEEDS,
)
def test_dbscan__with_weights_is_the_definition(kind, n, min_pts, weights, batch_rows, seed):
    points, eps = join_twin.awkward_points(kind, n, 2, seed)
    random = np.random.default_rng(seed)
    weight = {
        "whole": random.integers(0, 4, n),
        "decimal": random.integers(0, 30, n) / 10,
        "falling": random.integers(-2, 4, n) * 0.7,
        "zero": np.zeros(n),
        "cancelling": random.choice([1e17, -1e17, 0.25, 1.0], n),
    }[weights]
    with in_batches_of(batch_rows):
        found = dbscan(points, eps, min_pts, sample_weight=weight)
    assert_is_the_definition(found, points, eps, min_pts, weight)
    assert found.degree.dtype == np.float64


@examples(60)
@given(st.integers(1, 80), st.integers(1, 10), st.booleans(), SEEDS)
def test_dbscan__agrees_with_scikit_learn(n, min_pts, is_weighted, seed):
    random = np.random.default_rng(seed)
    points = random.integers(0, max(2, int(2 * n**0.5)), (n, 2)).astype(float)
    weight = random.integers(-1, 4, n) / 2 if is_weighted else None
    if is_weighted and not weight.any():
        weight[0] = 0.5  # scikit-learn refuses weights that are all zero
    theirs = DBSCAN(eps=2.0, min_samples=min_pts).fit(points, sample_weight=weight)
    ours = dbscan(points, 2.0, min_pts, sample_weight=weight)
    core = ours.is_core
    assert np.flatnonzero(core).tolist() == theirs.core_sample_indices_.tolist()
    assert ours.labels[core].tolist() == theirs.labels_[core].tolist()
    assert ((ours.labels == NOISE) == (theirs.labels_ == NOISE)).all()
    for row in np.flatnonzero(~core & (ours.labels != NOISE)):
        near = core & (((points - points[row]) ** 2).sum(axis=1) <= 4.0)
        assert ours.labels[row] in ours.labels[near]


def test_weighted_degree__does_not_depend_on_the_order_of_the_points():
    random = np.random.default_rng(5)
    points, weight = random.random((300, 2)), random.random(300) / 10
    order = random.permutation(300)
    one = dbscan(points, 0.3, 3, sample_weight=weight)
    other = dbscan(points[order], 0.3, 3, sample_weight=weight[order])
    assert (one.degree[order] == other.degree).all()
    # Ten tenths are one: a sum of floats would stop short of it.
    assert dbscan(np.zeros((10, 1)), 1.0, 1, sample_weight=np.full(10, 0.1)).is_core.all()


def test_border__goes_to_its_nearest_core_point_then_to_the_smallest_row():
    # Two stars with core points at 0 and 10; a point between them that belongs to no core, moved about.
    star = np.array([[-1.0], [-2.0], [0.0], [10.0], [11.0], [12.0]])
    for place, label in ((5.0, 0), (4.9, 0), (5.1, 1)):
        found = dbscan(np.vstack((star, [[place]])), 5.5, 4)
        assert found.is_core.tolist() == [False, False, True, True, False, False, False]
        assert found.labels[-1] == label
    mirrored = dbscan(np.vstack((star[::-1], [[5.0]])), 5.5, 4)
    assert mirrored.labels.tolist() == [0, 0, 0, 1, 1, 1, 0]


@pytest.mark.parametrize("batch_rows", [1, 500, 10**6])
def test_waiting_pairs__are_bounded_by_the_points_not_by_the_pairs(batch_rows):
    points = np.random.default_rng(3).random((300, 2)) * 0.5
    n, min_pts = len(points), 4
    waited = []
    unite = cluster_batches._unite

    def watched(pairs, is_core, parent):
        others = unite(pairs, is_core, parent)
        waited.append(len(others.left))
        return others

    with in_batches_of(batch_rows), mock.patch.object(cluster_batches, "_unite", watched):
        found = dbscan(points, 1.0, min_pts)
    assert found.degree.tolist() == [n] * n  # 44,850 pairs
    assert found.labels.tolist() == [0] * n
    assert sum(waited) <= n * (min_pts - 2)


def test_waiting_pairs__take_16_bytes():
    pairs = Pairs(np.array([0, 1]), np.array([1, 2]), np.array([0.5, 0.25]))
    waiting = cluster_batches._unite(pairs, np.array([True, True, False]), np.arange(3))
    assert [column.tolist() for column in waiting] == [[1], [2], [0.25]]
    assert sum(column.itemsize for column in waiting) == 16


def test_dbscan__of_no_points_and_of_one():
    assert all(column.size == 0 for column in dbscan(np.empty((0, 3)), 1.0, 2))
    assert [column.tolist() for column in dbscan([[1.0]], 1.0, 2)] == [[NOISE], [False], [1]]
    assert [column.tolist() for column in dbscan([[1.0]], 1.0, 1)] == [[0], [True], [1]]


def test_dbscan__takes_points_of_any_layout_and_leaves_them():
    points = np.random.default_rng(2).integers(0, 20, (80, 3))
    expected = dbscan(points.astype(np.float64), 3.0, 4)
    for given_points in (points, points.astype(np.float32), np.asfortranarray(points), points.tolist()):
        before = np.array(given_points)
        found = dbscan(given_points, 3.0, 4)
        assert [column.tolist() for column in found] == [column.tolist() for column in expected]
        assert (np.array(given_points) == before).all()
    assert isinstance(expected, Dbscan)


def test_dbscan__keeps_to_a_budget_of_pairs():
    with pytest.raises(BudgetError, match="max_pairs = 44"):
        dbscan(np.zeros((10, 1)), 1.0, 3, max_pairs=44)
    assert dbscan(np.zeros((10, 1)), 1.0, 3, max_pairs=45).is_core.all()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"min_pts": 0}, "min_pts must be a whole number, at least 1, not 0"),
        ({"min_pts": 2.5}, "min_pts must be a whole number"),
        ({"eps": 0.0}, "eps must be a finite number above 0"),
        ({"points": [[0.0], [np.nan]]}, "points must be finite; row 1, column 0 is nan"),
        ({"metric": "hamming"}, "unknown metric 'hamming'"),
        (
            {"sample_weight": [1.0]},
            r"sample_weight must be one number per point, 2, .* not float64 of shape \(1,\)",
        ),
        ({"sample_weight": ["a", "b"]}, "sample_weight must be one number per point"),
        ({"sample_weight": [1.0, np.inf]}, "sample_weight must be finite numbers"),
        ({"sample_weight": [1.0, np.nan]}, "sample_weight must be finite numbers"),
        ({"sample_weight": [1e308, 1e308]}, "sample_weight must be finite numbers with a finite sum"),
        ({"sample_weight": [1, 2**53 + 1]}, "sample_weight must be integers that float64 can hold"),
        ({"sample_weight": np.ones(2, np.longdouble)}, "one number per point, 2, of at most 64 bits"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_dbscan__refuses(options, says):
    with pytest.raises(ArgumentError, match=says):
        dbscan(**{"points": [[0.0], [1.0]], "eps": 1.0, "min_pts": 2, **options})


@pytest.mark.parametrize("scale", ["eps", "weights", "both"])
def test_dbscan__takes_eps_per_dimension_and_weights(scale):
    points = np.random.default_rng(11).integers(0, 20, (120, 2)).astype(np.float64)
    eps = [3.0, 1.0] if scale != "weights" else 2.0
    weights = [2.0, 0.5] if scale != "eps" else None
    pairs = [
        (i, j, distance)
        for (i, j), distance in join_twin.scaled_pairs(points, eps, weights, "euclidean").items()
    ]
    expected = twin.dbscan(list(range(120)), pairs, 4)
    found = dbscan(points, eps, 4, weights=weights)
    assert found.degree.tolist() == [expected[row][2] for row in range(120)]
    assert found.labels.tolist() == twin.numbered([expected[row][0] for row in range(120)])
    assert 0 < found.is_core.sum() < 120


def test_dbscan__takes_truth_values_as_weights():
    """As scikit-learn does: a point of the weight 0 counts for none of its neighbours."""
    points, weight = np.array([[0.0], [0.5], [1.0], [5.0]]), np.array([True, True, False, True])
    ours, theirs = dbscan(points, 0.6, 2, sample_weight=weight), DBSCAN(eps=0.6, min_samples=2)
    assert ours.labels.tolist() == theirs.fit(points, sample_weight=weight).labels_.tolist() == [0, 0, 0, -1]
