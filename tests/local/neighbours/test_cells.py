"""Cells: each point in one, and a ball reaches every cell that has a point in it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.neighbours.tree import reaches
from epsjoin.kernels.paired import paired_distances
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours.cells import find_cells, other_cells_within, plan_cells
from epsjoin.local.scale import weigh_metric
from oracles import examples
from oracles import join as join_twin

METRICS = [get_metric(name) for name in ("euclidean", "manhattan", "chebyshev")]


@pytest.mark.parametrize("metric", METRICS, ids=lambda each: each.name)
@examples(60)
@given(
    st.sampled_from(join_twin.KINDS),
    st.integers(1, 60),
    st.integers(1, 3),
    st.sampled_from([1, 2, 8, 32]),
    st.integers(0, 10**6),
)
def test_other_cells_within__are_all_that_have_a_point_in_the_ball(metric, kind, n, d, n_cells, seed):
    points, eps = join_twin.awkward_points(kind, n, d, seed)
    cells = plan_cells(points[::2], n_cells)
    assert cells.n == n_cells
    home = find_cells(cells, points)
    assert ((home >= 0) & (home < n_cells)).all()
    decision = metric.decision(math.inf)
    radius = np.random.default_rng(seed).choice([0.0, eps, 3 * eps, math.inf], n)
    limit = reaches(decision, metric.norm, radius, d)
    reached = {(i, home[i]) for i in range(n)}
    for cell, rows in other_cells_within(cells, points, home, limit, metric.norm):
        assert (home[rows] != cell).all()
        reached |= {(i, cell) for i in rows.tolist()}
    left, right = (side.ravel() for side in np.meshgrid(np.arange(n), np.arange(n)))
    distance = paired_distances(decision, points, left, right)
    for i, j, between in zip(left.tolist(), right.tolist(), distance.tolist(), strict=True):
        assert between > radius[i] or (i, home[j]) in reached


@pytest.mark.parametrize("metric", METRICS, ids=lambda each: each.name)
def test_other_cells_within__of_weighted_points_far_from_others_are_no_fewer(metric):
    """Counted from -1.7e9 and multiplied, neighbouring numbers of 1.7e9 seem to be thrice as far apart."""
    points = np.concatenate((np.full(300, -1.7e9), 1.7e9 + np.arange(200) * 2.0**-22))[:, None]
    weighted = weigh_metric(metric, points, np.array([0.1]))
    embedded, decision = weighted.embed(points), weighted.decision(math.inf)
    cells = plan_cells(embedded, 64)
    home = find_cells(cells, embedded)
    rows = np.arange(301, 500)
    radius = np.zeros(500)
    radius[rows] = paired_distances(decision, points, rows, rows - 1)  # to the one before
    limit, slack = reaches(decision, weighted.norm, radius, 1), weighted.slack(np.abs(embedded))
    reached = set()
    for cell, found in other_cells_within(cells, embedded, home, limit, weighted.norm, slack):
        reached |= {(i, cell) for i in found.tolist()}
    crossing = [(i, home[i - 1]) for i in rows.tolist() if home[i] != home[i - 1]]
    assert len(crossing) > 10
    assert reached.issuperset(crossing)
    assert sum(i in rows for i, _ in reached) < 0.5 * len(rows) * len(np.unique(home))


def test_plan_cells__cut_between_values_that_are_there_often():
    random = np.random.default_rng(4)
    saturated = np.column_stack((np.minimum(random.random(4096) * 20.0, 9.0), random.random(4096)))
    cells = plan_cells(saturated, 64)
    assert np.bincount(find_cells(cells, saturated)).max() < 2 * 4096 / 64, "most have the largest x"

    points = random.standard_normal((4096, 3))
    points[::3] = 0.0
    cells = plan_cells(points, 16)
    home = find_cells(cells, points)
    assert set(home.tolist()) == set(range(16))
    at_hand = np.zeros(len(points))
    assert not list(other_cells_within(cells, points, home, at_hand, 0)), "no point lies on a cut"


@pytest.mark.parametrize("high", [1.0 + 2.0**-52, 1.7e308])
def test_plan_cells__keep_values_apart_that_are_close_or_far_away(high):
    cells = plan_cells(np.array([[1.0], [high]]), 2)
    assert find_cells(cells, np.array([[1.0], [high]])).tolist() == [0, 1]
    cells = plan_cells(np.array([[-high], [high]]), 2)
    assert find_cells(cells, np.array([[-high], [high]])).tolist() == [0, 1]


def test_plan_cells__have_as_many_points_each_and_leave_far_cells_out():
    points = np.random.default_rng(3).random((4096, 2))
    cells = plan_cells(points, 16)
    home = find_cells(cells, points)
    assert np.bincount(home).tolist() == [256] * 16
    near = np.full(len(points), 0.001**2)
    asked = sum(rows.size for _, rows in other_cells_within(cells, points, home, near, 0))
    assert 0 < asked < 200
    everywhere = np.full(len(points), math.inf)
    asked = sum(rows.size for _, rows in other_cells_within(cells, points, home, everywhere, 0))
    assert asked == 15 * len(points)
