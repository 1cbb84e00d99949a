"""Nearest neighbours by looking at every point, block by block; and the search for surplus equal rows."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.axis_sums import sum_axes
from epsjoin.kernels.distances import BY_AXIS, EUCLIDEAN, Decision, decide
from epsjoin.kernels.neighbours.heaps import NearestLists, keep_one
from epsjoin.kernels.simd.lanes import PLACES
from epsjoin.kernels.simd.near_values import near_lanes
from epsjoin.kernels.sweep.vectors import lowest_lane

BLOCK = 64  # points whose distances are summed side by side: they stay in the fastest cache


@njit
def scan_nearest(
    decision: Decision, queries: Floats, rows: Ints, points: Floats, itself: Ints, lists: NearestLists
) -> None:
    """Compare some queries with every point and keep the nearest k, of equally near ones the smallest rows.

    Parameters
    ----------
    decision : metric, with an infinite bound; as a plain tuple.
    queries : (q, d) float64.
    rows : (r,) int64, the rows of the queries.
    points : (n, d) float64.
    itself : (q,) int64, the row of points that a query must not find; -1 for none.
    lists : a plain tuple; modified: the lists of these rows are filled anew. Ids and distances are (q, k) and
        contiguous.

    Notes
    -----
    O(r n d); most comparisons beyond the first blocks end without a root. The only memory is one block.
    """
    decision, lists = Decision(*decision), NearestLists(*lists)
    n, d = points.shape
    k = lists.ids.shape[1]
    sizes, ids, distances = lists.sizes, lists.ids.reshape(-1), lists.distances.reshape(-1)
    metric = decision.metric
    is_summed = metric in BY_AXIS
    block = np.empty(d * BLOCK)  # axis by axis
    values = np.empty(BLOCK)
    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        if is_summed:
            for j in range(size):
                for i in range(d):
                    block[i * BLOCK + j] = points[first + j, i]
        for row in rows:
            filled = sizes[row] if first > 0 else 0
            if not is_summed:
                for j in range(first, first + size):
                    if j != itself[row]:
                        distance = decide(decision, queries, row, points, j)
                        filled = keep_one(ids, distances, row * k, k, filled, j, distance)
                sizes[row] = filled
                continue
            # Points come by rising row, so one as far as the last of a full list never enters. The square of
            # a rounded root is off by a few 1e-16: beyond the slack no root is needed.
            limit = _ceiling(metric, distances[row * k]) if filled == k else np.inf
            sum_axes(metric, queries, row, block, 0, BLOCK, size, values, limit)
            for begin in range(0, size, PLACES):
                lanes = near_lanes(values, begin, size - begin, limit)
                while lanes:
                    j = begin + lowest_lane(lanes)
                    lanes &= lanes - 1
                    if values[j] > limit or first + j == itself[row]:
                        continue
                    distance = np.sqrt(values[j]) if metric == EUCLIDEAN else values[j]
                    filled = keep_one(ids, distances, row * k, k, filled, first + j, distance)
                    limit = _ceiling(metric, distances[row * k]) if filled == k else np.inf
            sizes[row] = filled


@njit
def _ceiling(metric: int, distance: float) -> float:
    """Compute a value of the metric's sum that is surely beyond this distance."""
    if metric == EUCLIDEAN:
        return distance * distance * (1.0 + 1e-12) + 1e-300  # tiny squares have few digits
    return distance


@njit
def count_within(decision: Decision, queries: Floats, points: Floats, radius: Floats) -> Ints:
    """Count the pairs of a query and a point within each radius.

    Parameters
    ----------
    decision : metric, with an infinite bound.
    queries, points : (q, d) and (n, d) float64.
    radius : (m,) float64, rising.

    Returns
    -------
    (m,) int64.
    """
    counts = np.zeros(radius.size, dtype=np.int64)
    for row in range(queries.shape[0]):
        for point in range(points.shape[0]):
            distance = decide(decision, queries, row, points, point)
            for i in range(radius.size - 1, -1, -1):
                if distance > radius[i]:
                    break
                counts[i] += 1
    return counts


@njit
def find_surplus(points: Floats, order: Ints, start: Ints, most: int) -> Ints:
    """Find the rows that have ``most`` equal rows before them.

    Parameters
    ----------
    points : (n, d) float64.
    order : (m,) int64, rows in groups, rising within each group. Equal rows are in one group; a group may
        hold others, too.
    start : (n_groups + 1,) int64, where each group begins in ``order``, and the end.
    most : rows of a value to keep, at least 1.

    Returns
    -------
    (n,) int64: for each surplus row the first row equal to it, -1 for the others. Of the rows in a group only
    those equal to its first are compared, the others stay.
    """
    n, d = points.shape
    first_equal = np.full(n, -1, dtype=np.int64)
    for group in range(start.size - 1):
        if start[group + 1] - start[group] <= most:
            continue
        first = order[start[group]]
        kept = 0
        for place in range(start[group], start[group + 1]):
            row = order[place]
            is_equal = True
            for i in range(d):
                if points[row, i] != points[first, i]:
                    is_equal = False
                    break
            if is_equal:
                if kept == most:
                    first_equal[row] = first
                else:
                    kept += 1
    return first_equal
