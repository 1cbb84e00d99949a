"""The rows of a sweep row by row in the order of their places, and where the partners of each can be.

Rows are sorted as for a sweep with windows (:mod:`epsjoin.kernels.sweep.window_keys`). The candidates
of a row in one pass lie between two entries of a directory (:mod:`epsjoin.kernels.sweep.directory`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_inner
from epsjoin.kernels.arrays import Bools, Floats, Ints, Ints32
from epsjoin.kernels.projection import Projection, project
from epsjoin.kernels.ranges import Ranges, in_one_range
from epsjoin.kernels.simd.read_ahead import read_ahead
from epsjoin.kernels.sweep.directory import bin_shift, make_directory
from epsjoin.kernels.sweep.window_keys import Keys, sort_keys

MAX_DIMENSIONS = 3
"""Maximum number of dimensions of points that are swept row by row."""
MAX_ROWS = (1 << 31) - 1
"""Maximum number of rows: their numbers and the directory are of int32."""
_SIZES = (2, 3)
"""Numbers of coordinates for which kernels are compiled; points with fewer have zeros in the others."""
NARROW = 32
"""Maximum number of candidates between two entries of the directory whose ends are not looked for."""
_ROWS_AT_ONCE = 64
"""Number of rows whose coordinates are copied at once."""


class RowWindows(NamedTuple):
    """Rows in the order of their places, and where the partners of each can be.

    Parameters
    ----------
    near : (c * n,) float64, coordinates as they came, one after the other, zeros beyond those of the points.
    n_coordinates : c, one of ``_SIZES``.
    row : (n,) int32, the number of each row in its table.
    place : (n,) int64, ``group | cell | tick``, ascending.
    starts : (bins,) int32, first row with a place in each bin of ``2**shift`` places, or after it.
    shift : see ``starts``.
    narrow : a window with at most this many candidates may keep all rows of its bins; 0 where a bin has
        places of more than one cell, so that a row would be found in more than one pass.
    steps : (s,) int64, differences of places, one for each pass.
    window : ticks that a window reaches ahead and back.
    n_queries : number of rows whose partners are looked for: they come first.
    is_self : whether a partner must have a larger row number.
    """

    near: Floats
    n_coordinates: int
    row: Ints32
    place: Ints
    starts: Ints32
    shift: int
    narrow: int
    steps: Ints
    window: int
    n_queries: int
    is_self: bool


@njit
def _gather(
    points: Floats, order: Ints, n_left: int, near: Floats, row: Ints32, first: int, last: int
) -> None:
    """Fill a range of ``near`` and ``row``; the right table's rows are those from ``n_left`` on.

    Some rows are first copied as they are, and the memory is asked for those that come after them.
    """
    n, d = points.shape
    flat = points.reshape(-1)
    copied = np.empty((_ROWS_AT_ONCE, d), np.float64)
    for begin in range(first, last, _ROWS_AT_ONCE):
        count = min(_ROWS_AT_ONCE, last - begin)
        for i in range(count):
            read_ahead(flat, order[min(begin + i + _ROWS_AT_ONCE, n - 1)] * d)
            number = order[begin + i]
            row[begin + i] = number if number < n_left else number - n_left
            for j in range(d):
                copied[i, j] = points[number, j]
        for j in range(d):
            for i in range(count):
                near[j * n + begin + i] = copied[i, j]


class SortedRows(NamedTuple):
    """Rows in the order of their places, without a directory of these.

    Parameters
    ----------
    keys : the order, and the places.
    steps : (s,) int64, see :class:`RowWindows`.
    n_queries : number of rows whose partners are looked for: they come first.
    highest : the highest place that a window reaches.
    """

    keys: Keys
    steps: Ints
    n_queries: int
    highest: int


def sort_rows(
    embedded: Floats,
    eps: float,
    projection: Projection,
    is_right: Bools | None,
    ranges: Ranges = in_one_range,
) -> SortedRows:
    """Put rows in the order of their places; parameters are those of :func:`row_windows`."""
    group = np.empty(0, np.int8) if is_right is None else is_right.astype(np.int8)
    meetings = ((0, 0),) if is_right is None else ((0, 1),)
    coordinates, _ = project(embedded, projection, projection.n_grid + 1, eps, ranges)
    keys = sort_keys(coordinates, projection.n_grid, group, meetings, ranges=ranges)
    steps = np.ascontiguousarray(keys.passes[:, 4])
    if is_right is None:
        steps = np.concatenate((-steps[:0:-1], steps))  # the first one is 0
    n_queries = int(keys.passes[:, 1].max(initial=0))
    highest = int(keys.place[-1]) if len(keys.place) else 0
    if n_queries:
        highest = max(highest, int(keys.place[n_queries - 1] + steps.max()) + keys.window)
    return SortedRows(keys, steps, n_queries, highest)


def is_fine(steps: Ints, shift: int) -> bool:
    """Whether no bin of ``2**shift`` places has places of two passes."""
    return len(steps) < 2 or 1 << shift <= int(np.diff(steps).min())


def row_windows(
    points: Floats,
    embedded: Floats,
    eps: float,
    projection: Projection,
    is_right: Bools | None,
    ranges: Ranges = in_one_range,
) -> RowWindows:
    """Put rows in the order of their places, and make the directory of these.

    Parameters
    ----------
    points : (n, d) float64, coordinates as they came, d up to ``MAX_DIMENSIONS``; not modified.
    embedded : (n, e) float64; not modified.
    eps : threshold in embedded coordinates.
    projection : any is exact.
    is_right : (n,) bool, False for the rows of the left table, which come first; the partners of each are
        rows of the right one, whose numbers begin at 0. None: one table.
    ranges : how ranges of rows are worked on.

    Notes
    -----
    O(n log n). Memory: 44 to 52 bytes for each row, and 8 for each coordinate that makes keys until then.
    """
    n, d = points.shape
    keys, steps, n_queries, highest = sort_rows(embedded, eps, projection, is_right, ranges)
    size = next(size for size in _SIZES if size >= d)
    near, row = np.zeros(size * n), np.empty(n, np.int32)
    n_left = n if is_right is None else n - int(np.count_nonzero(is_right))
    ranges(n, lambda _, *rows: _gather(points, keys.row, n_left, near, row, *rows))
    shift = bin_shift(highest, n)
    starts = make_directory(keys.place, highest, shift, ranges)
    narrow = NARROW if is_fine(steps, shift) else 0
    windows = keys.place, starts, shift, narrow, steps, keys.window
    return RowWindows(near, size, row, *windows, n_queries, is_right is None)


def steps_ahead(rows: RowWindows) -> Ints:
    """Choose the passes in which each pair is found once: for one table, those that look ahead."""
    return np.ascontiguousarray(rows.steps[rows.steps >= 0]) if rows.is_self else rows.steps


@njit_inner
def find_window(
    rows: RowWindows, here: int, at: int, step: int, is_after: bool, ends: Ints
) -> tuple[int, int]:
    """First candidate of a row in one pass, and the one after the last.

    Parameters
    ----------
    here : place of the row.
    at, step : number of the pass, and its difference of places.
    is_after : whether candidates must come after the row.
    ends : (s, 2) int64, zeros at first: where the last window of each pass began and ended, as windows of one
        pass move forward.
    """
    goal = rows.place[here] + step
    low, high = goal - rows.window, goal + rows.window
    first, last = int(rows.starts[low >> rows.shift]), int(rows.starts[(high >> rows.shift) + 1])
    if is_after:
        first = here + 1
    if last - first > rows.narrow:
        return _narrow_down(rows.place, first, last, low, high, at, ends)
    return first, last


@njit_inner
def _narrow_down(
    place: Ints, first: int, last: int, low: int, high: int, step: int, ends: Ints
) -> tuple[int, int]:
    """First row from ``first`` on with a place from ``low`` on, and the one after the last up to ``high``."""
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
    total, largest : of all these rows, and of one of them. In a self join a row is among its own candidates,
        and each pair is counted at both rows.
    """
    steps = rows.steps
    ends = np.zeros((steps.shape[0], 2), np.int64)
    total = 0
    largest = 0
    for here in range(begin, end):
        count = 0
        for step in range(steps.shape[0]):
            first, last = find_window(rows, here, step, steps[step], False, ends)
            count += last - first
        total += count
        largest = max(largest, count)
    return total, largest
