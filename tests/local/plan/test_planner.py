"""The plan: its promises about replicas, parts, text form and expectations."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels.codes import deepest_level
from epsjoin.kernels.plan.cuts import HASH_AXIS
from epsjoin.local.join.parts import join_part
from epsjoin.local.metric import get_metric
from epsjoin.local.plan import planner
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.spread import replicate
from epsjoin.local.plan.tree.grow_tree import grow_tree
from epsjoin.local.sweep.threads import in_ranges
from oracles import INTERPRETED, examples, papers
from oracles import join as twin
from tests import open_sets
from tests.local.plan.plans import EUCLIDEAN, plan_for

CUTS = st.sampled_from(["planned", "regular"])


def join(points, ids, plan, counters=None):
    """All pairs of all parts, as they come."""
    rows = replicate(points, ids, plan)
    found = []
    for part in range(plan.n_parts):
        here = rows.part == part
        of_part = rows.row[here]
        for batch in join_part(points[of_part], ids[of_part], rows.key[here], part, plan, 50, counters):
            found += zip(batch.left.tolist(), batch.right.tolist(), strict=True)
    return found


def test_plan_join__regular_cuts_end_at_the_deepest_level_that_a_cube_reaches():
    points = np.random.default_rng(0).random((300, 8))
    plan = plan_for(points, 0.02, cuts="regular", k=0, msl=0, decisions="global")
    key = replicate(points, np.arange(300), plan).key
    bits = key[:, -2].astype(int) * 256 + key[:, -1]
    assert plan.levels == -(-int(bits.max()) // 8)
    assert plan.levels < deepest_level(plan.width, 0.02, 8) == 5
    # rows that the plan has not seen may belong deeper (in the middle of a cell): they end at the last one
    both = np.concatenate((points, np.tile(plan.low + 16.5 / 32.0 * plan.width, (2, 1))))
    assert (300, 301) in join(both, np.arange(302), plan)


def test_plan_join__cuts_along_a_principal_axis_and_finds_the_same_pairs():
    random = np.random.default_rng(1)
    points = np.outer(random.random(3000), np.ones(5)) + random.normal(0.0, 0.05, (3000, 5))
    plan = plan_for(points, 0.1, n_parts=8)
    assert plan.n_parts == 8
    assert plan.tree.axis.max() >= 5
    found = sorted(join(points, np.arange(3000), JoinPlan.from_json(plan.to_json())))
    assert found == sorted(map(tuple, cKDTree(points).query_pairs(0.1, output_type="ndarray").tolist()))


@examples(80)
@given(
    st.sampled_from(["planned", "regular"]),
    st.sampled_from(twin.KINDS),
    st.integers(0, 50),
    st.integers(1, 5),
    st.sampled_from([1, 7]),
    st.integers(0, 10**6),
)
def test_join_plan__comes_back_from_json_bit_for_bit(cuts, kind, n, d, n_parts, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    k, msl = [(2, 2), (None, None), (3, None), (None, 1)][seed % 4]
    budget = [4.0, math.inf][seed // 4 % 2]
    plan = plan_for(points, eps, cuts=cuts, n_parts=n_parts, replication_budget=budget, k=k, msl=msl)
    again = JoinPlan.from_json(plan.to_json())
    assert again.to_json() == plan.to_json()
    ids = np.arange(n, dtype=np.int64)
    for first, second in zip(replicate(points, ids, plan), replicate(points, ids, again), strict=True):
        assert first.dtype == second.dtype
        assert (first == second).all()
    assert sorted(join(points, ids, again)) == sorted(twin.brute_force(points, eps))


def test_join_plan__refuses_other_texts():
    for text in ("", "{}", "[]", '{"tree": 3}'):
        with pytest.raises(ArgumentError, match="no join plan"):
            JoinPlan.from_json(text)


@examples(60)
@given(CUTS, st.sampled_from(twin.KINDS), st.integers(1, 5), st.integers(0, 10**6))
def test_replicate__gives_the_same_for_any_division_of_the_input(cuts, kind, d, seed):
    points, eps = twin.awkward_points(kind, 40, d, seed)
    random = np.random.default_rng(seed)
    ids = random.permutation(40).astype(np.int64)
    wished = Cuts(cuts, n_parts=5, k=[2, None][seed % 2])
    plan = plan_join(points[:25], ids[:25], 40, eps, EUCLIDEAN, wished)

    def rows_of(chosen):
        rows = replicate(points[chosen], ids[chosen], plan)
        assert (np.diff(rows.part) >= 0).all()
        keys = [np.asarray(key).tobytes() for key in rows.key]
        return sorted(zip(ids[chosen][rows.row].tolist(), rows.part.tolist(), keys, strict=True))

    whole = rows_of(np.arange(40))
    order = random.permutation(40)
    assert sorted(rows_of(order[:13]) + rows_of(order[13:14]) + rows_of(order[14:])) == whole


@examples(60)
@given(CUTS, st.sampled_from(twin.KINDS), st.integers(0, 45), st.integers(0, 10**6))
def test_plan_join__on_any_sample_is_exact_for_all_rows(cuts, kind, m, seed):
    # rows outside the sample's box, samples of none or one, all equal
    points, eps = twin.awkward_points(kind, 45, 3, seed)
    sample = np.random.default_rng(seed).permutation(45)[:m]
    ids = np.arange(45, dtype=np.int64)
    k, msl = [(3, 3), (None, None), (3, None), (None, 3)][seed % 4]
    plan = plan_join(points[sample], ids[sample], 45, eps, EUCLIDEAN, Cuts(cuts, n_parts=6, k=k, msl=msl))
    assert sorted(join(points, ids, plan)) == sorted(twin.brute_force(points, eps))


@functools.cache
def work_of_paper(k: int, msl: int) -> tuple[np.ndarray, papers.Work]:
    points = np.random.default_rng(2).random((250, 2))
    return points, papers.gess(points, 0.06 * (1 + 1e-12), k, msl, decisions="inside")


@pytest.mark.parametrize("n_parts", [1, 2, 7, 64])
@pytest.mark.parametrize(("k", "msl", "most_parts"), [(0, 0, 55), (1, 1, 63), (2, 62, 64)])
def test_join_part__under_regular_cuts_compares_the_same_rows_in_any_number_of_parts(
    n_parts, k, msl, most_parts
):
    points, expected = work_of_paper(k, msl)
    plan = plan_for(points, 0.06, cuts="regular", n_parts=n_parts, k=k, msl=msl, replication_budget=math.inf)
    counters: dict[str, int] = {}
    join(points, np.arange(250), plan, counters)
    assert counters["rows"] - counters["carried_rows"] == expected.rows
    assert counters["candidates"] == expected.comparisons == plan.expected_candidates
    assert counters["distance_computations"] == expected.near_comparisons
    assert counters["pairs"] == len(expected.pairs) == plan.expected_pairs
    assert counters["rows"] == plan.expected_rows
    assert counters["largest_stack"] <= expected.largest_stack
    if n_parts == 1:
        assert counters["largest_stack"] == expected.largest_stack
    assert plan.n_parts == min(n_parts, most_parts), "equal codes are never divided"


@pytest.mark.parametrize("n_parts", [1, 2, 7, 64])
@pytest.mark.parametrize("kind", ["uniform", "hot", "few"])
def test_join_part__under_planned_cuts_computes_each_near_pair_once(n_parts, kind):
    points, eps = twin.awkward_points(kind, 200, 3, 2)
    plan = plan_for(points, eps, n_parts=n_parts, replication_budget=20.0)
    counters: dict[str, int] = {}
    join(points, np.arange(200), plan, counters)
    near = ((points[:, None] - points) ** 2).sum(axis=2) <= (eps * (1 + 1e-4)) ** 2
    assert counters["pairs"] <= counters["distance_computations"] <= (near.sum() - 200) // 2
    assert counters["candidates"] == pytest.approx(plan.expected_candidates)
    assert counters["rows"] == plan.expected_rows
    assert plan.n_parts == n_parts or kind != "uniform"


def test_plan_join__expects_from_a_sample_what_comes():
    points = np.random.default_rng(0).normal(size=(20_000, 3))
    ids = np.arange(20_000)
    sample = np.random.default_rng(1).permutation(20_000)[:4000]
    for cuts in ("planned", "regular"):
        plan = plan_join(
            points[sample], ids[sample], 20_000, 0.1, EUCLIDEAN, Cuts(cuts, n_parts=8, k=2, msl=3)
        )
        counters: dict[str, int] = {}
        rows = replicate(points, ids, plan)
        for part in range(plan.n_parts):
            here = rows.part == part
            row = rows.row[here]
            for _ in join_part(points[row], ids[row], rows.key[here], part, plan, counters=counters):
                pass
        assert plan.n_parts == 8
        assert plan.expected_rows == pytest.approx(counters["rows"], rel=0.05)
        assert plan.expected_pairs == pytest.approx(counters["pairs"], rel=0.15)
        assert plan.expected_candidates == pytest.approx(counters["candidates"], rel=0.5)
        sizes = np.bincount(rows.part)
        assert sizes.max() < 2 * sizes.mean()


@pytest.mark.parametrize(("n_parts", "tree_rows"), [(8, 8_000), (36, 9_000), (37, 18_000)])
def test_plan_join__fits_the_tree_to_some_rows_of_a_large_sample(n_parts, tree_rows, monkeypatch):
    points, ids = np.random.default_rng(0).random((18_000, 2)), np.arange(18_000)
    fitted = []

    def counting(embedded, *arguments, **named):
        fitted.append(len(embedded))
        return grow_tree(embedded, *arguments, **named)

    monkeypatch.setattr(planner, "grow_tree", counting)
    plan = plan_join(points, ids, 18_000, 0.01, EUCLIDEAN, Cuts(n_parts=n_parts))
    assert fitted == [tree_rows]
    counters: dict[str, int] = {}
    join(points, ids, plan, counters)
    assert plan.expected_rows == pytest.approx(counters["rows"], rel=0.01)
    assert plan.expected_candidates == pytest.approx(counters["candidates"], rel=0.1)


@pytest.mark.parametrize("cuts", ["planned", "regular"])
def test_plan_join__makes_no_more_parts_than_have_work(cuts):
    points, ids = np.random.default_rng(0).random((2000, 2)), np.arange(2000)

    def parts(eps: float, n_rows: int = 2000, **wished: float) -> int:
        given = Cuts(cuts, 8, k=1, msl=3, replication_budget=math.inf, **wished)
        return plan_join(points, ids, n_rows, eps, EUCLIDEAN, given).n_parts

    assert parts(1e-4) == 8
    assert parts(1e-4, least_part_seconds=0.05) == 1
    assert parts(1e-4, 600_000, least_part_seconds=0.05) == 2  # 154 ns for each row
    assert parts(1e-4, 3_000_000, least_part_seconds=0.05) == 8
    assert parts(1e-4, least_part_seconds=0.05, most_part_rows=500) > 4
    assert parts(1e-4, least_part_seconds=1e-320) == 8
    assert parts(0.2, least_part_seconds=0.002) > 2  # 25 ns for each of some 250,000 pairs
    for wrong in (-1.0, math.inf, math.nan):
        with pytest.raises(ArgumentError, match="least_part_seconds must be finite and at least 0"):
            Cuts(least_part_seconds=wrong)


@pytest.mark.parametrize("budget", [1.0, 1.2, 2.0, 4.0])
def test_plan_join__keeps_the_sample_within_the_budget(budget):
    points = np.random.default_rng(0).random((400, 4))
    planned = plan_for(points, 0.4, n_parts=64, replication_budget=budget)
    assert planned.expected_rows <= budget * 400
    regular = plan_for(points, 0.4, cuts="regular", k=4, msl=62, replication_budget=budget)
    rows = replicate(points, np.arange(400), regular)
    assert np.bincount(rows.row).max() <= budget


def test_plan_join__takes_no_outliers_for_the_most_work():
    # a sweep of all rows draws its outliers in, here the islands, where they meet; parts do not
    points = open_sets.read("landmarks")
    cuts = Cuts(n_parts=400)
    rows = cuts.sample(len(points))
    plan = plan_join(points[rows], rows, len(points), 0.0123457, get_metric("euclidean"), cuts)
    assert plan.n_parts == 400
    assert plan.expected_part_rows < 3 * len(points) / 400


def test_plan_join__is_the_same_twice():
    points = np.random.default_rng(0).random((5000, 3))
    first, second = (plan_for(points, 0.15, n_parts=9, seed=5).to_json() for _ in range(2))
    assert first == second


def test_plan_join__is_the_same_in_any_number_of_threads():
    # turned coordinates are chosen, axes and the hash are cut, and there are more leaves than threads
    random = np.random.default_rng(1)
    points = np.outer(random.random(3000), np.ones(5)) + random.normal(0.0, 0.05, (3000, 5))
    points[:800] = 0.4
    ids, cuts = np.arange(3000), Cuts("planned", n_parts=12)
    plan = plan_join(points, ids, 10**6, 0.1, EUCLIDEAN, cuts)
    for n_threads in (2, 3, 30):
        ranges = in_ranges(n_threads, are_long=True)
        again = plan_join(points, ids, 10**6, 0.1, EUCLIDEAN, cuts, ranges=ranges)
        assert again.to_json() == plan.to_json(), n_threads
    assert plan.n_parts == 12
    assert {HASH_AXIS, 5} <= set(plan.tree.axis[plan.tree.part < 0].tolist())


@pytest.mark.filterwarnings("error")
@pytest.mark.skipif(INTERPRETED, reason="of uncompiled kernels, NumPy warns")
@pytest.mark.parametrize("n_parts", [1, 4])
def test_plan_join__of_coordinates_whose_sums_overflow_warns_of_nothing(n_parts):
    points = np.random.default_rng(0).random((50, 3))
    points[0], points[-1] = 1.7e308, -1.7e308
    assert plan_for(points, 0.1, n_parts=n_parts).n_parts <= n_parts
    points = np.array([[-1.7e308], [-1.7e308], [1.7e308]])
    assert plan_for(points, 0.1, n_parts=n_parts).n_parts <= n_parts


def test_plan_join__cuts_what_no_axis_can_cut_by_hash():
    points = np.full((100, 2), 0.5)
    plan = plan_for(points, 0.1, n_parts=4)
    assert plan.tree is not None
    assert plan.n_parts == 4
    counters: dict[str, int] = {}
    found = join(points, np.arange(100), plan, counters)
    assert len(found) == len(set(found)) == 4950
    assert counters["carried_rows"] > 0
    assert counters["candidates"] == 4950


def test_replicate__names_the_coordinates_it_wants():
    plan = plan_for(np.zeros((3, 2)), 0.1)
    with pytest.raises(ArgumentError, match=r"points must be \(n, 2\)"):
        replicate(np.zeros((3, 4)), np.arange(3), plan)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")  # of uncompiled kernels
def test_plan_join__of_a_space_wider_than_a_float_is_exact():
    points = np.array([[-1.7e308, 0.0], [1.7e308, 0.0], [1.7e308, 0.5]])
    for cuts in ("planned", "regular"):
        plan = plan_for(points, 1.0, cuts=cuts, n_parts=2)
        assert join(points, np.arange(3), plan) == [(1, 2)]


@pytest.mark.parametrize("kind", ["planned", "regular"])
def test_plan_join__makes_more_parts_until_none_is_too_large(kind: str) -> None:
    points = np.random.default_rng(9).random((4000, 2)) ** 3  # dense at one corner
    ids = np.arange(4000)
    wish = Cuts(kind, n_parts=2, replication_budget=8.0)
    free = plan_join(points, ids, 40_000, 0.002, EUCLIDEAN, wish)
    held = plan_join(points, ids, 40_000, 0.002, EUCLIDEAN, replace(wish, most_part_rows=3000))
    largest = np.bincount(replicate(points, ids, held).part).max() * 10
    assert free.n_parts == 2
    assert held.n_parts > 40_000 / 3000
    assert held.expected_part_rows == largest <= 3000 < free.expected_part_rows


def test_plan_join__refuses_parts_that_the_budget_does_not_allow() -> None:
    points = np.full((500, 2), 0.5)  # cut by the hash of the id alone, which carries rows
    wish = Cuts(n_parts=2, replication_budget=1.5, most_part_rows=100)
    refused = (
        r"the largest of . parts would have about .* rows, 100 are allowed, .*\(most_part_rows; in a run"
    )
    with pytest.raises(BudgetError, match=refused):
        plan_join(points, np.arange(500), 500, 0.1, EUCLIDEAN, wish)
