"""A sweep row by row, for few dimensions: all partners of a row are found at once, and sorted.

The sweep with windows (:mod:`epsjoin.kernels.join.window`) finds each pair once, from that of its rows which
comes first, in an order that all pairs must then be sorted from. In few dimensions sorting pairs, and the
memory that it touches, costs more than finding them. So here each row looks at all its neighbours, in both
directions, and keeps those with larger row numbers:

1. Keys are sorted as there (:mod:`epsjoin.kernels.join.window_keys`). A directory says where each of a
   number of bins of places begins; so the candidates of a row in one pass lie between two entries of it, and
   no pointer moves.
2. There is no filter: in up to ``MAX_DIMENSIONS`` the decision itself, in float64 on the coordinates as they
   came, costs no more: 8 candidates at once (:mod:`epsjoin.kernels.join.vectors`).
3. A row's partners are sorted while a core's cache holds them, and written as one run. Either the partners of
   all rows are counted before, and each run is written where it belongs; or runs are written one after the
   other, and :func:`put_in_order` copies them. The first needs no memory but the result's, the second finds
   everything once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bools, Floats, Ints, Ints32
from epsjoin.kernels.join.projection import Projection, project
from epsjoin.kernels.join.sort_pairs import FEW, sort_group
from epsjoin.kernels.join.vectors import PLACES, keep_near_2, keep_near_3
from epsjoin.kernels.join.window_keys import sort_keys

MAX_DIMENSIONS = 3
"""Maximum number of dimensions of points that are swept row by row."""
MAX_ROWS = (1 << 31) - 1
"""Maximum number of rows: the directory is of int32."""
_SIZES = (2, 3)
"""Numbers of coordinates for which kernels are compiled; points with fewer have zeros in the others."""
_BINS_PER_ROW = 4
"""Maximum number of bins of the directory for each row."""
_NARROW = 32
"""Maximum number of candidates between two entries of the directory whose ends are not looked for."""
BEGIN, SIZE = range(2)
"""Columns of the runs of partners: where each begins, how many there are."""
_ROWS_AT_ONCE = 64
"""Number of rows whose coordinates are copied at once."""


class RowWindows(NamedTuple):
    """Rows in the order of their places, and where the partners of each can be.

    Parameters
    ----------
    near : (c * n,) float64, coordinates as they came, one after the other, zeros beyond those of the points.
    n_coordinates : c, one of ``_SIZES``.
    row : (n,) int64, the number of each row in its table.
    place : (n,) int64, ``group | cell | tick``, ascending.
    starts : (bins,) int32, first row with a place in each bin of ``2**shift`` places, or after it.
    shift : see ``starts``.
    narrow : number of candidates up to which a window may have those of whole bins; 0 where a bin has places
        of more than one cell, so that a row would be found in more than one pass.
    steps : (s,) int64, differences of places, one for each pass.
    window : ticks that a window reaches ahead and back.
    n_queries : number of the first rows, whose partners are looked for.
    is_self : whether a partner must have a larger row number.
    """

    near: Floats
    n_coordinates: int
    row: Ints
    place: Ints
    starts: Ints32
    shift: int
    narrow: int
    steps: Ints
    window: int
    n_queries: int
    is_self: bool


@njit
def _gather(points: Floats, row: Ints, near: Floats) -> None:
    """Fill ``near``: some rows are first copied as they are, by reads that wait for nothing."""
    n, d = points.shape
    copied = np.empty((_ROWS_AT_ONCE, d), np.float64)
    for begin in range(0, n, _ROWS_AT_ONCE):
        count = min(_ROWS_AT_ONCE, n - begin)
        for i in range(count):
            for j in range(d):
                copied[i, j] = points[row[begin + i], j]
        for j in range(d):
            for i in range(count):
                near[j * n + begin + i] = copied[i, j]


@njit
def _fill_directory(place: Ints, shift: int, starts: Ints32) -> None:
    n_filled = 0
    for i in range(place.shape[0]):
        while n_filled <= place[i] >> shift:
            starts[n_filled] = i
            n_filled += 1
    starts[n_filled:] = place.shape[0]


def row_windows(
    points: Floats, embedded: Floats, eps: float, projection: Projection, is_right: Bools | None = None
) -> RowWindows:
    """Put rows in the order of their places.

    Parameters
    ----------
    points : (n, d) float64, coordinates as they came, d up to ``MAX_DIMENSIONS``; not modified.
    embedded : (n, e) float64; not modified.
    eps : threshold in embedded coordinates.
    projection : any is exact.
    is_right : (n,) bool, False for the rows of the left table, which come first; the partners of each are
        rows of the right one, whose numbers begin at 0. None: one table.

    Notes
    -----
    O(n log n). Memory: 48 to 56 bytes for each row, and 8 for each coordinate that makes keys until then.
    """
    n, d = points.shape
    group = np.empty(0, np.int8) if is_right is None else is_right.astype(np.int8)
    coordinates, _ = project(embedded, projection, projection.n_grid + 1, eps)
    keys = sort_keys(coordinates, projection.n_grid, group, ((0, 0),) if is_right is None else ((0, 1),))
    del coordinates
    size = next(size for size in _SIZES if size >= d)
    near = np.zeros(size * n)
    _gather(points, keys.row, near)
    steps = keys.passes[:, 4]
    if is_right is None:
        steps = np.concatenate((-steps[:0:-1], steps))  # the first one is 0
    n_queries = int(keys.passes[:, 1].max(initial=0))
    highest = int(keys.place[-1]) if n else 0
    if n_queries:
        highest = max(highest, int(keys.place[n_queries - 1] + steps.max()) + keys.window)
    shift = 0
    while highest >> shift > _BINS_PER_ROW * n:
        shift += 1
    starts = np.empty((highest >> shift) + 2, np.int32)
    _fill_directory(keys.place, shift, starts)
    row = keys.row
    if is_right is not None:
        row[n_queries:] -= np.count_nonzero(~is_right)
    is_fine = len(steps) < 2 or 1 << shift <= np.diff(steps).min()
    windows = keys.place, starts, shift, _NARROW if is_fine else 0, np.ascontiguousarray(steps), keys.window
    return RowWindows(near, size, row, *windows, n_queries, is_right is None)


@njit
def _narrow_down(
    place: Ints, first: int, last: int, low: int, high: int, step: int, ends: Ints
) -> tuple[int, int]:
    """First row from ``first`` on with a place from ``low`` on, and the one after the last up to ``high``.

    Two pointers of the step move forward in ``ends``, (s, 2), as the windows of one step do.
    """
    first = max(first, ends[step, 0])
    while first < last and place[first] < low:
        first += 1
    end = max(first, ends[step, 1])
    while end < last and place[end] <= high:
        end += 1
    ends[step, 0] = first
    ends[step, 1] = end
    return first, end


@njit
def count_candidates(rows: RowWindows, begin: int, end: int) -> tuple[int, int]:
    """Count the rows that each row from ``begin`` to ``end`` will be compared with.

    Returns
    -------
    total, largest : of all these rows, and of one of them. In a self join a row itself is among its own, and
        each pair is counted at both rows.
    """
    place, starts, steps = rows.place, rows.starts, rows.steps
    shift, narrow, window = rows.shift, rows.narrow, rows.window
    ends = np.zeros((steps.shape[0], 2), np.int64)
    total = 0
    largest = 0
    for here in range(begin, end):
        count = 0
        for step in range(steps.shape[0]):
            goal = place[here] + steps[step]
            low, high = goal - window, goal + window
            first, last = int(starts[low >> shift]), int(starts[(high >> shift) + 1])
            if last - first > narrow:
                first, last = _narrow_down(place, first, last, low, high, step, ends)
            count += last - first
        total += count
        largest = max(largest, count)
    return total, largest


_Count = Callable[[RowWindows, float, int, int, Ints], int]
_Find = Callable[[RowWindows, float, int, int, Ints, int, int, Ints, Floats], int]


def _make_kernels(size: int) -> tuple[_Count, _Find]:
    """Compile both kernels for one number of coordinates, a constant in them."""

    @njit
    def count(rows: RowWindows, bound: float, begin: int, end: int, runs: Ints) -> int:
        near, row, place, starts, steps = rows.near, rows.row, rows.place, rows.starts, rows.steps
        shift, narrow, window, is_self = rows.shift, rows.narrow, rows.window, rows.is_self
        n = row.shape[0]
        ends = np.zeros((steps.shape[0], 2), np.int64)
        kept, squares = np.empty(PLACES, np.int64), np.empty(PLACES, np.float64)
        total = 0
        for here in range(begin, end):
            least = row[here] if is_self else -1
            found = 0
            for step in range(steps.shape[0]):
                goal = place[here] + steps[step]
                low, high = goal - window, goal + window
                first, last = int(starts[low >> shift]), int(starts[(high >> shift) + 1])
                if last - first > narrow:
                    first, last = _narrow_down(place, first, last, low, high, step, ends)
                while first < last:
                    if size == 2:
                        found += keep_near_2(near, row, here, first, last, bound, least, kept, squares, 0, n)
                    else:
                        found += keep_near_3(near, row, here, first, last, bound, least, kept, squares, 0, n)
                    first += PLACES
            runs[row[here], SIZE] = found
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
        right: Ints,
        distance: Floats,
    ) -> int:
        near, row, place, starts, steps = rows.near, rows.row, rows.place, rows.starts, rows.steps
        shift, narrow, window, is_self = rows.shift, rows.narrow, rows.window, rows.is_self
        n = row.shape[0]
        ends = np.zeros((steps.shape[0], 2), np.int64)
        found = np.empty(room + PLACES, np.int64)
        squares = np.empty(room + PLACES, np.float64)
        for here in range(begin, end):
            query = row[here]
            if filled < 0 and runs[query, SIZE] == 0:
                continue
            least = query if is_self else -1
            count = 0
            for step in range(steps.shape[0]):
                goal = place[here] + steps[step]
                low, high = goal - window, goal + window
                first, last = int(starts[low >> shift]), int(starts[(high >> shift) + 1])
                if last - first > narrow:
                    first, last = _narrow_down(place, first, last, low, high, step, ends)
                while first < last:
                    if size == 2:
                        kept = keep_near_2(
                            near, row, here, first, last, bound, least, found, squares, count, n
                        )
                    else:
                        kept = keep_near_3(
                            near, row, here, first, last, bound, least, found, squares, count, n
                        )
                    count += kept
                    first += PLACES
            if count <= FEW:  # here by itself: a call costs more than sorting a few
                for i in range(1, count):
                    partner, square, to = found[i], squares[i], i
                    while to > 0 and found[to - 1] > partner:
                        found[to], squares[to] = found[to - 1], squares[to - 1]
                        to -= 1
                    found[to], squares[to] = partner, square
            else:
                sort_group(found, squares, 0, count)
            if filled < 0:
                to = runs[query, BEGIN]
            else:
                to = filled
                filled += count
                runs[query, BEGIN] = to
                runs[query, SIZE] = count
            for i in range(count):
                right[to + i] = found[i]
                distance[to + i] = math.sqrt(squares[i])
        return filled

    return count, find


_count_2, _find_2 = _make_kernels(2)
_count_3, _find_3 = _make_kernels(3)


def count_partners(rows: RowWindows, bound: float, begin: int, end: int, runs: Ints) -> int:
    """Count the partners of some rows.

    Parameters
    ----------
    rows : from :func:`row_windows`. Several threads may look at some of its rows each.
    bound : Euclid's, see :class:`epsjoin.kernels.distances.Decision`.
    begin, end : places of the rows.
    runs : as for :func:`find_partners`; its sizes are written.

    Returns
    -------
    int
        Partners of all these rows.

    Notes
    -----
    O(candidates).
    """
    return int((_count_2 if rows.n_coordinates == 2 else _count_3)(rows, bound, begin, end, runs))


def find_partners(
    rows: RowWindows,
    bound: float,
    begin: int,
    end: int,
    runs: Ints,
    filled: int,
    room: int,
    right: Ints,
    distance: Floats,
) -> int:
    """Write the partners of some rows, those of each by ascending row number, and their distances.

    Parameters
    ----------
    rows, bound, begin, end : as for :func:`count_partners`.
    runs : (n_left, 2) int64, by row number, where the partners of each row begin and how many they are. Read
        where ``filled`` is below 0, else written.
    filled : where the first run is to be written, and all others behind it; -1 where ``runs`` tells.
    room : no row has more candidates.
    right, distance : written.

    Returns
    -------
    int
        Where the last run ends; -1 if ``filled`` is.
    """
    find = _find_2 if rows.n_coordinates == 2 else _find_3
    return int(find(rows, bound, begin, end, runs, filled, room, right, distance))


@njit
def put_in_order(
    runs: Ints, ends: Ints, found: Ints, found_distance: Floats, right: Ints, distance: Floats
) -> None:
    """Copy runs of pairs to where they belong.

    Parameters
    ----------
    runs : by row number, where :func:`find_partners` wrote the partners of each row.
    ends : by row number, where it is to end; it is to begin where the one before ends.
    found, found_distance : the right rows and distances that it wrote.
    right, distance : written.
    """
    to = np.int64(0)
    for row in range(ends.size):
        move = runs[row, BEGIN] - to
        while to < ends[row]:
            right[to] = found[to + move]
            distance[to] = found_distance[to + move]
            to += 1
