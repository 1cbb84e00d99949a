"""How far a row lies from the borders of its cell, by which its windows in neighbouring cells are narrowed.

A row's partner in another cell is at least as far away as the border between them. The *gaps* are the row's
distances to the borders of that cell, one for each coordinate in which the cells differ. By Euclid's
distance, the window along the sweep coordinate reaches as far as the gaps leave of eps; where they leave
nothing, the row does not visit that cell. With four grid
coordinates and rows anywhere in their cells, two in five candidates remain.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bytes, Floats, Floats32, Ints, Ints32
from epsjoin.kernels.ranges import Ranges

ROWS_AT_ONCE = 512
"""Number of rows whose visits are listed at once: the nearest cache holds the list."""
MOVES = 5
"""Number of the first column of passes that tells by how many cells of a grid coordinate a pass moves."""
_PARTS = 256
"""Number of parts of a cell, of which it is known in which a row lies."""
_WHOLE = 1.0001
"""The square of the reach, and more than any rounding here: sums are of float32, below 10."""


class Gaps(NamedTuple):
    """Where rows lie in their cells.

    Parameters
    ----------
    offset : (g, n) uint8, 256ths of a cell from its lower border, rounded down, by place; g is 0 where
        windows are not narrowed.
    side : (g,) float64, sides of a cell in units of the reach, at least 1.
    ticks : ticks per reach along the sweep coordinate.
    shift : where windows are narrowed, they have the rows of whole bins of ``2**shift`` places.
    """

    offset: Bytes
    side: Floats
    ticks: float
    shift: int

    @property
    def are_known(self) -> bool:
        """Whether windows are narrowed."""
        return len(self.side) > 0


class Visits(NamedTuple):
    """Room for the visits of some rows in a pass.

    Parameters
    ----------
    row : (``ROWS_AT_ONCE``,) int64, those whose windows are not empty, ascending.
    first, last : (``ROWS_AT_ONCE``,) int64, the candidates of each, last excluded.
    reach : (``ROWS_AT_ONCE``,) int32, ticks that the window of each reaches ahead and back.
    left : (``ROWS_AT_ONCE``,) float32, room for use while the list is made.
    """

    row: Ints
    first: Ints
    last: Ints
    reach: Ints32
    left: Floats32


@njit
def new_visits() -> Visits:
    """Make room for the visits of one sweep."""
    row, first, last = np.empty((3, ROWS_AT_ONCE), np.int64)
    return Visits(row, first, last, np.empty(ROWS_AT_ONCE, np.int32), np.empty(ROWS_AT_ONCE, np.float32))


def find_gaps(
    coordinates: Floats,
    low: Floats,
    side: Floats,
    ticks: float,
    shift: int,
    order: Ints,
    ranges: Ranges,
) -> Gaps:
    """Find where rows lie in their cells.

    Parameters
    ----------
    coordinates : (g, n) float64, grid coordinates of the rows in units of the reach; not modified.
    low : (g,) float64, lowest of each; side, ticks, shift : see :class:`Gaps`.
    order : (n,) int64, the row at each place.
    ranges : how ranges of rows, and of places, are worked on.

    Notes
    -----
    O(g n). The result has a byte for each row and coordinate; as much again is in use until it returns.
    """
    of_rows, offset = np.empty(coordinates.shape, np.uint8), np.empty(coordinates.shape, np.uint8)
    ranges(len(order), lambda _, *rows: _write_offsets(coordinates, low, side, of_rows, *rows))
    ranges(len(order), lambda _, *places: _put_in_order(of_rows, order, offset, *places))
    return Gaps(offset, side, ticks, shift)


@njit
def _write_offsets(
    coordinates: Floats, low: Floats, side: Floats, offset: Bytes, begin: int, end: int
) -> None:
    for axis in range(coordinates.shape[0]):
        for row in range(begin, end):
            cells = (coordinates[axis, row] - low[axis]) / side[axis]  # as keys are made
            offset[axis, row] = np.uint8((cells - np.int64(cells)) * _PARTS)


@njit
def _put_in_order(of_rows: Bytes, order: Ints, offset: Bytes, begin: int, end: int) -> None:
    for axis in range(offset.shape[0]):
        for place in range(begin, end):
            offset[axis, place] = of_rows[axis, order[place]]


@njit
def narrow_visits(
    gaps: Gaps, passes: Ints, step: int, window: int, begin: int, end: int, visits: Visits
) -> int:
    """List the rows of a pass whose gaps leave something of their windows, and how far these reach.

    Parameters
    ----------
    gaps, passes, window : of the sweep.
    step : number of the pass.
    begin, end : places of the rows, at most ``ROWS_AT_ONCE``.
    visits : filled from its beginning.

    Returns
    -------
    int
        Number of rows that are listed.
    """
    row, reach, left = visits.row, visits.reach, visits.left
    count = end - begin
    left[:count] = _WHOLE
    for axis in range(gaps.offset.shape[0]):
        move = passes[step, MOVES + axis]
        if move == 0:
            continue
        offset = gaps.offset[axis, begin:end]
        turned = np.uint8(255 if move > 0 else 0)  # parts above the row, not below it
        part = np.float32(gaps.side[axis] / _PARTS)
        for i in range(count):
            gap = np.float32(offset[i] ^ turned) * part
            left[i] -= gap * gap
    ticks = np.float32(gaps.ticks)
    most = np.int32(window)
    for i in range(count):
        ahead = np.int32(math.sqrt(max(left[i], np.float32(0.0))) * ticks) + np.int32(2)
        reach[i] = min(ahead, most)
    listed = 0
    for i in range(count):
        row[listed] = begin + i
        reach[listed] = reach[i]
        listed += int(left[i] > 0.0)
    return listed
