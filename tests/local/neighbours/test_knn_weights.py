"""Nearest neighbours by weights of dimensions are those of the definition."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.local.neighbours.knn import k_distance, knn_join
from epsjoin.local.neighbours.within import degree
from oracles import examples
from oracles import join as join_twin
from oracles import outliers as twin
from tests.local.neighbours.knn_cases import ROUNDED_ONCE, SEEDS, WAYS, by, chosen

ADDED_UP = (*ROUNDED_ONCE, "minkowski")  # the metrics that have weights


def assert_is_weighted(queries, points, k, metric, weights):
    """Neighbours and distances are those of the definition, bit for bit."""
    found = knn_join(queries, points, k, metric, weights=weights)
    p, ones = metric.p, [1.0] * len(weights)

    @functools.cache  # many points are equal
    def distance(x, y):
        return join_twin.root(join_twin.scaled_sum(x, y, ones, weights, metric.name, p), metric.name, p)

    asking = None if queries is None else [*map(tuple, queries.tolist())]
    expected = twin.knn(asking, [*map(tuple, points.tolist())], k, distance)
    assert found.neighbour.tolist() == [[row for _, row in each] for each in expected]
    assert found.distance.tolist() == [[distance for distance, _ in each] for each in expected]


@examples(300)
@given(
    st.sampled_from(ADDED_UP),
    st.sampled_from(join_twin.KINDS),
    st.integers(2, 80),
    st.lists(st.sampled_from([0.0, 1e-3, 0.1, 1.0, 2.0, 3.7, 1e6]), min_size=1, max_size=4),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from(sorted(WAYS)),
    st.sampled_from([0.0, 1.7e9, -3e15]),
    SEEDS,
)
def test_knn_join__with_weights_is_the_definition(name, kind, n, weights, k, is_self, way, far, seed):
    points, _ = join_twin.awkward_points(kind, n, len(weights), seed)
    points[::2] += far  # two groups, each far from the other: coordinates that are multiplied round
    queries = None if is_self else points[::-2] + 0.25
    with by(way):
        assert_is_weighted(queries, points, min(k, n - is_self), chosen(name), weights)


@pytest.mark.parametrize("name", ADDED_UP)
def test_knn_join__with_weights_sees_the_smallest_steps_far_from_the_others(name):
    """Multiplied, neighbouring numbers of 1.7e9 seem to lie up to twice as far apart as they do."""
    points = np.concatenate((np.zeros(400), 1.7e9 + np.arange(300) * 2.0**-22))[:, None]
    assert_is_weighted(None, points, 3, chosen(name), [0.1])


@pytest.mark.parametrize("largest", [-500, -300])
@pytest.mark.parametrize("weight", [1e-200, 1e200])
@pytest.mark.parametrize("name", ["euclidean", "minkowski"])
def test_knn_join__with_weights_takes_terms_that_underflow_for_equally_far(name, weight, largest):
    """Their powers are 0, though the weighted difference is far above 0."""
    points = 2.0 ** np.random.default_rng(1).integers(-900, largest, (300, 1))
    assert_is_weighted(None, points, 3, chosen(name), [weight])


def test_knn_join__without_a_weight_takes_all_points_for_equally_far():
    points = np.random.default_rng(2).random((100, 2))
    found = knn_join(points[:3], points, 4, weights=[0, 0])
    assert found.neighbour.tolist() == [[0, 1, 2, 3]] * 3
    assert (found.distance == 0).all()


def test_knn_join__with_weights_of_0_and_1_multiplies_the_columns_that_are_left():
    points = np.random.default_rng(3).random((3000, 66)).astype(np.float32)
    weights = np.ones(66)
    weights[[4, 17]] = 0
    work = {}
    found = knn_join(None, points, 3, weights=weights, counters=work)
    alone = knn_join(None, np.delete(points, [4, 17], axis=1), 3)
    assert work["products"] > 0
    assert found.neighbour.tolist() == alone.neighbour.tolist()
    assert found.distance.tolist() == alone.distance.tolist()


@pytest.mark.parametrize("name", ADDED_UP)
def test_knn_join__with_weights_looks_at_few_points(name):
    points = np.random.default_rng(4).random((4000, 3))
    work = {}
    knn_join(None, points, 3, chosen(name), weights=[0.5, 1, 7.3], counters=work)
    assert work["comparisons"] < 0.1 * len(points) ** 2


def test_k_distance__with_weights_is_an_eps_that_reaches_k_neighbours():
    points, weights = np.random.default_rng(5).random((300, 3)), [0.3, 1.7, 12.9]
    distances = k_distance(points, 4, weights=weights)
    for row in range(0, 300, 10):
        assert degree(points, float(distances[row]), weights=weights)[row] == 5
