"""Counts of values, kept up to date by one pass over all of them."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Ints

Numbers = NDArray[Any]
"""Ascending distinct int64 or float64; NaN is the last."""


@njit
def merge_counts(
    values: Numbers,
    rows: Ints,
    less: Numbers,
    less_rows: Ints,
    more: Numbers,
    more_rows: Ints,
    merged: Numbers,
    merged_rows: Ints,
) -> tuple[int, int]:
    """Subtract the counts of some values and add those of others.

    Parameters
    ----------
    values, rows : the counts so far.
    less, less_rows : subtracted; all of them are among ``values``. What has no rows left stays, with 0.
    more, more_rows : added.
    merged, merged_rows : filled; as long as ``values`` and ``more`` together.

    Returns
    -------
    tuple[int, int]
        How many are filled, and how many of these are new.

    Notes
    -----
    O(length of all).
    """
    i = j = m = size = n_new = 0
    while j < less.size or m < more.size:
        is_more = j == less.size or (m < more.size and not _is_before(less[j], more[m]))
        value = more[m] if is_more else less[j]
        while i < values.size and _is_before(values[i], value):  # most values: neither came nor left
            merged[size] = values[i]
            merged_rows[size] = rows[i]
            i += 1
            size += 1
        count = 0
        if i < values.size and not _is_before(value, values[i]):
            count += rows[i]
            i += 1
        else:
            n_new += 1
        if j < less.size and not _is_before(value, less[j]):
            count -= less_rows[j]
            j += 1
        if is_more:
            count += more_rows[m]
            m += 1
        merged[size] = value
        merged_rows[size] = count
        size += 1
    rest = values.size - i
    merged[size : size + rest] = values[i:]
    merged_rows[size : size + rest] = rows[i:]
    return size + rest, n_new


@njit
def _is_before(one: Any, other: Any) -> bool:
    """Whether a number is below another; NaN is above all."""
    return bool(one < other or (other != other and one == one))
