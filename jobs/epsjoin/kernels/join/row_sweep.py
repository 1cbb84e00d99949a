"""A sweep row by row, for few dimensions: all partners of a row are found at once, and sorted.

The sweep with windows (:mod:`epsjoin.kernels.join.window`) finds each pair once, from that of its rows which
comes first, in an order that all pairs must then be sorted from. In few dimensions sorting pairs, and the
memory that it touches, costs more than finding them. So here each row looks at all its neighbours, in both
directions, and keeps those with larger row numbers:

1. The candidates of a row lie between entries of a directory (:mod:`epsjoin.kernels.join.row_windows`).
2. There is no filter: in up to ``MAX_DIMENSIONS`` the decision itself, in float64 on the coordinates as they
   came, costs no more: a bit for each of 8 candidates at once (:mod:`epsjoin.kernels.join.row_vectors`).
   Most eights have no partner; of the others, those are packed whose bits are set.
3. A row's partners are sorted while a core's cache holds them, and written as one *run*. Either the partners
   of all rows are counted before, and each run is written where it belongs (:func:`count_partners`,
   :func:`write_partners`); or runs are written one after the other (:func:`find_partners`), and
   :func:`put_in_order` copies them. The first needs no memory but the result's, the second finds everything
   once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints, Ints32
from epsjoin.kernels.join.lanes import PLACES
from epsjoin.kernels.join.near_pairs import read_ahead
from epsjoin.kernels.join.row_vectors import (
    count_bits,
    keep_lanes_2,
    keep_lanes_3,
    near_lanes_2,
    near_lanes_3,
    rows_below,
)
from epsjoin.kernels.join.row_windows import RowWindows, narrow_down
from epsjoin.kernels.join.sort_pairs import FEW, sort_group

SIZE_BITS = 24
"""Number of the lowest bits of a run that tell its size; the others tell where it begins."""
_ROWS_AT_ONCE = 64
"""Maximum number of rows whose partners are found before they are sorted: what a core has just written, it
does not read at once in other pieces."""
_CANDIDATES_AT_ONCE = 1 << 14
"""Maximum number of candidates of these rows, where one row has fewer."""
_ROWS_AHEAD = 16
"""Number of rows by which the memory is asked before a run is read."""

_Count = Callable[[RowWindows, float, int, int, Ints], int]
_Find = Callable[[RowWindows, float, int, int, Ints, int, int, Ints32, Ints, Floats], int]


def _make_kernels(size: int) -> tuple[_Count, _Find]:
    """Compile both kernels for one number of coordinates, a constant in them."""

    @njit
    def count(rows: RowWindows, bound: float, begin: int, end: int, runs: Ints) -> int:
        near, row, place, starts, steps = rows.near, rows.row, rows.place, rows.starts, rows.steps
        shift, narrow, window, is_self = rows.shift, rows.narrow, rows.window, rows.is_self
        n = row.shape[0]
        ends = np.zeros((steps.shape[0], 2), np.int64)
        total = 0
        for here in range(begin, end):
            least = row[here] if is_self else -1
            found = 0
            for step in range(steps.shape[0]):
                goal = place[here] + steps[step]
                low, high = goal - window, goal + window
                first, last = int(starts[low >> shift]), int(starts[(high >> shift) + 1])
                if last - first > narrow:
                    first, last = narrow_down(place, first, last, low, high, step, ends)
                while first < last:
                    if size == 2:
                        bits = near_lanes_2(near, row, here, first, last, bound, least, n)
                    else:
                        bits = near_lanes_3(near, row, here, first, last, bound, least, n)
                    found += count_bits(bits)
                    first += PLACES
            runs[row[here] + 1] = found
            total += found
        return total

    @njit
    def find(
        rows: RowWindows,
        bound: float,
        begin: int,
        end: int,
        runs: Ints,
        filled: int,
        room: int,
        found: Ints32,
        right: Ints,
        distance: Floats,
    ) -> int:
        near, row, place, starts, steps = rows.near, rows.row, rows.place, rows.starts, rows.steps
        shift, narrow, window, is_self = rows.shift, rows.narrow, rows.window, rows.is_self
        n = row.shape[0]
        ends = np.zeros((steps.shape[0], 2), np.int64)
        at_once = max(1, min(_ROWS_AT_ONCE, _CANDIDATES_AT_ONCE // max(1, room)))
        partners = np.empty(at_once * room + PLACES, np.int32)
        squares = np.empty(at_once * room + PLACES, np.float64)
        counts = np.empty(at_once, np.int64)
        most_eights = at_once * (room // PLACES + steps.shape[0]) + 1
        eight_here, eight_first = np.empty(most_eights, np.int32), np.empty(most_eights, np.int32)
        eight_bits = np.empty(most_eights, np.uint8)
        is_counted = filled < 0
        for low_row in range(begin, end, at_once):
            high_row = min(low_row + at_once, end)
            total, eights = 0, 0
            for here in range(low_row, high_row):
                least = row[here] if is_self else -1
                before = total
                n_steps = steps.shape[0]
                if is_counted and runs[row[here]] == runs[row[here] + 1]:
                    n_steps = 0
                for step in range(n_steps):
                    goal = place[here] + steps[step]
                    low, high = goal - window, goal + window
                    first, last = int(starts[low >> shift]), int(starts[(high >> shift) + 1])
                    if last - first > narrow:
                        first, last = narrow_down(place, first, last, low, high, step, ends)
                    while first < last:
                        if size == 2:
                            bits = near_lanes_2(near, row, here, first, last, bound, least, n)
                        else:
                            bits = near_lanes_3(near, row, here, first, last, bound, least, n)
                        # without a branch: whether there is a partner, no processor foresees
                        eight_here[eights], eight_first[eights], eight_bits[eights] = here, first, bits
                        eights += int(bits != 0)
                        total += count_bits(bits)
                        first += PLACES
                counts[here - low_row] = total - before
            total = 0
            for eight in range(eights):
                here, first, bits = eight_here[eight], eight_first[eight], eight_bits[eight]
                if size == 2:
                    total += keep_lanes_2(near, row, here, first, bits, partners, squares, total, n)
                else:
                    total += keep_lanes_3(near, row, here, first, bits, partners, squares, total, n)
            at = 0
            for here in range(low_row, high_row):
                number = counts[here - low_row]
                begin_run = runs[row[here]] if is_counted else filled
                if number > FEW:
                    sort_group(partners, squares, at, at + number)
                for i in range(at, at + number):
                    to = begin_run + i - at
                    if number <= FEW:  # by rank: nothing branches on how rows compare
                        to = begin_run
                        for other in range(at, at + number, PLACES):
                            to += rows_below(partners, other, at + number - other, partners[i])
                    distance[to] = math.sqrt(squares[i])
                    if is_counted:
                        right[to] = partners[i]
                    else:
                        found[to] = partners[i]
                if not is_counted:
                    runs[row[here]] = (filled << SIZE_BITS) | number
                    filled += number
                at += number
        return filled

    return count, find


_count_2, _find_2 = _make_kernels(2)
_count_3, _find_3 = _make_kernels(3)
_NONE, _NONE_32 = np.empty(0, np.int64), np.empty(0, np.int32)


def count_partners(rows: RowWindows, bound: float, begin: int, end: int, runs: Ints) -> int:
    """Count the partners of some rows.

    Parameters
    ----------
    rows : from :func:`epsjoin.kernels.join.row_windows.row_windows`. Several threads may look at some of its
        rows each.
    bound : Euclid's, see :class:`epsjoin.kernels.distances.Decision`.
    begin, end : places of the rows.
    runs : (n_left + 1,) int64; how many partners a row has is written behind its row number.

    Returns
    -------
    int
        Partners of all these rows.

    Notes
    -----
    O(candidates).
    """
    return int((_count_2 if rows.n_coordinates == 2 else _count_3)(rows, bound, begin, end, runs))


def write_partners(
    rows: RowWindows, bound: float, begin: int, end: int, runs: Ints, room: int, right: Ints, distance: Floats
) -> None:
    """Write the partners of some rows where they belong, those of each by ascending row number.

    Parameters
    ----------
    rows, bound, begin, end : as for :func:`count_partners`.
    runs : (n_left + 1,) int64, by row number, where the partners of each row begin; those of the row before
        end there.
    room : no row has more candidates.
    right, distance : all pairs; those of these rows are written.
    """
    find = _find_2 if rows.n_coordinates == 2 else _find_3
    find(rows, bound, begin, end, runs, -1, room, _NONE_32, right, distance)


def find_partners(
    rows: RowWindows,
    bound: float,
    begin: int,
    end: int,
    runs: Ints,
    filled: int,
    room: int,
    found: Ints32,
    distance: Floats,
) -> int:
    """Write the partners of some rows, run after run, those of each row by ascending row number.

    Parameters
    ----------
    rows, bound, begin, end : as for :func:`count_partners`.
    runs : (n_left,) int64, by row number; where the partners of each of these rows begin, and how many there
        are in the lowest ``SIZE_BITS`` bits, is written.
    filled : where the first run is to be written, and all others behind it.
    room : no row has more candidates, fewer than ``2**SIZE_BITS``.
    found, distance : (m,) partners and their distances, written from ``filled`` on.

    Returns
    -------
    int
        Where the last run ends.
    """
    find = _find_2 if rows.n_coordinates == 2 else _find_3
    return int(find(rows, bound, begin, end, runs, filled, room, found, _NONE, distance))


@njit
def count_pairs(runs: Ints, begin: int, end: int) -> int:
    """Add up the sizes of the runs of some rows, as :func:`find_partners` wrote them."""
    total = 0
    for row in range(begin, end):
        total += runs[row] & ((1 << SIZE_BITS) - 1)
    return total


@njit
def put_in_order(
    runs: Ints,
    begin: int,
    end: int,
    to: int,
    found: Ints32,
    found_distance: Floats,
    left: Ints,
    right: Ints,
    distance: Floats,
) -> None:
    """Copy the runs of some rows to where they belong.

    Parameters
    ----------
    runs : by row number, from :func:`find_partners`.
    begin, end : row numbers.
    to : where the first of these runs is to begin.
    found, found_distance : the partners and distances that it wrote.
    left, right, distance : all pairs; those of these rows are written.
    """
    for row in range(begin, end):
        soon = runs[min(row + _ROWS_AHEAD, end - 1)] >> SIZE_BITS
        read_ahead(found, soon)
        read_ahead(found_distance, soon)
        at = runs[row] >> SIZE_BITS
        size = runs[row] & ((1 << SIZE_BITS) - 1)
        for i in range(size):
            left[to + i] = row
            right[to + i] = found[at + i]
            distance[to + i] = found_distance[at + i]
        to += size
