"""Increments of the library: what a whole join finds, bit for bit, by the work that changes ask for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.join.arrays import self_join
from epsjoin.local.join.update import update_join
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.sweep.pairs import Pairs
from oracles import INTERPRETED, seeds
from oracles import increment as twin
from oracles.join import scaled_pairs
from tests.local.join.histories import METRICS, columns_of, make_history


def assert_same_bits(found, expected):
    assert [column.tobytes() for column in found] == [column.tobytes() for column in expected]


@seeds(28 if INTERPRETED else 98, 203)  # the same number for each metric
@pytest.mark.parametrize("first", range(len(METRICS)), ids=[name for name, _ in METRICS])
def test_update_join__is_the_whole_join_bit_for_bit_over_histories(first, seeds):
    n_pairs = n_computed = 0
    for seed in seeds[first :: len(METRICS)]:
        states, eps, metric, p = make_history(seed)
        random = np.random.default_rng(seed)
        before = columns_of(states[0], random)
        pairs = self_join(before[0], eps, metric, ids=before[1])
        expected = twin.pairs_of(states[0], eps, metric.name, p)
        for earlier, state in pairwise(states):
            now, counters = columns_of(state, random), {}
            pairs = update_join(pairs, before[0], now[0], before[1], now[1], eps, metric, counters=counters)
            assert_same_bits(pairs, self_join(now[0], eps, metric, ids=now[1]))
            expected_before, expected = expected, twin.pairs_of(state, eps, metric.name, p)
            ends = list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
            assert ends == sorted(expected)
            wanted = [expected[pair] for pair in ends]
            np.testing.assert_allclose(pairs.distance, wanted, rtol=1e-12, atol=0.0)
            placed = twin.placed(earlier, state)
            assert counters["placed"] == len(placed)
            assert counters.get("pairs", 0) == len(twin.touching(expected, placed))
            lost = twin.touching(expected_before, twin.gone(earlier, state))
            assert counters["dropped_pairs"] == len(lost)
            before = now
            n_pairs, n_computed = n_pairs + len(ends), n_computed + counters.get("pairs", 0)
    assert 0 < n_computed < n_pairs, "histories in which nothing is joined, or all, show nothing"


@seeds(28, 98)
@pytest.mark.parametrize("first", range(4), ids=[name for name, _ in METRICS[:4]])
def test_update_join__with_weights_or_an_eps_per_dimension_is_the_whole_join(first, seeds):
    """Weights of 0 are among them, and points that move in such a dimension only."""
    n_kept = n_computed = 0
    for seed in seeds[first :: len(METRICS)]:
        states, eps, metric, p = make_history(seed)
        random = np.random.default_rng(seed)
        before = columns_of(states[0], random)
        d = before[0].shape[1]
        weights = random.choice([0.0, 0.25, 1.0, 3.0], d)
        weights[:2] = 0.0, 3.0  # a history moves points by a bit of the first
        divisors = eps * random.choice([0.5, 1.0, 2.0, 4.0], d)
        for thresholds, given in ((eps, weights), (divisors, weights), (divisors, None)):
            of = before
            pairs = self_join(of[0], thresholds, metric, weights=given, ids=of[1])
            for state in states[1:]:
                now, counters = columns_of(state, random), {}
                pairs = update_join(
                    *(pairs, of[0], now[0], of[1], now[1], thresholds, metric),
                    weights=given,
                    counters=counters,
                )
                assert_same_bits(pairs, self_join(now[0], thresholds, metric, weights=given, ids=now[1]))
                n_kept += counters["kept_pairs"]
                n_computed += counters.get("pairs", 0)
                of = now
            divided = thresholds if thresholds is eps else thresholds.tolist()
            weighed = None if given is None else given.tolist()
            expected = scaled_pairs(of[0], divided, weighed, metric.name, p)
            assert len(pairs.left) == len(expected)
            ends = {tuple(sorted((of[1][i], of[1][j]))): apart for (i, j), apart in expected.items()}
            found = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
            wanted = [ends[pair] for pair in found]
            np.testing.assert_allclose(pairs.distance, wanted, rtol=1e-12, atol=0.0)
    assert 0 < n_computed < n_kept, "histories in which nothing is joined, or all, show nothing"


def large(seed, n=6000, d=3):
    random = np.random.default_rng(seed)
    points = random.random((n, d))
    points[: n // 20] = points[0]  # many equal points, which cuts can only divide by hash
    return points, random.permutation(3 * n)[:n]


@pytest.mark.parametrize(
    "cuts", [None, Cuts(n_parts=9), Cuts("regular", n_parts=5)], ids=["one part", "planned", "regular"]
)
def test_update_join__of_thousands_is_the_whole_join_however_that_is_cut(cuts):
    n = 600 if INTERPRETED else 1500
    points, ids = large(1, n)
    eps = 0.05
    pairs = self_join(points, eps, ids=ids, cuts=cuts)
    random = np.random.default_rng(2)
    now, ids_now = points[n // 100 :].copy(), ids[n // 100 :].copy()
    moved = random.choice(len(now), n // 100, replace=False)
    now[moved] = random.random((len(moved), 3))
    ids_now[:5] = 10 * n + np.arange(5)  # the same places under new ids
    for n_jobs in (1, 2):
        found = update_join(pairs, points, now, ids, ids_now, eps, n_jobs=n_jobs)
        assert_same_bits(found, self_join(now, eps, ids=ids_now, cuts=cuts))


@pytest.mark.parametrize(("name", "p"), METRICS, ids=[name for name, _ in METRICS])
def test_update_join__takes_both_zeros_for_one_place(name, p):
    """As digests do: the distances have the same bits, whichever zero it is."""
    metric = get_metric(name, p or None)
    points = np.random.default_rng(6).integers(0, 3, (60, 2)) * 0.5
    points = points[points.any(axis=1)]  # cosine has no place for the origin
    points[::2] = np.where(points[::2] == 0.0, -0.0, points[::2])
    ids, counters = np.arange(len(points)), {}
    now = np.where(points == 0.0, -points, points)
    assert now.tobytes() != points.tobytes()
    pairs = self_join(points, 0.6, metric, ids=ids)
    found = update_join(pairs, points, now, ids, ids, 0.6, metric, counters=counters)
    assert counters["placed"] == 0 < len(found.left)
    assert_same_bits(found, self_join(now, 0.6, metric, ids=ids))


def test_update_join__of_nothing_new_copies_and_computes_nothing():
    points, ids = large(3, 500)
    pairs = self_join(points, 0.1, ids=ids)
    counters = {}
    order = np.random.default_rng(0).permutation(len(ids))
    found = update_join(pairs, points, points[order], ids, ids[order], 0.1, counters=counters)
    assert_same_bits(found, pairs)
    assert counters == {"kept_pairs": len(pairs.left), "dropped_pairs": 0, "placed": 0}


def test_update_join__sorts_only_what_may_be_near_the_placed_points():
    points = np.random.default_rng(5).random((6000, 3))
    ids, now, counters = np.arange(6000), points.copy(), {}
    now[::600] = points[::600] + 0.3
    pairs = self_join(points, 0.01, ids=ids)
    found = update_join(pairs, points, now, ids, ids, 0.01, counters=counters)
    assert_same_bits(found, self_join(now, 0.01, ids=ids))
    assert counters["placed"] == 10 < counters["rows"] < 100


@pytest.mark.parametrize(("n_before", "n_now"), [(0, 40), (40, 0), (0, 0)])
def test_update_join__begins_and_ends_with_no_points(n_before, n_now):
    points, ids = large(4, 40)
    pairs = self_join(points[:n_before], 0.3, ids=ids[:n_before])
    found = update_join(pairs, points[:n_before], points[:n_now], ids[:n_before], ids[:n_now], 0.3)
    assert_same_bits(found, self_join(points[:n_now], 0.3, ids=ids[:n_now]))


POINTS, IDS = np.array([[0.0], [1.0], [2.0]]), np.array([5, 6, 7])
PAIRS = self_join(POINTS, 1.0, ids=IDS)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"ids_before": [5, 6]}, "ids_before must be one per point, 3, not 2"),
        ({"ids_now": [5, 6, 6]}, "ids_now must be distinct: id 6 comes twice"),
        ({"ids_before": [5, 6, 8]}, "right of the pairs has id 7, which ids_before lack"),
        ({"eps": 0.5}, "a pair has the distance 1.0, above eps = 0.5"),
        ({"now": [[1.0, 2.0]] * 3}, "before and now must have the same dimensions, not 1 and 2"),
        ({"metric": "haversine"}, "now: haversine needs 2 coordinates"),
        ({"weights": [1.0, 2.0]}, r"weights must be one per dimension \(1\)"),
        ({"weights": [1.0], "metric": "cosine"}, "cosine has no eps per dimension and no weights"),
        ({"eps": 0.5, "weights": [4.0]}, "a pair has the distance 1.0, above eps = 0.5"),
        (
            {"pairs": Pairs(PAIRS.right, PAIRS.left, PAIRS.distance)},
            r"smaller id at the left.* 0 is \(6, 5\)",
        ),
        ({"pairs": Pairs(PAIRS.left, PAIRS.left, PAIRS.distance)}, r"smaller id at the left.* 0 is \(5, 5\)"),
        ({"pairs": Pairs(*(np.tile(each, 2) for each in PAIRS))}, r"the pair \(5, 6\) comes twice in pairs"),
        ({"pairs": Pairs(PAIRS.left, PAIRS.right[:1], PAIRS.distance)}, "must be equally long"),
    ],
)
def test_update_join__refuses_with_a_sentence(changed, says):
    given = {"pairs": PAIRS, "before": POINTS, "now": POINTS, "ids_before": IDS, "ids_now": IDS, "eps": 1.0}
    with pytest.raises(ArgumentError, match=says):
        update_join(**{**given, **changed})


@pytest.mark.parametrize("now", [POINTS, POINTS / 10.0])
def test_update_join__refuses_more_pairs_than_allowed_copied_or_joined(now):
    with pytest.raises(BudgetError, match="more than max_pairs = 1 pairs"):
        update_join(PAIRS, POINTS, now, IDS, IDS, 1.0, max_pairs=1)
