"""Counts of numbers: those of a batch, and those of a window, which one pass over all of them updates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints

_SMALL = 2.0**-64
"""By this the sum of as many numbers as int64 counts is no larger than one of them."""

Numbers = NDArray[Any]
"""Ascending distinct int64 or float64; NaN is the last."""


@njit
def count_runs(ordered: Numbers, distinct: Numbers, rows: Ints) -> int:
    """Count equal numbers that follow one another.

    Parameters
    ----------
    ordered : (n,) ascending; numbers may occur several times.
    distinct, rows : (n,) filled with each number once, and how often it comes.

    Returns
    -------
    int
        How many are filled.
    """
    size = 0
    for value in ordered:
        if size == 0 or _is_before(distinct[size - 1], value):
            distinct[size] = value
            rows[size] = 0
            size += 1
        rows[size - 1] += 1
    return size


@njit
def sum_squares(values: Floats, rows: Ints) -> tuple[int, float, float]:
    """Return the number of rows, their mean, and the sum of their squared distances from it.

    Parameters
    ----------
    values, rows : (n,) the distinct numbers, ascending, and how often each comes.

    Returns
    -------
    tuple[int, float, float]
        The mean and the sum are NaN where a number is not finite, 0 where there is none. The sum is infinite
        where it is beyond float64.

    Notes
    -----
    The mean of numbers that lie far from 0 and close together may be rounded by more than they differ. The
    sum of their differences from it tells by how much, and corrects both results.

    References
    ----------
    Chan, Golub, LeVeque: Algorithms for computing the sample variance, The American Statistician 37 (1983),
    equation 1.7: the corrected two-pass algorithm.
    """
    n, total, small = 0, 0.0, 0.0
    for i in range(values.size):
        n += rows[i]
        total += values[i] * rows[i]
        small += values[i] * _SMALL * rows[i]
    if n == 0:
        return 0, 0.0, 0.0
    mean, squares, distances = total / n, 0.0, 0.0
    if not np.isfinite(mean):  # the sum is beyond float64; rounding must not make the mean infinite, too
        mean = min(max(small / n / _SMALL, values[0]), values[-1])
    for i in range(values.size):
        if not np.isfinite(values[i]):
            return n, np.nan, np.nan
        squares += (values[i] - mean) ** 2 * rows[i]
        distances += (values[i] - mean) * rows[i]
    if np.isfinite(squares):  # then the distances are finite, too
        squares = max(0.0, squares - distances / n * distances)
        mean += distances / n
    return n, mean, squares


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
