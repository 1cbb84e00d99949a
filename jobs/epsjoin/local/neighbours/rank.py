"""The order of outlyingness of all points, and the dimensions in which a point deviates most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.neighbours.ties import order_by_both
from epsjoin.local.sweep.threads import in_ranges

MAD_SCALE = 1.4826
"""Ratio of standard deviation to median absolute deviation on normal data: 1 / quantile(3/4)."""
_LARGEST = 2.0**1020
"""Largest coordinate for which sums and differences of two, and the spread, are certainly finite."""


class Deviations(NamedTuple):
    """The dimensions in which each point deviates most from the median.

    Parameters
    ----------
    dimension : (n, min(2, d)) int64, numbers of dimensions, counted from 0; the most deviating first.
    z : (n, min(2, d)) float64, signed deviations in units of the spread.
    """

    dimension: Ints
    z: Floats


def order_by_outlyingness(lof: Floats, k_distance: Floats, n_jobs: int = 1) -> Ints:
    """Order points by how far out they lie: the largest factor first, then the largest k-distance.

    Points that are equal in both stay in the order of their rows.

    Parameters
    ----------
    lof, k_distance : (n,) float64. What is unknown (NaN) counts as infinite.
    n_jobs : number of threads.

    Returns
    -------
    (n,) int64, the rows; the point in place i has rank i + 1.

    Notes
    -----
    O(n log n).
    """
    return order_by_both(_largest_first(lof), _largest_first(k_distance), in_ranges(n_jobs))


def _largest_first(values: Floats) -> Floats:
    """Numbers in the opposite order, with unknown ones first; takes no more memory than this one array."""
    negative = -values
    negative[np.isnan(negative)] = -np.inf
    return negative


def robust_spread(points: Floats, turn: float = 0.0) -> tuple[Floats, Floats]:
    """Compute the median and the spread (median absolute deviation x 1.4826) of every dimension.

    Parameters
    ----------
    points : (n, d) float64; both are 0 where n is. The spread of the largest numbers may be infinite.
    turn : full turn of the second dimension where it is a longitude, see :func:`cut_longitudes`; else 0.
    """
    if not len(points):
        return np.zeros(points.shape[1]), np.zeros(points.shape[1])
    points = cut_longitudes(points, turn)
    shrink = shrink_of(points)
    points = points * shrink
    centre = np.median(points, axis=0)
    spread = MAD_SCALE * np.median(np.abs(points - centre), axis=0)
    with np.errstate(over="ignore"):
        return centre / shrink, spread / shrink


def shrink_of(points: Floats) -> float:
    """A power of two that keeps sums and differences of these coordinates finite; mostly 1."""
    return 2.0**-4 if np.abs(points).max(initial=0.0) > _LARGEST else 1.0


def cut_longitudes(points: Floats, turn: float) -> Floats:
    """Cut the circle of longitudes where the widest gap of each set of points is, for medians of them.

    Parameters
    ----------
    points : (..., n, d) float64, sets of n points, n at least 1; not modified.
    turn : full turn of the second dimension where it is a longitude; 0: nothing is cut.
    """
    if not turn:
        return points
    points = points.copy()
    longitudes = _turn_within(points[..., 1], 0.0, turn)
    is_beyond = longitudes > np.expand_dims(widest_gaps(longitudes, turn), -1)
    points[..., 1] = np.where(is_beyond, longitudes - turn, longitudes)
    return points


def turn_to(points: Floats, centre: Floats, turn: float) -> Floats:
    """Turn longitudes so that they differ from that of the centre by the shorter way round.

    Parameters
    ----------
    points, centre : (n, d) and (d,) float64; not modified.
    turn : full turn of the second dimension where it is a longitude; 0: nothing is turned.
    """
    if not turn:
        return points
    points = points.copy()
    points[:, 1] = _turn_within(points[:, 1], centre[1], turn)
    return points


def _turn_within(longitudes: Floats, middle: float, turn: float) -> Floats:
    """Turn longitudes to within half a turn of the middle; those that are there keep all their digits."""
    return longitudes - turn * np.floor((longitudes - middle + turn / 2.0) / turn)


def widest_gaps(longitudes: Floats, turn: float) -> Floats:
    """Find where to cut the circle of longitudes, so that data across half a turn stays together.

    Parameters
    ----------
    longitudes : (..., n) float64, sets of n, at least one.
    turn : full turn in their unit.

    Returns
    -------
    (...,) float64
        The longitude west of the widest gap of each set, above which a turn is to be subtracted. Half a turn
        where a cut there is as good.
    """
    values = np.sort(longitudes, axis=-1)
    gaps = np.diff(values, axis=-1, append=values[..., :1] + turn)
    widest = gaps.argmax(axis=-1, keepdims=True)
    is_narrow = gaps.max(axis=-1) < np.maximum(turn / 12.0, 2.0 * gaps[..., -1])
    return np.where(is_narrow, turn / 2.0, np.take_along_axis(values, widest, axis=-1)[..., 0])


def deviating_dimensions(points: npt.ArrayLike, centre: npt.ArrayLike, spread: npt.ArrayLike) -> Deviations:
    """Find the two dimensions in which each point deviates most: the reason that is shown for an outlier.

    Parameters
    ----------
    points : (n, d) float64.
    centre, spread : (d,) float64, results of :func:`robust_spread`.

    Returns
    -------
    Deviations in the order of the points, with ``z = (x - centre) / spread``. Where the spread is 0 (more
    than half of all points have one value there), z is 0 at the centre and infinite elsewhere. The dimension
    with the larger ``|z|`` comes first; where that is equal (infinite), the one with the larger
    ``|x - centre|``, then the lower dimension.

    Raises
    ------
    ArgumentError
        The shapes do not match; there is no dimension; a spread is negative, NaN or infinite.
    """
    points, centre, spread = (np.asarray(values, dtype=np.float64) for values in (points, centre, spread))
    if (
        points.ndim != 2
        or not points.shape[1]
        or centre.shape != spread.shape
        or centre.shape != points.shape[1:]
    ):
        shapes = f"{points.shape}, {centre.shape} and {spread.shape}"
        raise ArgumentError(f"points, centre and spread must be (n, d), (d,) and (d,), not {shapes}")
    if not ((spread >= 0) & np.isfinite(spread)).all():
        raise ArgumentError(f"spread must be finite numbers, at least 0, not {spread}")
    shrink = min(shrink_of(points), shrink_of(centre))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        off = points * shrink - centre * shrink
        z = np.where(off == 0, 0.0, off / (spread * shrink))
    left, far = np.abs(z), np.abs(off)
    found = np.empty((len(points), min(2, points.shape[1])), dtype=np.int64)
    for place in range(found.shape[1]):
        is_largest = left == left.max(axis=1, keepdims=True)
        found[:, place] = np.where(is_largest, far, -1.0).argmax(axis=1)  # the first: the lower dimension
        np.put_along_axis(left, found[:, [place]], -1.0, axis=1)
    return Deviations(found, np.take_along_axis(z, found, axis=1))
