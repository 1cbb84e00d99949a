from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.local.windows.row_window import RowWindow
from oracles import examples
from oracles.windows import Window

VALUES = [0.0, 1.0, -2.5, math.nan]
HISTORIES = st.lists(st.lists(st.sampled_from(VALUES) | st.none(), max_size=8), max_size=12)


@given(HISTORIES, st.sampled_from([1, 2, 5]))
@examples(1000)
def test_row_window__gives_the_rows_of_a_value_the_newest_first(
    history: list[list[Any]], n_batches: int
) -> None:
    window, by_definition = RowWindow(n_batches), Window(n_batches)
    n_rows = 0
    for batch in history:
        ids = list(range(n_rows, n_rows + len(batch)))
        n_rows += len(batch)
        window.push(batch, ids)
        by_definition.push(batch, ids)
    for value in [*VALUES, 7.0]:
        assert window.of(value).tolist() == by_definition.of(value)


@given(HISTORIES, st.sampled_from([1, 2, 5]))
@examples(200)
def test_the_papers_kinds__have_the_same_rows_and_each_follows_fewer_links(
    history: list[list[Any]], n_batches: int
) -> None:
    works: list[dict[str, int]] = [{}, {}, {}, {}]
    kinds = ("ring", "aux", "bw", "db")
    windows = [
        RowWindow(n_batches, kind=kind, counters=work) for kind, work in zip(kinds, works, strict=True)
    ]
    by_definition = Window(n_batches)
    n_rows = 0
    for batch in history:
        ids = list(range(n_rows, n_rows + len(batch)))
        n_rows += len(batch)
        for each in (by_definition, *windows):
            each.push(batch, ids)
    for value in [*VALUES, 7.0]:
        for window in windows:
            assert window.of(value).tolist() == by_definition.of(value)
    links = [work.get("links_followed", 0) for work in works]
    assert links == sorted(links, reverse=True)


def test_row_window__of_texts_keeps_them_apart_to_the_last_character() -> None:
    window = RowWindow(1)
    window.push(["a", "a\0", "ä", "A"], [1, 2, 3, 4])
    assert [window.of(text).tolist() for text in ("a", "a\0", "ä", "A", "")] == [[1], [2], [3], [4], []]


@pytest.mark.parametrize(
    ("values", "row_ids", "sentence"),
    [
        ([1], [1, 2], "one for each of 1 values"),
        ([1], [0.5], "row_ids"),
        ([1.0], [1], "integers as in the batches before, not floats"),
    ],
)
def test_row_window__refuses_a_batch_that_does_not_fit_and_keeps_its_rows(
    values: list[Any], row_ids: list[Any], sentence: str
) -> None:
    window = RowWindow(1)
    window.push([3], [30])
    with pytest.raises(ArgumentError, match=sentence):
        window.push(values, row_ids)
    assert window.of(3).tolist() == [30]


def test_row_window__is_not_asked_for_other_kinds_or_none() -> None:
    window = RowWindow(1)
    window.push(np.array([3, 4]), np.array([30, 40]))
    with pytest.raises(ArgumentError, match="must be integers"):
        window.of("3")
    with pytest.raises(ArgumentError, match="None"):
        window.of(None)
    with pytest.raises(ArgumentError, match="kind must be sorted or one of ring, aux, bw, db, not 'rings'"):
        RowWindow(1, kind="rings")
