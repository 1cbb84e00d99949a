"""A tree of boxes over points: what it is, and how far its boxes and points are.

References
----------
Friedman, Bentley, Finkel: An algorithm for finding best matches in logarithmic expected time, ACM TOMS 1977.
Departure: each node has the bounding box of its points, which is smaller than its cell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import EUCLIDEAN, MANHATTAN
from epsjoin.kernels.join.projection import MAXIMUM, SQUARES

DEPTH = 128
"""More than the number of boxes that wait on a way down: one for each level of the tree, and one."""

_LANES = 8
"""Number of points of a leaf that are compared with a query at once."""


class BoxTree(NamedTuple):
    """Points in the order of the leaves of a complete binary tree, and the box of every node.

    Node 0 is the root, node i has the children 2 i + 1 and 2 i + 2, and leaf j of L, the node L - 1 + j, has
    the points from ``n j // L`` to ``n (j + 1) // L``, which a shift tells sooner than a division.

    Parameters
    ----------
    order : (n,) int64, rows of the points in the order of the leaves.
    places : (n, d) float64, the coordinates in this order. Those of a leaf stand axis by axis where distances
        are sums or maxima over axes; otherwise point by point.
    low, high : (2 L - 1, e) float64, corners of the boxes in embedded coordinates.
    """

    order: Ints
    places: Floats
    low: Floats
    high: Floats


@njit
def shape_of(low: Floats) -> tuple[int, int]:
    """Number of leaves of a tree whose boxes these are, and its logarithm to base 2."""
    n_leaves = (low.shape[0] + 1) // 2
    levels = 0
    while 1 << levels < n_leaves:
        levels += 1
    return n_leaves, levels


@njit
def leaf_room(n: int, n_leaves: int) -> int:
    """Number of points that the largest leaf has, rounded up to whole lanes: room for its values."""
    return -(-n // n_leaves // _LANES) * _LANES


@njit
def box_gap(
    norm: int, low: Floats, high: Floats, at: int, node_low: Floats, node_high: Floats, node: int
) -> float:
    """The differences between the nearest places of two boxes: squares, sum or maximum.

    A place is a box, too: then ``low`` and ``high`` are one array. No views of rows, which numba counts.
    """
    total = 0.0
    for i in range(low.shape[1]):
        gap = max(low[at, i] - node_high[node, i], node_low[node, i] - high[at, i], 0.0)
        if norm == SQUARES:
            total += gap * gap
        elif norm == MAXIMUM:
            total = max(total, gap)
        else:
            total += gap
    return total


@njit
def _added(metric: int, total: float, difference: float) -> float:
    """A sum (or maximum) and one more difference."""
    if metric == EUCLIDEAN:
        return total + difference * difference
    return total + abs(difference) if metric == MANHATTAN else max(total, abs(difference))


@njit
def leaf_values(
    metric: int, queries: Floats, number: int, flat: Floats, begin: int, size: int, values: Floats
) -> None:
    """Write the sums (or maxima) of a query and the points of a leaf, whose coordinates stand axis by axis.

    Column by column, as :func:`epsjoin.kernels.distances.decide` adds: the same bits.

    Parameters
    ----------
    metric : EUCLIDEAN, MANHATTAN or CHEBYSHEV.
    queries, number : (q, d) float64, and the row of the query.
    flat : (n d,) float64, the places of the tree.
    begin, size : the first point of the leaf, and number of its points.
    values : (:func:`leaf_room`,) float64; modified. Behind the first ``size`` stands anything.
    """
    d = queries.shape[1]
    if (begin + size) * d + _LANES > flat.size:  # there is nothing behind the last leaf
        for j in range(size):
            values[j] = 0.0
        for i in range(d):
            for j in range(size):
                values[j] = _added(metric, values[j], queries[number, i] - flat[begin * d + i * size + j])
        return
    for chunk in range(0, size, _LANES):
        at = np.uint64(chunk)  # unsigned: LLVM then takes all lanes at once
        for j in range(_LANES):
            values[at + np.uint64(j)] = 0.0
        for i in range(d):
            value, first = queries[number, i], np.uint64(begin * d + i * size + chunk)
            for j in range(_LANES):
                lane = at + np.uint64(j)
                values[lane] = _added(metric, values[lane], value - flat[first + np.uint64(j)])
