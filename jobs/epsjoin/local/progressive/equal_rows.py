"""Rows with equal values, of which one may stand for all if it only matters which rows have a partner."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.kernels.sorting import argsort
from epsjoin.local.progressive.rows import Values

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""An odd number with many bits: it spreads the bits of a column over the hash."""


def find_equal_rows(values: Values, asked: Bools) -> tuple[Ints, Ints]:
    """Find the rows that are, bit by bit, equal to an earlier one.

    Parameters
    ----------
    values : (n, c) float64 or int64; not modified.
    asked : (n,) bool, which rows count.

    Returns
    -------
    first, later : (m,) int64, for each row that is not the first of its kind the first one, and itself.
    """
    rows = np.flatnonzero(asked)
    bits = np.ascontiguousarray(values[rows]).view(np.uint64)
    hashes = np.zeros(len(rows), np.uint64)
    for column in bits.T:
        hashes = (hashes ^ column) * _FACTOR
        hashes ^= hashes >> np.uint64(32)
    order = argsort(hashes.view(np.int64))
    # different rows with the same hash only hide equal rows behind them, which are then compared as usual
    is_new = np.ones(len(rows), np.bool_)
    is_new[1:] = (bits[order[1:]] != bits[order[:-1]]).any(axis=1)
    first = order[np.flatnonzero(is_new)][np.cumsum(is_new) - 1]
    return rows[first[~is_new]], rows[order[~is_new]]
