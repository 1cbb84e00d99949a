from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.join.arrays import self_join
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.windows.join_window import JoinWindow
from oracles import examples
from oracles import join as join_twin

BATCHES = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=5), min_size=1, max_size=8
)


def rows(pairs: Pairs) -> list[tuple[int, int, float]]:
    return list(zip(*(column.tolist() for column in pairs), strict=True))


@given(BATCHES, st.sampled_from([1, 2, 4]), st.sampled_from([1.0, 1.5, 4.0]))
@examples(200)  # each is up to eight joins
def test_join_window__has_the_pairs_of_the_last_batches(
    batches: list[list[tuple[int, int]]], n_batches: int, eps: float
) -> None:
    window = JoinWindow(eps, n_batches)
    n_points = sum(len(batch) for batch in batches)
    names = np.random.default_rng(n_points).permutation(n_points) - 3
    begin = 0
    held: list[list[tuple[int, tuple[int, int]]]] = []
    for batch in batches:
        ids = names[begin : begin + len(batch)]
        begin += len(batch)
        found = window.push(np.array(batch, float).reshape(-1, 2), ids)
        held = [*held, list(zip(ids.tolist(), batch, strict=True))][-n_batches:]
        new = set(ids.tolist())
        expected = sorted(
            (min(a, b), max(a, b), distance)
            for (a, x), (b, y) in itertools.combinations(itertools.chain.from_iterable(held), 2)
            if (distance := ((x[0] - y[0]) ** 2 + (x[1] - y[1]) ** 2) ** 0.5) <= eps
        )
        assert rows(window.pairs()) == expected
        assert rows(found) == [pair for pair in expected if pair[0] in new or pair[1] in new]


@given(
    BATCHES,
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["euclidean", "manhattan", "chebyshev"]),
    st.sampled_from([1.5, [1.0, 2.0], [0.5, 3.0]]),
    st.sampled_from([None, [2.0, 0.5], [0.0, 1.0]]),
)
@examples(100)
def test_join_window__takes_an_eps_per_dimension_and_weights(
    batches: list[list[tuple[int, int]]],
    n_batches: int,
    metric: str,
    eps: float | list[float],
    weights: list[float] | None,
) -> None:
    window = JoinWindow(eps, n_batches, metric, weights=weights)
    points = np.array([row for batch in batches for row in batch], float).reshape(-1, 2)
    ends = np.cumsum([0, *map(len, batches)])
    for number in range(len(batches)):
        begin, end = ends[number : number + 2]
        found = window.push(points[begin:end], np.arange(begin, end))
        first = ends[max(0, number + 1 - n_batches)]
        of_window = join_twin.scaled_pairs(points[first:end], eps, weights, metric)
        expected = sorted((i + first, j + first, distance) for (i, j), distance in of_window.items())
        assert rows(window.pairs()) == expected
        assert rows(found) == [pair for pair in expected if pair[1] >= begin]


def test_join_window__keeps_its_eps_and_weights_when_the_callers_change() -> None:
    eps, weights = np.array([1.0, 1.0]), np.array([1.0, 0.0])
    window = JoinWindow(eps, 2, weights=weights, max_pairs=1)
    eps[:], weights[:] = 1e-9, 9.0
    assert rows(window.push([[0.0, 0.0], [1.0, 9.0]], [0, 1])) == [(0, 1, 1.0)]
    assert rows(window.push(np.empty((0, 7)), [])) == []
    with pytest.raises(BudgetError, match="more than max_pairs = 1 pairs within eps = 1, 1; it stays"):
        JoinWindow([1, 1], 2, max_pairs=1).push(np.zeros((3, 2)), [0, 1, 2])
    with pytest.raises(ArgumentError, match=r"eps must be one number, or one per dimension \(3\)"):
        window.push(np.zeros((3, 3)), [4, 5, 6])


def test_join_window__joins_what_is_new_only() -> None:
    points = np.random.default_rng(1).random((4000, 2))
    counters: dict[str, int] = {}
    window = JoinWindow(0.01, 8, counters=counters)
    work = []
    for begin in range(0, 4000, 500):
        before = counters.get("candidates", 0)
        window.push(points[begin : begin + 500], np.arange(begin, begin + 500))
        work.append(counters["candidates"] - before)
    anew: dict[str, int] = {}
    self_join(points, 0.01, counters=anew)
    # all pushes together about what one join takes: a push looks from its rows at whole bins of the others
    assert sum(work) <= 2 * anew["candidates"]
    assert work[0] < work[-1] < anew["candidates"] / 2


def test_join_window__stays_as_it_was_when_a_batch_is_refused() -> None:
    window = JoinWindow(1.0, 2, max_pairs=2)
    window.push([[0.0], [0.5]], [1, 2])
    window.push([[9.0]], [3])
    before = rows(window.pairs())
    for points, ids, says in (
        ([[0.0]], [3], "distinct"),
        ([[0.0]], [4, 5], "ids must be one for each of 1 points, not 2"),
        ([[np.nan]], [4], "points must be finite; row 0, column 0"),
        ([[0.0, 1.0]], [4], "points must have as many columns as those of the window, 1, not 2"),
        ([[0.0]], [0.5], "ids must be"),
    ):
        with pytest.raises(ArgumentError, match=says):
            window.push(points, ids)
        assert rows(window.pairs()) == before
    says = "^the window would hold more than max_pairs = 2 pairs within eps = 1; it stays as it was$"
    with pytest.raises(BudgetError, match=says):
        window.push([[9.0], [9.0]], [4, 5])
    assert rows(window.pairs()) == before
    window.push([[0.0]], [1])  # its namesake leaves now
    assert rows(window.pairs()) == []


def test_join_window__keeps_pairs_of_two_batches_only_where_there_are_some() -> None:
    window = JoinWindow(1.0, 100)
    for number in range(300):
        window.push([[10.0 * number], [10.0 * (number // 2)]], [2 * number, 2 * number + 1])
    kept = sum(len(batch.pairs) for batch in window._batches)
    assert kept == len(window.pairs().left) == 50, "each second batch has a pair with the one before"


def test_join_window__that_has_emptied_takes_rows_of_other_columns() -> None:
    window = JoinWindow(1.0, 1)
    for n, d in ((4, 1), (2, 2), (2, 3), (3, 1)):  # there is room for the second
        assert len(window.push(np.zeros((n, d)), np.arange(n)).left) == n * (n - 1) // 2


@pytest.mark.parametrize("columns", [1, 2])
def test_join_window__keeps_its_rows_when_no_rows_of_other_columns_come(columns: int) -> None:
    window = JoinWindow(1.0, 3)
    window.push(np.arange(60.0).reshape(-1, columns) * 9, np.arange(60 // columns))
    window.push(np.zeros((0, 3)), [])
    window.push(np.zeros((1, columns)), [100])
    window.push(np.zeros((0, 3)), [])  # the many rows leave, and their room is given back
    assert rows(window.push(np.ones((1, columns)) / 2, [101])) == [(100, 101, 0.5 * columns**0.5)]


def test_join_window__gives_the_room_of_a_large_batch_back_when_it_has_left() -> None:
    window = JoinWindow(1e-9, 2)
    window.push(np.random.default_rng(0).random((10_000, 2)), np.arange(10_000))
    for number in range(10_000, 10_003):
        window.push([[0.0, 0.0]], [number])
    assert len(window._rows._room.ids) <= 16


def test_join_window__keeps_rows_and_ids_of_arrays_that_are_filled_again() -> None:
    window, point, name = JoinWindow(1.0, 5), np.empty((1, 1)), np.empty(1, np.int64)
    for number, value in enumerate((0.0, 0.5, 10.0, 10.5)):
        point[0, 0], name[0] = value, number
        window.push(point, name)
    assert rows(window.pairs()) == [(0, 1, 0.5), (2, 3, 0.5)]


def test_join_window__counts_pairs_that_left_no_more() -> None:
    window = JoinWindow(1.0, 1, max_pairs=1)
    for begin in range(0, 10, 2):
        assert len(window.push([[0.0], [0.5]], [begin, begin + 1]).left) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((-1.0, 1, "euclidean"), "^eps must be"),
        ((1.0, 0, "euclidean"), "^n_batches must be a whole number, at least 1, not 0"),
        ((1.0, 1, "x"), "^unknown metric 'x'"),
        (([1.0, -1.0], 1, "euclidean"), "^eps must be one number, or one per dimension"),
        (([1.0, 1.0], 1, "cosine"), "^cosine has no eps per dimension"),
        (([[1.0]], 1, "euclidean"), "^eps must be one number, or one per dimension"),
    ],
)
def test_join_window__refuses_wrong_arguments_at_once(arguments: tuple[Any, int, str], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        JoinWindow(*arguments)


@pytest.mark.parametrize("weights", [[-1.0], [[1.0]], [np.nan], 2.0, [1.0, 2.0, 3.0]])
def test_join_window__refuses_wrong_weights_at_once(weights: Any) -> None:
    with pytest.raises(ArgumentError, match="^weights must be one per dimension"):
        JoinWindow([1.0, 2.0] if np.size(weights) == 3 else 1.0, 1, weights=weights)
