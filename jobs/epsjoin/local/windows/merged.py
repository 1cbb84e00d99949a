"""The index of a window: its distinct values, ascending, and how many rows have each.

A value whose rows have all left stays with 0 rows until it is purged: if it comes back, nothing is inserted.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.kernels.windows import merge_counts
from epsjoin.local.windows.batches import Counts, Values


def replace_batch(index: Counts, expired: Counts, batch: Counts) -> tuple[Counts, int]:
    """Take a batch out of an index that has all of its values, and add another.

    Returns
    -------
    tuple[Counts, int]
        The new index, in which values without rows stay as zeros; how many values were new to it.
    """
    missing = index.missing - expired.missing + batch.missing
    kept, less, more = index.values, expired.values, batch.values
    dtype = next((each.dtype for each in (kept, less, more) if len(each)), kept.dtype)
    kept, less, more = (each if len(each) else each.astype(dtype) for each in (kept, less, more))
    if dtype.kind not in "if":
        return _replace_objects(Counts(kept, index.rows, missing), expired, batch)
    values, rows = np.empty(len(kept) + len(more), dtype), np.empty(len(kept) + len(more), np.int64)
    size, n_new = merge_counts(kept, index.rows, less, expired.rows, more, batch.rows, values, rows)
    return Counts(values[:size], rows[:size], missing), n_new


def _replace_objects(index: Counts, expired: Counts, batch: Counts) -> tuple[Counts, int]:
    """Do the same with texts and booleans, which kernels do not take."""
    rows = index.rows.copy()
    if len(expired.values):
        rows[np.searchsorted(index.values, expired.values)] -= expired.rows
    if not len(batch.values):
        return index._replace(rows=rows), 0
    if not len(index.values):
        return Counts(batch.values, batch.rows, index.missing), len(batch.values)
    positions, is_found = _find(index.values, batch.values)
    rows[positions[is_found]] += batch.rows[is_found]
    new = ~is_found
    values = np.insert(index.values, positions[new], batch.values[new])
    rows = np.insert(rows, positions[new], batch.rows[new])
    return Counts(values, rows, index.missing), int(np.count_nonzero(new))


def rows_of(index: Counts, values: Values) -> Ints:
    """Return how many rows of the window each value has, 0 for one that the index does not have."""
    rows = np.zeros(len(values), np.int64)
    if len(values):
        positions, is_found = _find(index.values, values)
        rows[is_found] = index.rows[positions[is_found]]
    return rows


def without_zeros(index: Counts) -> Counts:
    """Return the values that have rows."""
    is_there = index.rows > 0
    return Counts(index.values[is_there], index.rows[is_there], index.missing)


def are_among(mine: Values, its: Values) -> Bools:
    """Tell which values are among others; NaN is if they have NaN, though it equals nothing."""
    return np.zeros(len(mine), np.bool_) if not len(its) else _find(its, mine)[1]


def _find(index: Values, values: Values) -> tuple[Ints, Bools]:
    """Return where values are in an index, or belong, and which are there; NaN is found as the last."""
    left = np.searchsorted(index, values, side="left")
    return left, np.searchsorted(index, values, side="right") > left
