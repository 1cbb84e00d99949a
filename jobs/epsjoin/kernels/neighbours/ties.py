"""Rows that are sorted by one number, put in the order of a second one where they tie in the first."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints

_MAX_SHORT = 64
"""Maximum number of rows of a run of ties that is ordered by insertion."""


@njit
def _order_short_ties(first: Floats, second: Floats, order: Ints, most: int, long: Ints) -> int:
    """Order the rows of each short run of ties by the second number, then by row.

    Parameters
    ----------
    first, second : (n,) float64, the numbers of the rows; no NaN.
    order : (n,) int64, the rows by ascending ``first``; modified.
    most : number of rows that a short run has at most, at least 1.
    long : (n // (most + 1), 2) int64; the first places of longer runs, which stay as they are, and those
        behind them, are written here.

    Returns
    -------
    int
        The number of longer runs.

    Notes
    -----
    O(n most) at worst: by insertion, which is fast for few.
    """
    begin = 0
    n_long = 0
    while begin < order.size:
        value = first[order[begin]]
        end = begin + 1
        while end < order.size and first[order[end]] == value:
            end += 1
        if end - begin > most:
            long[n_long, 0] = begin
            long[n_long, 1] = end
            n_long += 1
        else:
            for place in range(begin + 1, end):
                row = order[place]
                at = place
                while at > begin and _is_before(second, row, order[at - 1]):
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = row
        begin = end
    return n_long


@njit
def _is_before(second: Floats, row: int, other: int) -> bool:
    return bool(second[row] < second[other] or (second[row] == second[other] and row < other))


def order_ties(first: Floats, second: Floats, order: Ints) -> None:
    """Order the rows of each run of ties by the second number, then by row.

    Parameters
    ----------
    first, second : (n,) float64, the numbers of the rows; no NaN.
    order : (n,) int64, the rows by ascending ``first``; modified.

    Notes
    -----
    O(n log n).
    """
    long = np.empty((len(order) // (_MAX_SHORT + 1), 2), np.int64)
    for begin, end in long[: _order_short_ties(first, second, order, _MAX_SHORT, long)].tolist():
        rows = np.sort(order[begin:end])
        order[begin:end] = rows[np.argsort(second[rows], kind="stable")]
