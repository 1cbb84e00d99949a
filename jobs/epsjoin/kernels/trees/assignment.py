"""The cheapest assignment of rows to columns, in whole numbers."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Ints

_FAR = np.int64(1) << 60


@njit
def assign(costs: Ints, column_of: Ints) -> int:
    """Assign every row to a column of its own so that the sum of the costs is least.

    Parameters
    ----------
    costs : (n, m) int64, n at most m; any sign.
    column_of : (n,) int64, filled: the column of each row.

    Returns
    -------
    int
        The sum.

    Notes
    -----
    Shortest augmenting paths with potentials: O(n² m) time, 33 bytes for each row and column. Among equally
    near columns a free one is taken, which ends the path: rows that are all alike take one step each.

    References
    ----------
    Jonker, Volgenant, *A shortest augmenting path algorithm for dense and sparse linear assignment problems*,
    Computing 38, 1987.
    """
    n, m = costs.shape
    of_row, of_column = np.zeros(n + 1, np.int64), np.zeros(m + 1, np.int64)  # potentials
    row_at, came_from = np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64)  # rows from 1, 0 is none
    nearest, is_done = np.empty(m + 1, np.int64), np.empty(m + 1, np.bool_)
    for row in range(1, n + 1):
        row_at[0] = row
        column = 0
        nearest[:] = _FAR
        is_done[:] = False
        while row_at[column] != 0:
            is_done[column] = True
            at = row_at[column]
            step, following = _FAR, 0
            for j in range(1, m + 1):
                if not is_done[j]:
                    reduced = costs[at - 1, j - 1] - of_row[at] - of_column[j]
                    if reduced < nearest[j]:
                        nearest[j] = reduced
                        came_from[j] = column
                    is_nearer = nearest[j] < step
                    if is_nearer or (nearest[j] == step and row_at[j] == 0 and row_at[following] != 0):
                        step, following = nearest[j], j
            for j in range(m + 1):
                if is_done[j]:
                    of_row[row_at[j]] += step
                    of_column[j] -= step
                else:
                    nearest[j] -= step
            column = following
        while column != 0:
            row_at[column] = row_at[came_from[column]]
            column = came_from[column]
    total = np.int64(0)
    for j in range(1, m + 1):
        if row_at[j] != 0:
            column_of[row_at[j] - 1] = j - 1
            total += costs[row_at[j] - 1, j - 1]
    return int(total)
