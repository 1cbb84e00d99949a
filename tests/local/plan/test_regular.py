"""Regular cuts: the split rule that is chosen is the one of least work that fits the budget."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.spread import replicate
from oracles import papers
from tests.local.plan.plans import EUCLIDEAN, plan_for


def clustered(n, d, seed):
    random = np.random.default_rng(seed)
    return random.random((6, d))[random.integers(0, 6, n)] + random.normal(size=(n, d)) * 0.02


SMALL_SETS = {  # points, eps, what is chosen when each row stands for 1 and for 100
    "a square": (np.random.default_rng(0).random((200, 2)), 0.03, [(1, 0), (2, 2)]),
    "uniform 8-d": (np.random.default_rng(1).random((60, 8)), 0.11, [(0, 0), (2, 0)]),
    "clusters 16-d": (clustered(40, 16, 2), 0.05, [(0, 0), (0, 0)]),
    "copies": (np.repeat(np.random.default_rng(3).random((40, 3)), 3, axis=0), 0.05, [(0, 0), (2, 1)]),
}


@pytest.mark.parametrize("name", SMALL_SETS)
def test_plan_join__chooses_the_rule_of_least_work(name):
    points, eps, expected = SMALL_SETS[name]
    n, d = points.shape
    all_work = [
        (papers.gess(points, eps * (1 + 1e-12), k, msl, 4, decisions="inside"), k, msl)
        for k in range(min(d, 5) + 1)
        for msl in (range(5) if k else (0,))
    ]
    for scale, chosen in zip((1, 100), expected, strict=True):
        _, k, msl, rows, comparisons = min(
            (250 * work.rows * scale + 2.5 * work.comparisons * scale**2, k, msl, work.rows, work.comparisons)
            for work, k, msl in all_work
            if work.rows <= (1 + 3 * 0.9) * n
        )
        plan = plan_join(points, np.arange(n), n * scale, eps, EUCLIDEAN, Cuts("regular"))
        assert (k, msl) == chosen
        assert str(plan.rule) == f"k<={k} and level<={msl}"
        assert plan.expected_rows == pytest.approx(rows * scale)
        assert plan.expected_candidates == comparisons * scale**2


@pytest.mark.parametrize(
    ("given", "found"),
    [({"k": 1}, "k<=1 and"), ({"msl": 3}, "and level<=3"), ({"k": 0}, "k<=0 and level<=0")],
)
def test_plan_join__keeps_a_given_k_or_msl(given, found):
    points = np.random.default_rng(0).random((2000, 3))
    plan = plan_for(points, 0.02, cuts="regular", **given)
    assert found in str(plan.rule)
    free = plan_for(points, 0.02, cuts="regular")
    assert found not in str(free.rule)
    assert "k<=5" not in str(free.rule)  # of three dimensions
    both = plan_for(points, 0.02, cuts="regular", k=4, msl=7)
    assert str(both.rule) == "k<=4 and level<=7"
    assert str(plan_for(points, 0.02, cuts="regular", rule="k<=2").rule) == "k<=2"


@pytest.mark.parametrize("n_parts", [1, 16, 300])
@pytest.mark.parametrize("budget", [1.0, 1.3, 2.0, 4.0, math.inf])
def test_plan_join__chooses_a_rule_within_the_budget_carried_rows_included(budget, n_parts):
    points = np.random.default_rng(0).random((1500, 5))
    plan = plan_for(points, 0.12, cuts="regular", n_parts=n_parts, replication_budget=budget)
    rows = replicate(points, np.arange(1500), plan)
    assert len(rows.row) == plan.expected_rows
    assert len(rows.row) <= (1 + (budget - 1) * 0.9) * 1500
    assert np.bincount(rows.row, minlength=1500).min() >= 1
    assert plan.n_parts > 1 or n_parts == 1 or budget < 2


def test_plan_join__chooses_among_all_rules_that_fit_when_parts_carry_rows():
    points = np.random.default_rng(0).random((800, 3))
    options = []
    for k in range(4):
        for msl in range(4) if k else [0]:
            plan = plan_for(points, 0.05, cuts="regular", n_parts=9, k=k, msl=msl)
            if plan.expected_rows <= (1 + 3 * 0.9) * 800:
                work = 250 * plan.expected_rows + 2.5 * plan.expected_candidates
                options.append((work, k, msl, plan.to_json()))
    assert plan_for(points, 0.05, cuts="regular", n_parts=9).to_json() == min(options)[-1]
    assert min(options)[1] > 0


def test_plan_join__chooses_a_rule_on_some_rows_of_a_large_sample():
    points = np.random.default_rng(0).random((12_000, 4))
    first, second = (plan_for(points, 0.04, cuts="regular", seed=3) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert first.sample_rows == 12_000
    by_hand = [
        plan_for(points, 0.04, cuts="regular", k=k, msl=msl)
        for k, msl in itertools.product((1, 2, 3), (1, 2))
    ]
    work = [250 * plan.expected_rows + 2.5 * plan.expected_candidates for plan in (first, *by_hand)]
    assert work[0] <= 1.1 * min(work)
