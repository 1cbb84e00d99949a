"""The distances of one query and many points whose coordinates stand axis by axis: several points at once."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit_inner
from epsjoin.kernels.arrays import Floats
from epsjoin.kernels.distances import EUCLIDEAN, MANHATTAN

_AXES_BEFORE_LOOK = 8
"""Number of axes after which it is looked whether any point may be near; a multiple of 4."""


@njit_inner
def _added(metric: int, total: float, difference: float) -> float:
    """Add one more difference to a sum (or maximum)."""
    if metric == EUCLIDEAN:
        return total + difference * difference
    return total + abs(difference) if metric == MANHATTAN else max(total, abs(difference))


@njit_inner
def sum_axes(
    metric: int,
    queries: Floats,
    number: int,
    flat: Floats,
    first: int,
    stride: int,
    size: int,
    values: Floats,
    most: float,
) -> None:
    """Write the sums (or maxima) of a query and of points that follow one another on each axis.

    When all points are beyond ``most`` after some axes, the other axes are left out: rounded sums never fall.

    Sums run column by column, as in :func:`epsjoin.kernels.distances.decide`, and have the same bits. One
    loop adds up to three axes, or four at a time of more, by unsigned places, so that LLVM takes several
    points at once and reads each sum once.

    Parameters
    ----------
    metric : one of :data:`epsjoin.kernels.distances.BY_AXIS`.
    queries, number : (q, d) float64, and the row of the query.
    flat : float64, coordinates.
    first, stride : where the first point's coordinate on the first axis is, and how far behind it that on the
        next axis.
    size : number of points.
    values : float64; the first ``size`` are written.
    most : sums above it need not be complete.
    """
    d = queries.shape[1]
    begin, step = np.uint64(first), np.uint64(stride)
    if d == 1:
        a = queries[number, 0]
        for j in range(size):
            at = np.uint64(j)
            values[at] = _added(metric, 0.0, a - flat[begin + at])
        return
    if d == 2:
        a, b, second = queries[number, 0], queries[number, 1], begin + step
        for j in range(size):
            at = np.uint64(j)
            values[at] = _added(metric, _added(metric, 0.0, a - flat[begin + at]), b - flat[second + at])
        return
    if d == 3:
        a, b, c = queries[number, 0], queries[number, 1], queries[number, 2]
        second, third = begin + step, begin + np.uint64(2) * step
        for j in range(size):
            at = np.uint64(j)
            total = _added(metric, _added(metric, 0.0, a - flat[begin + at]), b - flat[second + at])
            values[at] = _added(metric, total, c - flat[third + at])
        return
    for j in range(size):
        values[np.uint64(j)] = 0.0
    for i in range(0, d - 3, 4):
        if i == _AXES_BEFORE_LOOK:
            n_near = 0
            for j in range(size):
                n_near += values[np.uint64(j)] <= most
            if n_near == 0:
                return
        this = begin + np.uint64(i) * step
        second = this + step
        third, fourth = second + step, second + np.uint64(2) * step
        a, b, c = queries[number, i], queries[number, i + 1], queries[number, i + 2]
        last = queries[number, i + 3]
        for j in range(size):
            at = np.uint64(j)
            total = _added(metric, values[at], a - flat[this + at])
            total = _added(metric, total, b - flat[second + at])
            total = _added(metric, total, c - flat[third + at])
            values[at] = _added(metric, total, last - flat[fourth + at])
    for i in range(d // 4 * 4, d):
        value, this = queries[number, i], begin + np.uint64(i) * step
        for j in range(size):
            at = np.uint64(j)
            values[at] = _added(metric, values[at], value - flat[this + at])
