"""The k nearest of a query by a tree of boxes: each query looks only at boxes that its own radius reaches.

A query goes to the nearest box first. Its radius is the distance to the k-th point found so far, and a box
beyond it holds no nearer point. In dense regions the radius is small soon, in sparse ones it stays large: no
radius has to suit all queries.
"""

from __future__ import annotations

import math

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_inner
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import (
    BY_AXIS,
    COSINE,
    EARTH_RADIUS_KM,
    EUCLIDEAN,
    HAVERSINE,
    MINKOWSKI,
    OF_PLACES,
    Decision,
    are_surely_beyond,
    decide,
    latitude_cosine,
)
from epsjoin.kernels.neighbours.boxes import (
    DEPTH,
    BoxTree,
    box_gap,
    child_gaps,
    leaf_room,
    leaf_values,
    plane_gap,
    shape_of,
    square_gaps,
)
from epsjoin.kernels.neighbours.heaps import NearestLists, keep_in_order, keep_one, order_heap
from epsjoin.kernels.projection import SQUARES
from epsjoin.kernels.simd.lanes import PLACES
from epsjoin.kernels.simd.near_values import keep_near

MAX_IN_ORDER = 32
"""Up to so many neighbours, a list is kept in order: then finding an entry's place costs less than a heap."""

_SLACK = 4e-12
"""More than the rounding errors of a metric's formula and of a box's distance (see ``local/metric.py``)."""


@njit
def least_distance(metric: int, p: float, d: int) -> float:
    """The distance of points in d dimensions below which a computed one may be wrong altogether, such as 0.

    For Minkowski, powers of differences underflow. The cosine rounds by (2 d + 6) 2**-53 at most, the chord
    of two embedded vectors, with its square, by (3 d + 13) 2**-53; the result is above twice either.
    """
    if metric == COSINE:
        return (d + 4.0) * 2.0**-50
    return 1e-300 ** (1.0 / p) if metric == MINKOWSKI else 0.0


@njit_inner
def reach(metric: int, norm: int, distance: float, least: float) -> float:
    """The most that the differences to any point within this distance come to: see :func:`box_gap`.

    This leaves out the rounding of embedded coordinates, by which boxes are made larger: see
    :meth:`epsjoin.local.metric.Metric.slack`. ``least`` is from :func:`least_distance`.
    """
    if metric == COSINE:
        limit = math.sqrt(2.0 * (distance + least)) + least
    elif metric in OF_PLACES:
        radius = EARTH_RADIUS_KM if metric == HAVERSINE else 1.0
        half_angle = min(distance / (2.0 * radius), math.pi / 2.0)
        limit = 2.0 * math.sin(half_angle) * (1.0 + _SLACK)
    else:
        limit = max(distance, least) * (1.0 + _SLACK)
    return limit * limit * (1.0 + _SLACK) + 1e-300 if norm == SQUARES else limit


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
    names : (n,) int64, what the lists call the points, in the order of ``tree.order``. Of equally far
        points, those with the smallest names stay.
    queries, embedded : (m, d) and (m, e) float64.
    itself : (q,) int64, the name that the query of a list must not find.
    rows : (m,) int64, the list of each query.
    lists : modified; they may have entries of other points. Ids and distances are (q, k) and contiguous.

    Returns
    -------
    int
        The number of points that were compared; on a sphere, of those whose distance was computed.
    """
    k = lists.ids.shape[1]
    sizes, ids, distances = lists.sizes, lists.ids.reshape(-1), lists.distances.reshape(-1)
    places, low, high = tree.places, tree.low, tree.high  # numba counts references at each look into a tuple
    n = names.size
    n_leaves, levels = shape_of(low)
    flat = places.reshape(-1)
    metric, least = decision.metric, least_distance(decision.metric, decision.p, queries.shape[1])
    is_by_axis, are_places = metric in BY_AXIS, metric in OF_PLACES
    is_plane = norm == SQUARES and embedded.shape[1] == 2
    values = np.empty(leaf_room(n, n_leaves) + PLACES)
    kept, near = np.empty(values.size), np.empty(values.size, np.int64)
    nodes = np.empty(DEPTH, np.int64)
    gaps = np.empty(DEPTH)
    compared = 0
    for number in range(rows.size):
        row = rows[number]
        own = itself[row]
        cosine = latitude_cosine(metric, queries, number) if are_places else 0.0
        first, filled = row * k, sizes[row]  # no view of the list, which numba would count
        if k <= MAX_IN_ORDER:
            order_heap(ids, distances, first, filled)
        # what a box's gap may be, and a point's value: a sum or maximum over axes, or else a distance
        limit = reach(metric, norm, distances[first], least) if filled == k else np.inf
        most = limit if is_by_axis or filled < k else distances[first]
        nodes[0] = 0
        gaps[0] = box_gap(norm, embedded, embedded, number, low, high, 0)
        size = 1
        while size > 0:
            size -= 1
            node, gap = nodes[size], gaps[size]
            while gap <= limit and node < n_leaves - 1:  # to the nearer child; the other one waits
                if is_plane:
                    gap = plane_gap(embedded, number, low, high, 2 * node + 1)
                    other_gap = plane_gap(embedded, number, low, high, 2 * node + 2)
                elif norm == SQUARES:
                    gap, other_gap = square_gaps(embedded, number, number, low, high, node)
                else:
                    gap, other_gap = child_gaps(norm, embedded, number, low, high, node)
                node, other = 2 * node + 1, 2 * node + 2
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
            begin = n * leaf >> levels
            leaf_size = (n * (leaf + 1) >> levels) - begin
            compared += leaf_size
            if is_by_axis:
                leaf_values(metric, queries, number, flat, begin, leaf_size, values, most)
            elif are_places:
                for j in range(leaf_size):
                    if are_surely_beyond(metric, queries, number, places, begin + j, cosine, most):
                        values[j] = np.inf
                        compared -= 1
                    else:
                        values[j] = decide(decision, queries, number, places, begin + j)
            else:
                for j in range(leaf_size):
                    values[j] = decide(decision, queries, number, places, begin + j)
            n_near = 0
            for j in range(0, leaf_size, PLACES):
                n_near += keep_near(values, j, leaf_size - j, most, begin + j, near, kept, n_near)
            for i in range(n_near):
                name = names[near[i]]
                if kept[i] > most or name == own:
                    continue
                distance = np.sqrt(kept[i]) if metric == EUCLIDEAN else kept[i]
                if k <= MAX_IN_ORDER:
                    filled = keep_in_order(ids, distances, first, k, filled, name, distance)
                else:
                    filled = keep_one(ids, distances, first, k, filled, name, distance)
                if filled == k:
                    most = reach(metric, norm, distances[first], least) if is_by_axis else distances[first]
            if filled == k:
                limit = most if is_by_axis else reach(metric, norm, most, least)
        sizes[row] = filled
    return compared


@njit
def reaches(decision: Decision, norm: int, distances: Floats, d: int) -> Floats:
    """Compute :func:`reach` of each distance of points in d dimensions; infinite where the distance is."""
    metric, least = decision.metric, least_distance(decision.metric, decision.p, d)
    limits = np.empty(distances.size)
    for i in range(distances.size):
        limits[i] = reach(metric, norm, distances[i], least) if distances[i] < np.inf else np.inf
    return limits
