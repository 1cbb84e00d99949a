"""The k nearest rows of many dimensions: what a product of two blocks lets through, kept if it is near."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Floats32, Ints
from epsjoin.kernels.distances import EUCLIDEAN, Decision
from epsjoin.kernels.join.product import LANES, ProductRows, any_survives, decide_rows, may_be_within
from epsjoin.kernels.neighbours.heaps import NearestLists, keep_one

_SQUARE_SLACK, _LEAST_SQUARE = 1e-12, 1e-300
"""More than the square of a rounded root is off by; tiny squares have few digits."""


@njit
def _keep(
    left: ProductRows, x: int, right: ProductRows, y: int, decision: Decision, copied: Floats, bound: float
) -> float:
    """The distance of a query and a point; -1 if it is surely above the bound."""
    limit = bound
    if decision.metric == EUCLIDEAN:
        limit = bound * bound * (1.0 + _SQUARE_SLACK) + _LEAST_SQUARE
    if not may_be_within(left, x, right, y, decision.metric, limit):
        return -1.0
    return decide_rows(left, x, right, y, decision, copied)


@njit
def keep_survivors(
    products: Floats32,
    left: ProductRows,
    begin: int,
    right: ProductRows,
    column: int,
    thresholds: Floats32,
    itself: Ints,
    decision: Decision,
    bounds: Floats,
    lists: NearestLists,
) -> int:
    """Keep the points of one block that are among the k nearest of the queries of another.

    Parameters
    ----------
    products : (r, c) float32, of filter rows; c is a multiple of ``LANES``.
    left, begin : the queries, whose names are the rows of their lists, and the first of the block.
    right, column : the points, whose names are their rows, and the first of the block.
    thresholds : (r,) float32, for ``bounds``.
    itself : (n_lists,) int64, the point that a query must not find; -1 for none.
    decision : Euclid or cosine, with an infinite bound.
    bounds : (r,) float64: no farther point is among the k nearest. Lowered to the farthest of a full list.
    lists : modified; ids and distances are (n_lists, k) and contiguous.

    Returns
    -------
    int
        Products that reached their threshold.
    """
    n_rows, n_columns = products.shape
    k = lists.ids.shape[1]
    sizes, ids, distances = lists.sizes, lists.ids.reshape(-1), lists.distances.reshape(-1)
    flat, half = products.reshape(-1), right.half[column : column + n_columns]
    copied = np.empty((2, left.points.shape[1]))
    survivors = 0
    for i in range(n_rows):
        row = left.names[begin + i]
        filled = sizes[row]
        for lane in range(0, n_columns, LANES):
            if not any_survives(flat, i * n_columns + lane, half, lane, thresholds[i]):
                continue
            for j in range(lane, lane + LANES):
                if products[i, j] - half[j] >= thresholds[i] and right.names[column + j] != itself[row]:
                    survivors += 1
                    distance = _keep(left, begin + i, right, column + j, decision, copied, bounds[i])
                    if 0.0 <= distance <= bounds[i]:
                        point = right.names[column + j]
                        filled = keep_one(ids, distances, row * k, k, filled, point, distance)
                        if filled == k:
                            bounds[i] = min(bounds[i], distances[row * k])
        sizes[row] = filled
    return survivors


@njit
def bound_distances(
    left: ProductRows,
    begin: int,
    right: ProductRows,
    candidates: Ints,
    itself: Ints,
    k: int,
    decision: Decision,
    bounds: Floats,
) -> None:
    """Bound the distance to the k-th neighbour by that to the k-th of some points.

    Parameters
    ----------
    left, begin, right, itself, decision : see :func:`keep_survivors`.
    candidates : (r, c) int64, places of points, none twice in a row.
    k : number of neighbours.
    bounds : (r,) float64, filled; infinite where fewer than k candidates are not the query itself.
    """
    copied = np.empty((2, left.points.shape[1]))
    for i in range(candidates.shape[0]):
        found = np.full(candidates.shape[1], np.inf)
        for j in range(candidates.shape[1]):
            if right.names[candidates[i, j]] != itself[left.names[begin + i]]:
                found[j] = decide_rows(left, begin + i, right, candidates[i, j], decision, copied)
        bounds[i] = np.sort(found)[k - 1]
