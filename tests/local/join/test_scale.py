"""One eps per dimension, and weights: in units of eps, and as SciPy weighs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from epsjoin.local.join.arrays import self_join
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from oracles import examples
from oracles import join as twin
from tests.local.join.brute_force import SEEDS, found_pairs

METRIC_WORDS = {"euclidean": "euclidean", "manhattan": "cityblock", "chebyshev": "chebyshev"}


def of_name(metric):
    return get_metric("minkowski", 3.0) if metric == "minkowski" else metric


@examples(150)
@given(
    st.sampled_from([*METRIC_WORDS, "minkowski"]),
    st.sampled_from(["uniform", "lattice", "dyadic", "few", "mixed_scale"]),
    st.integers(0, 40),
    st.integers(1, 4),
    st.sampled_from([None, Cuts(n_parts=3), Cuts("regular", k=2)]),
    SEEDS,
)
def test_self_join__with_eps_per_dimension_is_brute_force_in_units_of_eps(metric, kind, n, d, cuts, seed):
    points, one = twin.awkward_points(kind, n, d, seed)
    eps = one * np.random.default_rng(seed).choice([0.5, 1.0, 1.5, 4.0], d)
    expected = twin.brute_force(points / eps, 1.0, metric, 3.0)
    pairs = self_join(points, eps.tolist(), of_name(metric), cuts=cuts)
    assert found_pairs(pairs) == sorted(expected)
    assert pairs.distance.tolist() == pytest.approx([expected[pair] for pair in sorted(expected)], rel=1e-12)


@examples(100)
@given(
    st.sampled_from([*METRIC_WORDS, "minkowski"]), st.integers(2, 60), st.integers(1, 5), st.booleans(), SEEDS
)
def test_self_join__with_weights_is_that_of_scipy(metric, n, d, has_zero, seed):
    random = np.random.default_rng(seed)
    points, weights = random.random((n, d)), random.uniform(0.1, 5.0, d)
    if has_zero:
        weights[random.integers(d)] = 0.0
    if metric == "minkowski":
        distances = cdist(points, points, "minkowski", p=3.0, w=weights)
    elif metric == "chebyshev":  # for SciPy weights there only say which dimensions count
        distances = (np.abs(points[:, None] - points) * weights).max(axis=2)
    else:
        distances = cdist(points, points, METRIC_WORDS[metric], w=weights)
    eps = float(np.quantile(distances, 0.3)) + 1e-4
    rows, others = np.triu_indices(n, 1)
    distances = distances[rows, others]
    sure = np.abs(distances - eps) > 1e-9 * eps
    pairs = self_join(points, eps, of_name(metric), weights=weights)
    expected = distances <= eps
    if sure.all():
        assert found_pairs(pairs) == list(
            zip(rows[expected].tolist(), others[expected].tolist(), strict=True)
        )
        assert pairs.distance == pytest.approx(distances[expected], rel=1e-9, abs=1e-15)
    assert sure.mean() > 0.9


def test_self_join__with_chebyshev_weights_of_zero_and_one_is_that_of_scipy():
    points = np.random.default_rng(2).random((50, 4))
    weights = [1.0, 0.0, 1.0, 0.0]
    distances = cdist(points, points, "chebyshev", w=weights)
    rows, others = np.nonzero(np.triu(distances <= 0.2, 1))
    pairs = self_join(points, 0.2, "chebyshev", weights=weights)
    assert found_pairs(pairs) == list(zip(rows.tolist(), others.tolist(), strict=True))


def test_self_join__with_weights_of_zero_alone_has_all_pairs_at_0():
    pairs = self_join(np.random.default_rng(2).random((20, 3)), 1e-9, weights=[0, 0, 0])
    assert len(pairs.left) == 190
    assert not pairs.distance.any()


def test_self_join__with_weights_and_eps_per_dimension_multiplies_both():
    points = np.random.default_rng(4).random((80, 3))
    eps, weights = np.array([0.5, 0.25, 1.0]), np.array([4.0, 1.0, 0.25])
    expected = twin.brute_force(points * np.sqrt(weights) / eps, 1.0)
    assert found_pairs(self_join(points, eps, weights=weights)) == sorted(expected)
    assert 20 < len(expected) < 3000
