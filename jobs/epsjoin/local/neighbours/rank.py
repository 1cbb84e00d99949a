"""One order of outlyingness over all points, and the dimensions in which a point deviates most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import FloatColumn, IntColumn, check_lengths, index_distinct, int_column

# Makes the median absolute deviation a standard deviation on normal data: 1 / quantile(3/4).
MAD_SCALE = 1.4826


class Deviations(NamedTuple):
    """The dimensions in which each point deviates most.

    Parameters
    ----------
    dimension : (n, min(2, d)) int64, counted from 0; the most deviating first.
    z : (n, min(2, d)) float64, signed deviation in units of the spread.
    """

    dimension: IntColumn
    z: FloatColumn


def rank(
    ids: npt.ArrayLike, k_distance: npt.ArrayLike, lof: npt.ArrayLike, degree: npt.ArrayLike
) -> IntColumn:
    """Order all points by outlyingness: 1 is the most outlying, every rank is given once.

    1. Points whose k-distance is unknown, so larger than eps: the lowest degree first.
    2. Points whose k-distance is known but whose factor is not, as they lie near points of 1: the largest
       k-distance first.
    3. All others: the largest factor first.

    What is equal so far is ordered by id, the smallest first.

    Parameters
    ----------
    ids : (n,) int64, each once.
    k_distance, lof : (n,) float64, NaN where unknown.
    degree : (n,) int64, points or neighbours within eps; only its order counts, and only in 1.

    Returns
    -------
    (n,) int64, 1 to n, in the order of ``ids``.

    Raises
    ------
    ArgumentError
        Columns of different length or type; an id comes twice; a factor is known where its k-distance is not.

    Notes
    -----
    O(n log n).
    """
    ids, degree = int_column("ids", ids), int_column("degree", degree)
    k_distance, lof = np.asarray(k_distance, dtype=np.float64), np.asarray(lof, dtype=np.float64)
    check_lengths(ids=ids, k_distance=k_distance, lof=lof, degree=degree)
    index_distinct(ids)
    is_far, is_open = np.isnan(k_distance), np.isnan(lof)
    if (is_far & ~is_open).any():
        raise ArgumentError("a local outlier factor cannot be known where the k-distance is not")
    group = np.where(is_far, 1, np.where(is_open, 2, 3))
    value = np.where(is_far, degree, np.where(is_open, -k_distance, -lof))
    ranks = np.empty(ids.size, dtype=np.int64)
    ranks[np.lexsort((ids, value, group))] = np.arange(1, ids.size + 1)
    return ranks


def robust_spread(points: npt.NDArray[np.float64]) -> tuple[FloatColumn, FloatColumn]:
    """Median and spread (median absolute deviation x 1.4826) of every dimension.

    Parameters
    ----------
    points : (n, d) float64, n at least 1.

    Raises
    ------
    ArgumentError
        No points.
    """
    if points.ndim != 2 or not points.size:
        raise ArgumentError(f"points must be at least one row of coordinates, not of shape {points.shape}")
    centre = np.median(points, axis=0)
    return centre, MAD_SCALE * np.median(np.abs(points - centre), axis=0)


def deviating_dimensions(points: npt.ArrayLike, centre: npt.ArrayLike, spread: npt.ArrayLike) -> Deviations:
    """Find the two dimensions in which each point deviates most: the reason shown with an outlier.

    Parameters
    ----------
    points : (n, d) float64.
    centre, spread : (d,) float64, as :func:`robust_spread` makes them.

    Returns
    -------
    Deviations, in the order of the points. ``z = (x - centre) / spread``. Where the spread is 0 (half of
    all points have one value there, or more), z is 0 on the centre and infinite off it. The larger ``|z|``
    first, then the larger ``|x - centre|`` (it orders infinite ones), then the lower dimension.

    Raises
    ------
    ArgumentError
        Shapes do not match, no dimension, or a spread is negative, NaN or infinite.
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
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        off = points - centre
        z = np.where(off == 0, 0.0, off / spread)
    left, far = np.abs(z), np.abs(off)
    found = np.empty((len(points), min(2, points.shape[1])), dtype=np.int64)
    for place in range(found.shape[1]):
        is_largest = left == left.max(axis=1, keepdims=True)
        found[:, place] = np.where(is_largest, far, -1.0).argmax(axis=1)  # the first: the lower dimension
        np.put_along_axis(left, found[:, [place]], -1.0, axis=1)
    return Deviations(found, np.take_along_axis(z, found, axis=1))
