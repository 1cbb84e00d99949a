"""Which rows may be within eps of any of a few others: their cells are marked, and those around them.

Where a small set is joined with a large one, this leaves out rows before they are copied and sorted. Cells
are a little wider than eps along the first coordinates of a projection, so that two rows within eps lie in
the same cell or in adjacent ones. The grid of marks is finite and wraps around: cells far apart may share a
mark, so that some rows are compared in vain, but none is lost.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit, read_only
from epsjoin.kernels.arrays import Bytes, Floats, Ints
from epsjoin.kernels.projection import Projection, first_columns, largest_reach, rotate

_MAX_COORDINATES = 4
"""Maximum number of coordinates of a cell: each row marks 3 cells along each."""
_CELLS_PER_MARK = 64
"""Number of cells for each mark that is made: few rows then meet the mark of another place."""
_MIN_BITS, _MAX_BITS = 12, 24
"""Logarithm of the minimum and maximum number of cells; the most, 2 MB of bits, stay in a cache."""
_BLOCK = 1024
"""Number of rows that are looked up at once."""


class NearCells(NamedTuple):
    """The cells around some rows.

    Parameters
    ----------
    projection : its first coordinates are divided into cells.
    reach : width of a cell; infinite: every row is near.
    n_coordinates : number of coordinates that are divided.
    bits : logarithm of the number of cells along each of them.
    marks : (2 ** (bits * n_coordinates) / 8,) uint8, a bit for each cell, the last coordinate fastest.
    """

    projection: Projection
    reach: float
    n_coordinates: int
    bits: int
    marks: Bytes


@njit
def _write_places(embedded: Floats, rows: Ints, cells: NearCells, places: Ints) -> None:
    """Write the place of each row's cell among the marks, its coordinates one after the other."""
    projection, bits = cells.projection, cells.bits
    last = (1 << bits) - 1
    scale = 1.0 / cells.reach
    if projection.basis.shape[0] > 0:
        values = np.empty(cells.n_coordinates, np.float64)
        factors = first_columns(projection, values.shape[0])
        for i in range(rows.shape[0]):
            rotate(embedded, rows[i], projection, factors, values)
            place = 0
            for j in range(values.shape[0]):
                place = (place << bits) | (math.floor(values[j] * scale) & last)
            places[i] = place
        return
    places[:] = 0
    for j in range(cells.n_coordinates):
        axis = projection.axes[j]
        centre, low, high = projection.centre[axis], projection.low[axis], projection.high[axis]
        for i in range(rows.shape[0]):
            value = embedded[rows[i], axis] - centre
            value = low if value < low else value
            value = high if value > high else value
            places[i] = (places[i] << bits) | (math.floor(value * scale) & last)


@njit
def _mark(places: Ints, n_coordinates: int, bits: int, marks: Bytes) -> None:
    """Mark the cells at these places and all adjacent ones."""
    last = (1 << bits) - 1
    for i in range(places.shape[0]):
        for neighbour in range(3**n_coordinates):
            place, left = 0, neighbour
            for j in range(n_coordinates):
                number = (places[i] >> (bits * (n_coordinates - 1 - j))) + left % 3 - 1
                place = (place << bits) | (number & last)
                left //= 3
            marks[place >> 3] |= np.uint8(1 << (place & 7))


@njit
def _find(embedded: Floats, rows: Ints, cells: NearCells, found: Ints) -> int:
    """Write the rows whose cells are marked to ``found``, block by block; return their number."""
    marks = cells.marks
    places = np.empty(_BLOCK, np.int64)
    n_found = 0
    for begin in range(0, rows.shape[0], _BLOCK):
        block = rows[begin : begin + _BLOCK]
        _write_places(embedded, block, cells, places[: block.shape[0]])
        for i in range(block.shape[0]):
            found[n_found] = block[i]  # overwritten where it is not near: there is no branch to foresee
            n_found += (marks[places[i] >> 3] >> (places[i] & 7)) & 1
    return n_found


def mark_cells(embedded: Floats, projection: Projection, eps: float) -> NearCells:
    """Mark the cells around rows.

    Parameters
    ----------
    embedded : (n, e) float64; not modified.
    projection : any is exact; one that separates the rows to be looked up leaves out most of them.
    eps : threshold in embedded coordinates.

    Notes
    -----
    O(81 n) time; 16 bytes per row until the end, and at most 2 MB of marks, which stay.
    """
    reach = largest_reach(projection, eps)
    n_coordinates = min(_MAX_COORDINATES, projection.size)
    n_marks = 3**n_coordinates * len(embedded)
    wanted = max((n_marks * _CELLS_PER_MARK).bit_length(), _MIN_BITS)
    bits = min(-(-wanted // n_coordinates), _MAX_BITS // n_coordinates)
    marks = np.zeros(1 << bits * n_coordinates >> 3, np.uint8)
    cells = NearCells(projection, reach, n_coordinates, bits, marks)
    if reach < math.inf:
        places = np.empty(len(embedded), np.int64)
        _write_places(read_only(embedded), np.arange(len(embedded)), cells, places)
        _mark(places, n_coordinates, bits, marks)
    return cells


def find_near(cells: NearCells, embedded: Floats, rows: Ints) -> Ints:
    """Find the rows that may be within eps of a marked one.

    Parameters
    ----------
    cells : from :func:`mark_cells`.
    embedded : (m, e) float64; not modified.
    rows : (r,) int64, the rows of ``embedded`` to look at.

    Returns
    -------
    (k,) int64, those of ``rows``, in their order: all within eps of a marked row, and some others.

    Notes
    -----
    O(r e) with a rotation, else O(r); no row is copied.
    """
    if not cells.reach < math.inf:
        return rows
    found = np.empty(len(rows), np.int64)
    return found[: _find(read_only(embedded), rows, cells, found)]
