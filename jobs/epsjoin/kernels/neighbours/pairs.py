"""All pairs within eps of queries and the points of a tree of boxes, or of the tree's own points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_inner
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import BY_AXIS, EUCLIDEAN, Decision, decide
from epsjoin.kernels.neighbours.boxes import (
    DEPTH,
    BoxTree,
    box_gap,
    leaf_room,
    leaf_values,
    plane_gap,
    shape_of,
)
from epsjoin.kernels.neighbours.within import Reach
from epsjoin.kernels.pairs.sort_pairs import sort_groups
from epsjoin.kernels.projection import SQUARES


class Room(NamedTuple):
    """Where found pairs are written: (m,) int64 rows and (m,) float64 distances."""

    left: Ints
    right: Ints
    distance: Floats


@njit_inner
def _take(
    values: Floats,
    skipped: int,
    size: int,
    bound: float,
    names: Ints,
    begin: int,
    right: Ints,
    distance: Floats,
    found: int,
) -> int:
    """Write the points of a leaf whose values are within the bound; return how many pairs there are now.

    It takes no branch: a processor would guess it wrong about as often as there are pairs.
    """
    for j in range(skipped, size):
        right[found] = names[begin + j]
        distance[found] = values[j]
        found += values[j] <= bound
    return found


@njit_inner
def _decide_in_leaf(
    decision: Decision, queries: Floats, number: int, places: Floats, begin: int, size: int, values: Floats
) -> None:
    """Write the distances of a query and the points of a leaf, infinite where beyond eps."""
    for j in range(size):
        distance = decide(decision, queries, number, places, begin + j)
        values[j] = distance if distance >= 0.0 else np.inf


@njit_inner
def _take_roots(metric: int, distance: Floats, end: int) -> None:
    """Turn sums of squares into distances: the bits of :func:`epsjoin.kernels.distances.decide`."""
    if metric == EUCLIDEAN:
        for i in range(end):
            distance[i] = np.sqrt(distance[i])


@njit
def find_within(
    decision: Decision, reach: Reach, tree: BoxTree, queries: Floats, embedded: Floats, first: int, room: Room
) -> tuple[int, int]:
    """Find the points of a tree within eps of queries, until the room is full.

    Parameters
    ----------
    decision : the metric's, "within eps"; this and reach, tree and room are plain tuples.
    reach : the reach of eps.
    tree : the tree.
    queries, embedded : (q, d) and (q, e) float64.
    first : the query to begin with.
    room : modified: the number of the query, the row of the point, their distance; sorted by both rows.

    Returns
    -------
    next : the query to go on with, whose pairs the room does not hold; q at the end.
    found : number of pairs. If it is 0 and not all is done, one query needs more room.
    """
    decision, reach = Decision(*decision), Reach(*reach)
    order, places, low, high = tree
    n, (n_leaves, levels) = order.size, shape_of(low)
    metric, flat = decision.metric, places.reshape(-1)
    is_by_axis = metric in BY_AXIS
    most, bound = leaf_room(n, n_leaves), decision.bound if is_by_axis else decision.eps
    values, nodes = np.empty(most), np.empty(DEPTH, np.int64)
    left, right, distance = room
    ends = np.empty(queries.shape[0] - first, np.int64)
    number, found, is_full = first, 0, False
    while number < queries.shape[0] and not is_full:
        begin = found
        nodes[0] = 0
        waiting = 1
        while waiting > 0:
            waiting -= 1
            node = nodes[waiting]
            if box_gap(reach.norm, embedded, embedded, number, low, high, node) > reach.near:
                continue
            if node < n_leaves - 1:
                nodes[waiting] = 2 * node + 1
                nodes[waiting + 1] = 2 * node + 2
                waiting += 2
                continue
            is_full = found + most > left.size
            if is_full:
                found = begin
                break
            leaf = node - (n_leaves - 1)
            at = n * leaf >> levels
            size = (n * (leaf + 1) >> levels) - at
            if is_by_axis:
                leaf_values(metric, queries, number, flat, at, size, values, bound)
            else:
                _decide_in_leaf(decision, queries, number, places, at, size, values)
            found = _take(values, 0, size, bound, order, at, right, distance, found)
        if not is_full:
            left[begin:found] = number
            ends[number - first] = found
            number += 1
    _take_roots(metric, distance, found)
    sort_groups(ends[: number - first], right, distance)
    return number, found


@njit
def find_pairs(
    decision: Decision, reach: Reach, tree: BoxTree, points: Floats, embedded: Floats, first: int, room: Room
) -> tuple[int, int]:
    """Find the pairs of a tree's own points within eps, leaf by leaf, until the room is full.

    Parameters
    ----------
    decision, reach, tree : see :func:`find_within`.
    points, embedded : (n, d) and (n, e) float64, in the order of their rows.
    first : the leaf to begin with.
    room : modified: the smaller row of each pair, the larger one, their distance; in no order.

    Returns
    -------
    next, found : as :func:`find_within`, of leaves.

    Notes
    -----
    Each leaf is compared with itself and with the leaves behind it that its box reaches.
    """
    decision, reach = Decision(*decision), Reach(*reach)
    order, places, low, high = tree
    n, (n_leaves, levels) = order.size, shape_of(low)
    metric, flat = decision.metric, places.reshape(-1)
    is_by_axis = metric in BY_AXIS
    most, bound = leaf_room(n, n_leaves), decision.bound if is_by_axis else decision.eps
    values, nodes = np.empty(most), np.empty(DEPTH, np.int64)
    is_plane = reach.norm == SQUARES and embedded.shape[1] == 2
    last_leaf = _last_leaves(n_leaves)
    left, right, distance = room
    found = 0
    for leaf in range(first, n_leaves):
        start = found
        begin, end = n * leaf >> levels, n * (leaf + 1) >> levels
        mine = n_leaves - 1 + leaf
        nodes[0] = 0
        waiting = 1
        while waiting > 0:
            waiting -= 1
            node = nodes[waiting]
            if last_leaf[node] < leaf:
                continue
            if box_gap(reach.norm, low, high, mine, low, high, node) > reach.near:
                continue
            if node < n_leaves - 1:
                nodes[waiting] = 2 * node + 1
                nodes[waiting + 1] = 2 * node + 2
                waiting += 2
                continue
            if found + most * most > left.size:
                _take_roots(metric, distance, start)
                return leaf, start
            other = node - (n_leaves - 1)
            at = n * other >> levels
            size = (n * (other + 1) >> levels) - at
            for i in range(begin, end):
                row = order[i]
                if is_plane:
                    gap = plane_gap(embedded, row, low, high, node)
                else:
                    gap = box_gap(reach.norm, embedded, embedded, row, low, high, node)
                if gap > reach.near:
                    continue
                skipped = i - begin + 1 if other == leaf else 0
                if is_by_axis:
                    leaf_values(metric, points, row, flat, at, size, values, bound)
                else:
                    _decide_in_leaf(decision, points, row, places, at, size, values)
                so_far = found
                found = _take(values, skipped, size, bound, order, at, right, distance, found)
                for k in range(so_far, found):
                    column = right[k]
                    left[k] = min(row, column)
                    right[k] = max(row, column)
    _take_roots(metric, distance, found)
    return n_leaves, found


@njit
def _last_leaves(n_leaves: int) -> Ints:
    """The last leaf below each node."""
    last = np.empty(2 * n_leaves - 1, np.int64)
    for node in range(2 * n_leaves - 2, -1, -1):
        last[node] = node - (n_leaves - 1) if node >= n_leaves - 1 else last[2 * node + 2]
    return last
