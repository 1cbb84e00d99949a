"""The papers' stores and indices under a window over values."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.local.windows.kinds import VALUE_KINDS
from epsjoin.local.windows.value_window import ValueWindow
from oracles import examples
from oracles.windows import Window
from tests.local.windows.histories import HISTORIES, histories, items, listed


@given(HISTORIES, st.sampled_from([1, 2, 6]))
@examples(100)
def test_the_papers_stores_and_indices__answer_as_the_definition(
    history: list[list[Any]], n_batches: int
) -> None:
    kinds = [kind for kind in VALUE_KINDS if kind != "GROUP G"]
    windows = [ValueWindow(n_batches, kind=kind) for kind in kinds]
    by_definition = Window(n_batches)
    for batch in history:
        for window in (by_definition, *windows):
            window.push(batch)
    for kind, window in zip(kinds, windows, strict=True):
        assert items(window.counts()) == by_definition.counts(), kind
        assert window.counts().missing == by_definition.missing()
        assert listed(window.new()) == by_definition.new()
        assert listed(window.gone()) == by_definition.gone()


@given(histories(st.integers(0, 20)), st.sampled_from([1, 2, 6]))
@examples(50)
def test_the_papers_groups__have_the_counts_of_the_ranges(history: list[list[int]], n_batches: int) -> None:
    edges = [4, 9]
    window, by_definition = ValueWindow(n_batches, edges, kind="GROUP G"), Window(n_batches)
    for batch in history:
        window.push(batch)
        by_definition.push([sum(edge <= value for edge in edges) for value in batch])
    assert items(window.counts()) == by_definition.counts()
    assert window.gone().tolist() == by_definition.gone()


@pytest.mark.parametrize("kind", VALUE_KINDS)
def test_windows_of_all_kinds__can_be_stored_and_gone_on_from(kind: str) -> None:
    window = ValueWindow(2, [4, 9] if kind == "GROUP G" else None, kind=kind)
    window.push([1, 5, 5])
    stored = pickle.loads(pickle.dumps(window))
    for each in (window, stored):
        each.push([9])
        each.push([5, 9])
    assert items(stored.counts()) == items(window.counts())
    assert stored.gone().tolist() == window.gone().tolist()


def test_the_papers_indices__halve_lists_where_they_are_said_to() -> None:
    probes = {}
    for kind in ("AGGR L", "AGGR T", "AGGR H"):
        work: dict[str, int] = {}
        window = ValueWindow(2, kind=kind, counters=work)
        window.push(list(range(0, 400, 2)))
        work.clear()
        window.push([301] * 7)
        probes[kind] = work["probes"] - 7  # of the store: a list of one value
    assert probes.pop("AGGR H") <= 8
    assert probes == {"AGGR L": 152, "AGGR T": 8}
