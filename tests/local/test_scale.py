"""One eps per dimension, and weights: on differences as they came, and as SciPy weighs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from epsjoin.local.join.arrays import join, self_join
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.scale import scale_metric, weigh_metric
from oracles import examples
from oracles import join as twin
from tests.local.join.brute_force import SEEDS, as_metric, found_pairs

METRIC_WORDS = {"euclidean": "euclidean", "manhattan": "cityblock", "chebyshev": "chebyshev"}


@pytest.mark.parametrize("cuts", [None, Cuts(n_parts=2), Cuts(n_parts=8)])
def test_self_join__of_the_largest_eps_and_weights_loses_no_pair(cuts):
    random = np.random.default_rng(0)
    points = random.random((60, 2))
    points[30:, 0] += 1e300
    for eps in (5e299, 1e298):
        pairs = self_join(points, eps, "manhattan", weights=[1e9, 1], cuts=cuts)
        assert len(pairs.left) == 2 * (30 * 29 // 2)
        found = join(points, None, eps, "manhattan", how="semi", weights=[1e9, 1], cuts=cuts)
        assert len(found.left) == 60


WAYS = [None, Cuts(n_parts=3), Cuts("regular", k=2)]


def assert_is_scaled_brute_force(points, eps, weights, metric, **options):
    expected = twin.scaled_pairs(points, eps, weights, metric, 3.0)
    pairs = self_join(points, eps, as_metric(metric), weights=weights, **options)
    assert found_pairs(pairs) == sorted(expected)
    assert pairs.distance.tolist() == [expected[pair] for pair in sorted(expected)]


@examples(300)
@given(
    st.sampled_from([*METRIC_WORDS, "minkowski"]),
    st.sampled_from(["uniform", "lattice", "dyadic", "few", "mixed_scale"]),
    st.sampled_from(["eps", "weights", "both"]),
    st.integers(0, 40),
    st.integers(1, 4),
    st.sampled_from([0.0, 1.7e9, -3e15]),
    st.sampled_from(WAYS),
    SEEDS,
)
def test_self_join__with_eps_per_dimension_and_weights_is_decided_on_differences(
    metric, kind, scale, n, d, origin, cuts, seed
):
    points, one = twin.awkward_points(kind, n, d, seed)
    points = points + origin
    random = np.random.default_rng(seed)
    eps = (one * random.choice([0.5, 1.0, 1.5, 3.0, 0.1], d)).tolist() if scale != "weights" else one
    weights = random.choice([0.0, 0.1, 1.0, 2.0, 3.0], d).tolist() if scale != "eps" else None
    assert_is_scaled_brute_force(points, eps, weights, metric, cuts=cuts)


@examples(200)
@given(
    st.sampled_from([*METRIC_WORDS, "minkowski"]),
    st.lists(st.tuples(st.integers(-60, 60), st.integers(1, 60), st.integers(0, 5)), min_size=1, max_size=4),
    st.integers(1, 60),
    st.sampled_from(["eps", "weights", "both"]),
)
def test_self_join__of_whole_numbers_keeps_what_is_exactly_at_eps(metric, dimensions, one, scale):
    numbers, eps, weights = (list(column) for column in zip(*dimensions, strict=True))
    points = np.array([[0] * len(numbers), numbers], np.float64)
    assert_is_scaled_brute_force(
        points,
        [float(e) for e in eps] if scale != "weights" else float(one),
        [float(w) for w in weights] if scale != "eps" else None,
        metric,
    )


@pytest.mark.parametrize(
    ("points", "eps", "metric", "weights", "distance"),
    [
        ([[0, 0], [1, 1]], 2.0, "euclidean", [2, 2], 2.0),
        ([[0, 0], [2, 1]], 3.0, "euclidean", [2, 1], 3.0),
        ([[194.0], [243.0]], [49.0], "euclidean", None, 1.0),
        (
            [[0, 0, 0], [3, 4, 12]],
            [13, 13, 13],
            "euclidean",
            None,
            1.0,
        ),  # the sum is 1 + 2**-52, its root is 1
        ([[1.7e9], [1.7e9 + 1]], 0.1, "manhattan", [0.1], 0.1),
        ([[0.0, 3.0], [1e200, 3.0]], 1.0, "euclidean", [0.0, 1.0], 0.0),
        ([[0.0, 1e300], [0.5, 1e300]], [1.0, 1e-20], "euclidean", None, 0.5),
        ([[0.0, -1.7e308], [0.5, 1.7e308]], [1.0, 1.0], "euclidean", [1.0, 0.0], 0.5),
    ],
)
def test_self_join__with_a_scale_reports_the_pair_at_exactly_eps(points, eps, metric, weights, distance):
    assert self_join(points, eps, metric, weights=weights).distance.tolist() == [distance]
    assert join(points[:1], points[1:], eps, metric, weights=weights).distance.tolist() == [distance]


@pytest.mark.parametrize("cuts", WAYS, ids=["whole", "planned", "regular"])
@pytest.mark.parametrize("n_near", [0, 120])
@pytest.mark.parametrize("origin", [10**9, 10**15])
def test_self_join__far_from_the_origin_and_from_most_points_is_decided_on_differences(origin, n_near, cuts):
    random = np.random.default_rng(3)
    near, far = random.integers(0, 30, (n_near, 2)), origin + random.integers(0, 30, (80, 2))
    assert_is_scaled_brute_force(np.concatenate((near, far)), [3.0, 7.0], None, "chebyshev", cuts=cuts)


def test_scaled_coordinates__of_pairs_at_eps_far_from_the_centre_differ_by_at_most_the_threshold():
    """The joins have slack of their own, so only here it shows whether the metric keeps its word to them."""
    far, weight = np.random.default_rng(7).integers(-(2**31), 2**31, (2000, 1)), 0.1
    points = np.concatenate((np.zeros((6000, 1)), far, far + 7))
    metric, eps = scale_metric(get_metric("manhattan"), points, 7 * weight, [weight])
    assert metric.scale.centre == (0.0,)
    scaled = metric.embed(points)
    assert np.abs(scaled[8000:] - scaled[6000:8000]).max() <= metric.embedded_eps(eps)


def test_self_join__with_eps_per_dimension_compares_few_rows():
    points = np.random.default_rng(5).random((20_000, 2)) * [1.0, 1000.0] + 1e6
    counters = {}
    pairs = self_join(points, [0.005, 5.0], counters=counters)
    assert counters["candidates"] < 10 * len(pairs.left)


@pytest.mark.parametrize("cuts", [Cuts(n_parts=5), Cuts("regular", n_parts=3)])
def test_join_plan__keeps_the_scale_in_its_text(cuts):
    points = np.random.default_rng(6).random((200, 3))
    metric, eps = scale_metric(get_metric("minkowski", 3.0), points, [0.1, 0.2, 0.3], [1.0, 0.5, 2.0])
    plan = plan_join(points, np.arange(200), 200, eps, metric, cuts)
    again = JoinPlan.from_json(plan.to_json()).get_metric()
    assert again.decision(eps).scale.tolist() == metric.decision(eps).scale.tolist()
    assert again.embed(points).tolist() == metric.embed(points).tolist()
    assert again.embedded_eps(eps) == metric.embedded_eps(eps)


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
    pairs = self_join(points, eps, as_metric(metric), weights=weights)
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
    assert found_pairs(self_join(points, eps.tolist(), weights=weights)) == sorted(expected)
    assert 20 < len(expected) < 3000


@pytest.mark.parametrize("metric", [*METRIC_WORDS, "minkowski"])
def test_weigh_metric__has_a_threshold_next_to_eps_however_far_points_are(metric):
    points = np.random.default_rng(0).random((50, 2)) * 1e200
    weighted = weigh_metric(get_metric(as_metric(metric)), points, np.array([0.3, 7.0]))
    assert 0.5 <= weighted.embedded_eps(0.5) < 0.5 * (1 + 1e-11)
