"""The k nearest of a tree's own points: those of a leaf go down the tree together.

A query on its own looks at many boxes on its way to few leaves, and the points of one leaf mostly reach the
same leaves. So the box around these points goes down the tree once for all of them, with the largest of their
radii: the distances to their k-th points so far. At a leaf it is tested for all of them side by side whether
the radius of each reaches the leaf's box.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_inner, njit_inner_any_order
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import EUCLIDEAN
from epsjoin.kernels.neighbours.boxes import (
    DEPTH,
    BoxTree,
    leaf_room,
    leaf_values,
    shape_of,
    square_gaps,
)
from epsjoin.kernels.neighbours.heaps import NearestLists, keep_in_order
from epsjoin.kernels.neighbours.tree import reach
from epsjoin.kernels.projection import SQUARES
from epsjoin.kernels.simd.lanes import PLACES
from epsjoin.kernels.simd.near_values import keep_near

_LANES = 8
"""Gaps are computed for a multiple of so many queries: LLVM takes so many at once, the rest one by one."""


@njit
def search_own(tree: BoxTree, names: Ints, positions: Ints, lists: NearestLists) -> int:
    """Find the k nearest other points of some of a tree's points, by Euclid's metric.

    Parameters
    ----------
    tree : of points that are not embedded.
    names : (n,) int64, what the lists call the points, in the order of ``tree.order``. Of equally far
        points, those with the smallest names stay.
    positions : (m,) int64, ascending, where these points stand in the tree.
    lists : those of these points, by name, are filled anew, the farthest first; at most ``MAX_IN_ORDER``
        neighbours each. Ids and distances are (q, k) and contiguous.

    Returns
    -------
    int
        The number of points that were compared.
    """
    k = lists.ids.shape[1]
    sizes, ids, distances = lists.sizes, lists.ids.reshape(-1), lists.distances.reshape(-1)
    low, high, flat = tree.low, tree.high, tree.places.reshape(-1)
    n, d = tree.places.shape
    n_leaves, levels = shape_of(low)
    room = leaf_room(n, n_leaves)
    values, kept, near = np.empty(room + PLACES), np.empty(room + PLACES), np.empty(room + PLACES, np.int64)
    queries, lanes = np.empty((room, d)), np.zeros((d, room + _LANES))
    around = np.empty((2, d))
    gaps, limits = np.empty(room + _LANES), np.empty(room)
    reached, filled = np.empty(room, np.int64), np.empty(room, np.int64)
    # the lists of a group stand together: those of all points do not stay in the cache
    mine_ids, mine_distances = np.empty(room * k, np.int64), np.empty(room * k)
    least = np.empty(k)
    nodes, node_gaps = np.empty(DEPTH, np.int64), np.empty(DEPTH)
    compared = 0
    first = 0
    while first < positions.size:
        leaf = ((positions[first] + 1) * n_leaves - 1) // n
        begin, end = n * leaf >> levels, n * (leaf + 1) >> levels
        m = 0
        while first + m < positions.size and positions[first + m] < end:
            _take_query(flat, begin, end - begin, positions[first + m] - begin, m, queries, lanes)
            limits[m], filled[m] = np.inf, 0
            m += 1
        n_lanes = -(-m // _LANES) * _LANES
        _surround(queries, m, around)
        most = np.inf
        nodes[0], node_gaps[0] = 0, 0.0
        waiting = 1
        while waiting > 0:
            waiting -= 1
            node, gap = nodes[waiting], node_gaps[waiting]
            while gap <= most and node < n_leaves - 1:  # to the nearer child; the other one waits
                gap, other_gap = square_gaps(around, 0, 1, low, high, node)
                node, other = 2 * node + 1, 2 * node + 2
                if other_gap < gap:
                    node, other = other, node
                    gap, other_gap = other_gap, gap
                if other_gap <= most:
                    nodes[waiting], node_gaps[waiting] = other, other_gap
                    waiting += 1
            if gap > most:
                continue
            _lane_gaps(lanes, n_lanes, low, high, node, gaps)
            n_reached = 0
            for j in range(m):  # without a branch, which would be guessed wrong
                reached[n_reached] = j
                n_reached += gaps[j] <= limits[j]
            leaf = node - (n_leaves - 1)
            begin = n * leaf >> levels
            size = (n * (leaf + 1) >> levels) - begin
            compared += n_reached * size
            for i in range(n_reached):
                j = reached[i]
                leaf_values(EUCLIDEAN, queries, j, flat, begin, size, values, limits[j])
                if filled[j] == 0:
                    limits[j] = _first_limit(values, size, positions[first + j] - begin, k, least)
                filled[j], limits[j] = _put_into_list(
                    names,
                    positions[first + j],
                    begin,
                    size,
                    values,
                    near,
                    kept,
                    limits[j],
                    mine_ids,
                    mine_distances,
                    j * k,
                    k,
                    filled[j],
                )
            if n_reached > 0:
                most = -1.0
                for j in range(m):
                    most = max(most, limits[j])
        for j in range(m):
            row = names[positions[first + j]]
            sizes[row] = filled[j]
            for i in range(k):
                ids[row * k + i] = mine_ids[j * k + i]
                distances[row * k + i] = mine_distances[j * k + i]
        first += m
    return compared


@njit_inner
def _take_query(
    flat: Floats, begin: int, size: int, place: int, number: int, queries: Floats, lanes: Floats
) -> None:
    """Copy a point of a leaf, whose coordinates stand axis by axis."""
    for i in range(queries.shape[1]):
        value = flat[begin * queries.shape[1] + i * size + place]
        queries[number, i] = value
        lanes[i, number] = value


@njit_inner
def _surround(queries: Floats, m: int, around: Floats) -> None:
    """Write the box around the first queries."""
    for i in range(queries.shape[1]):
        around[0, i] = around[1, i] = queries[0, i]
    for j in range(1, m):
        for i in range(queries.shape[1]):
            around[0, i] = min(around[0, i], queries[j, i])
            around[1, i] = max(around[1, i], queries[j, i])


@njit_inner
def _beside(value: float, least: float, most: float) -> float:
    """How far a value lies outside a box on one axis: above 0 beyond ``most``, below 0 beyond ``least``."""
    return value - min(max(value, least), most)


@njit_inner_any_order
def _lane_gaps(lanes: Floats, n_lanes: int, low: Floats, high: Floats, node: int, gaps: Floats) -> None:
    """Compute the gaps of a box and all queries of a group, in squares, in any order of the axes.

    Four axes at a time, so that each sum is read once for all four.
    """
    at, d = np.uint64(node), lanes.shape[0]
    for j in range(n_lanes):
        gaps[np.uint64(j)] = 0.0
    for axis in range(0, d - 3, 4):
        i = np.uint64(axis)
        second, third, fourth = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
        for j in range(np.uint64(n_lanes)):
            a = _beside(lanes[i, j], low[at, i], high[at, i])
            b = _beside(lanes[second, j], low[at, second], high[at, second])
            c = _beside(lanes[third, j], low[at, third], high[at, third])
            last = _beside(lanes[fourth, j], low[at, fourth], high[at, fourth])
            gaps[j] += a * a + b * b + c * c + last * last
    for axis in range(d // 4 * 4, d):
        i = np.uint64(axis)
        for j in range(np.uint64(n_lanes)):
            a = _beside(lanes[i, j], low[at, i], high[at, i])
            gaps[j] += a * a


@njit_inner
def _first_limit(values: Floats, size: int, own: int, k: int, least: Floats) -> float:
    """Bound the k-distance of a query by the first leaf that it reaches, so that few points go to its list.

    Values are dealt to k parts in turns. The least values of the parts belong to k points, so the largest of
    them is a bound.

    Parameters
    ----------
    values : those of the leaf; that of the query itself becomes infinite.
    own : the place of the query in the leaf, which may be outside.
    least : (k,) float64, room for this function's own use.
    """
    if 0 <= own < size:
        values[own] = np.inf
    for i in range(k):
        least[np.uint64(i)] = np.inf
    for begin in range(0, size - k + 1, k):
        first = np.uint64(begin)
        for i in range(np.uint64(k)):
            least[i] = min(least[i], values[first + i])
    most = 0.0
    for i in range(k):
        most = max(most, least[np.uint64(i)])
    return reach(EUCLIDEAN, SQUARES, np.sqrt(most), 0.0)


@njit_inner
def _put_into_list(
    names: Ints,
    own: int,
    begin: int,
    size: int,
    values: Floats,
    near: Ints,
    kept: Floats,
    limit: float,
    ids: Ints,
    distances: Floats,
    first: int,
    k: int,
    filled: int,
) -> tuple[int, float]:
    """Put those points of a leaf that are among the nearest into a list; return its size and its limit."""
    n_near = 0
    for j in range(0, size, PLACES):
        n_near += keep_near(values, j, size - j, limit, begin + j, near, kept, n_near)
    for i in range(n_near):
        if kept[i] > limit or near[i] == own:
            continue
        filled = keep_in_order(ids, distances, first, k, filled, names[near[i]], np.sqrt(kept[i]))
        if filled == k:
            limit = reach(EUCLIDEAN, SQUARES, distances[first], 0.0)
    return filled, limit
