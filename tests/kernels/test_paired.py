"""Distances of given pairs, compiled or not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsjoin.kernels.distances import CHEBYSHEV, EUCLIDEAN, MANHATTAN, MINKOWSKI, make_decision
from epsjoin.kernels.paired import paired_distances


@pytest.mark.parametrize(
    ("metric", "expected"), [(EUCLIDEAN, 5.0), (MANHATTAN, 7.0), (CHEBYSHEV, 4.0), (MINKOWSKI, 91 ** (1 / 3))]
)
def test_paired_distances__of_an_infinite_bound_are_all_distances(metric, expected):
    points = np.array([[1.0, 1.0], [4.0, 5.0], [1e9, 0.0]])
    decision = make_decision(metric, 3.0, math.inf)
    found = paired_distances(decision, points, np.array([0, 1, 1]), np.array([1, 0, 2]))
    assert found[:2].tolist() == pytest.approx([expected, expected])
    assert found[2] > 9e8


def test_paired_distances__beyond_the_bound_are_marked():
    points = np.array([[0.0], [1.0], [3.0]])
    decision = make_decision(EUCLIDEAN, 0.0, 1.0)
    assert paired_distances(decision, points, np.array([0, 0]), np.array([1, 2])).tolist() == [1.0, -1.0]
