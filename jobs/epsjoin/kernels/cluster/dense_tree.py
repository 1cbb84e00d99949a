"""The minimum spanning tree of points under mutual reachability, by the distances of all pairs.

This is Prim's algorithm: the tree grows by the lightest edge that leaves it, so each row is compared once
with all rows outside the tree. Of equally light edges the one with the smallest rows comes first, as in
:mod:`epsjoin.kernels.cluster.spanning_tree`: the trees of both are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.axis_sums import sum_axes
from epsjoin.kernels.cluster.spanning_tree import is_lighter
from epsjoin.kernels.distances import EUCLIDEAN


class Outside(NamedTuple):
    """The rows that are not in the tree yet: the first entries of n - 1, as many as rows are left.

    Parameters
    ----------
    rows, cores : (n - 1,) the numbers of these rows, at first from 1 on, and their core distances.
    flat : (d * (n - 1),) float64, their coordinates, axis by axis.
    lightest, partner : (n - 1,) the weight of the lightest edge from each row into the tree, at first
        infinite, and the row of the tree at which it ends.
    values : (n - 1,) float64, room.
    """

    rows: Ints
    cores: Floats
    flat: Floats
    lightest: Floats
    partner: Ints
    values: Floats


@njit
def grow_dense_tree(
    metric: int,
    points: Floats,
    core: Floats,
    alpha: float,
    outside: Outside,
    left: Ints,
    right: Ints,
    weight: Floats,
    newest: int,
    begin: int,
    end: int,
) -> int:
    """Find some more edges of the minimum spanning tree under mutual reachability.

    Parameters
    ----------
    metric : one of :data:`epsjoin.kernels.distances.BY_AXIS`.
    points, core, alpha : see :func:`epsjoin.kernels.cluster.spanning_tree.grow_forest`.
    outside : written.
    left, right, weight : (n - 1,) written from ``begin`` until before ``end``: the edges, ``left < right``.
    newest : the row that came into the tree last; at first 0.

    Returns
    -------
    The row that came into the tree last.

    Notes
    -----
    O(n² d) for all edges; as much memory again as the points take. It returns only a number, as
    :func:`epsjoin.kernels.cluster.spanning_tree.grow_forest` does.
    """
    n_edges, d = left.size, points.shape[1]
    rows, cores, flat, lightest, partner, values = outside
    for found in range(begin, end):
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
    return newest
