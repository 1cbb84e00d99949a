"""Rows move within their memory into any order, and the order stays what it was."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from epsjoin.kernels.neighbours.grow import move_rows
from oracles import examples


def long_path(n):
    """All rows in one path."""
    return np.roll(np.arange(n), 1).tolist()


@examples(200)
@given(st.integers(0, 60).flatmap(lambda n: st.permutations(range(n))), st.integers(1, 5))
@example(long_path(2), 1)
@example(long_path(500), 3)
@example([row ^ 1 for row in range(100)], 2)
def test_move_rows__puts_each_row_in_its_place(order, d):
    points = np.random.default_rng(len(order)).random((len(order), d))
    moved, given_order = points.copy(), np.array(order, np.int64)
    move_rows(moved, given_order)
    assert moved.tolist() == points[np.array(order, np.int64)].tolist()
    assert given_order.tolist() == list(order)
