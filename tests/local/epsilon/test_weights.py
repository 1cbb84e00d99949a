"""An eps for joins with weights, and a factor of one eps per dimension."""

from __future__ import annotations

import numpy as np
import pytest

from epsjoin.errors import ArgumentError
from epsjoin.local.epsilon.fit import fit_epsilon
from epsjoin.local.join.arrays import join, self_join
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours.knn import k_distance
from oracles import fractal as twin
from tests.local.epsilon.samples import about, random, size

WEIGHTED = ["euclidean", "manhattan", "chebyshev", get_metric("minkowski", 3)]


@pytest.mark.parametrize("metric", WEIGHTED)
def test_weights__lead_to_an_eps_of_weighted_joins(metric):
    points = twin.cube(size(1500), 3, random()) * [1.0, 50.0, 3.0] + [0.0, 1e6, 0.0]
    weights = [2.0, 1e-3, 0.0]
    fit = fit_epsilon(points, metric, weights=weights)
    eps = fit.eps_for(neighbours=10)
    found = 2 * len(self_join(points, eps, metric, weights=weights).left) / len(points)
    assert found == about(10, 0.02)
    assert fit.exponent == about(2, 0.05)
    assert fit.sample.shape[1] == 2  # of weight 0, a dimension is none
    reached = fit.eps_for(k_distance_quantile=0.9, k=4)
    is_within = k_distance(points, 4, metric, weights=weights) <= reached
    assert np.mean(is_within) == pytest.approx(0.9, abs=0.02)


def test_weights__of_inverse_eps_lead_to_a_factor_of_them():
    points, eps = twin.cube(size(1500), 2, random()) * [1.0, 50.0], np.array([0.01, 0.3])
    factor = fit_epsilon(points, weights=1 / eps**2).eps_for(neighbours=10)
    assert 2 * len(self_join(points, factor * eps).left) / len(points) == about(10, 0.02)


def test_weights__count_between_two_tables():
    points, others = twin.cube(size(3000), 2, random()).reshape(2, -1, 2) * [1.0, 50.0]
    eps = fit_epsilon(points, right=others, weights=[1, 1e-3]).eps_for(neighbours=10)
    assert len(join(points, others, eps, weights=[1, 1e-3]).left) / len(points) == about(10, 0.02)


@pytest.mark.parametrize(
    ("points", "metric", "weights", "says"),
    [
        (np.ones((10, 2)), "cosine", [1, 2], "cosine has .* no weights"),
        (np.eye(10), "euclidean", [1, 2], r"weights must be one per dimension \(10\)"),
        (np.eye(10), "euclidean", np.zeros(10), "choose eps by hand"),
    ],
)
def test_weights__that_do_not_fit_are_refused(points, metric, weights, says):
    with pytest.raises(ArgumentError, match=says):
        fit_epsilon(points, metric, weights=weights)
