"""A cell finds the nearest of queries among its points, and no more than each needs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours.cells import plan_cells
from epsjoin.spark.neighbours.cell import Cell, Queries, Space, search_own


def test_cell__searches_no_more_equal_points_than_a_query_needs() -> None:
    ids = np.random.default_rng(4).permutation(1000)
    places = Queries(ids, np.zeros((1000, 2)), np.full(1000, np.inf))
    space = Space(plan_cells(places.places[:1], 1), get_metric("euclidean"), 2, 4, 1000, None)
    cell = Cell([places], space)
    assert cell.tree is not None
    assert sorted(cell.tree.names.tolist()) == [0, 1, 2, 3]
    near, radius = cell.search(Queries(ids[:5], np.ones((5, 2)), np.full(5, np.inf)))
    assert (radius == math.sqrt(2)).all()
    assert near.neighbour.tolist() == [0, 1, 2, 3] * 5
    queries, near = search_own([places], space)
    assert (queries.radius == 0.0).all()
    found = dict(zip(queries.ids.tolist(), near.neighbour.reshape(-1, 4).tolist(), strict=True))
    assert found == {id_: [i for i in range(5) if i != id_][:4] for id_ in range(1000)}


@pytest.mark.parametrize(
    ("radius", "found"),
    [
        (math.inf, [(3.0, 2**63 - 1), (4.0, -7)]),
        (4.5, [(3.0, 2**63 - 1), (4.0, -7)]),
        (4.0, [(3.0, 2**63 - 1), (4.0, -7)]),  # as far as the radius: it may win by its id
        (3.5, [(3.0, 2**63 - 1)]),
        (2.0, []),
    ],
)
def test_cell__finds_what_lies_within_the_radius_and_nobody_else(radius: float, found: list) -> None:
    points = Queries(np.array([2**63 - 1, -7, 5]), np.array([[3.0], [4.0], [9.0]]), np.zeros(3))
    space = Space(plan_cells(points.places, 1), get_metric("euclidean"), 1, 2, 1000, None)
    cell = Cell([points], space)
    near, still = cell.search(Queries(np.array([5]), np.zeros((1, 1)), np.array([radius])))
    assert list(zip(near.distance.tolist(), near.neighbour.tolist(), strict=True)) == found
    assert still[0] == min(radius, 4.0)
