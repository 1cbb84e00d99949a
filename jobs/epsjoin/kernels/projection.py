"""The few coordinates in which a part is swept and filtered: embedded axes, or principal axes.

Points within eps are within eps in every projection: on any axes, and for Euclid's norm on any axes after a
rotation. A good choice has few candidates and few survivors of the filter; a sample tells which one is good.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_any_order, read_only
from epsjoin.kernels.arrays import Floats, Floats32, Ints
from epsjoin.kernels.ranges import Ranges, in_one_range
from epsjoin.kernels.simd.read_ahead import read_ahead

SQUARES, SUM, MAXIMUM, PRODUCTS = range(4)
"""Norms; ``PRODUCTS`` is that of ``SQUARES`` as a filter computes it from halves of squares and a product."""
FILTER_SIZES = (2, 4, 8)
"""Numbers of coordinates for which a filter is compiled."""
_MAX_COORDINATE = 1e30
"""Maximum of a filter coordinate, which float32 holds; clipping never increases a difference."""
_ROWS_AT_ONCE = 64
"""Number of rows whose coordinates are computed at once."""
_LINE = 8
"""Number of float64 in a cache line."""
_AHEAD = 32
"""Number of rows before a row is copied that the memory is asked for it."""
_ROUNDING = 2.0**-48
"""Relative slack of a coordinate: more than 8 times its rounding, relative to the values it is made of."""


_Shape = tuple[int, int]


class Projection(NamedTuple):
    """How embedded coordinates become the coordinates of a window sweep.

    Parameters
    ----------
    norm : what a distance in embedded coordinates is: ``SQUARES`` (the sum of squared differences is eps² at
        most), ``SUM`` (of absolute differences) or ``MAXIMUM``.
    axes : (c,) int64, embedded axes, the best first; empty after a rotation.
    basis : (c, e) float64, orthonormal rows, the best first; (0, e) without a rotation.
    centre, low, high : (e,) float64. Each embedded axis is first counted from the centre and clipped to
        ``low`` .. ``high``, where all but a few rows lie: a single far outlier must not cost float32 and the
        keys their resolution. Clipping, like projecting, increases no difference.
    n_grid : coordinates 1 to ``n_grid`` make the grid; coordinate 0 is swept.
    n_filter : coordinates of the filter, one of ``FILTER_SIZES``; those beyond c are 0.
    """

    norm: int
    axes: Ints
    basis: Floats
    centre: Floats
    low: Floats
    high: Floats
    n_grid: int
    n_filter: int

    @property
    def is_rotated(self) -> bool:
        """Whether the coordinates are principal axes."""
        return len(self.basis) > 0

    @property
    def size(self) -> int:
        """Coordinates c."""
        return len(self.basis) or len(self.axes)


def filter_size(n_coordinates: int) -> int:
    """Choose the smallest filter that holds ``n_coordinates``, or the largest there is."""
    return next((size for size in FILTER_SIZES if size >= n_coordinates), FILTER_SIZES[-1])


@njit
def first_columns(projection: Projection, size: int) -> Floats:
    """Factors of each embedded axis in the first ``size`` coordinates, side by side; (e, size)."""
    return projection.basis[:size].T.copy()


@njit
def rotate(embedded: Floats, row: int, projection: Projection, factors: Floats, values: Floats) -> float:
    """Write the first coordinates of one row on the principal axes; returns the sum that went into them.

    ``factors`` are from :func:`first_columns`, as many columns as ``values``.
    """
    centre, low, high = projection.centre, projection.low, projection.high
    values[:] = 0.0
    total = 0.0
    for i in range(embedded.shape[1]):
        value = min(max(embedded[row, i] - centre[i], low[i]), high[i])
        total += abs(value)
        for j in range(values.shape[0]):
            values[j] += factors[i, j] * value
    return total


@njit_any_order
def _project_rotated(
    embedded: Floats, projection: Projection, coordinates: Floats, first: int, last: int
) -> float:
    """Fill ``coordinates`` (c, n) of a range of rows on the principal axes.

    Some rows at once, axis by axis: their sums are independent of one another, and may run in any order:
    the reach covers every rounding. Returns the largest magnitude that went into a coordinate.
    """
    basis, centre, low, high = projection.basis, projection.centre, projection.low, projection.high
    e = embedded.shape[1]
    values = np.empty((e, _ROWS_AT_ONCE), np.float64)
    largest = 0.0
    for begin in range(first, last, _ROWS_AT_ONCE):
        count = min(_ROWS_AT_ONCE, last - begin)
        for i in range(count):
            total = 0.0
            for axis in range(e):
                value = min(max(embedded[begin + i, axis] - centre[axis], low[axis]), high[axis])
                values[axis, i] = value
                total += abs(value)
            largest = max(largest, total)
        for j in range(coordinates.shape[0]):
            sums = coordinates[j, begin : begin + count]
            sums[:] = 0.0
            for axis in range(e):
                factor = basis[j, axis]
                for i in range(count):
                    sums[i] += factor * values[axis, i]
    return largest


@njit
def _project_axes(
    embedded: Floats, projection: Projection, coordinates: Floats, first: int, last: int
) -> float:
    """As :func:`_project_rotated`, for embedded axes."""
    axes, centre, low, high = projection.axes, projection.centre, projection.low, projection.high
    largest = 0.0
    for begin in range(first, last, _ROWS_AT_ONCE):  # the cache holds these for the next coordinate
        for j in range(coordinates.shape[0]):
            axis = axes[j]
            middle, lowest, highest = centre[axis], low[axis], high[axis]
            for row in range(begin, min(begin + _ROWS_AT_ONCE, last)):
                value = embedded[row, axis] - middle
                value = lowest if value < lowest else value
                value = highest if value > highest else value
                coordinates[j, row] = value
                value = abs(value)
                largest = value if value > largest else largest
    return largest


@njit
def _gather_rotated(
    coordinates: Floats, order: Ints, shape: _Shape, near: Floats32, begin: int, end: int
) -> float:
    """Fill a range of ``near`` in the given order, as ``shape`` = (size, stride).

    Returns the largest magnitude.
    """
    size, stride = shape
    largest = 0.0
    for j in range(size):
        for place in range(begin, end):
            value = min(max(coordinates[j, order[place]], -_MAX_COORDINATE), _MAX_COORDINATE)
            near[j * stride + place] = value
            largest = max(largest, abs(value))
    return largest


@njit
def _lines_of(axes: Ints) -> Ints:
    """The first number of each cache line that has one of these axes, as if rows began with a line."""
    return np.unique(axes // _LINE) * _LINE


@njit
def _gather_axes(
    embedded: Floats,
    order: Ints,
    projection: Projection,
    scale: float,
    shape: _Shape,
    near: Floats32,
    first: int,
    last: int,
) -> float:
    """As :func:`_gather_rotated`, for embedded axes.

    Some rows are first copied as they are: the memory serves reads together that do not wait for one another.
    """
    size, stride = shape
    axes = projection.axes
    centre, low, high = projection.centre[axes], projection.low[axes], projection.high[axes]
    lines = _lines_of(axes[:size])
    length = embedded.shape[1]
    copied = np.empty((size, _ROWS_AT_ONCE), np.float64)
    largest = 0.0
    for begin in range(first, last, _ROWS_AT_ONCE):
        count = min(_ROWS_AT_ONCE, last - begin)
        for i in range(count):
            row = order[begin + i]
            ahead = order[min(begin + i + _AHEAD, order.shape[0] - 1)] * length
            for line in lines:
                read_ahead(embedded, ahead + line)
            for j in range(size):
                copied[j, i] = embedded[row, axes[j]]
        for j in range(size):
            for i in range(count):
                value = copied[j, i] - centre[j]
                value = low[j] if value < low[j] else value
                value = high[j] if value > high[j] else value
                value *= scale
                value = -_MAX_COORDINATE if value < -_MAX_COORDINATE else value
                value = _MAX_COORDINATE if value > _MAX_COORDINATE else value
                near[j * stride + begin + i] = value
                value = abs(value)
                largest = value if value > largest else largest
    return largest


def project(
    embedded: Floats, projection: Projection, count: int, eps: float, ranges: Ranges = in_one_range
) -> tuple[Floats, float]:
    """Compute the first ``count`` coordinates of every row in units of the reach, and the reach.

    Parameters
    ----------
    embedded : (n, e) float64; not modified.
    projection : from :func:`epsjoin.local.plan.projection.choose_projection`.
    count : number of coordinates.
    eps : threshold in embedded coordinates.
    ranges : how ranges of rows are worked on.

    Returns
    -------
    coordinates : (count, n) float64; those of two rows within eps differ by less than 1.
    reach : a little more than eps: it covers the rounding of these coordinates, which grows with the
        magnitude of the values, not with eps. May be infinite: then no row is separated from another, which
        is exact. The other coordinates of a filter are rounded to float32, whose slack covers it.
    """
    n, embedded = len(embedded), read_only(embedded)
    coordinates = np.zeros((count, n))
    fill = _project_rotated if projection.is_rotated else _project_axes
    filled = coordinates[: projection.size]
    largest = max(ranges(n, lambda _, *rows: fill(embedded, projection, filled, *rows)))
    with np.errstate(over="ignore"):
        reach = _reach(projection, largest, eps)
    if not reach < math.inf:
        return np.zeros_like(coordinates), math.inf

    def scale(_: int, begin: int, end: int) -> None:
        coordinates[:, begin:end] /= reach

    ranges(n, scale)
    return coordinates, reach


def largest_reach(projection: Projection, eps: float) -> float:
    """The reach of any rows: no less than the one that :func:`project` returns, whichever rows it is given.

    Parameters
    ----------
    projection : its clipping bounds what goes into a coordinate.
    eps : threshold in embedded coordinates.
    """
    with np.errstate(over="ignore"):
        spans = np.maximum(np.abs(projection.low), np.abs(projection.high))
        largest = spans.sum() if projection.is_rotated else spans[projection.axes].max(initial=0.0)
        return _reach(projection, float(largest), eps)


def _reach(projection: Projection, largest: float, eps: float) -> float:
    terms = len(projection.centre) if projection.is_rotated else 1
    return eps * (1.0 + 1e-9) + largest * terms * _ROUNDING


def filter_coordinates(
    embedded: Floats,
    coordinates: Floats,
    order: Ints,
    projection: Projection,
    reach: float,
    padding: int,
    ranges: Ranges = in_one_range,
) -> tuple[Floats32, float]:
    """Compute the coordinates of the filter in units of the reach, rows in the given order.

    Parameters
    ----------
    embedded : (n, e) float64; not modified.
    coordinates : from :func:`project`, as many as the filter has, where they are principal axes. Embedded
        axes are read again: few or none of them are among those.
    order : (n,) int64.
    projection : from :func:`epsjoin.local.plan.projection.choose_projection`.
    reach : from :func:`project`; infinite: all coordinates are 0.
    padding : zeros behind each coordinate.
    ranges : how ranges of places are worked on.

    Returns
    -------
    near : ((n_filter + 1) * (n + padding),) float32, coordinate by coordinate; the last one is 0, room for
        :func:`add_half_squares`.
    largest : the largest magnitude among them.
    """
    stride, embedded = len(order) + padding, read_only(embedded)
    near = np.zeros((projection.n_filter + 1) * stride, np.float32)  # what is not written takes no memory
    if not reach < math.inf:
        return near, 0.0
    shape = min(projection.n_filter, projection.size), stride

    def gather(_: int, begin: int, end: int) -> float:
        if projection.is_rotated:
            return _gather_rotated(coordinates, order, shape, near, begin, end)
        return _gather_axes(embedded, order, projection, 1.0 / reach, shape, near, begin, end)

    return near, max(ranges(len(order), gather))


def add_half_squares(near: Floats32, size: int, stride: int, n: int, ranges: Ranges = in_one_range) -> float:
    """Write the half squares that a filter by products (``PRODUCTS``) needs behind its coordinates.

    Parameters
    ----------
    near, stride : from :func:`filter_coordinates`, ``size`` coordinates of ``n`` rows; the one behind them
        becomes minus half the square of a row's length.
    ranges : how ranges of places are worked on.

    Returns
    -------
    float
        The largest square of a row's length.
    """
    return float(max(ranges(n, lambda _, *rows: _write_half_squares(near, size, stride, *rows))))


@njit_any_order
def _write_half_squares(near: Floats32, size: int, stride: int, first: int, last: int) -> float:
    largest = 0.0
    squares = np.empty(_ROWS_AT_ONCE, np.float64)
    for begin in range(first, last, _ROWS_AT_ONCE):
        count = min(_ROWS_AT_ONCE, last - begin)
        squares[:] = 0.0
        for j in range(size):
            values = near[j * stride + begin : j * stride + begin + count]
            for i in range(count):
                squares[i] += np.float64(values[i]) * np.float64(values[i])
        for i in range(count):
            near[size * stride + begin + i] = -0.5 * squares[i]
            largest = max(largest, squares[i])
    return largest


def axes_by_variance(embedded: Floats) -> Ints:
    """All axes, the one with the largest variance first, ties by number; (e,) int64."""
    if len(embedded) == 0:
        return np.arange(embedded.shape[1], dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = _squared_deviations(read_only(np.ascontiguousarray(embedded)))
        return np.argsort(-squares / len(embedded), kind="stable").astype(np.int64)


@njit
def _squared_deviations(embedded: Floats) -> Floats:
    """Sums of the squares by which rows deviate from the mean of an axis, row by row; (e,) float64."""
    n, e = embedded.shape
    sums, squares = np.zeros(e), np.zeros(e)
    for row in range(n):
        for axis in range(e):
            sums[axis] += embedded[row, axis]
    for axis in range(e):
        sums[axis] /= n
    for row in range(n):
        for axis in range(e):
            deviation = embedded[row, axis] - sums[axis]
            squares[axis] += deviation * deviation
    return squares
