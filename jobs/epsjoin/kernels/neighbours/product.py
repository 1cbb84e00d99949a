"""The k nearest rows of many dimensions: the best products of each query, and other points that may be near.

A product less the point's half (:mod:`epsjoin.kernels.product.product`) is a *rest*, which tells roughly how
near the point is. The points with the best rests of a query are its *pool*. No
other point is a neighbour if the worst of a full pool is below the query's threshold.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_inner
from epsjoin.kernels.arrays import Bools, Floats, Floats32, Ints
from epsjoin.kernels.distances import EUCLIDEAN, Decision
from epsjoin.kernels.neighbours.heaps import NearestLists, keep_one
from epsjoin.kernels.product.product import (
    LANES,
    MIN_THRESHOLD,
    ProductRows,
    decide_rows,
    may_be_within,
    measure_four,
    survivors_among,
    survivors_of_columns,
)
from epsjoin.kernels.sweep.vectors import lowest_lane

_SQUARE_SLACK, _MIN_SQUARE = 1e-12, 1e-300
"""More than the square of a rounded root is off by; tiny squares have few digits."""


@njit_inner
def _keep(
    left: ProductRows, x: int, right: ProductRows, y: int, decision: Decision, copied: Floats, bound: float
) -> float:
    """The distance of a query and a point; -1 if it is surely above the bound."""
    limit = bound
    if decision.metric == EUCLIDEAN:
        limit = bound * bound * (1.0 + _SQUARE_SLACK) + _MIN_SQUARE
    if not may_be_within(left, x, right, y, decision.metric, limit):
        return -1.0
    return decide_rows(left, x, right, y, decision, copied)


@njit
def keep_survivors(
    products: Floats32,
    left: ProductRows,
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
    left : the r queries of the block; their names are the rows of their lists.
    right, column : the points, named by their rows, and the first point of the block.
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
        row = left.names[i]
        filled = sizes[row]
        for lane in range(0, n_columns, LANES):
            bits = survivors_among(flat, i * n_columns + lane, half, lane, thresholds[i])
            while bits:
                y = column + lane + lowest_lane(bits)
                bits &= bits - 1
                if right.names[y] == itself[row]:
                    continue
                survivors += 1
                distance = _keep(left, i, right, y, decision, copied, bounds[i])
                if 0.0 <= distance <= bounds[i]:
                    filled = keep_one(ids, distances, row * k, k, filled, right.names[y], distance)
                    if filled == k:
                        bounds[i] = min(bounds[i], distances[row * k])
        sizes[row] = filled
    return survivors


@njit
def pool_products(
    products: Floats32, left: ProductRows, right: ProductRows, column: int, itself: Ints, pools: NearestLists
) -> None:
    """Put the points of one block whose products are best into the pools of the queries of another block.

    Parameters
    ----------
    products, left, right, column, itself : see :func:`keep_survivors`.
    pools : those of the r queries of the block, modified; ids and distances are (r, room) and contiguous. The
        ids are places of points, the distances their rests, negated.
    """
    n_rows, n_columns = products.shape
    room = pools.ids.shape[1]
    sizes, ids, distances = pools.sizes, pools.ids.reshape(-1), pools.distances.reshape(-1)
    flat, half = products.reshape(-1), right.half[column : column + n_columns]
    for i in range(n_rows):
        excluded = itself[left.names[i]]
        filled = sizes[i]
        worst = np.float32(-distances[i * room]) if filled == room else np.float32(MIN_THRESHOLD)
        for lane in range(0, n_columns, LANES):
            bits = survivors_among(flat, i * n_columns + lane, half, lane, worst)
            while bits:
                j = lane + lowest_lane(bits)
                bits &= bits - 1
                rest = products[i, j] - half[j]
                if rest >= worst and right.names[column + j] != excluded:
                    filled = keep_one(ids, distances, i * room, room, filled, column + j, -np.float64(rest))
                    if filled == room:
                        worst = np.float32(-distances[i * room])
        sizes[i] = filled


@njit
def pool_columns(
    products: Floats32,
    points: ProductRows,
    begin: int,
    column: int,
    itself: Ints,
    worst: Floats32,
    pools: NearestLists,
) -> None:
    """Put the points of a product's rows into the pools of the queries that are its columns.

    Parameters
    ----------
    products : (r, c) float32, of two blocks of one table's filter rows, no row of which is in both; c is a
        multiple of ``LANES``.
    points, begin, column : the table, and the first rows of the two blocks.
    itself : see :func:`keep_survivors`.
    worst : (n + padding,) float32, modified: at most the worst rest in the pool of each point, or what every
        rest reaches until it is full; infinite for the padding.
    pools : of all points, modified, see :func:`pool_products`.
    """
    n_rows, n_columns = products.shape
    room = pools.ids.shape[1]
    sizes, ids, distances = pools.sizes, pools.ids.reshape(-1), pools.distances.reshape(-1)
    flat = products.reshape(-1)
    for i in range(n_rows):
        half = points.half[begin + i]
        for lane in range(0, n_columns, LANES):
            bits = survivors_of_columns(flat, i * n_columns + lane, half, worst, column + lane)
            while bits:
                j = lane + lowest_lane(bits)
                bits &= bits - 1
                y, rest = column + j, np.float64(products[i, j] - half)
                if points.names[begin + i] != itself[points.names[y]]:
                    sizes[y] = keep_one(ids, distances, y * room, room, sizes[y], begin + i, -rest)
                    if sizes[y] == room:
                        worst[y] = np.float32(-distances[y * room])


@njit
def decide_best(
    left: ProductRows,
    right: ProductRows,
    pools: NearestLists,
    decision: Decision,
    bounds: Floats,
    lists: NearestLists,
) -> None:
    """Fill the lists of queries with the k best of their pools, whose farthest bounds the k-th distance.

    Parameters
    ----------
    left, right, decision : see :func:`keep_survivors`.
    pools : those of r queries, with at least k entries each, the best first.
    bounds : (r,) float64, filled.
    lists : modified; those of the queries are empty.
    """
    k = lists.ids.shape[1]
    last = k - 1
    ids, distances = lists.ids.reshape(-1), lists.distances.reshape(-1)
    for i in range(bounds.shape[0]):
        row, best = left.names[i], pools.ids[i]
        for j in range(0, k, 4):
            four = best[j], best[min(j + 1, last)], best[min(j + 2, last)], best[min(j + 3, last)]
            measured = measure_four(left.points, i, right.points, four, decision.metric)
            for place in range(j, min(j + 4, k)):
                name, distance = right.names[best[place]], measured[place - j]
                keep_one(ids, distances, row * k, k, place, name, distance)
        lists.sizes[row] = k
        bounds[i] = distances[row * k]


@njit
def decide_pools(
    left: ProductRows,
    right: ProductRows,
    pools: NearestLists,
    thresholds: Floats32,
    n_others: Ints,
    decision: Decision,
    bounds: Floats,
    lists: NearestLists,
    is_open: Bools,
) -> int:
    """Decide the other points of the pools that reach their query's threshold; tell which queries stay open.

    Parameters
    ----------
    left, right, pools, decision, lists : see :func:`decide_best`, which comes first.
    thresholds : (r,) float32, for ``bounds``.
    n_others : (r,) int64, points that a query may find.
    bounds : (r,) float64, lowered.
    is_open : (r,) bool, filled: whether a point outside the pool may be a neighbour.

    Returns
    -------
    int
        Number of points of the pools that reached the threshold, with the first k of each pool.
    """
    k, room = lists.ids.shape[1], pools.ids.shape[1]
    ids, distances = lists.ids.reshape(-1), lists.distances.reshape(-1)
    copied = np.empty((2, left.points.shape[1]))
    survivors = 0
    for i in range(bounds.shape[0]):
        low = left.names[i] * k
        place = k
        while place < room and -pools.distances[i, place] >= thresholds[i]:
            y = pools.ids[i, place]
            distance = _keep(left, i, right, y, decision, copied, bounds[i])
            if distance >= 0.0:
                keep_one(ids, distances, low, k, k, right.names[y], distance)
                bounds[i] = distances[low]
            place += 1
        survivors += place
        is_open[i] = place == room and room < n_others[i]
    return survivors
