"""The k nearest of a query by a tree of boxes: each query looks only at boxes that its own radius reaches.

Points are halved again and again, across the axis on which they lie widest apart, until a box holds few of
them: a leaf. A query goes to the nearest box first. Its radius is the distance to the k-th point found so
far, and a box beyond it holds no nearer point. In dense regions the radius is small soon, in sparse ones it
stays large: no radius has to suit all queries.

References
----------
Friedman, Bentley, Finkel: An algorithm for finding best matches in logarithmic expected time, ACM TOMS 1977.
Departure: each node has the bounding box of its points, which is smaller than its cell.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import (
    CHEBYSHEV,
    COSINE,
    EARTH_RADIUS_KM,
    EUCLIDEAN,
    HAVERSINE,
    HAVERSINE_RADIANS,
    MANHATTAN,
    Decision,
    decide,
)
from epsjoin.kernels.join.projection import MAXIMUM, SQUARES
from epsjoin.kernels.neighbours.heaps import NearestLists, keep_in_order, keep_one, order_heap

LEAF_POINTS = 32
"""Number of points that a leaf has at most: they are compared side by side."""

_SPREAD_POINTS = 64
"""Number of points of a node that show on which axis they lie widest apart."""

_MOST_IN_ORDER = 32
"""Up to so many neighbours, a list is kept in order: then finding an entry's place costs less than a heap."""

_SLACK, _COSINE_SLACK = 4e-12, 2e-9
"""More than the rounding errors of a metric's formula and of a box's distance (see ``local/metric.py``)."""


class BoxTree(NamedTuple):
    """Points in the order of the leaves of a complete binary tree, and the box of every node.

    Node 0 is the root, node i has the children 2 i + 1 and 2 i + 2, and leaf j of L, the node L - 1 + j, has
    the points from ``n j // L`` to ``n (j + 1) // L``.

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


def count_leaves(n: int) -> int:
    """Number of leaves of the tree of n points: a power of two."""
    return 1 << max(0, (max(1, n) - 1) // LEAF_POINTS).bit_length()


@njit
def _halve(values: Floats, order: Ints, low: int, high: int, middle: int) -> None:
    """Reorder [low, high) so that no value before ``middle`` is larger than one from there on.

    Notes
    -----
    O(high - low) expected, by quickselect. Pivots come from random places, since the middle is the worst one
    where two sorted runs follow one another.
    """
    high -= 1
    place = 1
    while low < high:
        place = place * 48271 % 2147483647  # Lehmer's random numbers
        pivot = values[low + place % (high - low + 1)]
        i = low
        j = high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@njit
def order_by_leaf(
    embedded: Floats, n_leaves: int, first: int, stop: int, order: Ints, values: Floats
) -> None:
    """Put the rows below node ``first`` into the order of the leaves.

    Parameters
    ----------
    embedded : (n, e) float64.
    n_leaves : number of leaves of the whole tree, a power of two.
    first : the node; the rows of its points stand in their places in ``order``.
    stop : nodes from this one on are not halved.
    order : (n,) int64; modified.
    values : (n,) float64, for use in here.
    """
    n, e = embedded.shape
    stack = np.empty(128, np.int64)
    stack[0] = first
    size = 1
    while size > 0:
        size -= 1
        node = stack[size]
        if node >= stop:
            continue
        left_leaf = node
        right_leaf = node
        while left_leaf < n_leaves - 1:
            left_leaf = 2 * left_leaf + 1
            right_leaf = 2 * right_leaf + 2
        left_leaf -= n_leaves - 1
        right_leaf -= n_leaves - 1
        low = n * left_leaf // n_leaves
        high = n * (right_leaf + 1) // n_leaves
        middle = n * ((left_leaf + right_leaf + 1) // 2) // n_leaves
        step = max(1, (high - low) // _SPREAD_POINTS)
        widest = -1.0
        axis = 0
        for i in range(e):
            least = np.inf
            most = -np.inf
            for place in range(low, high, step):
                value = embedded[order[place], i]
                least = min(least, value)
                most = max(most, value)
            if most - least > widest:
                widest = most - least
                axis = i
        for place in range(low, high):
            values[place] = embedded[order[place], axis]
        _halve(values, order, low, high, middle)
        stack[size] = 2 * node + 1
        stack[size + 1] = 2 * node + 2
        size += 2


@njit
def fill_leaves(
    embedded: Floats, points: Floats, is_by_axis: bool, order: Ints, places: Floats, low: Floats, high: Floats
) -> None:
    """Fill ``places``, ``low`` and ``high`` of a :class:`BoxTree`.

    Parameters
    ----------
    embedded, points : (n, e) and (n, d) float64, by row.
    is_by_axis : whether the coordinates of a leaf stand axis by axis.
    order : see :class:`BoxTree`.
    """
    n, e = embedded.shape
    d = points.shape[1]
    n_leaves = (low.shape[0] + 1) // 2
    flat = places.reshape(-1)
    for leaf in range(n_leaves):
        begin = n * leaf // n_leaves
        end = n * (leaf + 1) // n_leaves
        node = n_leaves - 1 + leaf
        for i in range(e):
            low[node, i] = np.inf
            high[node, i] = -np.inf
        for place in range(begin, end):
            row = order[place]
            for i in range(e):
                low[node, i] = min(low[node, i], embedded[row, i])
                high[node, i] = max(high[node, i], embedded[row, i])
            for i in range(d):
                at = begin * d + i * (end - begin) + (place - begin) if is_by_axis else place * d + i
                flat[at] = points[row, i]
    for node in range(n_leaves - 2, -1, -1):
        for i in range(e):
            low[node, i] = min(low[2 * node + 1, i], low[2 * node + 2, i])
            high[node, i] = max(high[2 * node + 1, i], high[2 * node + 2, i])


@njit
def reach(metric: int, norm: int, distance: float) -> float:
    """What the differences to any point within this distance come to at most: see :func:`box_gap`."""
    if metric == COSINE:
        limit = math.sqrt(2.0 * (distance + _COSINE_SLACK)) + _COSINE_SLACK
    elif metric in (HAVERSINE, HAVERSINE_RADIANS):
        radius = EARTH_RADIUS_KM if metric == HAVERSINE else 1.0
        half_angle = min(distance / (2.0 * radius), math.pi / 2.0)
        limit = 2.0 * math.sin(half_angle) * (1.0 + _SLACK) + _SLACK
    else:
        limit = distance * (1.0 + _SLACK)
    return limit * limit * (1.0 + _SLACK) + 1e-300 if norm == SQUARES else limit


@njit
def box_gap(norm: int, query: Floats, low: Floats, high: Floats, node: int) -> float:
    """The differences between a query and the nearest place of a box: squares, sum or maximum."""
    total = 0.0
    for i in range(query.size):
        gap = max(low[node, i] - query[i], query[i] - high[node, i], 0.0)
        if norm == SQUARES:
            total += gap * gap
        elif norm == MAXIMUM:
            total = max(total, gap)
        else:
            total += gap
    return total


@njit
def _leaf_values(metric: int, query: Floats, leaf: Floats, size: int, values: Floats) -> None:
    """Write to ``values`` the sums (or maxima) of a query and each point of a leaf, in column order."""
    for j in range(size):
        values[j] = 0.0
    for i in range(query.size):
        value = query[i]
        first = i * size
        if metric == EUCLIDEAN:
            for j in range(size):
                difference = value - leaf[first + j]
                values[j] += difference * difference
        elif metric == MANHATTAN:
            for j in range(size):
                values[j] += abs(value - leaf[first + j])
        else:
            for j in range(size):
                values[j] = max(values[j], abs(value - leaf[first + j]))


@njit
def _keep_leaf(
    metric: int,
    norm: int,
    values: Floats,
    names: Ints,
    itself: int,
    ids: Ints,
    distances: Floats,
    filled: int,
    limit: float,
) -> tuple[int, float]:
    """Put the points of a leaf into a query's list.

    Parameters
    ----------
    values : (m,) float64, sums or maxima over axes, or where the metric is another one, distances.
    names : (m,) int64, the points.
    itself : the name that the query must not find.
    ids, distances, filled : the query's list, the farthest entry first, and the number of its entries.
    limit : values above it are not among the nearest; infinite while the list is not full.

    Returns
    -------
    tuple[int, float]
        The number of entries and the limit afterwards.
    """
    k = distances.size
    is_rooted = metric == EUCLIDEAN
    is_by_axis = metric in (EUCLIDEAN, MANHATTAN, CHEBYSHEV)
    for j in range(names.size):
        if values[j] <= limit and names[j] != itself:
            distance = np.sqrt(values[j]) if is_rooted else values[j]
            if k <= _MOST_IN_ORDER:
                filled = keep_in_order(ids, distances, filled, names[j], distance)
            else:
                filled = keep_one(ids, distances, 0, k, filled, names[j], distance)
            if filled == k:
                limit = reach(metric, norm, distances[0]) if is_by_axis else distances[0]
    return filled, limit


@njit
def search_tree(
    decision: Decision,
    norm: int,
    tree: BoxTree,
    names: Ints,
    queries: Floats,
    embedded: Floats,
    itself: Ints,
    rows: Ints,
    lists: NearestLists,
) -> int:
    """Put the points of a tree into the lists of some queries, where they are among the nearest.

    Parameters
    ----------
    decision : metric, with an infinite bound.
    norm : see :attr:`epsjoin.local.metric.Metric.norm`.
    names : (n,) int64, what the lists call the points, in the order of ``tree.order``. Of points as far, the
        smallest names stay.
    queries, embedded : (m, d) and (m, e) float64.
    itself : (q,) int64, the name that the query of a list must not find.
    rows : (m,) int64, the list of each query.
    lists : modified; they may have entries of other points. Ids and distances are (q, k) and contiguous.

    Returns
    -------
    int
        The number of points that were compared.
    """
    k = lists.ids.shape[1]
    places, low, high = tree.places, tree.low, tree.high  # numba counts references at each look into a tuple
    n, d = places.shape
    n_leaves = (low.shape[0] + 1) // 2
    flat = places.reshape(-1)
    metric = decision.metric
    is_by_axis = metric in (EUCLIDEAN, MANHATTAN, CHEBYSHEV)
    values = np.empty(LEAF_POINTS)
    nodes = np.empty(128, np.int64)
    gaps = np.empty(128)
    compared = 0
    for number in range(rows.size):
        row = rows[number]
        ids, distances = lists.ids[row], lists.distances[row]
        filled = lists.sizes[row]
        if filled > 0 and k <= _MOST_IN_ORDER:
            order_heap(ids, distances, filled)
        limit = reach(metric, norm, distances[0]) if filled == k else np.inf
        query, place = queries[number], embedded[number]
        nodes[0] = 0
        gaps[0] = box_gap(norm, place, low, high, 0)
        size = 1
        while size > 0:
            size -= 1
            node, gap = nodes[size], gaps[size]
            while gap <= limit and node < n_leaves - 1:  # to the nearer child; the other one waits
                node, other = 2 * node + 1, 2 * node + 2
                gap = box_gap(norm, place, low, high, node)
                other_gap = box_gap(norm, place, low, high, other)
                if other_gap < gap:
                    node, other = other, node
                    gap, other_gap = other_gap, gap
                if other_gap <= limit:
                    nodes[size] = other
                    gaps[size] = other_gap
                    size += 1
            if gap > limit:
                continue
            leaf = node - (n_leaves - 1)
            begin = n * leaf // n_leaves
            end = n * (leaf + 1) // n_leaves
            compared += end - begin
            if is_by_axis:
                _leaf_values(metric, query, flat[begin * d : end * d], end - begin, values)
                filled, limit = _keep_leaf(
                    metric, norm, values, names[begin:end], itself[row], ids, distances, filled, limit
                )
            else:
                for j in range(end - begin):
                    values[j] = decide(decision, queries, number, places, begin + j)
                farthest = distances[0] if filled == k else np.inf
                filled, farthest = _keep_leaf(
                    metric, norm, values, names[begin:end], itself[row], ids, distances, filled, farthest
                )
                limit = reach(metric, norm, farthest) if filled == k else np.inf
        lists.sizes[row] = filled
    return compared


@njit
def reaches(metric: int, norm: int, distances: Floats) -> Floats:
    """Compute :func:`reach` of each distance; infinite where the distance is."""
    limits = np.empty(distances.size)
    for i in range(distances.size):
        limits[i] = reach(metric, norm, distances[i]) if distances[i] < np.inf else np.inf
    return limits
