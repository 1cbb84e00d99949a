"""Which rows have a partner within eps: the window sweep of a semi join, which makes no pairs.

The rows, passes and blocks are those of :mod:`epsjoin.kernels.sweep.window`. A row is skipped from its first
partner on. Its candidates are looked through from its own place in the window outwards, in its own cell
before the neighbouring ones: where points are dense, the first block of 32 has a partner.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.kernels.distances import Decision, decide
from epsjoin.kernels.pairs.batch import CANDIDATES, DISTANCES, LARGEST_STACK, PAIRS
from epsjoin.kernels.sweep.vectors import BLOCK, filter_block, lowest_lane
from epsjoin.kernels.sweep.window import WORK_PER_CALL, WindowRows
from epsjoin.kernels.sweep.window_keys import lower_bound

_STEP, _ROW, _FIRST, _MIDDLE, _LAST, _DONE = range(6)


def look_both_ways(rows: WindowRows) -> WindowRows:
    """Give rows of :func:`epsjoin.kernels.sweep.window.window_rows` the passes of a semi join.

    Parameters
    ----------
    rows : rows of a part without carried rows, so that no mask has a bit.

    Returns
    -------
    WindowRows
        The pass of a row's own cell is the first. In one table every row meets the rows before it, too.
    """
    passes = rows.passes
    if rows.is_self:
        back = passes[passes[:, 4] != 0]
        back[:, 4:] *= -1
        passes = np.concatenate((passes, back))
    own_cell = np.median(passes[:, 4]) if len(passes) else 0
    nearest_first = np.argsort(np.abs(passes[:, 4] - own_cell), kind="stable")
    return rows._replace(passes=np.ascontiguousarray(passes[nearest_first]))


@njit
def partner_sweep(
    state: Ints,
    rows: WindowRows,
    chunk_begin: int,
    chunk_end: int,
    decision: Decision,
    is_self: bool,
    has_partner: Bools,
    counters: Ints,
) -> None:
    """Find which rows of a chunk have a partner, until the chunk is done or some time has passed.

    Parameters
    ----------
    state : from :func:`epsjoin.kernels.sweep.window.new_state`, one per chunk; modified.
    rows : from :func:`look_both_ways`. Chunks of it may be swept at the same time, by several threads.
    chunk_begin, chunk_end : rows of the chunk.
    decision : the metric's decision on the original coordinates.
    is_self : whether rows with the same id are one row, which is no partner of its own.
    has_partner : (n,) bool by place; set for rows of the chunk. Rows for which it is set are skipped.
    counters : (4,) int64, added to, see :mod:`epsjoin.kernels.sweep.stack_sweep`; ``PAIRS`` are rows that got
        a partner.

    Notes
    -----
    O(passes x rows + candidates), no allocation. The sweep of one row is not divided.
    """
    near, stride, bound, place, window = rows.near, rows.stride, rows.bound, rows.place, rows.window
    points, at, ids, norm, size = rows.points, rows.row, rows.ids, rows.norm, rows.n_coordinates
    price = 1 + points.shape[1] // 8
    step, row = state[_STEP], state[_ROW]
    first, middle, last = state[_FIRST], state[_MIDDLE], state[_LAST]
    work = 0
    while step < rows.passes.shape[0]:
        begin = max(chunk_begin, rows.passes[step, 0])
        end = min(chunk_end, rows.passes[step, 1])
        target_begin, target_end = rows.passes[step, 2], rows.passes[step, 3]
        difference = rows.passes[step, 4]
        if row < 0 and begin < end:
            row = begin
            first = lower_bound(place, target_begin, target_end, place[row] + difference - window)
            middle = first
            last = first
        while 0 <= row < end:
            if work >= WORK_PER_CALL:
                state[_STEP], state[_ROW] = step, row
                state[_FIRST], state[_MIDDLE], state[_LAST] = first, middle, last
                return
            work += 1
            if has_partner[row]:
                row += 1
                continue
            # the candidates lie between two pointers that only move forward, the row's own place among them
            goal = place[row] + difference
            while first < target_end and place[first] < goal - window:
                first += 1
            middle = max(first, middle)
            while middle < target_end and place[middle] < goal:
                middle += 1
            last = max(middle, last)
            while last < target_end and place[last] <= goal + window:
                last += 1
            counters[LARGEST_STACK] = max(counters[LARGEST_STACK], last - first + 1)
            up = middle
            down = middle
            is_up = True
            while (up < last or down > first) and not has_partner[row]:
                if down == first or (is_up and up < last):
                    block = up
                    count = min(BLOCK, last - up)
                    up += count
                else:
                    count = min(BLOCK, down - first)
                    down -= count
                    block = down
                is_up = not is_up
                work += 1
                counters[CANDIDATES] += count
                left_over = filter_block(near, stride, block, row, bound, norm, size)
                left_over &= (np.int64(1) << count) - 1
                while left_over != 0:
                    other = block + lowest_lane(left_over)
                    left_over &= left_over - 1
                    if is_self and ids[other] == ids[row]:
                        continue
                    counters[DISTANCES] += 1
                    work += price
                    if decide(decision, points, at[row], points, at[other]) >= 0.0:
                        has_partner[row] = True
                        counters[PAIRS] += 1
                        break
            row += 1
        row = -1
        step += 1
    state[_STEP] = step
    state[_DONE] = 1
