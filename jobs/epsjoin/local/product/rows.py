"""Filter rows: coordinates in float32 whose products tell which pairs may be within eps, and the proof.

Points within eps have embedded coordinates v (:meth:`epsjoin.Metric.embed`) whose distance is at most D. None
of these steps increases a distance, each is done in float64, and the last result is rounded to float32:

1. ``w = v - centre``; a row longer than the radius R is drawn in to it. A ball is convex, so that is a
   projection. R is a power of two, and w is divided by it: no product overflows.
2. m *axes*, orthonormal: ``p = axes w``. The rest of w has the length ``t = sqrt(|w|² - |p|²)``, and the
   *filter row* is ``g = (p, t)``, k = m + 1 numbers: ``|g - h|² = |p - q|² + (t - s)² <= |w - z|²``, since
   the rests differ by the difference of their lengths at least. Where m is d, ``g = w``.

Rounding. Let u = 2**-24 and v = 2**-53. A filter row is wrong by ρ|g| at most, from the rounding of w and p,
the deviation of the axes from orthonormal ones, the root of the difference of two rounded squares (which
makes of an error e|w|² one of sqrt(e)|w|) and the rounding to float32: :func:`_row_error`. So with a = |g|²
and b = |h|², and any τ above 0,

    |g - h|² <= (D + ρ(|g| + |h|))² <= (1 + τ) D² + (1 + 1/τ) 2ρ² (a + b).

BLAS sums k products in some order, with or without FMA: the result c is wrong by γ|g||h| at most, where γ = k
u / (1 - k u) (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), and |g||h| is at most (a
+ b)/2. Numbers below the least normal one are wrong absolutely, by 2**-126 each, which D absorbs. Since g·h =
(a + b - |g - h|²)/2,

    c >= (1 - σ)(a + b)/2 - (1 + τ) D²/2    with    σ = γ + 2 (1 + 1/τ) ρ² + 4u ,

where 4u covers the one rounding of c - half(h) in float32. So ``half = (1 - σ) a / 2``, rounded down, for
either row, and ``threshold = half - (1 + τ) D²/2`` for the left one.
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np

from epsjoin.kernels.arrays import Floats, Floats32, Ints, Points
from epsjoin.kernels.product.filter_rows import place_rows, square_rows
from epsjoin.kernels.product.product import LANES, MIN_THRESHOLD, ProductRows
from epsjoin.local.metric import Metric, axis_difference, cosine_chord
from epsjoin.local.scratch import MakeArray

ROWS_AT_ONCE = 1024
"""Number of rows that are in float64 at once."""
_UNIT, _UNIT_64 = 2.0**-24, 2.0**-53
_MIN_NORMAL = 2.0**-126
_MIN_DISTANCE = 1e-150
"""The distance below which a computed one may be less than the true one, such as 0: squares underflow."""
_TAU = 2.0**-10
_SHORTER = 1.01
"""More than |w| over |g|: errors are relative to the former."""
MAX_DEVIATION = 2.0**-36
"""Maximum deviation of axes from orthonormal ones; that of computed axes is about 2**-48."""


class FilterSpace(NamedTuple):
    """How points become filter rows.

    Parameters
    ----------
    centre : (d,) float64.
    radius : a power of two.
    axes : (m, d) float64, orthonormal rows; (0, d) where filter rows are all coordinates.
    """

    centre: Floats
    radius: float
    axes: Floats

    @property
    def size(self) -> int:
        """Numbers of a filter row, k."""
        return len(self.axes) + 1 if len(self.axes) else len(self.centre)


class FilteredTable(NamedTuple):
    """A table's filter rows, (n + padding, k) float32, and what scans need of it."""

    filter: Floats32
    rows: ProductRows


def embed(points: Points, metric: Metric) -> Floats:
    """Embedded coordinates of some points, in float64; a copy where the points are float32 or embedded."""
    return metric.embed(np.asarray(points, np.float64))


def place_in_ball(embedded: Floats, space: FilterSpace) -> Floats:
    """Step 1: count from the centre, draw in to the radius, divide by it.

    Rows whose squares would overflow are first drawn in to a cube, which is convex, too.
    """
    placed = np.empty(embedded.shape)
    place_rows(np.ascontiguousarray(embedded), False, space.centre, 1.0 / space.radius, placed, np.empty(0))
    return placed


def filter_rows(embedded: Floats, space: FilterSpace) -> Floats32:
    """Filter rows of some points, (n, k) float32; embedded (n, d) float64 is not modified."""
    made = np.empty((len(embedded), space.size), np.float32)
    _project(place_in_ball(embedded, space), space, made)
    return made


def _project(placed: Floats, space: FilterSpace, made: Floats32) -> None:
    """Step 2: filter rows of placed points."""
    if not len(space.axes):
        made[:] = placed
        return
    on_axes = placed @ space.axes.T
    squares = np.einsum("ij,ij->i", placed, placed) - np.einsum("ij,ij->i", on_axes, on_axes)
    made[:, :-1] = on_axes
    made[:, -1] = np.sqrt(np.maximum(squares, 0.0))


def filter_table(
    points: Points,
    names: Ints,
    metric: Metric,
    space: FilterSpace,
    eps: float,
    make: MakeArray = np.zeros,
) -> FilteredTable:
    """Make the filter rows of a table, and what decides.

    Parameters
    ----------
    points : (n, d), for which the metric is defined; names : (n,) int64. Not modified, and kept.
    metric : Euclid or cosine.
    space : how.
    eps : threshold of the metric.
    make : makes the array of the filter rows.

    Notes
    -----
    O(n d m). Memory: k + 2 float32 a row, and a float64 for cosine.
    """
    n, n_padded = len(points), -(-len(points) // LANES) * LANES
    made = make((n_padded, space.size), np.float32)
    is_cosine = metric.name == "cosine"
    inverse_norm, squares = np.empty(n if is_cosine else 0), np.empty(n)
    of_placed = space.centre, 1.0 / space.radius
    placed = np.empty((min(n, ROWS_AT_ONCE), points.shape[1]) if len(space.axes) else (0, 0))
    for begin in range(0, n, ROWS_AT_ONCE):
        of_block = slice(begin, min(begin + ROWS_AT_ONCE, n))
        rows, norms = made[of_block], inverse_norm[of_block]
        values = cast(Points, np.ascontiguousarray(points[of_block]))
        if len(space.axes):
            place_rows(values, is_cosine, *of_placed, placed[: len(rows)], norms)
            _project(placed[: len(rows)], space, rows)
        else:
            place_rows(values, is_cosine, *of_placed, rows, norms)
        squares[of_block] = square_rows(rows)
    half = np.full(n_padded, np.inf, np.float32)
    halved, offset = half_and_offset(squares, space, metric, eps)
    half[:n] = _rounded_down(halved)
    threshold = _rounded_down(halved - offset)
    return FilteredTable(made, ProductRows(points, names, inverse_norm, half, threshold))


def half_and_offset(
    squares: Floats, space: FilterSpace, metric: Metric, eps: float | Floats
) -> tuple[Floats, Floats]:
    """What half and threshold are before they are rounded, see the module: ``half`` and ``half - offset``.

    Parameters
    ----------
    squares : (n,) float64, the squares of the lengths of filter rows.
    space, metric : of these rows.
    eps : threshold of the metric, or one for each row.
    """
    return (1.0 - slack(space)) / 2.0 * squares, _offsets(space, metric, np.asarray(eps))


def slack(space: FilterSpace) -> float:
    """σ of the module: the part of the squared lengths by which a product may be too small."""
    of_rows = 2.0 * (1.0 + 1.0 / _TAU) * _row_error(len(space.centre), len(space.axes)) ** 2
    of_product = space.size * _UNIT / (1.0 - space.size * _UNIT)
    return of_product + of_rows + 4.0 * _UNIT


def reach(space: FilterSpace, metric: Metric, eps: float) -> float:
    """D of the module, in units of the radius."""
    return float(reaches(space, metric, np.asarray(eps)))


def farthest(space: FilterSpace, metric: Metric, eps: float) -> float:
    """The largest distance of the filter rows of two points within eps: D and the errors of both rows.

    The same bound holds for any columns of theirs.
    """
    return reach(space, metric, eps) + 2.1 * _row_error(len(space.centre), len(space.axes))


def reaches(space: FilterSpace, metric: Metric, distances: Floats) -> Floats:
    """As :func:`reach`, for many thresholds."""
    if metric.name == "cosine":
        embedded = cosine_chord(distances)
    else:
        embedded = axis_difference(np.maximum(distances, _MIN_DISTANCE))
    rounded = embedded * ((1.0 + 2 * len(space.centre) * _UNIT_64) / space.radius)
    rounded += 2.0 * space.size * _MIN_NORMAL + 2.0 * math.sqrt(space.size * _MIN_NORMAL)
    return rounded


def thresholds(half: Floats32, space: FilterSpace, metric: Metric, distances: Floats) -> Floats32:
    """Thresholds of left rows that have a distance each, infinite for no limit, in the place of one eps.

    Parameters
    ----------
    half : (n,) float32, of the rows.
    space, metric : of the filter rows.
    distances : (n,) float64.
    """
    return _rounded_down(half.astype(np.float64) - _offsets(space, metric, distances))


def _offsets(space: FilterSpace, metric: Metric, distances: Floats) -> Floats:
    """By how much thresholds are below half of the square; infinite where float64 does not hold it."""
    with np.errstate(over="ignore"):
        return np.asarray(np.square(reaches(space, metric, distances)) * ((1.0 + _TAU) / 2.0))


def _row_error(d: int, m: int) -> float:
    """ρ of the module."""
    of_placing = (d + 8) * _UNIT_64
    if not m:
        return _SHORTER * (of_placing + _UNIT)
    of_axes = d * math.sqrt(d) * _UNIT_64 + MAX_DEVIATION
    of_squares = 2.0 * (d + 4) * _UNIT_64 + 2.0 * of_axes
    return _SHORTER * (of_placing + of_axes + math.sqrt(of_squares) + _UNIT)


def _rounded_down(values: Floats) -> Floats32:
    """Values as float32, none above what it was, but for those that all products reach."""
    values = np.maximum(values, MIN_THRESHOLD)
    rounded = values.astype(np.float32)
    return np.where(rounded > values, np.nextafter(rounded, np.float32(-np.inf)), rounded)
