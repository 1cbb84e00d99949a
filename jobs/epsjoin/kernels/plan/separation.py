"""Which axes separate points, as pairs that are near each other on one axis tell."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints


@njit
def window_lengths(ascending: Floats, eps: float) -> Ints:
    """Count for each of some ascending values those after it that are at most eps above; (n,) int64."""
    lengths = np.empty(ascending.shape[0], np.int64)
    end = 0
    for place in range(ascending.shape[0]):
        highest = ascending[place] + eps
        while end < ascending.shape[0] and ascending[end] <= highest:
            end += 1
        lengths[place] = end - place - 1
    return lengths


@njit
def separating_axes(rows: Floats, lengths: Ints, picked: Ints, eps: float, first: int, count: int) -> Ints:
    """Choose axes one by one: each leaves the fewest of the pairs that the axes before it have left.

    Parameters
    ----------
    rows : (m, t) float64, ascending on the axis ``first``.
    lengths : from :func:`window_lengths` on that axis: a pair is a row and one in its window.
    picked : (k,) int64, ascending numbers of the pairs that are looked at, counted row by row.
    eps : an axis on which the two rows differ by more does not leave the pair.
    first : the first axis that is chosen.
    count : maximum number of axes.

    Returns
    -------
    (c,) int64. Fewer than ``count`` where no axis separates what is left. Ties go to the smaller number.
    """
    n_axes = rows.shape[1]
    is_near = np.empty((picked.shape[0], n_axes), np.bool_)
    row, begin = 0, 0
    for pair in range(picked.shape[0]):
        while picked[pair] - begin >= lengths[row]:
            begin += lengths[row]
            row += 1
        other = row + 1 + picked[pair] - begin
        for axis in range(n_axes):
            is_near[pair, axis] = abs(rows[row, axis] - rows[other, axis]) <= eps
    chosen = np.empty(count, np.int64)
    chosen[0] = first
    is_chosen = np.zeros(n_axes, np.bool_)
    is_chosen[first] = True
    n_chosen, n_pairs = 1, picked.shape[0]
    while n_chosen < count:
        n_left = np.zeros(n_axes, np.int64)
        for pair in range(n_pairs):
            for axis in range(n_axes):
                n_left[axis] += is_near[pair, axis]
        best = 0
        for axis in range(1, n_axes):
            best = axis if n_left[axis] < n_left[best] else best
        if n_left[best] == n_pairs or is_chosen[best]:
            break
        chosen[n_chosen] = best
        is_chosen[best] = True
        n_chosen += 1
        n_kept = 0
        for pair in range(n_pairs):
            if is_near[pair, best]:
                for axis in range(n_axes):
                    is_near[n_kept, axis] = is_near[pair, axis]
                n_kept += 1
        n_pairs = n_kept
    return chosen[:n_chosen]
