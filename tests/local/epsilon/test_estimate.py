"""What a join will give and cost, before it runs, against what it gave and cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsjoin.errors import ArgumentError
from epsjoin.local.epsilon.estimate import estimate
from epsjoin.local.join.arrays import iter_self_join, join, self_join
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from oracles import join as twin
from tests import open_sets
from tests.local.epsilon.samples import coverage


def counted(points, eps, metric="euclidean", **options):
    """Counters of the whole join."""
    counters: dict[str, int] = {}
    for _ in iter_self_join(points, eps, metric, counters=counters, **options):
        pass
    return counters


def clustered(n):
    random = np.random.default_rng(12)
    centres = random.random((40, 3))
    return centres[random.integers(0, 40, n)] + random.normal(size=(n, 3)) * 0.02


# Points, eps, and how wide the interval is at most, in shares of the pairs.
POPULATIONS = {
    "square": (lambda: np.random.default_rng(11).random((30_000, 2)), 0.02, 0.13),
    "square, few pairs": (lambda: np.random.default_rng(11).random((30_000, 2)), 0.001, 2.5),
    "clusters": (lambda: clustered(30_000), 0.02, 0.17),
    "landmarks": (lambda: open_sets.read("landmarks"), 0.05, 0.7),
    "landmarks, few pairs": (lambda: open_sets.read("landmarks"), 0.0123457, 1.4),
}
SAMPLES = 24


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name == "square, few pairs")) for name in POPULATIONS],
)
def test_estimate__has_the_pairs_in_its_interval(name):
    make, eps, widest = POPULATIONS[name]
    points = make()
    pairs = counted(points, eps)["pairs"]
    estimates = []
    for seed in range(SAMPLES):
        sample = points[np.random.default_rng(seed).choice(len(points), 2000, replace=False)]
        estimates.append(estimate(sample, eps, n_rows=len(points), seed=seed))
    assert {(each.n_rows, each.n_sample) for each in estimates} == {(len(points), 2000)}
    inside, width, share = coverage(estimates, pairs)
    assert inside >= 0.9
    assert share == pytest.approx(1.0, abs=0.06)
    assert width < widest, "an interval that holds everything would say nothing"


SETS = [
    (name, join["eps"], join["metric"], join["self_pairs_i_lt_j"])
    for name, expected in open_sets.EXPECTED.items()
    for join in expected["joins"]
    if join["self_pairs_i_lt_j"] < 10**7 or (name == "skin" and join["eps"] < 0.02)  # the others take seconds
]


@pytest.mark.parametrize(("name", "eps", "metric", "pairs"), SETS)
def test_estimate__of_a_real_set_is_within_a_factor_of_two(name, eps, metric, pairs):
    points = open_sets.read(name)
    expected = estimate(points, eps, metric)
    found: dict[str, int] = {}
    self_join(points, eps, metric, counters=found)
    assert found["pairs"] == pairs
    assert pairs / 2 <= expected.pairs <= 2 * pairs
    assert found["candidates"] / 2 <= expected.candidates <= 2 * found["candidates"]
    assert expected.rows == len(points) == expected.n_rows
    assert expected.pair_bytes == 24 * expected.pairs
    assert expected.neighbours == 2 * expected.pairs / len(points)


@pytest.mark.parametrize(("d", "eps"), [(16, 1.0), (64, 2.5)])
def test_estimate__of_a_join_by_products_has_all_pairs_as_candidates(d, eps):
    points, counters = np.random.default_rng(d).random((6000, d)), {}
    self_join(points, eps, counters=counters)
    expected = estimate(points[:2000], eps, n_rows=6000)
    assert expected.candidates == counters["candidates"] == 6000 * 5999 / 2
    assert expected.row_bytes == 6000 * 4 * (d + 6)
    counters.clear()
    join(points[:2000], points[2000:], eps, counters=counters)
    expected = estimate(points[:1000], eps, n_rows=2000, right=points[2000:4000], right_rows=4000)
    assert expected.candidates == counters["candidates"] == 2000 * 4000
    in_parts = estimate(points[:2000], eps, n_rows=6000, cuts=Cuts(n_parts=4))
    assert in_parts.candidates != 6000 * 5999 / 2, "cuts are swept"


@pytest.mark.parametrize(
    "cuts",
    [Cuts(n_parts=16, sample_rows=5000), Cuts("regular", n_parts=8, k=2, msl=4, sample_rows=5000)],
    ids=["planned", "regular"],
)
def test_estimate__of_a_join_in_parts_counts_replicas(cuts):
    points = clustered(20_000)
    expected = estimate(points, 0.03, cuts=cuts)
    found = counted(points, 0.03, cuts=cuts)
    assert found["rows"] > 1.1 * len(points)
    assert expected.rows == pytest.approx(found["rows"], rel=0.1)
    assert found["candidates"] / 2 <= expected.candidates <= 2 * found["candidates"]
    assert expected.pairs == pytest.approx(found["pairs"], rel=0.2)
    assert expected.n_sample == 5000


@pytest.mark.parametrize(
    "cuts",
    [Cuts(n_parts=8, sample_rows=3000), Cuts("regular", n_parts=4, k=2, msl=4, sample_rows=3000)],
    ids=["planned", "regular"],
)
def test_estimate__of_two_tables_in_parts_counts_what_their_join_compares(cuts):
    points, others = clustered(20_000), clustered(24_000)[20_000:]
    found: dict[str, int] = {}
    join(points, others, 0.03, cuts=cuts, counters=found)
    expected = estimate(points, 0.03, cuts=cuts, right=others)
    assert expected.rows == pytest.approx(found["rows"], rel=0.1)
    assert expected.candidates == pytest.approx(found["candidates"], rel=0.25)


def test_estimate__of_the_whole_set_counts_it():
    points, eps = twin.awkward_points("lattice", 60, 2, 1)
    expected = estimate(points, eps)
    assert expected.pairs == len(twin.brute_force(points, eps)) > 0
    assert expected.pairs_low <= expected.pairs <= expected.pairs_high
    assert estimate(points, eps) == expected


@pytest.mark.parametrize("n", [0, 1, 2])
def test_estimate__takes_few_points(n):
    expected = estimate(np.zeros((n, 2)), 1.0)
    assert expected.pairs == expected.pairs_high == n // 2
    assert expected.neighbours == (1.0 if n == 2 else 0.0)


@pytest.mark.parametrize("d", [2, 40])
@pytest.mark.parametrize("options", [{}, {"cuts": Cuts()}, {"metric": "cosine"}, {"right": True}])
def test_estimate__of_no_points_is_0_and_not_below(d, options):
    """-0.0 is equal to 0.0, but prints as a number below it."""
    if "right" in options:
        options = {"right": np.empty((0, d))}
    assert "-0.0" not in str(estimate(np.empty((0, d)), 0.1, **options))


def test_estimate__of_a_sample_without_pairs_leaves_room_for_some():
    points = np.arange(2000.0)[:, None] * 10
    expected = estimate(points, 1.0, n_rows=20_000)
    assert expected.pairs_low == 0.0 <= expected.pairs <= expected.pairs_high
    assert 100 < expected.pairs_high < 1000  # three pairs of a sample stand for 300
    assert expected.candidates >= 0.0


def test_estimate__of_a_sample_with_one_pair_is_no_certainty():
    points = np.arange(2000.0)[:, None] * 10
    points[1] = points[0]
    expected = estimate(points, 1.0, n_rows=20_000)
    assert expected.pairs_low == 0.0
    assert 100 <= expected.pairs <= expected.pairs_high
    assert expected.pairs_high > 300


def test_estimate__of_all_pairs_within_is_all_pairs():
    points = np.random.default_rng(0).random((30_000, 2))
    all_pairs = 30_000 * 29_999 / 2
    expected = estimate(points, 10.0)
    assert expected.pairs == pytest.approx(all_pairs, rel=1e-12)
    assert expected.pairs_high == pytest.approx(all_pairs, rel=1e-12)
    assert expected.pairs_low > 0.98 * all_pairs
    assert expected.candidates == pytest.approx(all_pairs, rel=0.01)
    assert 1000 <= expected.n_sample < 5000  # fewer rows are looked at


def test_estimate__of_other_metrics_weights_and_eps_per_dimension():
    random = np.random.default_rng(1)
    points = random.random((3000, 3)) + 0.1
    for metric, eps, options in (
        ("cosine", 0.01, {}),
        (get_metric("minkowski", 3.0), 0.1, {"weights": [1.0, 0.5, 0.0]}),
        ("euclidean", [0.1, 0.2, 1.0], {}),
    ):
        expected = estimate(points, eps, metric, **options)
        pairs = len(self_join(points, eps, metric, **options).left)
        assert pairs > 1000
        assert expected.pairs == pytest.approx(pairs, rel=1e-12)
        assert expected.eps == (1.0 if isinstance(eps, list) else eps)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_rows": 2}, "n_rows must be a whole number, at least 3, not 2"),
        ({"n_rows": 10.5}, "n_rows must be a whole number, at least 3, not 10.5"),
        ({"seed": -1}, "seed must be a whole number, at least 0, not -1"),
        ({"eps": 0.0}, "eps must be a finite number above 0"),
        ({"metric": "cosine"}, "points: cosine needs vectors with a length .*; row 0"),
        (
            {"metric": "cosine", "points": [[1.0]], "right": [[1.0], [0.0]]},
            "right: cosine needs vectors with a length .*; row 1",
        ),
        ({"points": [[0.0], [math.nan]]}, "points must be finite; row 1, column 0 is nan"),
        ({"weights": [1.0, 2.0]}, r"weights must be one per dimension \(1\)"),
    ],
)
def test_estimate__says_what_is_wrong(options, message):
    options = {"points": [[0.0], [1.0], [2.0]], "eps": 1.0, **options}
    with pytest.raises(ArgumentError, match=message):
        estimate(options.pop("points"), options.pop("eps"), **options)
