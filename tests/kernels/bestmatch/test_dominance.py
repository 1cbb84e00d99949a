"""The kernel of dominance keeps what no row of a group dominates, in each of its ways."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from epsjoin.kernels.bestmatch.dominance import undominated


def kept_by_definition(values, masks):
    """Whether no row dominates a row: at least as good everywhere, and not the other way round."""

    def is_as_good(x, y):
        return bool((values[x] <= values[y]).all() and (masks[y] & ~masks[x] == 0).all())

    n = range(len(values))
    return [not any(is_as_good(x, y) and not is_as_good(y, x) for x in n) for y in n]


def keep(values, masks=None, starts=None):
    values = np.asarray(values, np.float64)
    marked = np.zeros(len(values), np.bool_)
    starts = np.array([0, len(values)] if starts is None else starts)
    comparisons = undominated(starts, values, masks, marked)
    return marked.tolist(), comparisons


@pytest.mark.parametrize("words", [0, 1, 2])
@pytest.mark.parametrize("columns", [0, 1, 2, 3, 4])
def test_undominated__is_the_definition(columns, words):
    if columns == words == 0:
        return
    random = np.random.default_rng([columns, words])
    for case in range(120):
        sizes = random.integers(0, 10, 4)
        starts = np.concatenate(([0], np.cumsum(sizes)))
        values = random.integers(0, 3 + case % 3, (starts[-1], columns)) - 1.0
        masks = random.integers(0, 8, (starts[-1], words)).astype(np.uint64)
        marked, _ = keep(values, masks if words else None, starts)
        groups = [slice(*ends) for ends in itertools.pairwise(starts)]
        assert marked == [each for of in groups for each in kept_by_definition(values[of], masks[of])]


def test_undominated__keeps_rows_that_are_equal():
    for columns in (1, 2, 3):
        assert keep(np.zeros((5, columns)))[0] == [True] * 5


def test_undominated__takes_zeros_of_either_sign_and_infinities_as_numbers():
    assert keep([[0.0], [-0.0], [1.0]])[0] == [True, True, False]
    assert keep([[0.0, 1.0], [-0.0, 1.0], [0.0, np.inf]])[0] == [True, True, False]
    assert keep([[np.inf, np.inf], [np.inf, np.inf]])[0] == [True, True]
    assert keep([[np.inf, 1.0, 0.0], [np.inf, 2.0, 0.0]])[0] == [True, False]


def test_undominated__sees_dominance_that_a_sum_hides():
    """1e16 + 0.5 and 1e16 + 1 are one number, so an order by sums would put the worse row first."""
    assert keep([[1e16, 1.0, 0.0], [1e16, 0.5, 0.0]])[0] == [False, True]


def test_undominated__sweeps_two_columns_and_does_not_compare_all_rows():
    at = np.arange(2000.0)
    marked, comparisons = keep(np.stack((at, -at), axis=1))
    assert all(marked)
    assert comparisons < 2000
    marked, comparisons = keep(np.stack((at, -at, 0 * at), axis=1)[:200])
    assert all(marked)
    assert comparisons == 200 * 199 // 2


@pytest.mark.parametrize("words", [0, 1])
def test_undominated__compares_one_of_equal_rows(words):
    kinds = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [1.0, 1.0, 1.0], [2.0, 2.0, 1.0]])
    values = np.tile(kinds, (500, 1))
    masks = np.ones((len(values), words), np.uint64) if words else None
    marked, comparisons = keep(values, masks)
    assert marked == [True, True, True, False] * 500
    assert comparisons <= 3 * len(values)


def test_undominated__lets_equal_rows_fall_together():
    worse, better = [1e16, 1.0, 0.0], [1e16, 0.5, 0.0]  # of one sum, so the first row is looked at first
    assert keep([worse] * 3 + [better] * 2)[0] == [False] * 3 + [True] * 2
    other = [0.0, 1e17, 9.0]
    assert keep([other, worse, worse, better])[0] == [True, False, False, True]
