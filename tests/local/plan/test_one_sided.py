"""One-sided parts: a left row's part has every right row within eps of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin import Cuts, get_metric
from epsjoin.errors import ArgumentError
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.one_sided import hold, planned, reach
from epsjoin.local.plan.planner import plan_join
from oracles import examples
from oracles import join as twin


def plan_of(points: np.ndarray, eps: float, n_parts: int) -> JoinPlan:
    cuts = Cuts(n_parts=n_parts, replication_budget=math.inf)
    return plan_join(points, np.arange(len(points)), len(points), eps, get_metric("euclidean"), cuts)


def assert_parts_hold_pairs(points: np.ndarray, eps: float, plan: JoinPlan) -> None:
    ids = np.arange(len(points))
    held, reached = hold(points, ids, plan), reach(points, ids, plan)
    assert sorted(held.row.tolist()) == ids.tolist()
    part_of = dict(zip(held.row.tolist(), held.part.tolist(), strict=True))
    there = set(zip(reached.row.tolist(), reached.part.tolist(), strict=True))
    assert len(there) == len(reached.row)
    for i, j in twin.brute_force(points, eps):
        assert (i, part_of[j]) in there
        assert (j, part_of[i]) in there
    assert all((row, part_of[row]) in there for row in ids.tolist())


@examples(100)
@given(
    st.sampled_from(twin.KINDS),
    st.integers(2, 60),
    st.integers(1, 4),
    st.integers(2, 9),
    st.integers(0, 10**6),
)
def test_hold_and_reach__bring_together_all_pairs(kind: str, n: int, d: int, n_parts: int, seed: int) -> None:
    points, eps = twin.awkward_points(kind, n, d, seed)
    assert_parts_hold_pairs(points, eps, plan_of(points, eps, n_parts))


def test_hold_and_reach__bring_together_pairs_across_directions_and_hashes() -> None:
    random = np.random.default_rng(3)
    along = np.linspace(-1.0, 1.0, 120)[:, None] * np.ones((1, 6)) + random.normal(0, 0.01, (120, 6))
    step = np.linalg.norm(along[1] - along[0])
    plan = plan_of(along, 1.5 * step, 6)
    assert plan.tree is not None
    assert len(plan.tree.basis)
    assert_parts_hold_pairs(along, 1.5 * step, plan)
    equal = np.zeros((60, 2))
    plan = plan_of(equal, 1.0, 4)
    assert plan.tree is not None
    assert (plan.tree.axis[plan.tree.part < 0] < 0).all()
    assert plan.n_parts > 1
    assert_parts_hold_pairs(equal, 1.0, plan)


def test_hold__needs_planned_cuts() -> None:
    points = np.random.default_rng(0).random((20, 2))
    plan = replace(plan_of(points, 0.1, 2), tree=None)
    regular = Cuts("regular", n_parts=3, rule="k<=1", decisions="local")
    with pytest.raises(ArgumentError, match="found by planned cuts, not by regular ones"):
        hold(points, np.arange(20), plan)
    assert planned(regular).split_rule() is None
    assert (planned(regular).kind, planned(regular).n_parts) == ("planned", 3)
