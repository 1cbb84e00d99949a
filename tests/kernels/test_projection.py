"""Coordinates of a sweep: of each row in its order, whatever their magnitude."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsjoin.kernels.projection import SQUARES, filter_coordinates, project
from epsjoin.kernels.sweep.vectors import BLOCK
from epsjoin.local.plan.projection import simple_projection
from tests.kernels.sweeps import sweep_all


@pytest.mark.parametrize("n", [1, 63, 64, 65, 300])
@pytest.mark.parametrize("far", [1.0, 1e40])
def test_filter_coordinates__are_those_of_each_row_in_order(n, far):
    random = np.random.default_rng(n)
    points = random.normal(size=(n, 5))
    points[0, 2] = far
    order = random.permutation(n)
    # clipped at -0.5 and 0.75 around the centre
    simple = simple_projection(points, SQUARES)
    clipped = simple._replace(centre=np.full(5, 0.1), low=np.full(5, -0.5), high=np.full(5, 0.75 * far))
    for projection in (clipped, clipped._replace(axes=clipped.axes[:0], basis=np.eye(5)[::-1].copy())):
        coordinates, reach = project(points, projection, 8, 0.01)
        if not projection.is_rotated:
            coordinates, reach = np.empty((0, n)), 0.01
        near, largest = filter_coordinates(points, coordinates, order, projection, reach, BLOCK)
        axes = projection.axes if len(projection.axes) else np.arange(5)[::-1]
        values = np.clip(points - 0.1, -0.5, 0.75 * far) / reach
        expected = np.clip(values[order][:, axes].T, -1e30, 1e30)
        columns = near.reshape(9, n + BLOCK)
        assert np.allclose(columns[:5, :n], expected, rtol=1e-6)
        assert (columns[5:] == 0).all()
        assert (columns[:, n:] == 0).all()
        assert largest == pytest.approx(np.abs(expected).max())


def test_project__of_values_beyond_float64_tells_nothing_apart():
    points = np.array([[-1.7e308, 1.7e308], [1.7e308, -1.7e308], [1.7e308, 0.5 - 1.7e308]])
    projection = simple_projection(points, SQUARES)
    projection = projection._replace(
        axes=projection.axes[:0],
        basis=np.eye(2),
        centre=np.zeros(2),
        low=np.full(2, -1.7e308),
        high=np.full(2, 1.7e308),
    )
    coordinates, reach = project(points, projection, 2, 1.0)
    assert reach == math.inf
    assert (coordinates == 0).all()
    assert sweep_all(points, 1.0, projection)[0] == [(1, 2)]
