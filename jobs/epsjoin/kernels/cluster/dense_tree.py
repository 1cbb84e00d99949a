"""The minimum spanning tree of points under mutual reachability, by the distances of all pairs.

Prim's: the tree grows by the lightest edge that leaves it, so each row is compared once with all that are
not in the tree yet. Of edges as light that with the smallest rows comes first, as in
:mod:`epsjoin.kernels.cluster.spanning_tree`: the trees of both are the same.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.axis_sums import sum_axes
from epsjoin.kernels.cluster.spanning_tree import is_lighter
from epsjoin.kernels.distances import EUCLIDEAN


@njit
def dense_tree(metric: int, points: Floats, core: Floats, alpha: float) -> tuple[Ints, Ints, Floats]:
    """Find the edges of the minimum spanning tree under mutual reachability.

    Parameters
    ----------
    metric : one of :data:`epsjoin.kernels.distances.BY_AXIS`.
    points, core, alpha : see :func:`epsjoin.kernels.cluster.spanning_tree.spanning_tree`.

    Returns
    -------
    left, right, weight : (n - 1,) each, ``left < right``, in no order.

    Notes
    -----
    O(n² d); the memory of the points, once more.
    """
    n, d = points.shape
    n_edges = n - 1
    left, right, weight = np.empty(n_edges, np.int64), np.empty(n_edges, np.int64), np.empty(n_edges)
    # the rows that are not in the tree, their coordinates axis by axis, and the lightest edge of each into it
    rows, cores = np.arange(1, n), core[1:].copy()
    flat = np.empty(n_edges * d)
    for i in range(n_edges):
        for axis in range(d):
            flat[axis * n_edges + i] = points[i + 1, axis]
    lightest, partner, values = np.full(n_edges, np.inf), np.full(n_edges, n), np.empty(n_edges)
    newest = 0
    for found in range(n_edges):
        size = n_edges - found
        sum_axes(metric, points, newest, flat, 0, n_edges, size, values, np.inf)
        for i in range(size):
            distance = np.sqrt(values[i]) if metric == EUCLIDEAN else values[i]
            values[i] = max(distance / alpha, core[newest], cores[i])
        best = 0
        for i in range(size):
            row = rows[i]
            if values[i] <= lightest[i]:
                low, high = min(row, partner[i]), max(row, partner[i])
                if is_lighter(values[i], row, newest, lightest[i], low, high):
                    lightest[i], partner[i] = values[i], newest
            if lightest[i] <= lightest[best]:
                low, high = min(rows[best], partner[best]), max(rows[best], partner[best])
                if is_lighter(lightest[i], row, partner[i], lightest[best], low, high):
                    best = i
        newest, other = rows[best], partner[best]
        left[found], right[found], weight[found] = min(newest, other), max(newest, other), lightest[best]
        last = size - 1  # it takes the place of the row that is in the tree now
        rows[best], cores[best] = rows[last], cores[last]
        lightest[best], partner[best] = lightest[last], partner[last]
        for axis in range(d):
            flat[axis * n_edges + best] = flat[axis * n_edges + last]
    return left, right, weight
