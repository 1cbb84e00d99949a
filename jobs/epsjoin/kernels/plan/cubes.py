"""Cubes of any extent: their sides, the leaves of a tree that they touch, and how many meet on an axis.

An object is a box and a *reach*: its *cube* is the box made larger by the reach on every side, so that two
objects can be within their threshold only when their cubes meet on every axis. For points of one eps the
reach is eps / 2 and the cube is H(x).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.codes import cube_lower, cube_upper
from epsjoin.kernels.plan.cuts import SIDES_ARE_GIVEN, AssignedRows, CutTree, assign_rows

CUT_AXES = 16
"""Number of axes that a tree of boxes cuts and its leaves are swept along: the first ones."""
_NO_HASHES = np.empty(0)


class Cubes(NamedTuple):
    """Lower and upper sides of the objects' cubes, (n, e) float64 each, in embedded coordinates."""

    lower: Floats
    upper: Floats


@njit
def make_cubes(lower: Floats, upper: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """Compute the sides of boxes enlarged by their reach, a little too far, so that rounding loses no pair.

    Parameters
    ----------
    lower, upper : (n, e) float64, embedded coordinates; not modified.
    reach : (n,) float64, at least 0.

    Returns
    -------
    lower, upper : (n, e) float64. When ``lower(y)_i - upper(x)_i <= reach(x) + reach(y)``, the upper side of
        x is not below the lower side of y.
    """
    n, e = lower.shape
    begin = np.empty((n, e), np.float64)
    end = np.empty((n, e), np.float64)
    for row in range(n):
        for i in range(e):
            begin[row, i] = cube_lower(lower[row, i], reach[row])
            end[row, i] = cube_upper(upper[row, i], reach[row])
    return begin, end


def count_rows(cubes: Cubes, tree: CutTree) -> int:
    """Count the rows that :func:`assign_cubes` would return; O(rows x depth), nothing is stored."""
    none = np.empty(0, np.int64)
    return assign_rows(*cubes, SIDES_ARE_GIVEN, _NO_HASHES, tree, none, none, none, False)


def assign_cubes(cubes: Cubes, tree: CutTree) -> AssignedRows:
    """Send every cube to the leaves that it touches.

    Parameters
    ----------
    cubes : not modified.
    tree : cuts on the cubes' axes; none by hash.

    Returns
    -------
    AssignedRows
        By cube, then in the order of the leaves from left to right.

    Notes
    -----
    :func:`epsjoin.kernels.plan.cuts.assign` for cubes of any extent. Two passes (count, fill), O(rows x
    depth).
    """
    total = count_rows(cubes, tree)
    rows = AssignedRows(np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64))
    assign_rows(*cubes, SIDES_ARE_GIVEN, _NO_HASHES, tree, *rows, True)
    return rows


@njit
def _count_begun(begin: Floats, end: Floats) -> int:
    """Count the pairs with ``begin_i <= end_j`` of two ascending columns; O(n)."""
    total = 0
    begun = 0
    for j in range(end.shape[0]):
        while begun < begin.shape[0] and begin[begun] <= end[j]:
            begun += 1
        total += begun
    return total


@njit
def overlaps(lower: Floats, upper: Floats, is_right: Bools, is_self: bool, rows: Ints, n_axes: int) -> Ints:
    """Count on each axis the pairs of rows whose cubes meet there: the candidates of a sweep along it.

    Parameters
    ----------
    lower, upper : (n, e) float64, sides of the cubes; not modified.
    is_right : (n,) bool, whether a row is of the right table; not read in a self join.
    is_self : all pairs of rows count; otherwise those of a left and a right row.
    rows : (m,) int64, the rows in question.
    n_axes : axes 0 to n_axes - 1 are counted.

    Returns
    -------
    (n_axes,) int64.

    Notes
    -----
    ``lower_x <= upper_y`` and ``lower_y <= upper_x`` both hold when two intervals meet, else exactly one of
    them. So the number of pairs that meet is how often either holds, less the number of all pairs. O(m log m)
    per axis.
    """
    m = rows.shape[0]
    counts = np.zeros(n_axes, np.int64)
    n_left = m
    if not is_self:
        n_left = 0
        for i in range(m):
            if not is_right[rows[i]]:
                n_left += 1
    left_lower = np.empty(n_left, np.float64)
    left_upper = np.empty(n_left, np.float64)
    right_lower = np.empty(m - n_left, np.float64)
    right_upper = np.empty(m - n_left, np.float64)
    for axis in range(n_axes):
        left = 0
        right = 0
        for i in range(m):
            if is_self or not is_right[rows[i]]:
                left_lower[left] = lower[rows[i], axis]
                left_upper[left] = upper[rows[i], axis]
                left += 1
            else:
                right_lower[right] = lower[rows[i], axis]
                right_upper[right] = upper[rows[i], axis]
                right += 1
        left_lower.sort()
        left_upper.sort()
        if is_self:
            # less all pairs, and each row with itself
            counts[axis] = _count_begun(left_lower, left_upper) - m * (m + 1) // 2
        else:
            right_lower.sort()
            right_upper.sort()
            counts[axis] = (
                _count_begun(left_lower, right_upper)
                + _count_begun(right_lower, left_upper)
                - n_left * (m - n_left)
            )
    return counts


def separating_axes(cubes: Cubes, is_right: Bools, is_self: bool) -> Ints:
    """List all axes, that on which the fewest cubes meet first, ties by number; (e,) int64."""
    n, e = cubes.lower.shape
    met = overlaps(cubes.lower, cubes.upper, is_right, is_self, np.arange(n), e)
    return np.argsort(met, kind="stable").astype(np.int64, copy=False)
