"""Joins of few rows in one call: rows in the order of one axis, each compared with those within eps on it.

What a sweep of many rows does first, choosing coordinates, a grid and chunks, takes longer than such a join.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.axis_sums import sum_axes
from epsjoin.kernels.distances import BY_AXIS, EUCLIDEAN, Decision, decide
from epsjoin.kernels.join.sort_pairs import Block, sort_by_rows

_PAIRS_PER_ROW = 8
"""Number of pairs of each row that there is room for at first."""
_LOOKED_AT = 64
"""Number of rows that are compared before it is looked whether a partner is among them."""


class Near(NamedTuple):
    """Which rows may be pairs, by their embedded coordinates.

    Parameters
    ----------
    metric : EUCLIDEAN, MANHATTAN or CHEBYSHEV; that of the decision, where it is one of these.
    bound : maximum sum (or maximum) of the differences, by this metric; then that of the decision.
    """

    metric: int
    bound: float


class Line(NamedTuple):
    """Rows in the order of one axis, or in that of their numbers.

    Parameters
    ----------
    points, embedded : (n, d) and (n, e) float64, in the order of their numbers.
    order : (n,) int64, the numbers of the rows.
    """

    points: Floats
    embedded: Floats
    order: Ints


class Windows(NamedTuple):
    """Where in their order the rows begin and end that may be partners of each query; (q,) int64."""

    begin: Ints
    end: Ints


@njit
def count_near(embedded: Floats, eps: float) -> Ints:
    """Count for each axis the pairs of rows that are within eps on it."""
    n, d = embedded.shape
    counts = np.zeros(d, np.int64)
    for axis in range(d):
        for i in range(n):
            for j in range(i + 1, n):
                counts[axis] += abs(embedded[j, axis] - embedded[i, axis]) <= eps
    return counts


@njit
def find_windows(queries: Floats, places: Floats, eps: float, is_one: bool) -> tuple[Windows, int]:
    """Find the rows within eps of each query on an axis.

    Parameters
    ----------
    queries, places : (q,) and (n,) float64, places on the axis, ascending.
    eps : maximum difference of two.
    is_one : whether both are those of one table: then a window begins behind its query.

    Returns
    -------
    windows, compared : and the number of rows in all of them.
    """
    n = places.size
    windows = Windows(np.empty(queries.size, np.int64), np.empty(queries.size, np.int64))
    begin, end, compared = 0, 0, 0
    for i in range(queries.size):
        if is_one:
            begin = i + 1
        while begin < n and queries[i] - places[begin] > eps:
            begin += 1
        end = max(end, begin)
        while end < n and places[end] - queries[i] <= eps:
            end += 1
        windows.begin[i], windows.end[i] = begin, end
        compared += end - begin
    return windows, compared


@njit
def join_few(
    decision: Decision, near: Near, queries: Line, points: Line, windows: Windows, is_one: bool, is_left: bool
) -> tuple[Ints, Ints, Floats]:
    """Find all pairs of two tables, or of one with itself.

    Parameters
    ----------
    decision : the metric's, "within eps".
    near : which rows may be pairs.
    queries, points, windows : the tables, of one table the same, and whom each query is compared with.
    is_one : whether it is one table; then a window begins behind its query.
    is_left : whether the queries are the left rows.

    Returns
    -------
    left, right, distance : the pairs, sorted by both rows; of one table ``left < right``.
    """
    n_queries, n = queries.order.size, points.order.size
    flat, values = _by_axis(points), np.empty(n)
    block = _make_block(_PAIRS_PER_ROW * min(n_queries, n) + n)
    found = 0
    for i in range(n_queries):
        row, begin = queries.order[i], windows.begin[i]
        size = windows.end[i] - begin
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
            is_first = row < other if is_one else is_left
            block.left[k], block.right[k] = (row, other) if is_first else (other, row)
    left, right, distance = np.empty(found, np.int64), np.empty(found, np.int64), np.empty(found)
    pairs = Block(block.left[:found], block.right[:found], block.distance[:found])
    if _are_sorted(pairs):
        left[:], right[:], distance[:] = pairs.left, pairs.right, pairs.distance
    else:
        sort_by_rows(n_queries if is_left else n, pairs, Block(left, right, distance))
    if decision.metric == EUCLIDEAN:
        for i in range(found):
            distance[i] = np.sqrt(distance[i])
    return left, right, distance


@njit
def count_few(
    decision: Decision, near: Near, queries: Line, points: Line, windows: Windows, is_one: bool
) -> Ints:
    """Count the partners of every query, by its number; parameters as of :func:`join_few`."""
    n = points.order.size
    flat, values, counts = _by_axis(points), np.empty(n), np.zeros(queries.order.size, np.int64)
    of_points = np.zeros(n, np.int64)  # in their order
    for i in range(queries.order.size):
        row, begin = queries.order[i], windows.begin[i]
        size, of_query = windows.end[i] - begin, 0
        sum_axes(near.metric, queries.embedded, row, flat, begin, n, size, values, near.bound)
        if decision.metric not in BY_AXIS:
            for j in range(size):
                if values[j] <= near.bound:
                    other = points.order[begin + j]
                    if decide(decision, queries.points, row, points.points, other) < 0.0:
                        values[j] = np.nan  # no bound holds, even where that of a huge eps is infinite
        for j in range(size):
            is_near = values[j] <= near.bound
            of_query += is_near
            of_points[begin + j] += is_near
        counts[row] += of_query
    if is_one:
        for i in range(n):
            counts[points.order[i]] += of_points[i]
    return counts


@njit
def mark_few(
    decision: Decision, near: Near, queries: Line, points: Line, windows: Windows, is_one: bool, marked: Bools
) -> int:
    """Mark the queries that have a partner, each compared until its first one is found.

    Parameters
    ----------
    decision, near, queries, points : see :func:`join_few`.
    windows : whom each query is compared with.
    is_one : whether the tables are one: then no row is its own partner.
    marked : (q,) bool, by the numbers of the queries; modified.

    Returns
    -------
    compared : number of rows that were compared.
    """
    n = points.order.size
    flat, values = _by_axis(points), np.empty(_LOOKED_AT)
    compared = 0
    for i in range(queries.order.size):
        row, begin, end = queries.order[i], windows.begin[i], windows.end[i]
        while begin < end and not marked[row]:
            size = min(_LOOKED_AT, end - begin)
            sum_axes(near.metric, queries.embedded, row, flat, begin, n, size, values, near.bound)
            for j in range(size):
                if values[j] > near.bound or (is_one and points.order[begin + j] == row):
                    continue
                other = points.order[begin + j]
                if (
                    decision.metric in BY_AXIS
                    or decide(decision, queries.points, row, points.points, other) >= 0
                ):
                    marked[row] = True
                    break
            compared += size
            begin += size
    return compared


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
def _are_sorted(pairs: Block) -> bool:
    """Whether pairs are in the order of both rows: that ends where they are not, mostly after a few."""
    for i in range(1, pairs.left.size):
        before, left = pairs.left[i - 1], pairs.left[i]
        if left < before or (left == before and pairs.right[i] < pairs.right[i - 1]):
            return False
    return True


@njit
def _enlarge(block: Block, found: int, size: int) -> Block:
    larger = _make_block(size)
    larger.left[:found] = block.left[:found]
    larger.right[:found] = block.right[:found]
    larger.distance[:found] = block.distance[:found]
    return larger
