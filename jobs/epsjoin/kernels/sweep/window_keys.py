"""Sorted keys of a window sweep: which rows may be within eps of which, before any coordinate is compared.

The keys are steps 1 and 2 of the join inside a part, see :mod:`epsjoin.kernels.sweep.window`.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints, Ints8, Ints32
from epsjoin.kernels.projection import MAXIMUM, SQUARES
from epsjoin.kernels.ranges import Ranges, in_one_range
from epsjoin.kernels.sorting import sort_numbers
from epsjoin.kernels.sweep.directory import bin_shift
from epsjoin.kernels.sweep.vectors import skip_below
from epsjoin.kernels.sweep.window_gaps import (
    MOVES,
    ROWS_AT_ONCE,
    Gaps,
    Visits,
    find_gaps,
    narrow_visits,
    new_visits,
)

SELF_MEETINGS = ((0, 0), (0, 1))
"""Pairs of groups that are compared in a self join: group 0 has the own rows, group 1 the carried ones."""
TWO_TABLE_MEETINGS = ((0, 2), (0, 3), (1, 2))
"""Pairs of groups that are compared between two tables: own, carried rows of the left, then of the right."""
_TICKS = 64
"""Number of ticks per eps along the sweep coordinate; finer ticks save few candidates."""
_MAX_CELLS = 1 << 20
"""Maximum number of cells along one coordinate; rounding stays far below a cell."""
_MAX_SHIFT = 3
"""Windows are narrowed where bins of ``2**_MAX_SHIFT`` places, an eighth of eps, are not too many: where a
window of eps ahead and back has some four rows and more."""
_MIN_NARROWED = 2
"""Minimum number of grid coordinates by which windows are narrowed."""
_KEY_BITS = 62
"""Number of bits of a key: it is a positive int64, and so is a place plus or minus a window."""


class Keys(NamedTuple):
    """Rows in the order of the sweep, without their coordinates.

    Parameters
    ----------
    row : (n,) int64, the row at each place.
    place, window, passes, gaps : see :class:`epsjoin.kernels.sweep.window.WindowRows`.
    """

    row: Ints
    place: Ints
    window: int
    passes: Ints
    gaps: Gaps


@njit
def _write_keys(
    coordinates: Floats,
    group: Ints8,
    low: Floats,
    cell: Floats,
    factors: Ints,
    ticks: float,
    window: int,
    tick_bits: int,
    row_bits: int,
    keys: Ints,
    begin: int,
    end: int,
) -> None:
    """Write ``group | cell | tick | row`` of a range of rows."""
    for row in range(begin, end):
        place = np.int64(group[row]) if group.shape[0] else np.int64(0)
        for i in range(factors.shape[0]):
            number = np.int64((coordinates[i + 1, row] - low[i + 1]) / cell[i])
            place = place * factors[i] + number + 1
        tick = np.int64((coordinates[0, row] - low[0]) * ticks) + window
        keys[row] = (((place << tick_bits) | tick) << row_bits) | row


def sort_keys(
    coordinates: Floats,
    n_grid: int,
    group: Ints8,
    meetings: tuple[tuple[int, int], ...],
    norm: int = MAXIMUM,
    n_rows: int = 0,
    ranges: Ranges = in_one_range,
) -> Keys:
    """Sort rows by (group, cell, tick) and list the passes that bring together what may be within eps.

    Parameters
    ----------
    coordinates : (c, n) float64, in units of the reach (:func:`project`); 0 is swept, 1 to ``n_grid`` make
        the grid. Not modified.
    n_grid : grid coordinates to use; fewer are when a key has no room for them.
    group : (n,) int8 from 0 on, or empty: all rows are of group 0.
    meetings : pairs of groups that are compared; a group with itself: each row with the later ones.
    norm : with ``SQUARES``, rows within 1 of each other by Euclid's distance meet, and windows are narrowed
        where rows lie densely. With any other norm, rows meet whose coordinates all differ by 1 at most.
    n_rows : rows of the sweep of which these are a sample; 0: these are all.
    ranges : how ranges of rows, and of keys, are worked on.

    Notes
    -----
    O(n log n): one sort of 64-bit integers. Two rows within 1 of each other in every coordinate meet in
    exactly one pass, and their ticks differ by less than the window: cells and ticks of coordinates that
    differ by 1 at most differ by 1 and ``ticks + 1`` at most; one tick more covers rounding.
    """
    n = coordinates.shape[1]
    n_groups = 1 + max(max(pair) for pair in meetings)
    row_bits = max(1, (n - 1).bit_length()) if n else 1
    low, high = _extremes(coordinates, ranges)
    extent = high - low
    room = _KEY_BITS - row_bits
    cell: list[float] = []
    factors: list[int] = []
    n_cells = 1
    for axis in range(1, n_grid + 1):
        side = max(1.0, float(extent[axis]) / _MAX_CELLS)
        factor = int(extent[axis] / side) + 3
        if (n_groups * n_cells * factor).bit_length() + 12 > room:  # some bits are better spent on ticks
            break
        n_cells *= factor
        cell.append(side)
        factors.append(factor)
    room -= (n_cells * n_groups).bit_length()
    ticks = min(float(_TICKS), (2.0**room - 16.0) / (float(extent[0]) + 4.0))
    window = int(ticks) + 2
    tick_bits = (int(float(extent[0]) * ticks) + 2 * window + 2).bit_length()
    place = np.empty(n, np.int64)
    how = low, np.array(cell), np.array(factors, np.int64), ticks, window, tick_bits, row_bits
    ranges(n, lambda _, *rows: _write_keys(coordinates, group, *how, place, *rows))
    row = _sort_and_split(place, row_bits, ranges)
    moves = list(itertools.product((-1, 0, 1), repeat=len(factors)))
    steps = [0]
    for factor in factors:
        steps = [step * factor + move for step, move in itertools.product(steps, (-1, 0, 1))]
    begins = np.searchsorted(place, np.arange(n_groups + 1) * n_cells << tick_bits).tolist()
    passes = [
        (begins[a], begins[a + 1], begins[b], begins[b + 1], ((b - a) * n_cells + step) << tick_bits, *move)
        for a, b in meetings
        for step, move in zip(steps, moves, strict=True)
        if (a != b or step >= 0) and begins[a] < begins[a + 1] and begins[b] < begins[b + 1]
    ]
    table = np.array(passes, np.int64).reshape(len(passes), MOVES + len(factors))
    shift = bin_shift(highest_place(place, table, window), max(n, n_rows))
    is_narrowed = norm == SQUARES and len(factors) >= _MIN_NARROWED and shift <= _MAX_SHIFT
    sides = np.array(cell if is_narrowed else [])
    gaps = find_gaps(coordinates[1 : 1 + len(sides)], low[1:], sides, ticks, shift, row, ranges)
    return Keys(row, place, window, table, gaps)


def highest_place(place: Ints, passes: Ints, window: int) -> int:
    """The highest place that a window reaches."""
    ends = passes[passes[:, 0] < passes[:, 1]]
    highest = int(place[-1]) if len(place) else 0
    return max(highest, int((place[ends[:, 1] - 1] + ends[:, 4]).max(initial=0)) + window)


def _extremes(coordinates: Floats, ranges: Ranges) -> tuple[Floats, Floats]:
    """The lowest and the highest of each coordinate, 0 where there are no rows; (c,) float64 each."""
    n = coordinates.shape[1]
    if n == 0:
        return np.zeros(len(coordinates)), np.zeros(len(coordinates))
    some = ranges(n, lambda _, a, b: (coordinates[:, a:b].min(axis=1), coordinates[:, a:b].max(axis=1)))
    lows, highs = zip(*some, strict=True)
    return np.min(lows, axis=0), np.max(highs, axis=0)


def _sort_and_split(keys: Ints, row_bits: int, ranges: Ranges) -> Ints:
    """Sort keys and return the rows in their last bits; what is left of the keys is the places.

    Keys are first parted into those of each range, which takes a tenth of the time of sorting.
    """
    row = np.empty(len(keys), np.int64)
    begins = ranges(len(keys), lambda _, begin, __: begin)
    rising_bits = row_bits  # a key was made for each row
    if len(begins) > 1:
        keys.partition(begins[1:])
        rising_bits = 0

    def sort(_: int, begin: int, end: int) -> None:
        some = keys[begin:end]
        sort_numbers(some, rising_bits)
        np.bitwise_and(some, (1 << row_bits) - 1, out=row[begin:end])
        some >>= row_bits

    ranges(len(keys), sort)
    return row


@njit
def lower_bound(place: Ints, begin: int, end: int, value: int) -> int:
    """First index from ``begin`` on whose place is not below ``value``; without a branch for each step."""
    count = end - begin
    while count > 1:
        half = count >> 1
        begin += half * int(place[begin + half - 1] < value)
        count -= half
    return begin + int(count > 0 and place[begin] < value)


@njit
def move_windows(
    place: Ints, of_pass: Ints, window: int, begin: int, end: int, pointers: tuple[int, int], visits: Visits
) -> tuple[int, tuple[int, int]]:
    """List the rows of a pass whose windows are not empty, by two pointers that only move forward.

    Parameters
    ----------
    place, window : of the sweep; of_pass : a row of its passes.
    begin, end : places of the rows, at most ``ROWS_AT_ONCE``.
    pointers : where the window of the row before begins and ends.
    visits : filled from its beginning.

    Returns
    -------
    listed, pointers : number of rows that are listed; where the window of the last row begins and ends.
    """
    row, firsts, lasts = visits.row, visits.first, visits.last
    first, last = pointers
    target_end, difference = of_pass[3], of_pass[4]
    listed = 0
    for here in range(begin, end):
        goal = place[here] + difference
        if difference == 0:
            first = here + 1
        else:
            first = skip_below(place, first, target_end, goal - window)
        last = skip_below(place, max(first, last), target_end, goal + window + 1)
        row[listed], firsts[listed], lasts[listed] = here, first, last
        listed += int(first < last)
    return listed, (first, last)


@njit
def _find_bins(place: Ints, of_pass: Ints, shift: int, listed: int, visits: Visits) -> None:
    """Find windows as :func:`look_up_windows` does, but without a directory."""
    for visit in range(listed):
        row, reach = visits.row[visit], visits.reach[visit]
        goal = place[row] + of_pass[4]
        first = lower_bound(place, 0, place.shape[0], (goal - reach) >> shift << shift)
        visits.first[visit] = row + 1 if of_pass[4] == 0 else first
        end = (((goal + reach) >> shift) + 1) << shift
        visits.last[visit] = lower_bound(place, visits.first[visit], place.shape[0], end)


@njit
def look_up_windows(
    place: Ints, starts: Ints32, of_pass: Ints, shift: int, listed: int, visits: Visits
) -> int:
    """Find the windows of listed rows by a directory, and leave those that are not empty.

    Parameters
    ----------
    place : of the sweep; starts, shift : its directory; of_pass : a row of its passes.
    listed : rows that :func:`epsjoin.kernels.sweep.window_gaps.narrow_visits` has listed.
    visits : modified.

    Returns
    -------
    int
        Number of rows that are left.
    """
    row, firsts, lasts, reach = visits.row, visits.first, visits.last, visits.reach
    difference = of_pass[4]
    kept = 0
    for visit in range(listed):
        here = row[visit]
        goal = place[here] + difference
        first, last = starts[(goal - reach[visit]) >> shift], starts[((goal + reach[visit]) >> shift) + 1]
        if difference == 0:
            first = here + 1
        row[kept], firsts[kept], lasts[kept] = here, first, last
        kept += int(first < last)
    return kept


@njit
def window_candidates(keys: Keys) -> tuple[Ints, int]:
    """Count the candidates that a window sweep would filter, by place, without filtering them.

    Parameters
    ----------
    keys : from :func:`sort_keys`.

    Returns
    -------
    candidates : (n,) int64. A pair is counted at the row whose window it is in.
    visits : number of windows of which the gaps of their rows leave something.
    """
    place, passes, window = keys.place, keys.passes, keys.window
    counts = np.zeros(place.shape[0], np.int64)
    visits = new_visits()
    n_visits = 0
    for step in range(passes.shape[0]):
        pointers = passes[step, 2], passes[step, 2]
        for begin in range(passes[step, 0], passes[step, 1], ROWS_AT_ONCE):
            end = min(begin + ROWS_AT_ONCE, passes[step, 1])
            if keys.gaps.offset.shape[0] > 0:
                listed = narrow_visits(keys.gaps, passes, step, window, begin, end, visits)
                n_visits += listed
                _find_bins(place, passes[step], keys.gaps.shift, listed, visits)
            else:
                n_visits += end - begin
                listed, pointers = move_windows(place, passes[step], window, begin, end, pointers, visits)
            for visit in range(listed):
                counts[visits.row[visit]] += visits.last[visit] - visits.first[visit]
    return counts, n_visits
