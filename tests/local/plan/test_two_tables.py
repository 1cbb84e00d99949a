"""Plans of two tables: what they expect is what the join of both counts, not that of all rows as one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from epsjoin import Cuts, get_metric
from epsjoin.local.join.parts import join_part
from epsjoin.local.plan.expectation.expected_parts import expect_parts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.spread import replicate
from epsjoin.local.plan.two_tables import SampledSides

RNG = np.random.default_rng(11)
CENTRES = RNG.random((30, 2))
POINTS = CENTRES[RNG.integers(0, 30, 33_000)] + RNG.normal(scale=0.03, size=(33_000, 2))
N_ROWS = (3_000, 30_000)
IS_RIGHT = np.arange(33_000) >= N_ROWS[0]
SAMPLE = np.r_[0:1_500, 3_000:8_000]
"""Half of the left rows and a sixth of the right ones, in random order."""
EPS, EUCLIDEAN = 0.01, get_metric("euclidean")


def counted(plan: JoinPlan) -> dict[str, int]:
    """Rows, candidates and pairs of the join of all rows by a plan, and the rows of its largest part."""
    replicas, counters = replicate(POINTS, np.arange(len(POINTS)), plan), {"largest": 0}
    ends = np.searchsorted(replicas.part, np.arange(plan.n_parts + 1))
    for part, (begin, end) in enumerate(pairwise(ends.tolist())):
        row, key = replicas.row[begin:end], replicas.key[begin:end]
        found = join_part(POINTS[row], row, key, part, plan, 1 << 18, counters, is_right=IS_RIGHT[row])
        for _ in found:
            pass
        counters["largest"] = max(counters["largest"], len(row))
    return counters


@pytest.mark.parametrize("cuts", [Cuts(n_parts=6), Cuts("regular", n_parts=4, k=2, msl=4)])
def test_plan_join__of_two_tables_expects_what_their_join_counts(cuts: Cuts) -> None:
    sample = POINTS[SAMPLE], SAMPLE, len(POINTS), EPS, EUCLIDEAN, cuts
    sides = SampledSides(IS_RIGHT[SAMPLE], N_ROWS)
    plan = plan_join(*sample, sides=sides)
    found = counted(plan)
    assert plan.expected_pairs == pytest.approx(found["pairs"], rel=0.1)
    assert plan.expected_candidates == pytest.approx(found["candidates"], rel=0.15)
    assert plan.expected_rows == pytest.approx(found["rows"], rel=0.02)
    assert plan.expected_part_rows == pytest.approx(found["largest"], rel=0.1)
    as_one = plan_join(*sample)
    assert as_one.expected_candidates > 2 * found["candidates"]
    assert as_one.expected_pairs > 2 * found["pairs"]
    assert plan.expected_seconds < as_one.expected_seconds
    parts = expect_parts(plan, *sample[:3], sides)
    assert parts is not None
    assert parts.rows.sum() == pytest.approx(plan.expected_rows, rel=1e-5)
    assert parts.pairs.sum() == pytest.approx(plan.expected_pairs, rel=1e-5)
    assert parts.seconds.sum() == pytest.approx(plan.expected_seconds, rel=0.25)


def test_plan_join__of_two_tables_makes_as_many_parts_as_their_work_is_worth() -> None:
    cuts = replace(Cuts(n_parts=64), least_part_seconds=0.0005)
    sample = POINTS[SAMPLE], SAMPLE, len(POINTS), EPS, EUCLIDEAN, cuts, 1000.0
    plan = plan_join(*sample, sides=SampledSides(IS_RIGHT[SAMPLE], N_ROWS))
    as_one = plan_join(*sample)
    assert 1 < plan.n_parts < as_one.n_parts < 64
    assert plan.n_parts == pytest.approx(plan.expected_seconds / cuts.least_part_seconds, abs=2.0)


def test_plan_join__of_two_tables_lets_no_part_have_more_rows_of_both_than_are_allowed() -> None:
    """The tables lie apart, and a right row of this sample stands for ten rows, a left one for itself."""
    points, some = POINTS - 2.0 * IS_RIGHT[:, None], np.r_[0:3_000, 3_000:6_000]
    cuts = replace(Cuts(n_parts=2), most_part_rows=5_000)
    sides = SampledSides(IS_RIGHT[some], N_ROWS)
    plan = plan_join(points[some], some, len(points), EPS, EUCLIDEAN, cuts, sides=sides)
    assert plan.expected_part_rows <= 5_000
    assert np.bincount(replicate(points, np.arange(len(points)), plan).part).max() <= 5_500
