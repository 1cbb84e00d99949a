"""Joins of few rows in one call: rows in the order of one axis, each compared with those within eps on it.

A sweep of many rows first chooses coordinates, a grid and chunks, which takes longer than such a join.
With ten rows the call itself takes most of the time, so all arguments are in one plain tuple.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_inner
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.axis_sums import sum_axes
from epsjoin.kernels.distances import BY_AXIS, EUCLIDEAN, Decision, decide
from epsjoin.kernels.pairs.sort_pairs import Block, sort_by_rows
from epsjoin.kernels.simd.lanes import PLACES
from epsjoin.kernels.simd.near_values import keep_near

_PAIRS_PER_ROW = 8
"""Number of pairs of each row that there is room for at first."""
_LOOKED_AT = 64
"""Number of rows that are compared before it is looked whether a partner is among them."""
_SAMPLED, _PRIME = 64, 2_654_435_761
"""Number of rows that show which axis tells most of them apart, and how far they are from one another, modulo
the number of all. A prime: rows of one kind may come at any regular distance."""


class Windows(NamedTuple):
    """Which points each query is compared with: if this has no entries, all, in the order of their numbers.

    Parameters
    ----------
    queries, points : (n_queries,) and (n_points,) int64, the numbers of both in the order of an axis.
    begin, end : (n_queries,) int64, in the order of the queries: where the points that may be partners of
        each query begin and end in the order of the points.
    """

    queries: Ints
    points: Ints
    begin: Ints
    end: Ints


class Tables(NamedTuple):
    """What is joined: queries, and the points that they are compared with.

    Parameters
    ----------
    decision : the metric's, "within eps"; a plain tuple.
    near_metric : the metric by which embedded coordinates tell what may be a pair: EUCLIDEAN, MANHATTAN or
        CHEBYSHEV; that of the decision, where it is one of these.
    near_bound : the largest sum (or maximum) of their differences that a pair may have; the bound of the
        decision, where the metric is that of the decision.
    points, embedded : (m, d) and (m, e) float64, the rows of one table, or of two.
    first_query, n_queries, first_point, n_points : where the queries begin and how many there are, and the
        same for the points: both are all rows, or they are two tables one behind the other.
    is_one : whether they are one table.
    is_left : whether the queries are the left rows; True for one table.
    is_ahead : whether each query is compared only with the points behind it, in their order.
    windows : the points that each query is compared with; a plain tuple.
    compared : number of points in all windows.
    """

    decision: Decision
    near_metric: int
    near_bound: float
    points: Floats
    embedded: Floats
    first_query: int
    n_queries: int
    first_point: int
    n_points: int
    is_one: bool
    is_left: bool
    is_ahead: bool
    windows: Windows
    compared: int


class _Room(NamedTuple):
    """Room for pairs; int64, int64 and float64, all of one size."""

    left: Ints
    right: Ints
    distance: Floats


@njit
def choose_axis(embedded: Floats, eps: float) -> int:
    """Choose the axis on which the fewest pairs of a sample are within eps; ``embedded``: not empty."""
    n, d = embedded.shape
    if d == 1:
        return 0
    values = np.empty(_SAMPLED)
    axis, least = 0, _SAMPLED * _SAMPLED
    for number in range(d):
        for i in range(_SAMPLED):
            values[i] = embedded[i * _PRIME % n, number]
        n_near = 0
        for i in range(_SAMPLED):
            value = values[i]
            for j in range(i + 1, _SAMPLED):
                n_near += abs(values[np.uint64(j)] - value) <= eps
        if n_near < least:
            axis, least = number, n_near
    return axis


@njit
def find_windows(
    tables: Tables, axis: int, queries: Ints, points: Ints, eps: float
) -> tuple[Ints, Ints, int]:
    """Find the points within eps of each query on an axis.

    Parameters
    ----------
    tables : see :class:`Tables`, as a plain tuple.
    axis : an axis of the embedded coordinates.
    queries, points : numbers of both in the order of the axis, see :class:`Windows`.
    eps : maximum difference on the axis.

    Returns
    -------
    begin, end, compared : see :class:`Windows`; and the number of points in all windows.
    """
    tables = Tables(*tables)
    embedded, n = tables.embedded, points.size
    places = np.empty(n)
    for i in range(n):
        places[i] = embedded[tables.first_point + points[i], axis]
    begins, ends = np.empty(queries.size, np.int64), np.empty(queries.size, np.int64)
    begin, end, compared = 0, 0, 0
    for i in range(queries.size):
        place = embedded[tables.first_query + queries[i], axis]
        if tables.is_ahead:
            begin = i + 1
        while begin < n and place - places[begin] > eps:
            begin += 1
        end = max(end, begin)
        while end < n and places[end] - place <= eps:
            end += 1
        begins[i], ends[i] = begin, end
        compared += end - begin
    return begins, ends, compared


@njit
def join_few(tables: Tables) -> tuple[Ints, Ints, Floats]:
    """Find all pairs of two tables, or of one with itself.

    Parameters
    ----------
    tables : as a plain tuple; one table is compared ahead.

    Returns
    -------
    left, right, distance : the pairs, sorted by both rows; of one table ``left < right``.
    """
    tables = Tables(*tables)
    decision, windows = Decision(*tables.decision), Windows(*tables.windows)
    metric, bound = tables.near_metric, tables.near_bound
    n_queries, n, is_ordered = tables.n_queries, tables.n_points, windows.points.size > 0
    flat, values = _by_axis(tables, windows), np.empty(n + PLACES)
    room = _make_room(_PAIRS_PER_ROW * min(n_queries, n) + n + PLACES)
    found = 0
    for i in range(n_queries):
        row, begin, end = _window_of(tables, windows, i)
        size = end - begin
        if found + size + PLACES > room.left.size:
            room = _enlarge(room, found, 2 * found + size + PLACES)
        query = tables.first_query + row
        n_lanes = -(-size // PLACES) * PLACES  # adding up all is faster than leaving out the last ones
        sum_axes(metric, tables.embedded, query, flat, begin, n, n_lanes, values, bound)
        of_row = found
        for j in range(0, size, PLACES):
            found += keep_near(values, j, size - j, bound, begin + j, room.right, room.distance, found)
        if is_ordered:
            for k in range(of_row, found):
                room.right[k] = windows.points[room.right[k]]
        if decision.metric not in BY_AXIS:
            found = _decide(decision, tables, query, room, of_row, found)
        for k in range(of_row, found):
            other = room.right[k]
            is_first = row < other if tables.is_one else tables.is_left
            room.left[k], room.right[k] = (row, other) if is_first else (other, row)
    left, right, distance = np.empty(found, np.int64), np.empty(found, np.int64), np.empty(found)
    pairs = Block(room.left[:found], room.right[:found], room.distance[:found])
    if _are_sorted(pairs):
        left[:], right[:], distance[:] = pairs.left, pairs.right, pairs.distance
    else:
        sort_by_rows(n_queries if tables.is_left else n, pairs, Block(left, right, distance))
    if decision.metric == EUCLIDEAN:
        for i in range(found):
            distance[i] = np.sqrt(distance[i])
    return left, right, distance


@njit
def count_few(tables: Tables) -> Ints:
    """Count the partners of every query, by its number; ``tables``: see :func:`join_few`."""
    tables = Tables(*tables)
    decision, windows = Decision(*tables.decision), Windows(*tables.windows)
    metric, bound = tables.near_metric, tables.near_bound
    n, is_ordered = tables.n_points, windows.points.size > 0
    flat, values, counts = _by_axis(tables, windows), np.empty(n), np.zeros(tables.n_queries, np.int64)
    of_points = np.zeros(n, np.int64)  # in their order
    for i in range(tables.n_queries):
        row, begin, end = _window_of(tables, windows, i)
        size, query, of_query = end - begin, tables.first_query + row, 0
        sum_axes(metric, tables.embedded, query, flat, begin, n, size, values, bound)
        if decision.metric not in BY_AXIS:
            for j in range(size):
                if values[j] <= bound:
                    other = windows.points[begin + j] if is_ordered else begin + j
                    point = tables.first_point + other
                    if decide(decision, tables.points, query, tables.points, point) < 0.0:
                        values[j] = np.nan  # no bound holds, even where that of a huge eps is infinite
        for j in range(size):
            is_near = values[j] <= bound
            of_query += is_near
            of_points[begin + j] += is_near
        counts[row] += of_query
    if tables.is_one:
        for i in range(n):
            counts[windows.points[i] if is_ordered else i] += of_points[i]
    return counts


@njit
def mark_few(tables: Tables, marked: Bools) -> int:
    """Mark the queries that have a partner, each compared until its first one is found.

    Parameters
    ----------
    tables : as a plain tuple; of one table, no row is its own partner, and none is compared ahead.
    marked : (n_queries,) bool, by the numbers of the queries; modified.

    Returns
    -------
    compared : number of rows that were compared.
    """
    tables = Tables(*tables)
    decision, windows = Decision(*tables.decision), Windows(*tables.windows)
    metric, bound = tables.near_metric, tables.near_bound
    n, is_ordered = tables.n_points, windows.points.size > 0
    flat, values = _by_axis(tables, windows), np.empty(_LOOKED_AT)
    compared = 0
    for i in range(tables.n_queries):
        row, begin, end = _window_of(tables, windows, i)
        query = tables.first_query + row
        while begin < end and not marked[row]:
            size = min(_LOOKED_AT, end - begin)
            sum_axes(metric, tables.embedded, query, flat, begin, n, size, values, bound)
            for j in range(size):
                other = windows.points[begin + j] if is_ordered else begin + j
                if values[j] > bound or (tables.is_one and other == row):
                    continue
                point = tables.first_point + other
                if (
                    decision.metric in BY_AXIS
                    or decide(decision, tables.points, query, tables.points, point) >= 0
                ):
                    marked[row] = True
                    break
            compared += size
            begin += size
    return compared


@njit_inner
def _window_of(tables: Tables, windows: Windows, i: int) -> tuple[int, int, int]:
    """Return the number of the i-th query, and where the points that it is compared with begin and end."""
    if windows.points.size > 0:
        return windows.queries[i], windows.begin[i], windows.end[i]
    return i, i + 1 if tables.is_ahead else 0, tables.n_points


@njit
def _by_axis(tables: Tables, windows: Windows) -> Floats:
    """Copy the embedded coordinates of all points in order, axis by axis, with room to read beyond them."""
    n, d = tables.n_points, tables.embedded.shape[1]
    flat = np.empty(n * d + PLACES)
    flat[n * d :] = 0.0
    for i in range(n):
        point = tables.first_point + (windows.points[i] if windows.points.size > 0 else i)
        for axis in range(d):
            flat[axis * n + i] = tables.embedded[point, axis]
    return flat


@njit
def _decide(decision: Decision, tables: Tables, query: int, room: _Room, begin: int, end: int) -> int:
    """Keep those candidates of a query that are within eps, and their distances; return where they end."""
    kept = begin
    for k in range(begin, end):
        other = room.right[k]
        distance = decide(decision, tables.points, query, tables.points, tables.first_point + other)
        room.right[kept], room.distance[kept] = other, distance
        kept += distance >= 0.0
    return kept


@njit
def _make_room(size: int) -> _Room:
    return _Room(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size))


@njit
def _are_sorted(pairs: Block) -> bool:
    """Whether pairs are in the order of both rows; if not, this is mostly found out after a few."""
    for i in range(1, pairs.left.size):
        before, left = pairs.left[i - 1], pairs.left[i]
        if left < before or (left == before and pairs.right[i] < pairs.right[i - 1]):
            return False
    return True


@njit
def _enlarge(room: _Room, found: int, size: int) -> _Room:
    larger = _make_room(size)
    larger.left[:found] = room.left[:found]
    larger.right[:found] = room.right[:found]
    larger.distance[:found] = room.distance[:found]
    return larger
