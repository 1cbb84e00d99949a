"""A join of few rows in one call: rows in the order of one axis, each compared with those within eps on it.

What a sweep of many rows does first, choosing coordinates, a grid and chunks, takes longer than such a join.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.axis_sums import sum_axes
from epsjoin.kernels.distances import BY_AXIS, EUCLIDEAN, Decision, decide
from epsjoin.kernels.join.sort_pairs import Block, sort_by_rows

_PAIRS_PER_ROW = 8
"""Number of pairs of each row that there is room for at first."""


class Near(NamedTuple):
    """Which rows may be pairs, by their embedded coordinates.

    Parameters
    ----------
    eps : maximum difference of their places.
    metric : EUCLIDEAN, MANHATTAN or CHEBYSHEV.
    bound : maximum sum (or maximum) of the differences, by this metric.
    """

    eps: float
    metric: int
    bound: float


class Line(NamedTuple):
    """Rows in the order of one axis.

    Parameters
    ----------
    points, embedded : (n, d) and (n, e) float64, in the order of their rows.
    order : (n,) int64, the rows.
    place : (n,) float64, the rows' places on the axis, ascending; all the same if each row is near each.
    """

    points: Floats
    embedded: Floats
    order: Ints
    place: Floats


@njit
def count_near(embedded: Floats, eps: float, step: int) -> Ints:
    """Count for each axis the pairs of every ``step``-th row that are within eps on it."""
    n, d = embedded.shape
    counts = np.zeros(d, np.int64)
    for axis in range(d):
        for i in range(0, n, step):
            for j in range(i + step, n, step):
                counts[axis] += abs(embedded[j, axis] - embedded[i, axis]) <= eps
    return counts


@njit
def join_few(
    decision: Decision, near: Near, queries: Line, points: Line, is_one: bool
) -> tuple[Ints, Ints, Floats, int]:
    """Find all pairs of two tables, or of one with itself.

    Parameters
    ----------
    decision : the metric's, "within eps".
    near : which rows may be pairs; where its metric is that of the decision, it has the same bound.
    queries, points : the tables; of one table the same.
    is_one : whether it is one table.

    Returns
    -------
    left, right, distance : the pairs, sorted by both rows; of one table ``left < right``.
    compared : number of rows that were near on the axis.
    """
    n = points.order.size
    flat = _by_axis(points)
    values = np.empty(n)
    block = _make_block(_PAIRS_PER_ROW * queries.order.size + n)
    begin, end, found, compared = 0, 0, 0, 0
    for i in range(queries.order.size):
        row, place = queries.order[i], queries.place[i]
        if is_one:
            begin = i + 1
        while begin < n and place - points.place[begin] > near.eps:
            begin += 1
        end = max(end, begin)
        while end < n and points.place[end] - place <= near.eps:
            end += 1
        size = end - begin
        compared += size
        if found + size > block.left.size:
            block = _enlarge(block, found, 2 * found + size)
        sum_axes(near.metric, queries.embedded, row, flat, begin, n, size, values, near.bound)
        of_row = found
        for j in range(size):  # without a branch, which would be guessed wrong as often as there are pairs
            block.right[found] = points.order[begin + j]
            block.distance[found] = values[j]
            found += values[j] <= near.bound
        if decision.metric not in BY_AXIS:
            found = _decide(decision, queries, row, points, block, of_row, found)
        for k in range(of_row, found):
            other = block.right[k]
            block.left[k] = min(row, other) if is_one else row
            block.right[k] = max(row, other) if is_one else other
    left, right, distance = np.empty(found, np.int64), np.empty(found, np.int64), np.empty(found)
    pairs = Block(block.left[:found], block.right[:found], block.distance[:found])
    sort_by_rows(queries.order.size, pairs, Block(left, right, distance))
    if decision.metric == EUCLIDEAN:
        for i in range(found):
            distance[i] = np.sqrt(distance[i])
    return left, right, distance, compared


@njit
def _by_axis(points: Line) -> Floats:
    """The embedded coordinates of all rows in their order, axis by axis."""
    n, d = points.embedded.shape
    flat = np.empty(n * d)
    for i in range(n):
        for axis in range(d):
            flat[axis * n + i] = points.embedded[points.order[i], axis]
    return flat


@njit
def _decide(
    decision: Decision, queries: Line, row: int, points: Line, block: Block, begin: int, end: int
) -> int:
    """Keep those of a row's partners that are within eps, and their distances; where they end."""
    kept = begin
    for k in range(begin, end):
        other = block.right[k]
        distance = decide(decision, queries.points, row, points.points, other)
        block.right[kept], block.distance[kept] = other, distance
        kept += distance >= 0.0
    return kept


@njit
def _make_block(size: int) -> Block:
    return Block(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size))


@njit
def _enlarge(block: Block, found: int, size: int) -> Block:
    larger = _make_block(size)
    larger.left[:found] = block.left[:found]
    larger.right[:found] = block.right[:found]
    larger.distance[:found] = block.distance[:found]
    return larger
