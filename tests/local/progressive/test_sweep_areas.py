"""Sweep areas: one protocol, the same pairs; and the order of its steps, which two figures confuse."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.codes import cube_corners, is_prefix, owns_pair
from epsjoin.local.bestmatch.orders import Closest
from epsjoin.local.bestmatch.waiting import StreamArea, StreamRows
from epsjoin.local.progressive.kinds.columns import Band, Temporal
from epsjoin.local.progressive.kinds.point_areas import StackArea, WindowArea
from epsjoin.local.progressive.kinds.similarity import Similarity
from epsjoin.local.progressive.kinds.sweep_areas import SortedArea
from epsjoin.local.progressive.rows import IS_RIGHT, NO_RUN, SweepRows
from epsjoin.local.sweep.area import SweepArea
from oracles import examples
from oracles import join as twin
from tests.local.progressive.cases import OF_POINTS, RowByRow, fitted, make_case


def rows_of(kind, values, two_tables, n_runs, seed=0) -> SweepRows:
    n = len(values)
    random = np.random.default_rng(seed + 99)
    row, key, mark = kind.keyed(values, np.arange(n))
    flags = (random.integers(0, 2, n) * int(two_tables) * IS_RIGHT).astype(np.uint8)
    run = random.integers(0, n_runs, n).astype(np.int32) if n_runs else np.full(n, NO_RUN, np.int32)
    return SweepRows(key, row, row, flags[row], values[row], mark, run[row]).sorted()


def swept(area: SweepArea, rows: SweepRows, ends: list[int]) -> Counter[tuple[int, int]]:
    """What an area finds when rows come in blocks that end there."""
    found: Counter[tuple[int, int]] = Counter()
    for begin, end in zip([0, *ends], [*ends, rows.n], strict=True):
        block = rows.take(slice(begin, end))
        if not block.n:
            continue
        area.expire(block.key[0])
        for met in area.query(block):
            found.update(
                zip(met.rows.ids[met.first].tolist(), met.rows.ids[met.second].tolist(), strict=True)
            )
        area.insert(block)
    assert area.size <= rows.n
    assert area.expire(None) is None or area.size == 0
    return found


@examples(60)
@given(
    st.sampled_from(list(OF_POINTS)),
    st.sampled_from(twin.KINDS),
    st.booleans(),
    st.sampled_from([0, 3, 7]),
    st.integers(1, 40),
    st.integers(0, 2**16),
)
def test_compiled_areas__find_what_the_sorted_area_finds(name, points, two_tables, n_runs, step, seed):
    case = make_case(name, 40, seed, points)
    kind = fitted(case, case.rows, 9)
    rows = rows_of(kind, case.rows, two_tables, n_runs, seed)
    ends = (
        (np.flatnonzero(np.diff(rows.key)) + 1).tolist()
        if name == "planned"
        else [*range(step, rows.n, step)]
    )
    slow = swept(SortedArea(RowByRow(kind), {}, two_tables), rows, ends)
    area = kind.new_area({}, two_tables)
    assert isinstance(area, WindowArea if name == "planned" else StackArea)
    fast = swept(area, rows, ends)
    assert {tuple(sorted(pair)): n for pair, n in fast.items()} == {
        tuple(sorted(p)): n for p, n in slow.items()
    }
    assert set(slow.values()) <= {1}


@examples(30)
@given(st.integers(1, 12), st.integers(0, 2**16))
def test_stream_area__of_either_stream_finds_what_the_sorted_area_finds(step, seed):
    values = np.random.default_rng(seed).integers(0, 30, (50, 1)).astype(np.float64)
    kind = Band(2.0)
    rows = rows_of(kind, values, True, 0, seed)
    areas = [StreamArea(1, [Closest((0,), 2.0)], 2.0, is_left, 100, {}) for is_left in (True, False)]
    found: Counter[tuple[int, int]] = Counter()
    gone = 0
    for begin in range(0, rows.n, step):
        block = rows.take(slice(begin, begin + step))
        for side, area in enumerate(areas):
            gone += len(area.expire(float(block.key[0])).ids)
            of_side = block.take(block.is_right == bool(side))
            mine = StreamRows(of_side.values, of_side.ids, of_side.number)
            for left, right, met in areas[1 - side].query(mine):
                found.update(zip(left.ids[met.left].tolist(), right.ids[met.right].tolist(), strict=True))
            area.insert(mine)
    assert found == swept(SortedArea(kind, {}, True), rows, [*range(step, rows.n, step)])
    assert gone + sum(len(area.expire(None).ids) for area in areas) == 50
    assert gone > 20


def test_stack_area__compares_no_rows_that_have_met():
    points = np.random.default_rng(3).random((400, 2))
    kind = Similarity(0.05, cuts="regular", k=0).fit(points, 400)
    counted = []
    for n_runs in (0, 2, 1):
        counters: dict[str, int] = {}
        swept(kind.new_area(counters, False), rows_of(kind, points, False, n_runs), [])
        counted.append(counters["candidates"])
    assert 0.4 * counted[0] < counted[1] < 0.6 * counted[0]
    assert counted[2] == 0


@pytest.mark.parametrize("kind", [Band(2.0), Temporal()])
@pytest.mark.parametrize("two_tables", [False, True])
def test_sorted_area__finds_the_same_in_blocks_of_any_size(kind, two_tables):
    low = np.random.default_rng(0).integers(0, 30, (50, 1)).astype(np.float64)
    values = low if isinstance(kind, Band) else np.concatenate((low, low + 3.0), axis=1)
    rows = rows_of(kind, values, two_tables, 3)
    whole = swept(SortedArea(kind, {}, two_tables), rows, [])
    assert sum(whole.values()) > 50
    for step in (1, 3, 20):
        assert swept(SortedArea(kind, {}, two_tables), rows, [*range(step, rows.n, step)]) == whole


def test_sorted_area__holds_no_row_that_has_expired():
    kind = Band(1.0)
    rows = rows_of(kind, np.array([[0.0], [0.5], [1.2], [5.0]]), False, 0)
    area = SortedArea(kind, {}, False)
    area.insert(rows.take(slice(0, 3)))
    dropped = area.expire(1.3)
    assert dropped is not None
    assert dropped.ids.tolist() == [0]
    assert area.size == 2
    assert area.expire(9.0).ids.tolist() == [1, 2]


def stack_merge(codes, is_right, joins, reorganise_own) -> tuple[Counter[tuple[int, int]], int]:
    """The merge of figures 4.3 to 4.5 with a stack for each table's area, as in figure 3.1.

    A row is inserted into its own area; the other one drops what has expired, then it is queried. In figure
    3.1 both drop it, before anything else.
    """
    stacks: tuple[list[int], list[int]] = ([], [])
    found: Counter[tuple[int, int]] = Counter()
    largest = 0
    for row in range(len(codes)):
        own, other = stacks[::-1] if is_right[row] else stacks
        for stack in (own, other) if reorganise_own else (other,):
            while stack and not is_prefix(codes[stack[-1]], codes[row]):
                stack.pop()
        own.append(row)
        found.update((known, row) for known in other if joins(known, row))
        largest = max(largest, *map(len, stacks))
    return found, largest


def test_areas__are_reorganised_before_a_row_is_inserted():
    points = np.random.default_rng(5).random((120, 2))
    of_right = np.arange(len(points)) % 2 == 1
    kind = Similarity(0.1, cuts="regular", k=1, msl=3).fit(points, 120)
    rows = rows_of(kind, points, False, 0)
    codes = rows.key.view(np.uint8).reshape(rows.n, -1)

    expected = {pair for pair in twin.brute_force(points, 0.1) if of_right[pair[0]] != of_right[pair[1]]}
    space = kind.codes.space
    lower, _ = cube_corners(rows.values, space.axes, space.low, space.width, space.eps)

    def joins(x: int, y: int) -> bool:  # the reference point method with the longer code, as the text has it
        pair = tuple(sorted((int(rows.ids[x]), int(rows.ids[y]))))
        return pair in expected and bool(owns_pair(codes[y], lower[x], lower[y]))

    right, small = stack_merge(codes, of_right[rows.ids], joins, reorganise_own=True)
    wrong, large = stack_merge(codes, of_right[rows.ids], joins, reorganise_own=False)

    def of_ids(found: Counter[tuple[int, int]]) -> Counter[tuple[int, int]]:
        ids: Counter[tuple[int, int]] = Counter()
        for (x, y), n in found.items():
            ids[tuple(sorted((int(rows.ids[x]), int(rows.ids[y]))))] += n
        return ids

    assert of_ids(right) == Counter(expected)
    twice = sum(n > 1 for n in of_ids(wrong).values())
    assert twice > len(expected) // 10
    assert large > 3 * small


@pytest.mark.parametrize(("goes_on", "pairs"), [(all, []), (any, [("0", "00")])])
def test_figure_3_1__goes_on_while_either_sequence_has_rows(goes_on, pairs):
    """To the letter it ends with the first sequence, and the cubes within the last one's meet nobody."""
    sequences, stacks, found = [["0"], ["00"]], ([], []), []
    while goes_on(sequences):
        of = min((side for side in (0, 1) if sequences[side]), key=lambda side: sequences[side][0])
        cube = sequences[of].pop(0)
        for stack in stacks:
            while stack and not cube.startswith(stack[-1]):
                stack.pop()
        found += [(other, cube) for other in stacks[1 - of]]
        stacks[of].append(cube)
    assert found == pairs
