"""The fast join inside a part: a grid over a few coordinates, a window along one, a filter, the decision.

1. :func:`~epsjoin.kernels.sweep.window_keys.sort_keys` makes one 64-bit key of each row,
   ``group | cell | tick | row``, and sorts the keys. A cell is at least eps wide in each grid coordinate; a
   tick is a small fraction of eps along the sweep coordinate.
2. Rows that can be within eps lie in neighbouring cells, their ticks in a window. So for each difference of
   cells (a *pass*) the candidates of a row are the rows whose place, ``cell | tick``, is near the row's place
   plus a constant: two pointers that only move forward. Where rows lie densely, their gaps to the borders of
   cells narrow the windows (:mod:`epsjoin.kernels.sweep.window_gaps`), and a directory tells where these
   begin and end.
3. Candidates are filtered in blocks of 32, in float32, on at most eight coordinates, with slack for every
   rounding: a bit per candidate, no branch. Dense rows go by products, half the work, where that needs little
   more slack.
4. Candidates that pass wait, and are decided by the mask (:mod:`epsjoin.kernels.plan.cuts`), then in float64
   on the coordinates as they came (:mod:`epsjoin.kernels.sweep.survivors`).

No projection of the points increases a distance, so any coordinates serve
(:mod:`epsjoin.kernels.projection`).
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from epsjoin.errors import BudgetError
from epsjoin.kernels.accelerate import A, njit
from epsjoin.kernels.arrays import Bools, Floats, Floats32, Ints, Ints8, Ints32
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.pairs.batch import CANDIDATES, DISTANCES, LARGEST_STACK, PAIRS, PairBatch
from epsjoin.kernels.projection import (
    MAXIMUM,
    PRODUCTS,
    SQUARES,
    Projection,
    add_half_squares,
    filter_coordinates,
    project,
)
from epsjoin.kernels.ranges import Ranges, in_one_range
from epsjoin.kernels.sweep.directory import make_directory
from epsjoin.kernels.sweep.survivors import WAITING, DecidedRows, decide_survivors, new_survivors
from epsjoin.kernels.sweep.vectors import BLOCK, add_lanes, filter_block
from epsjoin.kernels.sweep.window_gaps import ROWS_AT_ONCE, Gaps, narrow_visits, new_visits
from epsjoin.kernels.sweep.window_keys import (
    SELF_MEETINGS,
    TWO_TABLE_MEETINGS,
    highest_place,
    look_up_windows,
    lower_bound,
    move_windows,
    sort_keys,
)

_COPIED_DIMENSIONS = 8
"""Maximum number of dimensions of points that are copied in the order of the sweep: such rows are at most one
cache line long, and copied they share lines with their neighbours in the sweep."""
MAX_ROWS = (1 << 32) - 1
"""Maximum number of rows: survivors are numbered in 32 bits."""
_PRODUCT_ROUNDING = 2.0**-19
"""Slack of a squared distance by products, for each unit of the square of the longest row. Sums of nine terms
stay below one and a half of that square, so half the squared distance is off by 15 * 2**-24 of it at most."""
_MAX_SLACK = 1.0 / 16.0
"""Maximum of that slack, in squares of the reach: more lets too many pairs pass."""
WORK_PER_CALL = 1 << 22
"""Number of blocks, and distances of 8 dimensions, after which a sweep returns: tenths of a second, so that
its caller may stop."""
_STEP, _ROW, _CANDIDATE, _DONE = 0, 1, 2, 5


class WindowRows(NamedTuple):
    """Rows of a part in the order of the window sweep.

    Parameters
    ----------
    points : (m, d) float64, coordinates as they came.
    row : (n,) int64, where in ``points`` each row is.
    near : ((f + 1) * stride,) float32, filter coordinates in units of the reach, one after the other; behind
        them, where the filter goes by products, what
        :func:`~epsjoin.kernels.projection.add_half_squares` writes, else 0.
    stride : n + ``BLOCK``, as a block may be read beyond the last row.
    n_coordinates : f, 2, 4 or 8.
    norm : how differences of filter coordinates add up, see :mod:`epsjoin.kernels.projection`.
    bound : float32, the bound of the filter: no pair within eps exceeds it; half of it by products.
    place : (n,) int64, ``group | cell | tick``, ascending.
    window : ticks that a window reaches ahead and back.
    ids : (n,) int64.
    mask : (n,) int64, see :mod:`epsjoin.kernels.plan.cuts`; (0,) where it is 0 for all rows.
    passes : (s, 5 + g) int64: begin and end of the rows, begin and end of their targets, difference of
        places, and by how many cells of each of g grid coordinates that moves, -1, 0 or 1.
    gaps : how far rows lie from the borders of their cells.
    starts : (bins,) int32, the directory (:mod:`epsjoin.kernels.sweep.directory`) by which windows that are
        narrowed are found; (0,) where they are not, and pointers move along.
    is_self : whether a pair is (smaller id, larger id), not (row, target).
    """

    points: Floats
    row: Ints
    near: Floats32
    stride: int
    n_coordinates: int
    norm: int
    bound: np.float32
    place: Ints
    window: int
    ids: Ints
    mask: Ints
    passes: Ints
    gaps: Gaps
    starts: Ints32
    is_self: bool


def window_rows(
    points: Floats,
    embedded: Floats,
    ids: Ints | None,
    mask: Ints,
    eps: float,
    projection: Projection,
    is_right: Bools | None = None,
    ranges: Ranges = in_one_range,
) -> WindowRows:
    """Put the rows of a part in the order of the window sweep.

    Parameters
    ----------
    points : (n, d) float64 in C order, original coordinates; embedded : (n, e) float64. Not modified.
    ids : (n,) int64; None: the numbers of the rows.
    mask : (n,) int64; rows whose mask has bit 0 are carried, and not compared with each other. (0,) if the
        mask of all rows is 0.
    eps : threshold in embedded coordinates.
    projection : any is exact.
    is_right : (n,) bool: rows of the right table are compared with those of the left; None: one table.
    ranges : how ranges of rows are worked on.

    Raises
    ------
    BudgetError
        There are more than ``MAX_ROWS`` rows.

    Notes
    -----
    O(n log n + n d). Memory: 4 bytes per filter coordinate and 40 bytes per row, 16 of them for ids and masks
    where there are any; points of at most eight dimensions are copied in the order of the sweep. Longer ones
    are read where they are, and must not change before the sweep ends: few rows are read after the filter,
    and a copy comes from memory, not from the cache, twice.
    """
    if len(points) > MAX_ROWS:
        raise BudgetError(
            f"one sweep takes {MAX_ROWS:,} rows at most, not {len(points):,}; cut the join into parts, "
            "on arrays by cuts=epsjoin.Cuts(n_parts=...)"
        )
    if not points.flags.c_contiguous:  # what is read and written goes by it
        raise ValueError("points of a sweep must be in C order")
    group, meetings = _groups(mask, is_right)
    n_keyed = projection.n_grid + 1
    count = max(n_keyed, projection.n_filter) if projection.is_rotated else n_keyed
    coordinates, reach = project(embedded, projection, count, eps, ranges)
    how = projection.n_grid, group, meetings, projection.norm
    keys = sort_keys(coordinates[:n_keyed], *how, ranges=ranges)
    is_copied = points.shape[1] <= _COPIED_DIMENSIONS
    near, largest = filter_coordinates(embedded, coordinates, keys.row, projection, reach, BLOCK, ranges)
    del coordinates
    norm, size, stride = projection.norm, projection.n_filter, len(points) + BLOCK
    bound, starts = _filter_bound(norm, size, largest), np.empty(0, np.int32)
    if keys.gaps.are_known:
        highest = highest_place(keys.place, keys.passes, keys.window)
        starts = make_directory(keys.place, highest, keys.gaps.shift, ranges)
        square = add_half_squares(near, size, stride, len(points), ranges)
        slack = _PRODUCT_ROUNDING * square
        if slack <= _MAX_SLACK:
            norm, bound = PRODUCTS, np.float32((float(bound) + slack) * 0.5 * (1.0 + 1e-6))
    return WindowRows(
        points=_take(points, keys.row, ranges) if is_copied else points,
        row=np.arange(len(points)) if is_copied else keys.row,
        near=near,
        stride=stride,
        n_coordinates=size,
        norm=norm,
        bound=bound,
        place=keys.place,
        window=keys.window,
        ids=keys.row if ids is None else _take(ids, keys.row, ranges),
        mask=_take(mask, keys.row, ranges) if mask.any() else mask[:0],
        passes=keys.passes,
        gaps=keys.gaps,
        starts=starts,
        is_self=is_right is None,
    )


def _groups(mask: Ints, is_right: Bools | None) -> tuple[Ints8, tuple[tuple[int, int], ...]]:
    """The group of each row, and which groups meet, as ``sort_keys`` takes them."""
    carried = (mask & 1).astype(np.int8)
    if is_right is not None:
        side = np.int8(2) * is_right.astype(np.int8)
        return carried + side if len(carried) else side, TWO_TABLE_MEETINGS
    return (carried, SELF_MEETINGS) if carried.any() else (np.empty(0, np.int8), ((0, 0),))


def _take(rows: A, order: Ints, ranges: Ranges) -> A:
    """Copy rows in the given order."""
    taken = np.empty((len(order), *rows.shape[1:]), rows.dtype)

    def take(_: int, begin: int, end: int) -> None:
        # "raise" would copy them twice
        rows.take(order[begin:end], axis=0, out=taken[begin:end], mode="clip")

    ranges(len(order), take)
    return cast("A", taken)


def _filter_bound(norm: int, size: int, largest: float) -> np.float32:
    """Compute the bound that the float32 filter compares with, for coordinates up to ``largest`` reaches.

    Rounding to float32 moves a coordinate by 2**-24 of it at most, a difference by twice that; the sums
    themselves round by a few 2**-24 of what they add up.
    """
    slack = 2.0**-22 * largest
    if norm == SQUARES:
        bound = (1.0 + slack * size**0.5) ** 2
    elif norm == MAXIMUM:
        bound = 1.0 + slack
    else:
        bound = 1.0 + slack * size
    bound *= 1.0 + 1e-5
    return np.float32(bound if bound < 3e38 else np.inf)


def new_state() -> Ints:
    """Make the state of a sweep that has not begun."""
    state = np.zeros(6, np.int64)
    state[_ROW] = -1
    return state


def is_done(state: Ints) -> bool:
    """Whether a sweep has come to its end."""
    return bool(state[_DONE])


@njit
def window_sweep(
    state: Ints,
    rows: WindowRows,
    chunk_begin: int,
    chunk_end: int,
    decision: Decision,
    batch: PairBatch,
    counters: Ints,
) -> int:
    """Compare the rows of a chunk with all rows after them, until the batch is full or some time has passed.

    Parameters
    ----------
    state : from :func:`new_state`, one per chunk; modified.
    rows : from :func:`window_rows`. Chunks of it may be swept at the same time, by several threads.
    chunk_begin, chunk_end : rows of the chunk. Chunks that divide the rows find each pair once.
    decision : the metric's decision on the original coordinates.
    batch : filled from its beginning with ids; needs room for ``BLOCK`` pairs at least.
    counters : (4,) int64, added to, see :mod:`epsjoin.kernels.sweep.stack_sweep`.

    Returns
    -------
    int
        Pairs written. The chunk is at its end when :func:`is_done`.

    Notes
    -----
    O(passes x rows + candidates).
    """
    near, stride, bound, place = rows.near, rows.stride, rows.bound, rows.place
    size, norm, window = rows.n_coordinates, rows.norm, rows.window
    room = batch.left.shape[0] - BLOCK
    passes = rows.passes
    step, row, candidate = state[_STEP], state[_ROW], state[_CANDIDATE]
    decided = DecidedRows(rows.points, rows.row, rows.ids, rows.mask, rows.is_self)
    survivors = new_survivors()
    # Names for what the innermost loop needs: taken out of the tuple there, it costs more.
    survivor_place, survivor_other = survivors.place, survivors.other
    waiting = 0
    written = 0
    work = 0
    price = 1 + rows.points.shape[1] // 8
    visits = new_visits()
    visit_row, visit_first, visit_last = visits.row, visits.first, visits.last
    while step < passes.shape[0]:
        begin = max(chunk_begin, passes[step, 0])
        end = min(chunk_end, passes[step, 1])
        if begin >= end:
            step += 1
            continue
        # Step 2 of the module: the candidates of each row lie side by side.
        if row < 0:
            row, candidate = begin, -1
        first = lower_bound(place, passes[step, 2], passes[step, 3], place[row] + passes[step, 4] - window)
        pointers = first, first
        while row < end:
            listed_end = min(row + ROWS_AT_ONCE, end)
            if rows.starts.shape[0] > 0:
                listed = narrow_visits(rows.gaps, passes, step, window, row, listed_end, visits)
                listed = look_up_windows(place, rows.starts, passes[step], rows.gaps.shift, listed, visits)
            else:
                listed, pointers = move_windows(
                    place, passes[step], window, row, listed_end, pointers, visits
                )
            for visit in range(listed):
                row, first, last = visit_row[visit], visit_first[visit], visit_last[visit]
                if candidate < 0:
                    candidate = first
                    counters[CANDIDATES] += last - first
                    counters[LARGEST_STACK] = max(counters[LARGEST_STACK], last - first + 1)
                while candidate < last:
                    if waiting > WAITING - BLOCK or written + waiting > room or work >= WORK_PER_CALL:
                        rest = PairBatch(
                            batch.left[written:], batch.right[written:], batch.distance[written:]
                        )
                        found, distances = decide_survivors(decided, decision, survivors, waiting, rest)
                        written += found
                        counters[DISTANCES] += distances
                        work += price * waiting
                        waiting = 0
                        if written > room or work >= WORK_PER_CALL:
                            state[_STEP] = step
                            state[_ROW] = row
                            state[_CANDIDATE] = candidate
                            counters[PAIRS] += written
                            return written
                    work += 1
                    # Step 3: filter a block of candidates, one bit each.
                    left_over = filter_block(near, stride, candidate, row, bound, norm, size)
                    if last - candidate < BLOCK:
                        left_over &= (np.int64(1) << (last - candidate)) - 1
                    # Step 4: what has passed waits, all lanes of a block at once.
                    if left_over != 0:
                        waiting = add_lanes(
                            left_over, row, candidate, survivor_place, survivor_other, waiting
                        )
                    candidate += BLOCK
                candidate = -1
            row = listed_end
        row = -1
        step += 1
    rest = PairBatch(batch.left[written:], batch.right[written:], batch.distance[written:])
    found, distances = decide_survivors(decided, decision, survivors, waiting, rest)
    written += found
    state[_STEP] = step
    state[_DONE] = 1
    counters[DISTANCES] += distances
    counters[PAIRS] += written
    return written
