"""A sweep row by row, for few dimensions, by the decision itself on 8 candidates at once.

The sweep with windows (:mod:`epsjoin.kernels.sweep.window`) filters candidates by float32 coordinates, and
those that are left wait for the decision. In up to ``MAX_DIMENSIONS`` the decision, in float64 on the
coordinates as they came, costs no more than a filter:

1. The candidates of a row lie between entries of a directory (:mod:`epsjoin.kernels.sweep.row_windows`).
2. The decision gives a bit for each of 8 candidates (:mod:`epsjoin.kernels.sweep.row_vectors`). Most eights
   have no partner; from the others, the candidates whose bits are set are packed.

Partners become pairs in one of two ways:

* Where there are few, each row looks ahead only, so that each pair is found once (:func:`find_pairs`), and
  all pairs are sorted afterwards (:mod:`epsjoin.kernels.pairs.sort_pairs`).
* Where there are many, sorting pairs, and the memory that it touches, costs more than finding them. So each
  row looks at all its neighbours, in both directions, and keeps those with larger row numbers. These are
  counted for all rows (:func:`count_partners`), found again, sorted while a core's cache holds them, and
  written where they belong, as one *run* (:func:`write_partners`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bytes, Floats, Ints, Ints32
from epsjoin.kernels.pairs.sort_pairs import FEW, sort_group
from epsjoin.kernels.simd.lanes import PLACES
from epsjoin.kernels.sweep.row_vectors import (
    count_bits,
    keep_lanes_2,
    keep_lanes_3,
    near_keys_2,
    near_keys_3,
    near_lanes_2,
    near_lanes_3,
    rows_below,
)
from epsjoin.kernels.sweep.row_windows import RowWindows, find_window

_ROWS_AT_ONCE = 64
"""Maximum number of rows whose partners are found before they are sorted: what a core has just written, it
does not read at once in other pieces."""
_CANDIDATES_AT_ONCE = 1 << 14
"""Maximum number of candidates of these rows, where one row has fewer."""


class Eights(NamedTuple):
    """Candidates, 8 and 8, some of which are partners.

    Parameters
    ----------
    here : (m,) int32, place of the row whose candidates they are.
    first : (m,) int32, place of the first of the 8.
    bits : (m,) uint8, which of them are partners.
    """

    here: Ints32
    first: Ints32
    bits: Bytes


@njit
def new_eights(room: int) -> Eights:
    """Make room for so many."""
    return Eights(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.uint8))


@njit
def add_eight(eights: Eights, count: int, here: int, first: int, bits: int) -> int:
    """Add 8 candidates if one of them is a partner; return how many eights there are then."""
    # without a branch: no processor could foresee whether there is a partner
    eights.here[count], eights.first[count], eights.bits[count] = here, first, bits
    return count + int(bits != 0)


_Count = Callable[[RowWindows, float, int, int, Ints], int]
_Write = Callable[[RowWindows, float, int, int, Ints, int, Ints, Floats], None]
_Find = Callable[[RowWindows, float, int, int, Ints, int, Ints], int]


def _make_kernels(size: int) -> tuple[_Count, _Write, _Find]:
    """Compile the kernels for one number of coordinates, a constant in them."""

    @njit
    def count(rows: RowWindows, bound: float, begin: int, end: int, runs: Ints) -> int:
        near, row, steps, is_self = rows.near, rows.row, rows.steps, rows.is_self
        n = row.shape[0]
        ends = np.zeros((steps.shape[0], 2), np.int64)
        total = 0
        for here in range(begin, end):
            least = row[here] if is_self else -1
            found = 0
            for step in range(steps.shape[0]):
                first, last = find_window(rows, here, step, steps[step], False, ends)
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
    def write(
        rows: RowWindows,
        bound: float,
        begin: int,
        end: int,
        runs: Ints,
        room: int,
        right: Ints,
        distance: Floats,
    ) -> None:
        near, row, steps, is_self = rows.near, rows.row, rows.steps, rows.is_self
        n = row.shape[0]
        ends = np.zeros((steps.shape[0], 2), np.int64)
        at_once = max(1, min(_ROWS_AT_ONCE, _CANDIDATES_AT_ONCE // max(1, room)))
        partners = np.empty(at_once * room + PLACES, np.int32)
        squares = np.empty(at_once * room + PLACES, np.float64)
        eights = new_eights(at_once * (room // PLACES + steps.shape[0]) + 1)
        for low_row in range(begin, end, at_once):
            high_row = min(low_row + at_once, end)
            count = 0
            for here in range(low_row, high_row):
                if runs[row[here]] == runs[row[here] + 1]:
                    continue
                least = row[here] if is_self else -1
                for step in range(steps.shape[0]):
                    first, last = find_window(rows, here, step, steps[step], False, ends)
                    while first < last:
                        if size == 2:
                            bits = near_lanes_2(near, row, here, first, last, bound, least, n)
                        else:
                            bits = near_lanes_3(near, row, here, first, last, bound, least, n)
                        count = add_eight(eights, count, here, first, bits)
                        first += PLACES
            total = 0
            for eight in range(count):
                here, first, bits = eights.here[eight], eights.first[eight], eights.bits[eight]
                if size == 2:
                    total += keep_lanes_2(near, row, here, first, bits, partners, squares, total, n)
                else:
                    total += keep_lanes_3(near, row, here, first, bits, partners, squares, total, n)
            at = 0
            for here in range(low_row, high_row):
                begin_run = runs[row[here]]
                number = runs[row[here] + 1] - begin_run
                if number > FEW:
                    sort_group(partners, squares, at, at + number)
                for i in range(at, at + number):
                    to = begin_run + i - at
                    if number <= FEW:  # by rank: nothing branches on how rows compare
                        to = begin_run
                        for other in range(at, at + number, PLACES):
                            to += rows_below(partners, other, at + number - other, partners[i])
                    distance[to] = math.sqrt(squares[i])
                    right[to] = partners[i]
                at += number

    @njit
    def find(
        rows: RowWindows, bound: float, begin: int, end: int, steps: Ints, right_bits: int, keys: Ints
    ) -> int:
        near, row, is_self = rows.near, rows.row, int(rows.is_self)
        n = row.shape[0]
        ends = np.zeros((steps.shape[0], 2), np.int64)
        filled = 0
        for here in range(begin, end):
            for step in range(steps.shape[0]):
                is_own = is_self != 0 and steps[step] == 0
                first, last = find_window(rows, here, step, steps[step], is_own, ends)
                while first < last:
                    if size == 2:
                        filled += near_keys_2(
                            near, row, here, first, last, bound, is_self, right_bits, keys, filled, n
                        )
                    else:
                        filled += near_keys_3(
                            near, row, here, first, last, bound, is_self, right_bits, keys, filled, n
                        )
                    first += PLACES
        return filled

    return count, write, find


_count_2, _write_2, _find_2 = _make_kernels(2)
_count_3, _write_3, _find_3 = _make_kernels(3)


def count_partners(rows: RowWindows, bound: float, begin: int, end: int, runs: Ints) -> int:
    """Count the partners of some rows.

    Parameters
    ----------
    rows : from :func:`epsjoin.kernels.sweep.row_windows.row_windows`. Several threads may look at some of its
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
    room : no row has more candidates than this.
    right, distance : all pairs; those of these rows are written.
    """
    write = _write_2 if rows.n_coordinates == 2 else _write_3
    write(rows, bound, begin, end, runs, room, right, distance)


def find_pairs(
    rows: RowWindows, bound: float, begin: int, end: int, steps: Ints, right_bits: int, keys: Ints
) -> int:
    """Write the pairs that some rows find as they look ahead, in the order in which they are found.

    Parameters
    ----------
    rows, bound, begin, end : as for :func:`count_partners`.
    steps : from :func:`epsjoin.kernels.sweep.row_windows.steps_ahead`.
    right_bits : number of bits of a right row.
    keys : the pairs, as ``left << right_bits | right``, written from the beginning; it has room for all
        candidates of these rows, and for ``PLACES`` more.

    Returns
    -------
    int
        Number of pairs.

    Notes
    -----
    O(candidates).
    """
    find = _find_2 if rows.n_coordinates == 2 else _find_3
    return int(find(rows, bound, begin, end, steps, right_bits, keys))
