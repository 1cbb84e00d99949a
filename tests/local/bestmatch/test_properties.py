"""Best matches: what must not matter, how the kinds of joins relate, accidents, and the work that is done."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin import ArgumentError, BudgetError, Closest, Own, OwnOrder, Subset, bestmatch_join
from epsjoin.local.bestmatch import batch, candidates
from epsjoin.local.bestmatch import filter as filter_module
from epsjoin.local.bestmatch.best import best_of
from epsjoin.local.bestmatch.filter import Filter
from epsjoin.local.bestmatch.orders import orders_of
from epsjoin.params import MATCH_HOW
from oracles import examples
from tests.local.bestmatch.cases import KINDS, make_case, rows_of

SEEDS = st.integers(0, 10**6)


def pairs_of(best):
    return {(left, right) for left, right, best_for in rows_of(best) if best_for}


def random_table(seed, n, d):
    return np.random.default_rng(seed).random((n, d))


@examples(150)
@given(st.sampled_from(KINDS), SEEDS)
def test_kinds_of_joins__relate_as_their_names_say(kind, seed):
    case = make_case(kind, seed)
    of = {how: bestmatch_join(case.left, case.right, how=how, **case.arguments) for how in MATCH_HOW}
    assert pairs_of(of["outer"]) == pairs_of(of["left"]) | pairs_of(of["right"])
    assert pairs_of(of["inner"]) <= pairs_of(of["left"]) & pairs_of(of["right"])
    for left, right, best_for in rows_of(of["outer"]):
        assert best_for == ((left, right) in pairs_of(of["left"])) + 2 * (
            (left, right) in pairs_of(of["right"])
        )
    lonely = {how: [row for row in rows_of(of[how]) if not row[2]] for how in MATCH_HOW}
    assert lonely["outer"] == lonely["left"] + lonely["right"]
    assert lonely["inner"] == []


@examples(150)
@given(st.integers(1, 4), st.integers(0, 12), st.integers(0, 12), SEEDS)
def test_right__is_left_mirrored(d, n, m, seed):
    random = np.random.default_rng(seed)
    left, right = (random.integers(-3, 4, (rows, d)) / 10 for rows in (n, m))
    eps = random.choice([0.0, 0.1, 0.3, math.inf], d)
    mirrored = bestmatch_join(right, left, eps, "left")
    found = bestmatch_join(left, right, eps, "right")
    assert pairs_of(found) == {(y, x) for x, y in pairs_of(mirrored)}
    assert sorted(found.right.tolist()) == sorted(mirrored.left.tolist())


@examples(150)
@given(st.sampled_from(KINDS), st.sampled_from(MATCH_HOW), SEEDS)
def test_take_one__is_the_nearest_of_all_for_each_row(kind, how, seed):
    case = make_case(kind, seed)
    every = bestmatch_join(case.left, case.right, how=how, **case.arguments)
    one = bestmatch_join(case.left, case.right, how=how, take="one", **case.arguments)
    assert pairs_of(one) <= pairs_of(every)
    eps = case.arguments.get(
        "eps", [getattr(order, "eps", math.inf) for order in case.arguments.get("orders", ())]
    )
    scale = np.where(np.array(eps) > 0, eps, math.inf)
    with np.errstate(invalid="ignore"):
        counted = np.where(np.isfinite(scale), every.values, 0.0) / np.where(np.isfinite(scale), scale, 1.0)
    sums = dict(
        zip(zip(every.left.tolist(), every.right.tolist(), strict=True), counted.sum(axis=1), strict=True)
    )
    sides = {"left": (0,), "right": (1,), "outer": (0, 1), "inner": (0,)}[how]
    for side in sides:
        chosen = [row for row in rows_of(one) if row[2] & (1 + side)]
        among = [row for row in rows_of(every) if row[2] & (1 + side)]
        assert [row[side] for row in sorted(chosen, key=lambda row: row[side])] == sorted(
            {row[side] for row in among}
        )
        for row in chosen:
            others = [(sums[other[:2]], other[1 - side]) for other in among if other[side] == row[side]]
            least, partner = min(others)
            assert sums[row[:2]] == pytest.approx(least)
            assert row[1 - side] == partner or sums[row[:2]] < least + 1e-12


@pytest.mark.parametrize("how", MATCH_HOW)
def test_bestmatch_join__does_not_depend_on_blocks_or_threads(how, monkeypatch):
    left, right = np.round(random_table(1, 120, 3), 1), np.round(random_table(2, 150, 3), 1)
    whole = bestmatch_join(left, right, [0.1, 0.2, 0.3], how)
    assert pairs_of(whole)
    monkeypatch.setattr("epsjoin.local.bestmatch.filter._FIRST_ROWS", 50)
    for block_pairs, n_jobs in ((5, 1), (60, 3), (5000, 3)):
        monkeypatch.setattr(candidates, "BLOCK_PAIRS", block_pairs)
        n_blocks = len(list(candidates.within_blocks(left, right, orders_of([0.1, 0.2, 0.3], None, 3))))
        assert n_blocks >= min(20, 500 // block_pairs), "the test would show little"
        monkeypatch.setattr("epsjoin.local.bestmatch.best._MIN_GROUPS_OF_A_THREAD", 10)
        other = bestmatch_join(left, right, [0.1, 0.2, 0.3], how, n_jobs=n_jobs)
        assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(whole, other, strict=True))


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("how", MATCH_HOW)
def test_bestmatch_join__does_not_depend_on_the_order_of_rows(how, d):
    left, right = np.round(random_table(3, 300, d), 2), np.round(random_table(4, 200, d), 2)
    whole = bestmatch_join(left, right, 0.1, how)
    at, to = np.random.default_rng(5).permutation(300), np.random.default_rng(6).permutation(200)
    other = bestmatch_join(left[at], right[to], 0.1, how)
    back = {(int(at[x]), int(to[y]), bits) for x, y, bits in rows_of(other) if bits}
    assert back == {row for row in rows_of(whole) if row[2]}


def test_one_criterion__is_as_near_as_merge_asof():
    for seed in range(30):
        random = np.random.default_rng(seed)
        left, right = np.sort(random.integers(0, 200, 60)) / 10, np.sort(random.integers(0, 200, 50)) / 10
        one = bestmatch_join(left[:, None], right[:, None], 0.4, take="one")
        frames = [pd.DataFrame({"t": side, "at": side}) for side in (left, right)]
        asof = pd.merge_asof(*frames, on="t", direction="nearest", tolerance=0.4)
        distances = np.full(60, np.nan)
        distances[one.left] = one.values[:, 0]
        np.testing.assert_array_equal(distances, np.abs(asof["at_x"] - asof["at_y"]))


def test_one_criterion__keeps_all_at_one_rounded_distance():
    """Three different numbers, and float64 has one distance for all of them."""
    best = bestmatch_join([[1e17]], [[1.0], [2.0], [3.0], [-1e17]], math.inf)
    assert best.right.tolist() == [0, 1, 2]


@pytest.mark.parametrize("how", MATCH_HOW)
@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (3, 0)])
def test_bestmatch_join__of_an_empty_side_has_no_pairs(n, m, how):
    for d, eps in ((1, 1.0), (2, 1.0), (2, math.inf)):
        best = bestmatch_join(np.zeros((n, d)), np.zeros((m, d)), eps, how)
        lonely = (n if how in ("left", "outer") else 0) + (m if how in ("right", "outer") else 0)
        assert best.best_for.tolist() == [0] * lonely
        assert best.values.shape == (lonely, d)


def test_bestmatch_join__of_one_row_against_many_and_back():
    many = random_table(7, 20_000, 2)
    assert set(bestmatch_join([[0.5, 0.5]], many, 0.1).left.tolist()) == {0}
    nearest = bestmatch_join(many, [[0.5, 0.5]], 0.1, "right", take="one")
    assert len(nearest.left) == 1


def test_bestmatch_join__of_equal_rows_is_refused_with_the_number():
    """All pairs are candidates, and each is as good as each other one."""
    same = np.ones((300, 2))
    assert len(bestmatch_join(same, same, 1.0).left) == 300 * 300
    with pytest.raises(BudgetError, match=r"more than max_candidates = 80000 candidates; about 9e\+04"):
        bestmatch_join(same, same, 1.0, max_candidates=80_000)
    with pytest.raises(BudgetError, match="90,000 pairs are nearest, more than max_candidates = 80000, as"):
        bestmatch_join(same[:, :1], same[:, :1], 1.0, max_candidates=80_000)
    with pytest.raises(BudgetError, match="300 x 300 = 90,000 pairs are candidates, more than max_cand"):
        bestmatch_join(same, same, math.inf, max_candidates=80_000)


def test_bestmatch_join__that_is_surely_too_large_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setattr(Filter, "_join", lambda *_: pytest.fail("the join has begun"))
    same = np.ones((300, 2))
    with pytest.raises(BudgetError, match=r"more than max_candidates = 8000 candidates; about 9e\+04"):
        bestmatch_join(same, same, 1.0, max_candidates=8_000)


@pytest.mark.parametrize("how", ["left", "right", "outer", "inner"])
def test_bestmatch_join__holds_no_more_than_so_many_that_are_best_for_their_rows(monkeypatch, how):
    monkeypatch.setattr(batch, "MAX_KEPT", 900)
    assert len(bestmatch_join(np.ones((30, 2)), np.ones((30, 2)), 1.0, how).left) == 900
    with pytest.raises(BudgetError, match="more than 900 candidates are best for their rows"):
        bestmatch_join(np.ones((30, 2)), np.ones((31, 2)), 1.0, how)
    monkeypatch.setattr(candidates, "BLOCK_PAIRS", 100)  # also of many blocks
    monkeypatch.setattr(filter_module, "_FIRST_ROWS", 4)
    with pytest.raises(BudgetError, match="more than 900 candidates are best for their rows"):
        bestmatch_join(np.ones((30, 2)), np.ones((31, 2)), 1.0, how)


def test_own_order__is_asked_within_the_budget():
    orders = [Closest(0, eps=1.0), OwnOrder(lambda x, y: x[1][:, 0] <= y[1][:, 0])]
    with pytest.raises(
        BudgetError, match="asked 27000 times, more than 20000; the largest row has 30 candidates"
    ):
        bestmatch_join(np.ones((30, 1)), np.ones((30, 1)), orders=orders, max_candidates=20_000)


def test_eps_0__takes_zeros_of_either_sign_as_equal_and_nothing_else():
    best = bestmatch_join([[0.0, 1.0]], [[-0.0, 1.5], [5e-324, 1.0]], [0.0, 1.0])
    assert best.right.tolist() == [0]
    both = [Closest((0, 1), eps=0.0), Closest(2)]
    best = bestmatch_join([[0.0, 1.0, 7.0]], [[0.0, 1.0, 9.0], [1e-200, 1.0, 7.0]], orders=both)
    assert (best.right.tolist(), best.values.tolist()) == ([0], [[0.0, 2.0]])


def test_haversine__goes_around_the_pole_and_across_the_antimeridian():
    orders = [Closest((0, 1), eps=50.0, metric="haversine"), Closest(2, eps=1.0)]
    left = [[0.0, 179.9, 0.0], [89.9, 0.0, 0.0], [-90.0, 10.0, 0.0]]
    right = [[0.0, -179.9, 0.0], [89.9, 180.0, 0.0], [-90.0, -100.0, 0.0]]
    best = bestmatch_join(left, right, orders=orders)
    assert (best.left.tolist(), best.right.tolist()) == ([0, 1, 2], [0, 1, 2])


def test_filter__loses_no_pair_at_the_border_of_large_and_small_numbers():
    random = np.random.default_rng(11)
    for scale, offset in itertools.product((1e-9, 0.1, 1.0, 1e9), (0.0, 1.7e9, -1e12)):
        left = offset + random.integers(0, 40, (60, 2)) * scale
        right = offset + random.integers(0, 40, (60, 2)) * scale
        eps = np.abs(left[0] - right[0]) + scale * 3
        matrix = (np.abs(left[:, None] - right) <= eps).all(axis=2)
        found = candidates.within(left, right, [Closest(0, eps=eps[0]), Closest(1, eps=eps[1])])
        assert list(zip(found.left, found.right, strict=True)) == list(map(tuple, np.argwhere(matrix)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eps": 1.0, "how": "semi"}, "how must be one of inner, left, right, outer, not 'semi'"),
        ({"eps": 1.0, "take": "two"}, "take must be one of all, one, not 'two'"),
        ({}, "pass either eps"),
        ({"eps": 1.0, "orders": [Closest(0)]}, "pass either eps"),
        ({"eps": [1.0]}, r"eps must be one number, or one per column \(2\)"),
        ({"eps": -1.0}, "eps must be a number of at least 0, which may be infinite, not"),
        ({"eps": math.nan}, "eps must be a number of at least 0"),
        ({"eps": [[1], [1, 2]]}, "eps must have rows of one length"),
        ({"orders": []}, "at least one order"),
        ({"orders": Closest(0)}, r"orders must be a list of orders, .* not Closest\(columns=\(0,\)"),
        ({"orders": ["nearest"]}, "orders must be Closest, Own, Subset or OwnOrder, not 'nearest'"),
        ({"orders": [Closest(2)]}, "needs column 2, the last one is 1"),
        ({"orders": [Closest(0, eps=1), Own(lambda x, _: x[:1, 0])]}, "must return 4 numbers, one per pair"),
        ({"orders": [Closest(0, eps=1), Own(lambda x, _: x[:, 0] * np.nan)]}, "returned NaN for 4 pairs"),
        (
            {"orders": [Closest(0, eps=1), Own(lambda x, _: x[:, 0].astype(int) + 2**53)]},
            "must return numbers that float64 can hold, not 9007199254740993",
        ),
        (
            {"orders": [Own(lambda x, _: x[:, 0].astype(np.longdouble))]},
            "must return 4 numbers, .* not float128",
        ),
        (
            {"orders": [Own(lambda x, _: np.ma.array(x[:, 0], mask=x[:, 0] > 0))]},
            "returned must have no masked values, not 4",
        ),
        ({"orders": [Closest(0, eps=1), OwnOrder(lambda _, __: 1)]}, "booleans"),
        ({"orders": [Subset([1, 2], [1, 2])]}, "left_masks must be unsigned integers"),
        ({"orders": [Subset(np.ones((2, 1), np.uint8), np.ones((2, 2), np.uint8))]}, "as many words"),
        ({"eps": 1.0, "max_candidates": -1}, "max_candidates must be a whole number, at least 0"),
    ],
)
def test_bestmatch_join__refuses_what_it_cannot_take(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        bestmatch_join(np.ones((2, 2)), np.ones((2, 2)), **arguments)


@pytest.mark.parametrize("order", [Own, OwnOrder])
def test_own_orders__refuse_what_is_no_function(order):
    with pytest.raises(ArgumentError, match=f"of {order.__name__} must be a function of pairs, not 5"):
        order(5)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_bestmatch_join__refuses_coordinates_that_are_no_numbers(bad):
    with pytest.raises(ArgumentError, match="right must be finite; row 1, column 0"):
        bestmatch_join([[0.0]], [[0.0], [bad]], 1.0)


def test_bestmatch_join__refuses_integers_that_float64_would_round():
    """Nanoseconds of today: two clocks a nanosecond apart would be equal."""
    now = np.array([[1_700_000_000_000_000_001]])
    with pytest.raises(ArgumentError, match="left must be integers that float64 can hold; row 0, column 0"):
        bestmatch_join(now, now, 5.0)


def test_closest__refuses_what_no_metric_decides():
    with pytest.raises(ArgumentError, match="needs 2 coordinates"):
        Closest(0, metric="haversine")
    with pytest.raises(ArgumentError, match="eps = 0 has no exact meaning for haversine"):
        Closest((0, 1), eps=0, metric="haversine")
    for columns in ((), True, (0, np.True_), None, 1.5, "a", -1):
        with pytest.raises(ArgumentError, match="columns must be numbers of columns"):
            Closest(columns)
    with pytest.raises(ArgumentError, match="left: haversine needs a latitude from -90 to 90"):
        bestmatch_join([[91.0, 0.0]], [[0.0, 0.0]], orders=[Closest((0, 1), eps=5.0, metric="haversine")])


def test_best_of__takes_candidates_in_any_order():
    left, right = np.round(random_table(8, 60, 2), 1), np.round(random_table(9, 60, 2), 1)
    found = candidates.within(left, right, [Closest(0, eps=0.3), Closest(1, eps=0.3)])
    at = np.random.default_rng(10).permutation(len(found))
    for by in ("left", "right", "all"):
        assert best_of(found.take(at), by).tolist() == best_of(found, by)[at].tolist()
    with pytest.raises(ArgumentError, match="by must be left, right or all, not 'both'"):
        best_of(found, "both")


def test_counters__say_what_was_done():
    counters = {"best": 1}
    bestmatch_join([[0.0, 0.0], [50.0, 0.0]], [[1.0, 1.0], [2.0, 0.0]], 2.0, "outer", counters=counters)
    assert counters == {
        "candidates": 2,
        "within": 2,
        "comparisons": 1,
        "best": 3,
        "unmatched_left": 1,
        "unmatched_right": 0,
    }


def test_counters__grow_with_the_candidates_not_with_their_square():
    """Three criteria, 20 candidates per row."""
    counters = {}
    n = 5000
    eps = (20 / n) ** (1 / 3) / 2
    bestmatch_join(random_table(12, n, 3), random_table(13, n, 3), eps, counters=counters)
    assert 15 * n < counters["within"] == counters["candidates"]
    assert counters["comparisons"] <= 6 * counters["within"]
