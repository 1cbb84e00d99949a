"""The self join equals brute force: no pair missed, none twice, none too far."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import BudgetError
from epsjoin.kernels.sweep import window
from epsjoin.local.join.arrays import iter_self_join, self_join
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.split_rules.own_rule import OwnRule
from epsjoin.local.plan.split_rules.rules import max_split_level, max_splits_per_level
from epsjoin.local.plan.spread import replicate
from oracles import examples
from oracles import join as twin
from tests.local.join.brute_force import SEEDS, assert_is_brute_force, found_pairs, join_by


@examples(250)
@given(
    st.sampled_from(twin.KINDS), st.integers(0, 60), st.integers(1, 8), st.sampled_from([1, 2, 7, 64]), SEEDS
)
def test_self_join__planned_is_brute_force(kind, n, d, n_parts, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    assert_is_brute_force(points, eps, n_parts=n_parts, replication_budget=1e9)


@examples(250)
@given(
    st.sampled_from(twin.KINDS),
    st.integers(0, 60),
    st.integers(1, 6),
    st.sampled_from([1, 2, 7, 64]),
    st.integers(0, 6),
    st.integers(0, 62),
    st.sampled_from([1.0, 2.0, 4.0, 5.5, 64.0]),
    SEEDS,
)
def test_self_join__regular_is_brute_force(kind, n, d, n_parts, k, msl, budget, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    assert_is_brute_force(
        points, eps, cuts="regular", n_parts=n_parts, k=k, msl=msl, replication_budget=budget
    )


@pytest.mark.parametrize("kind", twin.KINDS)
@pytest.mark.parametrize(("k", "msl"), [(0, 0), (2, 62)], ids=["MSJ", "ORE"])
def test_self_join__by_msj_and_ore_is_brute_force(kind, k, msl):
    points, eps = twin.awkward_points(kind, 80, 2, 11)
    if kind in ("far", "tiny_eps", "mixed_scale"):
        points = points[:30]
    for n_parts in (1, 5):
        assert_is_brute_force(
            points, eps, cuts="regular", n_parts=n_parts, k=k, msl=msl, replication_budget=math.inf
        )


@pytest.mark.parametrize("d", [16, 64, 100, 512])
@pytest.mark.parametrize("cuts", ["planned", "regular"])
def test_self_join__in_many_dimensions_is_brute_force(d, cuts):
    random = np.random.default_rng(d)
    centres = random.random((8, d))
    points = centres[random.integers(0, 8, 60)] + random.normal(size=(60, d)) * 0.02
    eps = 0.02 * math.sqrt(2 * d)
    assert 100 < len(twin.brute_force(points, eps)) < 1000
    for n_parts in (1, 7):
        assert_is_brute_force(points, eps, cuts=cuts, n_parts=n_parts, k=3, msl=1)


@pytest.mark.parametrize("cuts", ["planned", "regular"])
@pytest.mark.parametrize("eps", [1.0, 5.0])
def test_self_join__counts_pairs_at_exactly_eps(cuts, eps):
    side = np.arange(7.0)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    pairs = join_by(points, eps, cuts=cuts, n_parts=5, k=2, msl=9)
    at_eps = int((pairs.distance == eps).sum())
    # 3-4-5: 12 vectors of length 5; along the axes 84 neighbours at 1 and 28 pairs at 5
    assert at_eps == (84 if eps == 1.0 else 28 + 2 * 2 * 4 * 3)


def test_self_join__loses_no_tie_on_a_cut():
    # two cubes that touch in one point, which lies on the first cut
    points = np.array([[0.0], [0.375], [0.625], [1.0]])
    for k in (0, 1):
        assert found_pairs(join_by(points, 0.25, cuts="regular", k=k)) == [(1, 2)]


@examples(60)
@given(st.sampled_from(["planned", "regular"]), st.integers(0, 5), SEEDS)
def test_self_join__does_not_depend_on_rows_ids_parts_or_seed(cuts, n_cuts, seed):
    random = np.random.default_rng(seed)
    points, eps = twin.awkward_points("hot", 60, 3, seed)
    ids = random.choice(10**6, 60, replace=False) - 500_000
    reference = join_by(points, eps, ids=ids)
    order = random.permutation(60)
    again = join_by(
        points[order],
        eps,
        ids=ids[order],
        cuts=cuts,
        n_parts=2**n_cuts,
        sample_rows=int(random.integers(1, 70)),
        seed=seed,
        replication_budget=8.0,
    )
    assert (reference.left < reference.right).all()
    for first, second in zip(reference, again, strict=True):
        assert (first == second).all()


@pytest.mark.parametrize(("d", "cuts"), [(4, None), (4, Cuts(n_parts=8)), (4, Cuts("regular")), (40, None)])
def test_self_join__of_rows_that_share_ids_has_the_pairs_of_all_rows(d, cuts):
    random = np.random.default_rng(5)
    points, ids = random.random((300, d)), random.integers(0, 60, 300)
    eps = {4: 0.3, 40: 2.2}[d]
    rows, found = self_join(points, eps), self_join(points, eps, ids=ids, cuts=cuts)
    both = np.sort(np.stack((ids[rows.left], ids[rows.right])), axis=0)
    order = np.lexsort((rows.distance, both[1], both[0]))
    assert len(rows.left) > 300
    assert (both[0] == both[1]).any()
    assert (np.stack(found[:2]) == both[:, order]).all()
    assert (found.distance[np.lexsort((found.distance, *found[1::-1]))] == rows.distance[order]).all()


@pytest.mark.parametrize("cuts", ["planned", "regular"])
def test_self_join__of_mirrored_points_is_the_same(cuts):
    points, eps = twin.awkward_points("lattice", 60, 3, 4)
    pairs = join_by(points, eps, cuts=cuts, n_parts=4)
    mirrored = join_by(-points[:, ::-1], eps, cuts=cuts, n_parts=4)
    assert found_pairs(pairs) == found_pairs(mirrored)


@pytest.mark.parametrize("cuts", ["planned", "regular"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_self_join__takes_few_points(cuts, n):
    pairs = join_by(np.zeros((n, 4)), 0.5, cuts=cuts, n_parts=3)
    assert found_pairs(pairs) == [(0, 1)][: n // 2]
    assert pairs.left.dtype == pairs.right.dtype == np.int64
    assert pairs.distance.dtype == np.float64


def test_iter_self_join__keeps_to_its_batches():
    points = np.zeros((60, 2))
    batches = list(iter_self_join(points, 1.0, batch_rows=100))
    assert max(len(batch.left) for batch in batches) <= 100
    assert len(batches) <= 1770 / (100 - 31) + 1
    found = [pair for batch in batches for pair in found_pairs(batch)]
    assert sorted(found) == [(i, j) for i in range(60) for j in range(i + 1, 60)]


def test_self_join__is_refused_beyond_max_pairs():
    points = np.zeros((20, 2))
    assert len(join_by(points, 1.0, max_pairs=190).left) == 190
    with pytest.raises(BudgetError, match="more than max_pairs = 189 pairs"):
        join_by(points, 1.0, max_pairs=189)


def test_self_join__of_more_rows_than_one_sweep_takes_says_to_cut_it(monkeypatch):
    points = np.random.default_rng(0).random((200, 4))
    expected = self_join(points, 0.2)
    monkeypatch.setattr(window, "MAX_ROWS", 199)
    with pytest.raises(
        BudgetError, match=r"one sweep takes 199 rows at most, not 200; .* cuts=epsjoin\.Cuts"
    ):
        self_join(points, 0.2)
    found = self_join(points, 0.2, cuts=Cuts(n_parts=3, sample_rows=100))
    assert np.array_equal(found, expected)


def test_self_join__counts_its_work():
    counters: dict[str, int] = {"pairs": 1}
    points = np.random.default_rng(0).random((300, 2))
    pairs = join_by(points, 0.05, n_parts=4, counters=counters)
    assert counters["pairs"] == len(pairs.left) + 1
    assert counters["rows"] > 300
    assert counters["candidates"] >= counters["distance_computations"] >= len(pairs.left)
    assert set(counters) == {
        *("rows", "carried_rows", "candidates", "distance_computations", "largest_stack", "pairs")
    }


def test_self_join__unlimited_splitting_is_refused_before_memory_ends():
    points = np.random.default_rng(0).random((30, 60))
    with pytest.raises(BudgetError, match="more than 1048576 rows"):
        join_by(points, 0.45, "chebyshev", cuts="regular", k=60, msl=62, replication_budget=math.inf)


RULES = {
    "or": Cuts("regular", rule="k<=1 or level<=1", replication_budget=9.0, n_parts=3),
    "not": Cuts("regular", rule="not k<=1", replication_budget=7.9),
    "not, local": Cuts("regular", rule="not level<1", replication_budget=5.0, decisions="local", n_parts=2),
    "own": Cuts(
        "regular", rule=OwnRule(lambda level, _crossed, rows: (level + rows) % 2 == 0), replication_budget=6.0
    ),
    "own, local": Cuts(
        "regular", rule=OwnRule(lambda *_: True), replication_budget=11.0, decisions="local", n_parts=4
    ),
    "own and not": Cuts(
        "regular",
        rule=~OwnRule(lambda _level, crossed, _rows: crossed > 2) & ~max_split_level(0)
        | max_splits_per_level(1),
        replication_budget=4.0,
    ),
}


@pytest.mark.parametrize("rule", RULES)
@examples(25)
@given(st.sampled_from(twin.KINDS), st.integers(0, 50), st.integers(1, 4), st.sampled_from([1, 2]), SEEDS)
def test_self_join__by_any_rule_is_brute_force_within_the_budget(rule, kind, n, d, n_jobs, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    cuts = RULES[rule]
    counters: dict[str, int] = {}
    pairs = self_join(points, eps, cuts=cuts, n_jobs=n_jobs, counters=counters)
    assert found_pairs(pairs) == sorted(twin.brute_force(points, eps))
    budget = math.floor(cuts.replication_budget)
    assert n <= counters["rows"] - counters["carried_rows"] <= budget * n
    plan = plan_join(points, np.arange(n), n, eps, get_metric("euclidean"), cuts)
    rows = replicate(points, np.arange(n), plan)
    assert counters["rows"] == len(rows.row)
    if cuts.n_parts == 1:
        assert np.bincount(rows.row, minlength=n).max(initial=0) <= budget


@pytest.mark.parametrize("rule", RULES)
def test_self_join__by_any_rule_spends_its_budget(rule):
    counters: dict[str, int] = {}
    self_join(np.random.default_rng(7).random((200, 4)), 0.2, cuts=RULES[rule], counters=counters)
    assert counters["rows"] - counters["carried_rows"] > 1.5 * 200


def test_self_join__allows_no_pairs():
    assert len(self_join([[0.0], [9.0]], 1.0, max_pairs=0).left) == 0
    with pytest.raises(
        BudgetError, match=r"more than max_pairs = 0 pairs within eps = 1; about 1 are expected"
    ):
        self_join([[0.0], [1.0]], 1.0, max_pairs=0)
