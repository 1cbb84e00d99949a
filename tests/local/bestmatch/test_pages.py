from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Ints
from epsjoin.local.bestmatch.pages import (
    DropRight,
    LoadLeft,
    LoadRight,
    Meet,
    Step,
    box_pages,
    count_loads,
    crabstep,
    find_partners,
    gallop,
    schedule,
)
from oracles import examples
from oracles.grid_order import cell, in_grid_order

Layout = list[Ints]


def between(*ranges: tuple[int, int]) -> Layout:
    """Left pages that must meet all right pages from a first to a last one."""
    return [np.arange(first, last + 1) for first, last in ranges]


@st.composite
def stretches(draw: st.DrawFn) -> Layout:
    """Up to 12 left pages with stretches of right pages that move on, some with holes."""
    bounds = st.lists(st.integers(0, 12), min_size=1, max_size=12)
    first, width = sorted(draw(bounds)), draw(bounds)
    with_holes = draw(st.booleans())
    pages = between(*((a, a + w) for a, w in zip(first, width, strict=False)))
    return [page[:: draw(st.integers(1, 3))] if with_holes else page for page in pages]


buffers = st.integers(2, 7)
WAYS = (gallop, crabstep, schedule)


def follow(steps: Iterable[Step], m: int) -> Iterator[tuple[int, int]]:
    """Do as a schedule says, with buffers that look; yield the pairs of pages that meet."""
    left, rights = None, set[int]()
    for step in steps:
        match step:
            case LoadLeft(page):
                assert page != left, "it is there"
                left = page
            case LoadRight(page):
                assert page not in rights, "it is there"
                rights.add(page)
            case DropRight(page):
                rights.remove(page)
            case Meet(mine, theirs):
                assert mine == left
                assert theirs in rights
                yield mine, theirs
        assert (left is not None) + len(rights) <= m


@examples(300)
@given(stretches(), buffers)
def test_ways__have_each_pair_of_pages_meet_once_and_hold_no_more_than_the_buffers(
    layout: Layout, m: int
) -> None:
    wanted = [(left, right) for left, rights in enumerate(layout) for right in rights.tolist()]
    for way in WAYS:
        assert sorted(follow(way(layout, m), m)) == wanted


def least_recently_used(layout: Layout, m: int) -> int:
    """The loads of the column by column way, told anew."""
    cache: OrderedDict[int, None] = OrderedDict()
    loads = 0
    for rights in layout:
        loads += len(rights) > 0
        for right in rights.tolist():
            if right not in cache:
                loads += 1
                if len(cache) == m - 1:
                    cache.popitem(last=False)
            cache[right] = None
            cache.move_to_end(right)
    return loads


@examples(300)
@given(stretches(), buffers)
def test_schedule__loads_no_more_than_either_way_and_no_less_than_it_must(layout: Layout, m: int) -> None:
    loads = count_loads(schedule(layout, m))
    assert loads <= count_loads(crabstep(layout, m))
    assert loads <= count_loads(gallop(layout, m)) == least_recently_used(layout, m)
    meeting = {right for rights in layout for right in rights.tolist()}
    assert loads >= sum(len(rights) > 0 for rights in layout) + len(meeting)


def test_ways__load_each_page_once_where_all_partners_fit() -> None:
    layout = between((0, 1), (0, 2), (1, 3), (2, 4), (3, 4))
    assert [count_loads(way(layout, 4)) for way in WAYS] == [10, 10, 10]


def test_crabstep__saves_nine_loads_of_thirty_as_in_the_paper() -> None:
    # its figures are lost; of the symmetric layouts of 7 pages, this one fits what the text says of them: the
    # pages pinned at pair (2, 3) stay until (5, 3), and it goes on at (2, 4)
    layout = between((0, 2), (0, 3), (0, 4), (1, 5), (2, 6), (3, 6), (4, 6))
    assert [count_loads(way(layout, 4)) for way in WAYS] == [30, 21, 21]
    met = [(step.left + 1, step.right + 1) for step in crabstep(layout, 4) if isinstance(step, Meet)]
    assert met[met.index((5, 3)) + 1] == (2, 4)


def test_crabstep__may_cost_more_and_the_schedule_does_not_take_it_then() -> None:
    layout = between((0, 2), (0, 2), (2, 2))
    assert [count_loads(way(layout, 2)) for way in WAYS] == [9, 10, 9]


def test_crabstep__costs_more_in_some_of_many_random_layouts() -> None:
    rng = np.random.default_rng(0)
    dearer = cheaper = 0
    for _ in range(3000):
        first = np.sort(rng.integers(0, 12, 8))
        last = np.maximum.accumulate(first + rng.integers(0, 6, 8))
        layout = between(*zip(first.tolist(), last.tolist(), strict=True))
        m = int(rng.integers(2, 7))
        difference = count_loads(crabstep(layout, m)) - count_loads(gallop(layout, m))
        dearer += difference > 0
        cheaper += difference < 0
    assert (dearer, cheaper) == (1007, 1582)


def test_crabstep__uses_what_is_in_memory_before_it_loads_what_pushes_it_out() -> None:
    layout = [np.array([5]), np.array([6]), np.array([1, 5])]
    assert [count_loads(way(layout, 3)) for way in WAYS] == [7, 6, 6]


def test_schedule__needs_a_buffer_for_each_side() -> None:
    with pytest.raises(ArgumentError, match="needs 2 buffers, a page of each side, not 1"):
        schedule(between((0, 0)), 1)


def test_schedule__of_no_pages_and_of_pages_without_a_partner_loads_nothing() -> None:
    assert list(schedule([], 2)) == []
    assert list(schedule([np.empty(0, np.int64)] * 3, 2)) == []


values = st.integers(-12, 12)
rows = st.lists(st.tuples(values, values), min_size=1, max_size=30)
sides = st.tuples(st.integers(1, 5), st.integers(1, 5))


@examples(300)
@given(rows, rows, sides)
def test_grid_order__has_no_partner_before_the_cell_of_p_less_eps_nor_after_that_of_p_plus_eps(
    left: list[tuple[int, int]], right: list[tuple[int, int]], eps: tuple[int, int]
) -> None:
    for p, q in itertools.product(left, right):
        if all(abs(x - y) <= side for x, y, side in zip(p, q, eps, strict=True)):
            below, above = (tuple(x + s * e for x, e in zip(p, eps, strict=True)) for s in (-1, 1))
            assert cell(below, eps) <= cell(q, eps) <= cell(above, eps)


def test_grid_order__as_printed_is_the_other_way_round_and_loses_a_partner() -> None:
    p, eps = (5,), (2,)

    def is_before_as_printed(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        return cell(other, eps) < cell(one, eps)

    # "a point q cannot be a join mate of p if q < p - eps": by the printed order, p itself is such a q
    assert is_before_as_printed(p, (3,))
    assert in_grid_order(np.array([[5.0], [3.0]]), eps).tolist() == [[3.0], [5.0]]


tenths = st.integers(-40, 40).map(lambda n: n / 10)
points = st.lists(st.tuples(tenths, tenths), min_size=1, max_size=24).map(lambda rows: np.array(rows, float))
thresholds = st.tuples(*[st.sampled_from((0.0, 0.1, 0.3, 0.7, np.inf))] * 2).map(np.array)


@examples(300)
@given(points, points, thresholds, st.integers(1, 5))
def test_find_partners__misses_no_pages_with_a_pair_within_eps(
    left: np.ndarray, right: np.ndarray, eps: np.ndarray, page_rows: int
) -> None:
    sorted_ = [in_grid_order(side, eps) for side in (left, right)]
    starts = [np.arange(0, len(side), page_rows) for side in sorted_]
    boxes = [box_pages(side, begin) for side, begin in zip(sorted_, starts, strict=True)]
    partners = find_partners(*boxes, eps)
    assert all((np.diff(found) > 0).all() for found in partners)
    for (i, x), (j, y) in itertools.product(*(enumerate(side) for side in sorted_)):
        if (np.abs(x - y) <= eps).all():
            assert j // page_rows in partners[i // page_rows]
    for i, found in enumerate(partners):  # and has none whose boxes are farther apart
        gaps = np.maximum(
            boxes[0].lower[i] - boxes[1].upper[found], boxes[1].lower[found] - boxes[0].upper[i]
        )
        assert (gaps <= eps).all()
