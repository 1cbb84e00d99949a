from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.local.versions.pages import DELETED, VersionedPages
from epsjoin.local.versions.tree import is_alive
from oracles import examples
from oracles import versions as oracle

History = tuple[list[int], list[dict[int, Any]]]


def run_history(pages: VersionedPages, history: History) -> None:
    """Replay a history; what deletes a record that is not there is left out of it."""
    parents, changes = history
    for version, changed in enumerate(changes):
        if version:
            assert pages.begin(parents[version]) == version
        for key, data in list(changed.items()):
            if data is not DELETED:
                pages.put(key, data)
            elif key in pages.at(version):
                pages.delete(key)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Up to 25 versions with branches, of up to 15 changes each, on 40 keys; a third deletes."""
    n = draw(st.integers(1, 25))
    # near the newest version more often: long branches fill pages
    parents = [-1, *(max(0, version - draw(st.sampled_from((1, 1, 1, 2, 5)))) for version in range(1, n))]
    values = st.sampled_from((None, 1, 2))
    sizes = st.dictionaries(st.integers(0, 40), values, max_size=15)
    return parents, [draw(sizes) for _ in range(n)]


@examples(100)
@given(histories(), st.sampled_from((6, 7, 8, 12)))
def test_pages__say_at_every_version_what_a_replay_says(history: History, capacity: int) -> None:
    pages = VersionedPages(capacity)
    run_history(pages, history)
    for version, state in enumerate(oracle.replay(*history)):
        assert pages.at(version) == state


@examples(100)
@given(histories(), st.sampled_from((6, 7, 8, 12)))
def test_pages__are_mostly_alive_wherever_they_are_stabbed(history: History, capacity: int) -> None:
    pages = VersionedPages(capacity)
    run_history(pages, history)
    assert all(len(page.entries) <= capacity for page in pages.pages)
    for version in range(len(history[0])):
        stabbed = pages.find_pages(version)
        # one page for each key: they lie side by side, from end to end
        assert [page.high for page in stabbed[:-1]] == [page.low for page in stabbed[1:]]
        assert (stabbed[0].low, stabbed[-1].high) == (float("-inf"), float("inf"))
        if len(stabbed) > 1:
            assert min(len(pages.find_starts(page, version)) for page in stabbed) >= capacity / 3


@examples(100)
@given(histories(), st.sampled_from((6, 7, 8, 12)))
def test_pages__are_not_split_twice_at_a_version(history: History, capacity: int) -> None:
    """Pages from before the version are retired once, and what is kept is responsible somewhere."""
    pages = VersionedPages(capacity)
    run_history(pages, history)
    retired = [
        (split.version, id(page))
        for split in pages.splits
        for page in split.old
        if page.start != split.version
    ]
    assert len(retired) == len(set(retired))
    for page in pages.pages:
        assert is_alive(pages.tree, page.start, page.ends, page.start)
        assert all(pages.tree.is_above(page.start, end) for end in page.ends)
        if page.start == pages.version:
            assert len(page.entries) == len(pages.find_starts(page, pages.version)), "all that it has holds"


def test_pages__are_split_in_all_four_ways() -> None:
    pages = VersionedPages(6)
    for key in range(7):
        pages.put(key, 0)
    assert [split.kind for split in pages.splits] == ["key"], (
        "all that is in the page holds: nothing is copied"
    )
    for version in range(1, 5):
        pages.begin(version - 1)
        pages.put(0, version)
    assert pages.splits[-1].kind == "version"
    assert [len(page.entries) for page in pages.splits[-1].new] == [3], "only what holds is copied"
    pages.begin(pages.version)
    for key in (10, 11, 12, 13):
        pages.put(key, 0)
    assert pages.splits[-1].kind == "version and key"
    pages.begin(pages.version)
    pages.delete(0)
    pages.delete(1)
    assert pages.splits[-1].kind == "consolidation"
    assert list(pages.at(pages.version)) == [2, 3, 4, 5, 6, 10, 11, 12, 13]


def test_page__of_another_branch_stays_when_one_branch_splits_it() -> None:
    pages = VersionedPages(6)
    for key in range(4):
        pages.put(key, "old")
    left, right = pages.begin(0), pages.begin(0)
    for key in range(4):
        pages.put(key, "right")
    root = pages.find_page(0, 0)
    assert root.ends == {right}
    assert pages.find_page(0, left) is root
    assert pages.at(left) == dict.fromkeys(range(4), "old")


def test_stabbing_query__reads_at_most_three_times_the_pages_that_its_records_need() -> None:
    """Of 100 records ten change in each of 150 versions."""
    rng, pages = random.Random(0), VersionedPages(12)
    for key in range(100):
        pages.put(key, 0)
    for version in range(1, 150):
        pages.begin(version - 1)
        for key in rng.sample(range(100), 10):
            pages.put(key, version)
    stabbed = [len(pages.find_pages(version)) for version in range(150)]
    assert max(stabbed) <= 3 * 100 / 12
    assert len(pages.pages) > 10 * max(stabbed), "all pages are many more"
    copies = sum(len(page.entries) for page in pages.pages)
    assert copies < 3 * (100 + 149 * 10)


def test_delete__refuses_a_key_without_a_record() -> None:
    pages = VersionedPages(6)
    pages.put(1, "one")
    pages.delete(1)
    with pytest.raises(ArgumentError, match="there is no record with key 1 at version 0"):
        pages.delete(1)


def test_versioned_pages__refuse_a_capacity_whose_thirds_are_the_same() -> None:
    with pytest.raises(ArgumentError, match="capacity must be at least 6, not 5"):
        VersionedPages(5)
