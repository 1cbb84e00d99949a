"""One order of outlyingness over all points, and the dimensions in which a point deviates most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.arguments import check_lengths, index_distinct, int_column

MAD_SCALE = 1.4826
"""Ratio of standard deviation to median absolute deviation on normal data: 1 / quantile(3/4)."""


class Deviations(NamedTuple):
    """The dimensions in which each point deviates most from the median.

    Parameters
    ----------
    dimension : (n, min(2, d)) int64, numbers of dimensions, counted from 0; the most deviating first.
    z : (n, min(2, d)) float64, signed deviations in units of the spread.
    """

    dimension: Ints
    z: Floats


def rank(ids: npt.ArrayLike, k_distance: npt.ArrayLike, lof: npt.ArrayLike, degree: npt.ArrayLike) -> Ints:
    """Rank all points by outlyingness: 1 is the most outlying, and no two points have one rank.

    1. First come points whose k-distance is unknown, so larger than eps: the lowest degree first.
    2. Then come points whose k-distance is known but whose factor is not, because they are near points of the
       first kind: the largest k-distance first.
    3. Then come all others: the largest factor first.

    Points that are equal in this order are ordered by id, the smallest first.

    Parameters
    ----------
    ids : (n,) int64, each once.
    k_distance, lof : (n,) float64, NaN where unknown.
    degree : (n,) int64, number of points or of neighbours within eps; only its order counts, and only for the
        first kind.

    Returns
    -------
    (n,) int64, 1 to n, in the order of ``ids``.

    Raises
    ------
    ArgumentError
        The columns have a wrong type or different lengths; an id occurs twice; a factor is known where its
        k-distance is not.

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


def robust_spread(points: Floats) -> tuple[Floats, Floats]:
    """Compute the median and the spread (median absolute deviation x 1.4826) of every dimension.

    Parameters
    ----------
    points : (n, d) float64, n at least 1.

    Raises
    ------
    ArgumentError
        There are no points.
    """
    if points.ndim != 2 or not points.size:
        raise ArgumentError(f"points must be at least one row of coordinates, not of shape {points.shape}")
    centre = np.median(points, axis=0)
    return centre, MAD_SCALE * np.median(np.abs(points - centre), axis=0)


def deviating_dimensions(points: npt.ArrayLike, centre: npt.ArrayLike, spread: npt.ArrayLike) -> Deviations:
    """Find the two dimensions in which each point deviates most: the reason that is shown for an outlier.

    Parameters
    ----------
    points : (n, d) float64.
    centre, spread : (d,) float64, results of :func:`robust_spread`.

    Returns
    -------
    Deviations in the order of the points, with ``z = (x - centre) / spread``. Where the spread is 0 (at least
    half of all points have one value there), z is 0 at the centre and infinite elsewhere. The dimension with
    the larger ``|z|`` comes first; where that is equal (infinite), the one with the larger ``|x - centre|``,
    then the lower dimension.

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
