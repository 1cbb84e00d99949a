"""The points that are checked: thin regions as often as dense ones, however the points are divided."""

from __future__ import annotations

import numpy as np
import pytest

from epsjoin.local.verify.choice import Cells, missed_probability, points_of_cells


@pytest.mark.parametrize("divisions", [1, 2, 7])
def test_points_of_cells__does_not_depend_on_how_the_points_are_divided(divisions):
    random = np.random.default_rng(2)
    ids, points = random.permutation(3000), random.random((3000, 3)) ** 3
    cells = Cells.over(points[:100], seed=5)
    whole = points_of_cells(ids, points, cells, 10, 4)
    rows = np.concatenate(
        [
            rows[points_of_cells(ids[rows], points[rows], cells, 10, 4)]
            for rows in np.array_split(np.arange(3000), divisions)
        ]
    )
    assert ids[rows[points_of_cells(ids[rows], points[rows], cells, 10, 4)]].tolist() == ids[whole].tolist()
    chosen, counts = np.unique(cells.of(points[whole]), return_counts=True)
    assert len(chosen) == 10
    in_all = [int((cells.of(points) == cell).sum()) for cell in chosen]
    assert counts.tolist() == [min(4, n) for n in in_all]


def test_points_of_cells__takes_thin_cells_as_often_as_dense_ones():
    points = np.r_[np.zeros((990, 2)), np.column_stack([np.linspace(1, 100, 10)] * 2)]
    taken = [
        (points_of_cells(np.arange(1000), points, Cells.over(points, seed), 1, 5) >= 990).any()
        for seed in range(50)
    ]
    assert sum(taken) > 35  # one in 100 points, but 9 in 10 cells


def test_points_of_cells__takes_random_points_of_a_cell():
    points = np.zeros((1000, 2))
    taken = [
        points_of_cells(np.arange(1000), points, Cells.over(points, seed), 1, 10).mean() for seed in range(20)
    ]
    assert 400 < np.mean(taken) < 600
    assert len(set(taken)) > 15


def test_missed_probability__is_that_of_a_draw_without_replacement():
    assert missed_probability(0.1, 10, 3) == pytest.approx(0.7)
    assert missed_probability(0.2, 10, 3) == pytest.approx((8 * 7 * 6) / (10 * 9 * 8))
    assert missed_probability(0.001, 10**9, 1000) == pytest.approx(0.999**1000, rel=1e-3)
    assert missed_probability(0.5, 10, 6) == 0.0
    assert missed_probability(0.001, 100, 10) == pytest.approx(0.9)  # a share above 0 is one point at least
