"""What the paper on MatWin compares, as compiled loops: nested loops, and MatWin by order or by grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from epsjoin.kernels.arrays import Floats, Ints

EPS = 0.1
MAX_BEST = 1024
"""Most best matches of one row: enough for all sets here, checked."""
RADIX = 32
"""More than the number of cells along one dimension, from below 0 to above 1."""
PAGE_ROWS = 8


@njit
def _is_within(r: Floats, s: Floats) -> bool:
    is_within = True
    for i in range(r.size):
        is_within = is_within and abs(r[i] - s[i]) <= EPS
    return is_within


@njit
def _compare(r: Floats, s: Floats, t: Floats) -> tuple[bool, bool]:
    """Whether (r, s) dominates (r, t), and the other way round."""
    is_as_good = other_is_as_good = True
    for i in range(r.size):
        a, b = abs(r[i] - s[i]), abs(r[i] - t[i])
        is_as_good = is_as_good and a <= b
        other_is_as_good = other_is_as_good and b <= a
    return is_as_good and not other_is_as_good, other_is_as_good and not is_as_good


@njit
def nested_loops(left: Floats, right: Floats, work: Ints) -> int:
    """Algorithm 1 within eps; returns the number of best pairs, and counts its work."""
    best = 0
    for i in range(len(left)):
        for j in range(len(right)):
            work[0] += 1
            if not _is_within(left[i], right[j]):
                continue
            is_dominated = False
            for k in range(len(right)):
                work[0] += 1
                if _is_within(left[i], right[k]):
                    work[1] += 1
                    if _compare(left[i], right[k], right[j])[0]:
                        is_dominated = True
                        break
            if not is_dominated:
                best += 1
    return best


@njit
def _update(
    left: Floats,
    right: Floats,
    lefts: Ints,
    rights: Ints,
    keys: Ints,
    low: Ints,
    high: Ints,
    best: Ints,
    n_best: Ints,
    work: Ints,
) -> None:
    """Line 11, 13 or 14: hold all pairs of two parts of the windows against the best so far.

    ``keys`` are those of ``rights``, ascending, and ``low`` and ``high`` bound the keys of each left row's
    partners; without keys each right row is looked at.
    """
    for i in lefts:
        begin, end = 0, rights.size
        if keys.size:
            begin, end = np.searchsorted(keys, low[i]), np.searchsorted(keys, high[i], side="right")
        for place in range(begin, end):
            j = rights[place]
            work[0] += 1
            if not _is_within(left[i], right[j]):
                continue
            kept = 0
            is_best = True
            for place_of_best in range(n_best[i]):
                k = best[i, place_of_best]
                if is_best:
                    work[1] += 1
                    is_better, is_worse = _compare(left[i], right[j], right[k])
                    is_best = not is_worse
                    if is_better:
                        continue
                best[i, kept] = k
                kept += 1
            if is_best:
                best[i, kept] = j
                kept += 1
            n_best[i] = kept


class Run(NamedTuple):
    """What MatWin gave, and its work.

    Parameters
    ----------
    best : number of best pairs.
    looked_at, comparisons : pairs, and comparisons of two of them.
    read, emitted : after each step, rows read from both streams and pairs that left the buffer.
    """

    best: int
    looked_at: int
    comparisons: int
    read: Ints
    emitted: Ints


def cells_of(points: Floats) -> Ints:
    """Number of each point's cell in ε-grid order."""
    cells = np.clip(np.floor(points / EPS).astype(np.int64) + 2, 0, RADIX - 1)
    return np.asarray(cells @ (RADIX ** np.arange(points.shape[1])[::-1]))


def matwin(left: Floats, right: Floats, by_grid: bool) -> Run:
    """Algorithm 2 on sorted arrays; the windows are ranges of rows."""
    best, n_best = np.empty((len(left), MAX_BEST), np.int64), np.zeros(len(left), np.int64)
    work = np.zeros(2, np.int64)
    cells = cells_of(right)
    pad = EPS * (1 + 1e-9)  # a filter only
    low, high = cells_of(left - pad), cells_of(left + pad)
    read, emitted = [0], [0]
    first_left = end_left = first_right = end_right = 0
    nothing = np.empty(0, np.int64)

    def update(lefts: Ints, rights: Ints) -> None:
        keys = nothing
        if by_grid:
            rights = rights[np.argsort(cells[rights], kind="stable")]
            keys = cells[rights]
        _update(left, right, lefts, rights, keys, low, high, best, n_best, work)

    while first_left < len(left):
        bottom = left[first_left, 0]  # the window of the oldest left row
        was_left, was_right = end_left, end_right
        end_left = int(np.searchsorted(left[:, 0] - bottom, EPS, side="right"))
        end_right = int(np.searchsorted(right[:, 0] - bottom, EPS, side="right"))
        while first_right < end_right and bottom - right[first_right, 0] > EPS:
            first_right += 1
        old_left, new_left = np.arange(first_left, was_left), np.arange(max(first_left, was_left), end_left)
        update(old_left, np.arange(max(first_right, was_right), end_right))
        update(new_left, np.arange(first_right, end_right))
        done = int(np.searchsorted(left[:, 0], bottom, side="right"))
        read.append(end_left + end_right)
        emitted.append(emitted[-1] + int(n_best[first_left:done].sum()))
        first_left = done
    if n_best.max(initial=0) >= MAX_BEST:
        raise ValueError(f"a row has {n_best.max()} best matches, as many as there is room for")
    return Run(emitted[-1], int(work[0]), int(work[1]), np.array(read), np.array(emitted))
