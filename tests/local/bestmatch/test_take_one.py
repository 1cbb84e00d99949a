"""One best match of each row: the one that is chosen of all, of which few are held."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin import BudgetError, Closest, Subset, bestmatch_join
from epsjoin.kernels.bestmatch.criteria import first_of_runs
from epsjoin.local.bestmatch import batch, candidates
from epsjoin.local.bestmatch.batch import _Search
from epsjoin.local.bestmatch.orders import orders_of
from epsjoin.params import MATCH_HOW
from oracles import examples
from tests.local.bestmatch.cases import KINDS, make_case

SEEDS = st.integers(0, 10**6)


def chosen_of_all(*given_rows, **arguments):
    """One of each row, chosen when all best matches are there."""

    def search(left, right, orders, how, is_one, *more):
        assert is_one
        return _Search(left, right, orders, how, False, *more)

    with mock.patch.object(batch, "_Search", search):
        return bestmatch_join(*given_rows, take="one", **arguments)


def assert_same(found, expected):
    for column, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(column, wanted)


@examples(300)
@given(st.sampled_from(KINDS), st.sampled_from(MATCH_HOW), st.sampled_from([1, 4, 1 << 22]), SEEDS)
def test_take_one__is_that_of_all_best_matches(kind, how, block_pairs, seed):
    case = make_case(kind, seed)
    left, right = (np.repeat(rows, 2, axis=0) for rows in (case.left, case.right))
    if kind in ("subset", "mixed"):  # marks are one for each row
        left, right = case.left, case.right
    with (
        mock.patch.object(candidates, "BLOCK_PAIRS", block_pairs),
        mock.patch("epsjoin.local.bestmatch.filter._FIRST_ROWS", 2),
    ):
        found = bestmatch_join(left, right, how=how, take="one", **case.arguments)
        assert_same(found, chosen_of_all(left, right, how=how, **case.arguments))


@pytest.fixture
def blocks_of_two():
    """Two left rows are in a block, with one right row."""
    with (
        mock.patch.object(candidates, "BLOCK_PAIRS", 2),
        mock.patch("epsjoin.local.bestmatch.filter._FIRST_ROWS", 2),
    ):
        yield


@pytest.mark.usefixtures("blocks_of_two")
def test_take_one__is_none_that_another_block_dominates():
    """The left row 2 dominates row 0, which would have been chosen of its block instead of row 1."""
    left, right = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 2.0], [0.0, 1.0, 0.0]]), np.zeros((1, 3))
    eps = [1.0, np.inf, np.inf]
    assert [len(block) for block in candidates.within_blocks(left, right, orders_of(eps, None, 3))] == [2, 1]
    assert bestmatch_join(left, right, eps, "right").left.tolist() == [1, 2]
    assert bestmatch_join(left, right, eps, "right", take="one").left.tolist() == [1]


@pytest.mark.usefixtures("blocks_of_two")
def test_take_one__tells_marks_apart():
    """As above, and marks alone tell the rows apart."""
    marks = Subset(np.array([0b001, 0b010, 0b101], np.uint64), np.array([0b111], np.uint64))
    orders = [Closest(0, eps=1.0), marks]
    left, right = np.zeros((3, 1)), np.zeros((1, 1))
    assert bestmatch_join(left, right, how="right", orders=orders).left.tolist() == [1, 2]
    assert bestmatch_join(left, right, how="right", orders=orders, take="one").left.tolist() == [1]


@examples(100)
@given(st.integers(0, 30), st.integers(0, 30), st.sampled_from(MATCH_HOW), SEEDS)
def test_take_one__of_one_column_is_that_of_all_best_matches(n, m, how, seed):
    """Also where float64 has one distance of different numbers."""
    random = np.random.default_rng(seed)
    scale = random.choice([1.0, 1e17])
    left, right = (random.choice([0.0, 1.0, 2.0, 3.0, scale, -scale], (rows, 1)) for rows in (n, m))
    eps = random.choice([0.0, 1.0, np.inf])
    assert_same(
        bestmatch_join(left, right, eps, how, take="one"), chosen_of_all(left, right, eps=eps, how=how)
    )


@pytest.mark.parametrize("how", MATCH_HOW)
def test_take_one__of_equal_numbers_lists_one_pair_for_each_row(how):
    """Of 40 million pairs that are as near."""
    left, right, counters = np.zeros((8000, 1)), np.zeros((5000, 1)), dict[str, int]()
    found = bestmatch_join(left, right, 1.0, how, take="one", max_candidates=13_000, counters=counters)
    assert counters["candidates"] <= 13_000
    of_left = set() if how == "right" else {(row, 0) for row in range(8000)}
    of_right = {(0, row) for row in range(5000)} if how in ("right", "outer") else set()
    assert set(zip(found.left.tolist(), found.right.tolist(), strict=True)) == of_left | of_right
    with pytest.raises(BudgetError, match="pairs are nearest, more than max_candidates = 100; allow more"):
        bestmatch_join(left, right, 1.0, how, take="one", max_candidates=100)
    with pytest.raises(BudgetError, match='leave out equal rows, ask for take="one", or allow more'):
        bestmatch_join(left, right, 1.0, how, max_candidates=13_000)


@pytest.mark.parametrize("how", MATCH_HOW)
def test_take_one__by_several_criteria_holds_one_of_those_equally_good(how, monkeypatch):
    monkeypatch.setattr(batch, "MAX_KEPT", 700)
    left, right = np.ones((300, 2)), np.ones((400, 2))
    found = bestmatch_join(left, right, 1.0, how, take="one")
    assert_same(found, chosen_of_all_without_limit(left, right, how))
    with pytest.raises(BudgetError, match='ask for take="one", leave out equal rows, or take a smaller eps'):
        bestmatch_join(left, right, 1.0, how)


def chosen_of_all_without_limit(left, right, how):
    with mock.patch.object(batch, "MAX_KEPT", 1 << 26):
        return chosen_of_all(left, right, eps=1.0, how=how)


def test_first_of_runs__looks_once_at_a_run_of_many_rows():
    begins, ends = np.repeat([0, 2, 5], [1000, 1, 1]), np.repeat([6, 6, 5], [1000, 1, 1])
    first = np.empty(1002, np.int64)
    assert first_of_runs(begins, ends, np.array([7, 3, 9, 4, 8, 5]), first) == 6 + 4
    assert first.tolist() == [3] * 1000 + [4, -1]
