"""Equal points, of which one stands for all, so that no pairs of them are made.

Equal points are at distance 0, and equally far from any other point, whatever the metric: their neighbours,
core distances and clusters are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.neighbours.tree import find_surplus_rows

_MIN_ROWS = 1 << 10
"""Fewer rows have so few pairs that looking for equal ones costs as much."""
_SAMPLE_ROWS = 1 << 12
"""Number of rows that are looked at to learn whether there are many equal ones."""


class EqualRows(NamedTuple):
    """Groups of equal points, in the order of their first rows; made by :func:`find_equal_rows`.

    Parameters
    ----------
    firsts : (g,) int64, ascending, the first row of each group.
    group : (n,) int64, the number of each row's group.
    sizes : (g,) int64, the number of rows of each group.
    """

    firsts: Ints
    group: Ints
    sizes: Ints


def find_equal_rows(points: Floats) -> EqualRows | None:
    """Find the groups of equal points; None where pairs of equal ones are about as few as points, or fewer.

    Parameters
    ----------
    points : (n, d) float64, finite; not modified.

    Notes
    -----
    O(n d) if there are many equal points, otherwise O(d): a sample tells, whose pairs of equal rows are those
    of all rows times the square of its fraction. Rows that only share a hash with others are not grouped.
    """
    n = len(points)
    if n < _MIN_ROWS:
        return None
    if n > _SAMPLE_ROWS:  # one of each of as many stretches, at no constant step, with which rows might vary
        ends = np.arange(_SAMPLE_ROWS + 1) * n // _SAMPLE_ROWS
        drawn = np.random.default_rng(0).integers(ends[:-1], ends[1:])
        of_sample = _group(points[drawn]).sizes
        if (of_sample * (of_sample - 1) // 2).sum() * (n / _SAMPLE_ROWS) ** 2 <= n:
            return None
    found = _group(points)
    return found if (found.sizes * (found.sizes - 1) // 2).sum() > n else None


def _group(points: Floats) -> EqualRows:
    first_equal = find_surplus_rows(points, 1)
    is_first = first_equal < 0
    firsts = np.flatnonzero(is_first)
    number = np.cumsum(is_first) - 1  # of first rows
    group = number[np.where(is_first, np.arange(len(points)), first_equal)]
    return EqualRows(firsts, group, np.bincount(group, minlength=len(firsts)))
