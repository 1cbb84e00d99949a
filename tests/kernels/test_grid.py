"""The grid brings every two rows within eps together, once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.distances import EUCLIDEAN, make_decision
from epsjoin.kernels.grid import axes_by_variance, count_pairs, window_order
from oracles import examples
from oracles import join as twin

# Each row stands for so many that no cell is too empty: the grid cuts all its axes even on a few rows.
FINEST = 1e9


def met_pairs(windows):
    found = []
    for begin, end, target, target_end in windows.segments.tolist():
        pairs = itertools.product(range(begin, end), range(target, target_end))
        if begin == target:
            assert end == target_end
            pairs = itertools.combinations(range(begin, end), 2)
        found += [tuple(sorted(windows.order[list(pair)].tolist())) for pair in pairs]
    return found


@examples(250)
@given(
    st.sampled_from(twin.KINDS),
    st.integers(0, 60),
    st.integers(1, 5),
    st.sampled_from([1.0, 0.3, 0.05]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_window_order__brings_each_near_pair_together_once(kind, n, d, shrink, some_carried, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    if kind not in ("lattice", "dyadic", "far"):
        eps *= shrink  # down to many cells
    carried = np.random.default_rng(seed).random(n) < 0.4 * some_carried
    windows = window_order(points, carried, eps, FINEST)
    assert sorted(windows.order.tolist()) == list(range(n))
    found = met_pairs(windows)
    assert len(found) == len(set(found))
    near = {
        (i, j)
        for i, j in itertools.combinations(range(n), 2)
        if np.abs(points[i] - points[j]).max() <= eps and not (carried[i] and carried[j])
    }
    assert near <= set(found)
    assert not any(carried[i] and carried[j] for i, j in found)
    first = points[windows.order, windows.axes[0]]
    for begin, end, target, target_end in windows.segments.tolist():
        assert (np.diff(first[begin:end]) >= 0).all()
        assert (np.diff(first[target:target_end]) >= 0).all()


@pytest.mark.parametrize("d", [2, 3, 4, 6])
def test_window_order__leaves_far_cells_apart(d):
    points = np.random.default_rng(d).random((300, d))
    found = met_pairs(window_order(points, np.zeros(300, np.bool_), 0.05, FINEST))
    # three neighbours of 19 or 20 cells along each of at most three axes
    share = len(found) / (300 * 299 / 2)
    assert share < (3.2 / 19) ** min(d - 1, 3)


def test_window_order__makes_no_cells_that_hold_next_to_nothing():
    points = np.random.default_rng(0).random((300, 3))
    windows = window_order(points, np.zeros(300, np.bool_), 0.001)
    assert windows.segments.tolist() == [[0, 300, 0, 300]]


def test_window_order__is_exact_where_a_million_cells_are_not_enough():
    points = np.stack((np.arange(50) * 1e6, np.repeat(np.arange(25), 2) * 1e4), axis=1)
    points[1::2] = points[::2]
    found = met_pairs(window_order(points, np.zeros(50, np.bool_), 1e-4, FINEST))
    assert {(i, i + 1) for i in range(0, 50, 2)} <= set(found)


def test_axes_by_variance__fall_and_ties_keep_their_order():
    points = np.array([[0.0, 0.0, 5.0, 0.0], [1.0, 9.0, 5.0, 1.0]])
    assert axes_by_variance(points).tolist() == [1, 0, 3, 2]
    assert axes_by_variance(points[:0]).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("n", [0, 1, 2, 500])
def test_count_pairs__counts_all_pairs(n):
    points = np.zeros((n, 2))
    assert count_pairs(points, points, 1.0, make_decision(EUCLIDEAN, 0.0, 1.0)) == n * (n - 1) // 2
