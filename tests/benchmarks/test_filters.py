"""The costs of a window sweep are fitted to what the planner counts."""

import numpy as np
import pytest

from benchmarks.filters import Swept, fit, sweeps
from epsjoin.kernels.projection import SQUARES
from epsjoin.local.plan.projection import choose_projection


def test_fit__finds_the_costs_of_which_sweeps_are_made():
    random = np.random.default_rng(0)
    found = []
    for size, block in ((2, 5.0), (4, 7.0), (8, 9.0)):
        for _ in range(8):
            visits, candidates, survivors = random.integers(1000, 100_000, 3).tolist()
            filled = visits * -np.expm1(-candidates / visits)
            taken = 3.0 * visits + block * (filled + candidates / 32) + (11.0 + 0.5 * 20) * survivors
            found.append(Swept(size, 20, visits, candidates, survivors, taken))
            found.append(Swept(size, 10, visits, candidates, survivors, taken - 5.0 * survivors))
    costs, error = fit(found)
    assert list(costs.values()) == pytest.approx([3.0, 0.0, 5.0, 7.0, 9.0, 11.0, 0.5], abs=1e-6)
    assert error < 1e-9


def test_sweeps__counts_what_the_planner_expects():
    points = np.random.default_rng(1).random((500, 4))
    found = sweeps(points, 0.2)
    assert [one.size for one in found] == [2, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8]
    expected = choose_projection(points, 500, 0.2, SQUARES)
    assert expected.projection.n_grid == 1  # of a few rows nothing else is tried
    assert expected.candidates in {one.candidates for one in found}
    assert all(one.survivors <= one.candidates for one in found)
