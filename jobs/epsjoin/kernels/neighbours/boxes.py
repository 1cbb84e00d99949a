"""A tree of boxes over points: what it is, and how far its boxes and points are.

References
----------
Friedman, Bentley, Finkel: An algorithm for finding best matches in logarithmic expected time, ACM TOMS 1977.
Departure: each node has the bounding box of its points, which is smaller than its cell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_inner, njit_inner_any_order
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.axis_sums import sum_axes
from epsjoin.kernels.projection import MAXIMUM, SQUARES

DEPTH = 128
"""More than the number of boxes that wait on a way down: one for each level of the tree, and one."""


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
    """Return the number of leaves of the tree with these boxes, and the logarithm of it to base 2."""
    n_leaves = (low.shape[0] + 1) // 2
    levels = 0
    while 1 << levels < n_leaves:
        levels += 1
    return n_leaves, levels


@njit
def leaf_room(n: int, n_leaves: int) -> int:
    """Number of points that the largest leaf has: room for its values."""
    return -(-n // n_leaves)


@njit_inner
def add_gap(norm: int, total: float, gap: float) -> float:
    """Add the difference on one more axis: its square, itself, or the maximum."""
    if norm == SQUARES:
        return total + gap * gap
    return max(total, gap) if norm == MAXIMUM else total + gap


@njit_inner
def box_gap(
    norm: int, low: Floats, high: Floats, at: int, node_low: Floats, node_high: Floats, node: int
) -> float:
    """Add up the differences between the nearest places of two boxes: squares, sum or maximum.

    A place is a box, too, whose ``low`` and ``high`` are one array. Takes no views of rows: numba counts
    these.
    """
    total = 0.0
    for i in range(low.shape[1]):
        total = add_gap(
            norm, total, max(low[at, i] - node_high[node, i], node_low[node, i] - high[at, i], 0.0)
        )
    return total


@njit_inner_any_order
def square_gaps(
    places: Floats, least: int, most: int, low: Floats, high: Floats, node: int
) -> tuple[float, float]:
    """Compute :func:`box_gap` of both children of a node and a box, which two rows of ``places`` bound.

    It adds squares, in any order of the axes, and is small, so that the call made for each box costs little.
    """
    near, far, left = np.uint64(least), np.uint64(most), np.uint64(2 * node + 1)
    right = left + np.uint64(1)
    left_gap = right_gap = 0.0
    for i in range(np.uint64(low.shape[1])):
        a = max(low[left, i] - places[far, i], places[near, i] - high[left, i], 0.0)
        b = max(low[right, i] - places[far, i], places[near, i] - high[right, i], 0.0)
        left_gap += a * a
        right_gap += b * b
    return left_gap, right_gap


@njit_inner_any_order
def child_gaps(
    norm: int, places: Floats, at: int, low: Floats, high: Floats, node: int
) -> tuple[float, float]:
    """Compute :func:`box_gap` of a place and both children of a node, in any order of the axes.

    Each norm has a loop of its own, by unsigned places, so that LLVM takes several axes at once.
    """
    row, left = np.uint64(at), np.uint64(2 * node + 1)
    right = left + np.uint64(1)
    left_gap = right_gap = 0.0
    if norm == SQUARES:
        left_gap, right_gap = square_gaps(places, at, at, low, high, node)
    elif norm == MAXIMUM:
        for i in range(np.uint64(low.shape[1])):
            value = places[row, i]
            left_gap = max(left_gap, low[left, i] - value, value - high[left, i])
            right_gap = max(right_gap, low[right, i] - value, value - high[right, i])
    else:
        for i in range(np.uint64(low.shape[1])):
            value = places[row, i]
            left_gap += max(low[left, i] - value, value - high[left, i], 0.0)
            right_gap += max(low[right, i] - value, value - high[right, i], 0.0)
    return left_gap, right_gap


@njit_inner
def plane_gap(places: Floats, at: int, low: Floats, high: Floats, node: int) -> float:
    """Compute :func:`box_gap` of a place of the plane, in squares: without a loop over two axes."""
    across: float = max(low[node, 0] - places[at, 0], places[at, 0] - high[node, 0], 0.0)
    along: float = max(low[node, 1] - places[at, 1], places[at, 1] - high[node, 1], 0.0)
    return across * across + along * along


@njit_inner
def leaf_values(
    metric: int,
    queries: Floats,
    number: int,
    flat: Floats,
    begin: int,
    size: int,
    values: Floats,
    most: float,
) -> None:
    """Write the sums (or maxima) of a query and the points of a leaf.

    Parameters
    ----------
    metric, queries, number, most : see :func:`epsjoin.kernels.axis_sums.sum_axes`.
    flat : (n d,) float64, the places of the tree.
    begin, size : the first point of the leaf, and number of its points.
    values : (:func:`leaf_room`,) float64; the first ``size`` are written.
    """
    sum_axes(metric, queries, number, flat, begin * queries.shape[1], size, size, values, most)


@njit
def copy_places(places: Floats, n_leaves: int, positions: Ints, rows: Ints, out: Floats) -> None:
    """Copy some points of a tree, whose coordinates stand axis by axis, to rows of an array.

    Parameters
    ----------
    places : (n, d) float64, those of the tree.
    n_leaves : number of its leaves.
    positions : (m,) int64, ascending, where the points stand in the tree.
    rows : (m,) int64, the row to which each is copied.
    out : (any, d) float64; modified.
    """
    n, d = places.shape
    flat = places.reshape(-1)
    begin, end = 0, 0
    for number in range(positions.size):
        position = positions[number]
        if position >= end:
            leaf = ((position + 1) * n_leaves - 1) // n
            begin, end = n * leaf // n_leaves, n * (leaf + 1) // n_leaves
        for i in range(d):
            out[rows[number], i] = flat[begin * d + i * (end - begin) + position - begin]
