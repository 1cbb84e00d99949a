"""The sweep area of Orenstein's merge: the rows that later rows may still have to be compared with.

A merge over sorted rows needs three operations, whatever it joins (Dittrich's dissertation, sections 2.1.4
and 5.3.2, figure 4.3):

1. :func:`remove_no_prefix` drops the rows that no later row can meet (``reorganize`` in the dissertation,
   removal predicate P_rm). Sorted by code these are the rows whose code is no prefix of the current one, and
   they lie on top: the area is a stack (section 5.3.3, figure 5.2);
2. :func:`query` finds the rows of the area that may join the current one (the join predicate P_join);
3. :func:`insert` adds the current row.

The papers hold one area per table. Here one area serves both tables: each row carries the *groups* that it is
in, as bits, and rows that share a group are not compared. The rows of a table are a group, and so are the
rows that are only carried to this part, and those of a sorted run, which have met before. Separate
areas for one kind of group would divide the others. :class:`epsjoin.local.sweep.area.SweepArea` does the same
in blocks of rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bytes, Floats, Ints
from epsjoin.kernels.codes import is_prefix


class SweepArea(NamedTuple):
    """Rows on a stack, each a prefix of the next, with the columns that a query reads side by side.

    Parameters
    ----------
    rows : (n,) int64, numbers of the rows, bottom first.
    values : (n,) float64, their coordinate on the first embedded axis.
    groups : (n,) uint8, their groups.
    height : (1,) int64, rows on the stack.
    """

    rows: Ints
    values: Floats
    groups: Bytes
    height: Ints


@njit
def new_area(rows: Ints) -> SweepArea:
    """Make an empty area that keeps its rows in ``rows``, (n,) int64: room for n."""
    n = rows.shape[0]
    return SweepArea(rows, np.empty(n, np.float64), np.empty(n, np.uint8), np.zeros(1, np.int64))


@njit
def insert(area: SweepArea, row: int, value: float, groups: int) -> None:
    """Put a row on top; :func:`remove_no_prefix` for it comes before. O(1)."""
    top = area.height[0]
    area.rows[top] = row
    area.values[top] = value
    area.groups[top] = groups
    area.height[0] = top + 1


@njit
def remove_no_prefix(area: SweepArea, codes: Bytes, row: int) -> int:
    """Drop every row whose code is no prefix of this row's code.

    Parameters
    ----------
    area : modified.
    codes : (n, w) uint8, ascending, of all rows.
    row : the current row, not before any row of the area.

    Returns
    -------
    int
        Rows left. Each row is dropped once: O(rows dropped + 1) comparisons of codes.
    """
    height = area.height[0]
    while height > 0 and not is_prefix(codes[area.rows[height - 1]], codes[row]):
        height -= 1
    area.height[0] = height
    return int(height)


@njit
def query(area: SweepArea, place: int, value: float, groups: int, eps: float) -> tuple[int, int]:
    """Find the next row of the area that may be within eps of a row.

    Parameters
    ----------
    area : not modified.
    place : the first place that is compared; to go on after a find, the place behind it.
    value, groups : those of the row that is compared.
    eps : threshold on the first embedded axis, inclusive.

    Returns
    -------
    the place of the row found, or the height when there is none; and the rows it was compared with before
    that one: those in none of its groups.
    """
    height = area.height[0]
    if groups == 0:  # the row is compared with all: their groups are not read
        for behind in range(place, height):
            if abs(area.values[behind] - value) <= eps:
                return behind, behind - place
        return height, height - place
    compared = 0
    for behind in range(place, height):
        if not area.groups[behind] & groups:
            if abs(area.values[behind] - value) <= eps:
                return behind, compared
            compared += 1
    return height, compared
