"""The sweeps: all pairs within eps among the rows of one part.

:func:`stack_sweep` is Orenstein's merge over sorted codes (regular cuts), :func:`window_sweep` slides a
window of eps along one axis (planned cuts). Both are resumable: they fill an output batch and
return, and go on from ``state`` when called again, so that memory is bounded by the batch.

What is counted, in ``counters`` (4,) int64, by position:

``CANDIDATES``
    pairs of rows looked at. For the stack sweep: every comparison of a row with a row on the stack, which
    is what the papers call distance computations (DC). For the window sweep: every pair in a window.
``DISTANCES``
    pairs for which the metric was computed: candidates no farther than eps on every embedded axis, and, in
    the window sweep, with disjoint masks. (There this number does not depend on the cuts; in the stack
    sweep pairs of replicas are computed once for every cell in which they meet.)
``LARGEST_STACK``
    most rows on the stack at once, the current one included; for the window sweep, most rows in one
    window, the current one included.
``PAIRS``
    pairs reported.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.codes import is_prefix, owns_pair
from epsjoin.kernels.distances import Decision, decide

CANDIDATES, DISTANCES, LARGEST_STACK, PAIRS = range(4)
WINDOW_PADDING = 32
_BLOCK = WINDOW_PADDING
_DONE = 7


class PairBatch(NamedTuple):
    """Room for pairs: ``left``, ``right`` (c,) int64 indices of rows, ``distance`` (c,) float64."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    distance: NDArray[np.float64]


class StackRows(NamedTuple):
    """Rows of one part, sorted by code.

    Parameters
    ----------
    points : (n, d) float64, coordinates as they came.
    embedded : (n, e) float64, embedded coordinates; axes in the order in which they tell rows apart best.
    codes : (n, w) uint8, ascending.
    lower : (n, a) int64, lower corners of the whole cubes in fixed point, axes in code order.
    is_replica : (n,) bool, whether the row's point has other rows.
    is_carried : (n,) bool, whether another part owns the row.
    """

    points: NDArray[np.float64]
    embedded: NDArray[np.float64]
    codes: NDArray[np.uint8]
    lower: NDArray[np.int64]
    is_replica: NDArray[np.bool_]
    is_carried: NDArray[np.bool_]


class WindowRows(NamedTuple):
    """Rows of one part in the order of :func:`epsjoin.kernels.grid.window_order`.

    Parameters
    ----------
    points : (n, d) float64, coordinates as they came.
    embedded : (n, e) float64, embedded coordinates, axes by falling variance.
    first, second : (n + WINDOW_PADDING,) float64, the first two embedded axes by themselves (``second``
        is 0 where there is but one), and padding so that a block may be read beyond the last row.
    mask : (n,) int64, see :mod:`epsjoin.kernels.cuts`.
    segments : (s, 4) int64, begin and end of rows, begin and end of the rows they are compared with; each
        segment is ascending on the first axis.
    """

    points: NDArray[np.float64]
    embedded: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    mask: NDArray[np.int64]
    segments: NDArray[np.int64]


def new_state(n_rows: int) -> NDArray[np.int64]:
    """Give the state of a sweep over ``n_rows`` rows that has not begun."""
    return np.zeros(8 + n_rows, np.int64)


def is_done(state: NDArray[np.int64]) -> bool:
    """Whether a sweep has come to its end."""
    return bool(state[_DONE])


@njit
def _is_near(embedded: NDArray[np.float64], x: int, y: int, first_axis: int, embedded_eps: float) -> bool:
    """Whether two rows are within eps on each axis from ``first_axis`` on; stops at the first that is not."""
    for i in range(first_axis, embedded.shape[1]):
        if abs(embedded[x, i] - embedded[y, i]) > embedded_eps:
            return False
    return True


@njit
def stack_sweep(
    state: NDArray[np.int64],
    rows: StackRows,
    embedded_eps: float,
    decision: Decision,
    batch: PairBatch,
    counters: NDArray[np.int64],
) -> int:
    """Orenstein's merge: compare each row with every row on the stack, until the batch is full.

    Parameters
    ----------
    state : from :func:`new_state`; modified. Entries 0 to 2: next row, next place on the stack, height;
        from 8 on the stack itself, bottom first.
    rows : the part's rows.
    embedded_eps : L∞ threshold in embedded coordinates.
    decision : the metric's decision on the original coordinates.
    batch : filled from its beginning; needs room for one pair at least.
    counters : (4,) int64, added to.

    Returns
    -------
    int
        Pairs written. The sweep is at its end when :func:`is_done`.

    Notes
    -----
    For each row in order: (1) pop the stack until its top is a prefix of the row's code; (2) compare with
    every row on the stack: L∞ with early exit, the metric, and, when one of the two is a replica, the
    reference point method with the longer code, the current row's; (3) push. Carried rows are not compared
    with each other. Seed 003, figures 3.1 and 3.3, for one table with itself.

    O(candidates x e) in the worst case, mostly O(candidates).
    """
    stack = state[8:]
    n = rows.codes.shape[0]
    room = batch.left.shape[0]
    height = state[2]
    written = 0
    first = np.empty(n, np.float64)  # first axis of the rows on the stack, side by side
    for place in range(height):
        first[place] = rows.embedded[stack[place], 0]
    row = state[0]
    while row < n:
        place = state[1]
        if place == 0:
            while height > 0 and not is_prefix(rows.codes[stack[height - 1]], rows.codes[row]):
                height -= 1
            counters[LARGEST_STACK] = max(counters[LARGEST_STACK], height + 1)
        carried = rows.is_carried[row]
        replica = rows.is_replica[row]
        value = rows.embedded[row, 0]
        looked = 0
        while place < height:
            other = stack[place]
            if carried and rows.is_carried[other]:
                place += 1
                continue
            if abs(first[place] - value) <= embedded_eps and _is_near(
                rows.embedded, row, other, 1, embedded_eps
            ):
                if written == room:
                    break
                counters[DISTANCES] += 1
                distance = decide(decision, rows.points[other], rows.points[row])
                if distance >= 0.0 and (
                    not (replica or rows.is_replica[other])
                    or owns_pair(rows.codes[row], rows.lower[other], rows.lower[row])
                ):
                    batch.left[written] = other
                    batch.right[written] = row
                    batch.distance[written] = distance
                    written += 1
            looked += 1
            place += 1
        counters[CANDIDATES] += looked
        if place < height:
            state[0] = row
            state[1] = place
            state[2] = height
            counters[PAIRS] += written
            return written
        stack[height] = row
        first[height] = value
        height += 1
        row += 1
        state[1] = 0
    state[0] = n
    state[_DONE] = 1
    counters[PAIRS] += written
    return written


@njit
def stack_comparisons(codes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How many rows each row would be compared with on the stack: the work of a sweep, without doing it.

    Parameters
    ----------
    codes : (n, w) uint8, ascending; not modified.

    Returns
    -------
    (n,) int64. Its sum is the papers' number of distance computations.
    """
    n = codes.shape[0]
    stack = np.empty(n, np.int64)
    height = 0
    compared = np.empty(n, np.int64)
    for row in range(n):
        while height > 0 and not is_prefix(codes[stack[height - 1]], codes[row]):
            height -= 1
        compared[row] = height
        stack[height] = row
        height += 1
    return compared


@njit
def _scan_window(
    row: int,
    candidate: int,
    end: int,
    written: int,
    rows: WindowRows,
    embedded_eps: float,
    decision: Decision,
    batch: PairBatch,
    counters: NDArray[np.int64],
) -> tuple[int, int]:
    """Compare one row with the candidates from ``candidate`` to ``end``, as far as the batch has room.

    The second axis is tested for a block of candidates at once, without a branch per candidate: most
    blocks of a window have nothing near.

    Returns
    -------
    the first candidate that was not looked at (``end`` when through), and the pairs written.
    """
    room = batch.left.shape[0]
    second = rows.second
    value = second[row]
    mask = rows.mask[row]
    while candidate < end:
        near = 0
        for i in range(candidate, candidate + _BLOCK):
            near += abs(second[i] - value) <= embedded_eps
        block_end = min(candidate + _BLOCK, end)
        if near == 0:
            candidate = block_end
            continue
        while candidate < block_end:
            if (
                abs(second[candidate] - value) <= embedded_eps
                and (mask & rows.mask[candidate]) == 0
                and _is_near(rows.embedded, row, candidate, 2, embedded_eps)
            ):
                if written == room:
                    return candidate, written
                counters[DISTANCES] += 1
                distance = decide(decision, rows.points[row], rows.points[candidate])
                if distance >= 0.0:
                    batch.left[written] = row
                    batch.right[written] = candidate
                    batch.distance[written] = distance
                    written += 1
            candidate += 1
    return end, written


@njit
def window_sweep(
    state: NDArray[np.int64],
    rows: WindowRows,
    embedded_eps: float,
    decision: Decision,
    batch: PairBatch,
    counters: NDArray[np.int64],
) -> int:
    """Slide a window of eps along the first axis of each segment, until the batch is full.

    Parameters
    ----------
    state : from :func:`new_state`; modified. Entries 0 to 4: segment, rows of it that are done, next
        candidate (0: the row's window is not open yet), start and end of the row's window.
    rows, embedded_eps, decision, batch, counters : as for :func:`stack_sweep`.

    Returns
    -------
    int
        Pairs written. The sweep is at its end when :func:`is_done`.

    Notes
    -----
    A comparison is: second axis, mask, the other axes by falling variance with early exit, then the metric on
    the original coordinates. The window is tested on differences, not on ``x + eps``, which would round at
    the size of x.

    O(candidates), no allocation.
    """
    first = rows.first
    written = 0
    segment = state[0]
    done = state[1]
    candidate = state[2]
    start = state[3]
    end = state[4]
    while segment < rows.segments.shape[0]:
        begin = rows.segments[segment, 0]
        row_end = rows.segments[segment, 1]
        target = rows.segments[segment, 2]
        target_end = rows.segments[segment, 3]
        if done == 0 and candidate == 0:
            start = target
            end = target
        for row in range(begin + done, row_end):
            if candidate == 0:
                value = first[row]
                if begin == target:
                    start = row + 1
                else:
                    while start < target_end and value - first[start] > embedded_eps:
                        start += 1
                    if start == target_end:
                        break  # later rows are farther still
                end = max(start, end)
                while end < target_end and first[end] - value <= embedded_eps:
                    end += 1
                candidate = start
                counters[CANDIDATES] += end - start
                counters[LARGEST_STACK] = max(counters[LARGEST_STACK], end - start + 1)
            if candidate < end:
                candidate, written = _scan_window(
                    row, candidate, end, written, rows, embedded_eps, decision, batch, counters
                )
                if candidate < end:
                    state[0] = segment
                    state[1] = row - begin
                    state[2] = candidate
                    state[3] = start
                    state[4] = end
                    counters[PAIRS] += written
                    return written
            candidate = 0
        segment += 1
        done = 0
    state[0] = segment
    state[_DONE] = 1
    counters[PAIRS] += written
    return written


@njit
def window_candidates(
    first: NDArray[np.float64], segments: NDArray[np.int64], embedded_eps: float
) -> NDArray[np.int64]:
    """Candidates that a window sweep would look at, by row: the work, without doing it.

    Parameters
    ----------
    first, segments : see :class:`WindowRows`; ``first`` needs no padding.
    embedded_eps : threshold.

    Returns
    -------
    (n,) int64. A pair is counted at the row whose window it is in.
    """
    counts = np.zeros(first.shape[0], np.int64)
    for segment in range(segments.shape[0]):
        begin = segments[segment, 0]
        start = segments[segment, 2]
        end = start
        target_end = segments[segment, 3]
        is_same = begin == start
        for row in range(begin, segments[segment, 1]):
            if is_same:
                start = row + 1
            else:
                while start < target_end and first[row] - first[start] > embedded_eps:
                    start += 1
            end = max(start, end)
            while end < target_end and first[end] - first[row] <= embedded_eps:
                end += 1
            counts[row] += end - start
    return counts
