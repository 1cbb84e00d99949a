from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.local.versions.tree import VersionTree, end_set, find_start, is_alive
from oracles import examples
from oracles import versions as oracle


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[int], list[dict[int, Any]]]:
    """Parents and changes of up to 12 versions; each changes a few of 4 keys, None deletes."""
    n = draw(st.integers(1, 12))
    parents = [-1, *(draw(st.integers(0, version - 1)) for version in range(1, n))]
    values = st.one_of(st.none(), st.integers(0, 3))
    return parents, [draw(st.dictionaries(st.integers(0, 3), values, max_size=3)) for _ in range(n)]


def tree_of(parents: list[int]) -> VersionTree:
    tree = VersionTree()
    for parent in parents[1:]:
        tree.branch(parent)
    return tree


@examples(100)
@given(histories())
def test_end_set__is_minimal_and_as_the_definition_has_it(history: tuple[list[int], list[Any]]) -> None:
    parents, changes = history
    tree = tree_of(parents)
    for key in range(4):
        written = [version for version, changed in enumerate(changes) if key in changed]
        for start in written:
            ends = end_set(tree, start, written)
            assert set(ends) == oracle.end_set(parents, start, written)
            assert not any(one != other and tree.is_above(one, other) for one in ends for other in ends)


@examples(100)
@given(histories())
def test_is_alive__is_what_a_replay_of_all_versions_says(history: tuple[list[int], list[Any]]) -> None:
    parents, changes = history
    tree, states = tree_of(parents), oracle.replay(*history)
    for key in range(4):
        written = {version: changed[key] for version, changed in enumerate(changes) if key in changed}
        for version, state in enumerate(states):
            alive = [
                value
                for start, value in written.items()
                if value is not None and is_alive(tree, start, end_set(tree, start, written), version)
            ]
            assert alive == ([state[key]] if key in state else [])


@examples(100)
@given(histories())
def test_find_start__says_without_an_end_set_which_record_holds(
    history: tuple[list[int], list[Any]],
) -> None:
    parents, changes = history
    tree, states = tree_of(parents), oracle.replay(*history)
    for key in range(4):
        written = {version: changed[key] for version, changed in enumerate(changes) if key in changed}
        for version, state in enumerate(states):
            start = find_start(tree, written, version)
            assert state.get(key) == (None if start is None else written[start])


def test_end_set__has_one_version_for_each_branch() -> None:
    """Version 1 writes; 2 and 3 are made from it, 4 from 2, 5 from 3: 2 and 5 change it, and 4 again."""
    tree = tree_of([-1, 0, 1, 1, 2, 3])
    assert end_set(tree, 1, [1, 2, 4, 5]) == (2, 5)
    assert [is_alive(tree, 1, (2, 5), version) for version in range(6)] == [
        *(False, True, False, True, False, False)
    ]


def test_branch__refuses_a_version_that_is_not_there() -> None:
    with pytest.raises(ArgumentError, match="parent must be one of the versions 0 to 0, not 1"):
        VersionTree().branch(1)
