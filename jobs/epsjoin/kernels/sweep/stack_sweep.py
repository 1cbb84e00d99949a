"""The stack sweep: Orenstein's merge over sorted codes, all pairs within eps among the rows of one part.

It is resumable: it fills an output batch and returns, and goes on from ``state`` when called again, so that
memory is bounded by the batch. The fast sweep is :mod:`epsjoin.kernels.sweep.window`; this one is the
reference.

Both sweeps count the following in ``counters``, (4,) int64, by position:

``CANDIDATES``
    pairs of rows that are compared. For the stack sweep: every comparison of a row with a row on the stack,
    of the other table where there are two, which is what the papers call distance computations (DC). For
    the window sweep: every pair in a window.
``DISTANCES``
    pairs for which the metric was computed. For the stack sweep: candidates no farther than eps on every
    embedded axis; pairs of replicas count for every cell in which they meet. For the window sweep: candidates
    that its filter lets through, with disjoint masks.
``LARGEST_STACK``
    most rows on the stack at once, those of both tables and the current one included; for the window sweep,
    most rows in one window, the current one included.
``PAIRS``
    pairs reported.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bytes, Floats, Ints, Ints8
from epsjoin.kernels.codes import owns_pair
from epsjoin.kernels.distances import Decision, decide
from epsjoin.kernels.pairs.batch import CANDIDATES, DISTANCES, LARGEST_STACK, PAIRS, PairBatch
from epsjoin.kernels.plan.stack_rows import StackRows
from epsjoin.kernels.sweep.sweep_area import insert, new_area, query, remove_no_prefix

_ONE_TABLE = -1
"""Table of each row where one table is joined with itself."""
_DONE = 7
_CANDIDATES_PER_CALL = 1 << 27
"""Number of candidates after which a sweep returns: tenths of a second, so that its caller may stop."""


def new_state(n_rows: int, n_held: int = 0) -> Ints:
    """Make the state of a sweep over ``n_rows`` rows that has not begun.

    The first ``n_held`` of them lie on the stack already: each is a prefix of the next.
    """
    state = np.zeros(8 + n_rows, np.int64)
    state[0] = state[2] = n_held
    state[8 : 8 + n_held] = np.arange(n_held)
    return state


def is_done(state: Ints) -> bool:
    """Whether a sweep has come to its end."""
    return bool(state[_DONE])


@njit
def _is_near(embedded: Floats, x: int, y: int, first_axis: int, embedded_eps: float) -> bool:
    """Whether two rows are within eps on each axis from ``first_axis`` on; stops at the first that is not."""
    for i in range(first_axis, embedded.shape[1]):
        if abs(embedded[x, i] - embedded[y, i]) > embedded_eps:
            return False
    return True


@njit
def stack_sweep(
    state: Ints, rows: StackRows, embedded_eps: float, decision: Decision, batch: PairBatch, counters: Ints
) -> int:
    """Compare each row with all rows on the stack (Orenstein's merge) until the batch is full or time is up.

    Parameters
    ----------
    state : from :func:`new_state`; modified. Entries 0 to 2: next row, next place on the stack, height;
        from 8 on the stack itself, bottom first.
    rows : the part's rows.
    embedded_eps : L∞ threshold in embedded coordinates.
    decision : the metric's decision on the original coordinates.
    batch : filled from its beginning; needs room for one pair at least. ``left`` is the row that comes first
        in the order of the codes, whatever its table.
    counters : (4,) int64, added to.

    Returns
    -------
    int
        Pairs written. The sweep is at its end when :func:`is_done`.

    Notes
    -----
    For each row in order: (1) pop the stack until its top is a prefix of the row's code; (2) compare with
    every row on the stack: L∞ with early exit, the metric, and, when one of the two is a replica, the
    reference point method with the longer code, the current row's; (3) push. Rows that share a group are not
    compared. The steps are those of a sweep area, :mod:`epsjoin.kernels.sweep.sweep_area`; see Dittrich's
    dissertation, figures 3.1 and 3.3.

    O(candidates x e) in the worst case, mostly O(candidates); with two tables, the rows of both on the stack
    are passed.
    """
    n = rows.codes.shape[0]
    room = batch.left.shape[0]
    written = 0
    area = new_area(state[8:])
    for place in range(state[2]):
        other = area.rows[place]
        insert(area, other, rows.embedded[other, 0], rows.groups[other])
    looked_before = counters[CANDIDATES]
    row = state[0]
    while row < n:
        place = state[1]
        if place == 0:
            height = remove_no_prefix(area, rows.codes, row)
            counters[LARGEST_STACK] = max(counters[LARGEST_STACK], height + 1)
        height = area.height[0]
        groups = rows.groups[row]
        value = rows.embedded[row, 0]
        replica = rows.is_replica[row]
        while True:
            place, compared = query(area, place, value, groups, embedded_eps)
            counters[CANDIDATES] += compared
            if place == height:
                break
            other = area.rows[place]
            if _is_near(rows.embedded, row, other, 1, embedded_eps):
                if written == room:
                    break
                counters[DISTANCES] += 1
                distance = decide(decision, rows.points, other, rows.points, row)
                if distance >= 0.0 and (
                    not (replica or rows.is_replica[other])
                    or owns_pair(rows.codes[row], rows.lower[other], rows.lower[row])
                ):
                    batch.left[written] = other
                    batch.right[written] = row
                    batch.distance[written] = distance
                    written += 1
            counters[CANDIDATES] += 1
            place += 1
        if place < height:
            state[0] = row
            state[1] = place
            state[2] = height
            counters[PAIRS] += written
            return written
        insert(area, row, value, groups)
        row += 1
        state[1] = 0
        if counters[CANDIDATES] - looked_before > _CANDIDATES_PER_CALL and row < n:
            state[0] = row
            state[2] = area.height[0]
            counters[PAIRS] += written
            return written
    state[0] = n
    state[_DONE] = 1
    counters[PAIRS] += written
    return written


def stack_comparisons(codes: Bytes, side: Ints8 | None = None) -> Ints:
    """Count the rows that each row would be compared with on the stack: the work of a sweep that is not run.

    Parameters
    ----------
    codes : (n, w) uint8, ascending; not modified.
    side : (n,) int8, the table of each row, 0 or 1; None for one table with itself.

    Returns
    -------
    (n,) int64. Its sum is the papers' number of distance computations.
    """
    return _stack_comparisons(codes, np.full(len(codes), _ONE_TABLE, np.int8) if side is None else side)


@njit
def _stack_comparisons(codes: Bytes, side: Ints8) -> Ints:
    """Count with a stack, and for each place of it the rows of table 1 that lie up to there."""
    n = codes.shape[0]
    area = new_area(np.empty(n, np.int64))
    of_table_1 = np.zeros(n + 1, np.int64)
    compared = np.empty(n, np.int64)
    for row in range(n):
        height = remove_no_prefix(area, codes, row)
        if side[row] == _ONE_TABLE:
            compared[row] = height
        elif side[row] == 0:
            compared[row] = of_table_1[height]
        else:
            compared[row] = height - of_table_1[height]
        of_table_1[height + 1] = of_table_1[height] + (1 if side[row] == 1 else 0)
        insert(area, row, 0.0, 0)
    return compared
