"""The cheapest assignment, against all of them."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from epsjoin.kernels.trees.assignment import assign


def test_assign__is_the_cheapest_of_all_assignments() -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        n = int(random.integers(1, 6))
        m = int(random.integers(n, 7))
        costs = random.integers(-9, 4, (n, m))
        columns = np.empty(n, np.int64)
        total = assign(costs, columns)
        best = min(
            sum(costs[row, column] for row, column in enumerate(chosen))
            for chosen in permutations(range(m), n)
        )
        assert total == best
        assert len(set(columns.tolist())) == n
        assert sum(costs[row, column] for row, column in enumerate(columns)) == total


def test_assign__of_no_row_costs_nothing() -> None:
    assert assign(np.empty((0, 3), np.int64), np.empty(0, np.int64)) == 0
