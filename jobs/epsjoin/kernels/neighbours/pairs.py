"""All pairs within eps of queries and the points of a tree of boxes, or of the tree's own points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import CHEBYSHEV, EUCLIDEAN, MANHATTAN, Decision, decide
from epsjoin.kernels.neighbours.tree import LEAF_POINTS, BoxTree
from epsjoin.kernels.neighbours.within import DEPTH, Reach, box_gap, leaf_sums


class Room(NamedTuple):
    """Where found pairs are written: (m,) int64 rows and (m,) float64 distances."""

    left: Ints
    right: Ints
    distance: Floats


@njit
def _take(
    values: Floats, skipped: int, size: int, bound: float, names: Ints, begin: int, room: Room, found: int
) -> int:
    """Write the points of a leaf whose values are within the bound; the pairs found so far.

    Without a branch, which would be guessed wrong as often as there are pairs.
    """
    right, distance = room.right, room.distance
    for j in range(skipped, size):
        right[found] = names[begin + j]
        distance[found] = values[j]
        found += values[j] <= bound
    return found


@njit
def _decide_in_leaf(
    decision: Decision, queries: Floats, number: int, places: Floats, begin: int, size: int, values: Floats
) -> None:
    """Write the distances of a query and the points of a leaf, infinite where beyond eps."""
    for j in range(size):
        distance = decide(decision, queries, number, places, begin + j)
        values[j] = distance if distance >= 0.0 else np.inf


@njit
def _take_roots(metric: int, distance: Floats, begin: int, end: int) -> None:
    """Turn sums of squares into distances: the bits of :func:`epsjoin.kernels.distances.decide`."""
    if metric == EUCLIDEAN:
        for i in range(begin, end):
            distance[i] = np.sqrt(distance[i])


@njit
def _sort_by_right(room: Room, begin: int, end: int) -> None:
    """Sort the pairs of one left row by their right row."""
    order = np.argsort(room.right[begin:end])
    room.right[begin:end] = room.right[begin:end][order]
    room.distance[begin:end] = room.distance[begin:end][order]


@njit
def find_within(
    decision: Decision, reach: Reach, tree: BoxTree, queries: Floats, embedded: Floats, first: int, room: Room
) -> tuple[int, int]:
    """Find the points of a tree within eps of queries, until the room is full.

    Parameters
    ----------
    decision : the metric's, "within eps".
    reach : of eps.
    tree : the tree.
    queries, embedded : (q, d) and (q, e) float64.
    first : the query to begin with.
    room : modified: the number of the query, the row of the point, their distance; sorted by both rows.

    Returns
    -------
    next : the query to go on with, whose pairs the room does not hold; q at the end.
    found : number of pairs. If it is 0 and not all is done, one query needs more room.
    """
    n_leaves = (tree.low.shape[0] + 1) // 2
    n = tree.order.size
    metric = decision.metric
    is_by_axis = metric in (EUCLIDEAN, MANHATTAN, CHEBYSHEV)
    bound = decision.bound if is_by_axis else decision.eps
    flat = tree.places.reshape(-1)
    values = np.empty(LEAF_POINTS)
    nodes = np.empty(DEPTH, np.int64)
    found = 0
    for number in range(first, queries.shape[0]):
        begin = found
        nodes[0] = 0
        waiting = 1
        while waiting > 0:
            waiting -= 1
            node = nodes[waiting]
            if box_gap(reach.norm, embedded, embedded, number, tree.low, tree.high, node) > reach.near:
                continue
            if node < n_leaves - 1:
                nodes[waiting] = 2 * node + 1
                nodes[waiting + 1] = 2 * node + 2
                waiting += 2
                continue
            if found + LEAF_POINTS > room.left.size:
                return number, begin
            leaf = node - (n_leaves - 1)
            place = n * leaf // n_leaves
            size = n * (leaf + 1) // n_leaves - place
            if is_by_axis:
                leaf_sums(metric, queries, number, flat, place, size, values)
            else:
                _decide_in_leaf(decision, queries, number, tree.places, place, size, values)
            found = _take(values, 0, size, bound, tree.order, place, room, found)
        room.left[begin:found] = number
        _take_roots(metric, room.distance, begin, found)
        _sort_by_right(room, begin, found)
    return queries.shape[0], found


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
    n = tree.order.size
    n_leaves = (tree.low.shape[0] + 1) // 2
    metric = decision.metric
    is_by_axis = metric in (EUCLIDEAN, MANHATTAN, CHEBYSHEV)
    bound = decision.bound if is_by_axis else decision.eps
    flat = tree.places.reshape(-1)
    values = np.empty(LEAF_POINTS)
    nodes = np.empty(DEPTH, np.int64)
    last_leaf = _last_leaves(n_leaves)
    left, right = room.left, room.right
    found = 0
    for leaf in range(first, n_leaves):
        start = found
        begin = n * leaf // n_leaves
        end = n * (leaf + 1) // n_leaves
        mine = n_leaves - 1 + leaf
        nodes[0] = 0
        waiting = 1
        while waiting > 0:
            waiting -= 1
            node = nodes[waiting]
            if last_leaf[node] < leaf:
                continue
            if box_gap(reach.norm, tree.low, tree.high, mine, tree.low, tree.high, node) > reach.near:
                continue
            if node < n_leaves - 1:
                nodes[waiting] = 2 * node + 1
                nodes[waiting + 1] = 2 * node + 2
                waiting += 2
                continue
            if found + LEAF_POINTS * LEAF_POINTS > room.left.size:
                _take_roots(metric, room.distance, 0, start)
                return leaf, start
            other = node - (n_leaves - 1)
            place = n * other // n_leaves
            size = n * (other + 1) // n_leaves - place
            for i in range(begin, end):
                row = tree.order[i]
                if box_gap(reach.norm, embedded, embedded, row, tree.low, tree.high, node) > reach.near:
                    continue
                skipped = i - begin + 1 if other == leaf else 0
                if is_by_axis:
                    leaf_sums(metric, points, row, flat, place, size, values)
                else:
                    _decide_in_leaf(decision, points, row, tree.places, place, size, values)
                so_far = found
                found = _take(values, skipped, size, bound, tree.order, place, room, found)
                for k in range(so_far, found):
                    column = right[k]
                    left[k] = min(row, column)
                    right[k] = max(row, column)
    _take_roots(metric, room.distance, 0, found)
    return n_leaves, found


@njit
def _last_leaves(n_leaves: int) -> Ints:
    """The last leaf below each node."""
    last = np.empty(2 * n_leaves - 1, np.int64)
    for node in range(2 * n_leaves - 2, -1, -1):
        last[node] = node - (n_leaves - 1) if node >= n_leaves - 1 else last[2 * node + 2]
    return last


@njit
def sort_by_rows(n: int, room: Room, found: int, into: Room) -> None:
    """Sort pairs by their left row, then by their right one, in two counting sorts.

    Parameters
    ----------
    n : number of rows.
    room : the pairs; not modified.
    found : number of pairs.
    into : (found,) the sorted pairs; modified.

    Notes
    -----
    O(n + found). As :mod:`epsjoin.kernels.join.sort_pairs`, in one call for few pairs.
    """
    by_right = np.empty(found, np.int64)
    places = np.zeros(n + 1, np.int64)
    for i in range(found):
        places[room.right[i] + 1] += 1
    for row in range(n):
        places[row + 1] += places[row]
    for i in range(found):
        by_right[places[room.right[i]]] = i
        places[room.right[i]] += 1
    places[:] = 0
    for i in range(found):
        places[room.left[i] + 1] += 1
    for row in range(n):
        places[row + 1] += places[row]
    for j in range(found):
        i = by_right[j]
        place = places[room.left[i]]
        places[room.left[i]] += 1
        into.left[place] = room.left[i]
        into.right[place] = room.right[i]
        into.distance[place] = room.distance[i]
