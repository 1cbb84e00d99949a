"""The k nearest in the plane: queries that lie together share the boxes that they look at.

A query on its own goes down the whole tree and puts points into its list one by one. No processor foresees
which box is the nearer one, or whether a point is among the nearest. Wrong guesses take most of the time of
a search in the plane, where few points are compared.

So only the first query of a *group* of queries that lie together searches on its own. Each query that is done
gives a *bound* for the k-distance of another: the sum of its own k-distance and the distance of the two. The
leaves within the bound of the whole group, which are few, are chosen once. Each query finds all points of
these leaves within its own bound, and puts them in order by their ranks, without a branch.

A bound need not hold: only a query that has found its k nearest well within it is done.
"""

from __future__ import annotations

import math

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_inner
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import EUCLIDEAN, Decision
from epsjoin.kernels.neighbours.boxes import DEPTH, BoxTree, leaf_room, leaf_values, shape_of
from epsjoin.kernels.neighbours.heaps import NearestLists, keep_in_order
from epsjoin.kernels.neighbours.tree import reach, search_tree
from epsjoin.kernels.projection import SQUARES
from epsjoin.kernels.simd.lanes import PLACES
from epsjoin.kernels.simd.near_values import keep_near

_GROUP = 32
"""Maximum number of queries of a group."""
_LEAVES = 64
"""Maximum number of leaves that a group chooses; where there are more, each query goes its own way."""
_RANKED = 96
"""Maximum number of points that are put in order by their ranks, which takes the square of it."""
_LANES = 16
"""Ranks are counted among a multiple of so many points: LLVM takes so many at once."""


@njit
def search_plane(
    decision: Decision,
    tree: BoxTree,
    names: Ints,
    queries: Floats,
    itself: Ints,
    rows: Ints,
    lists: NearestLists,
) -> int:
    """Fill the lists of some queries in the plane, as :func:`epsjoin.kernels.neighbours.tree.search_tree`.

    Parameters
    ----------
    decision : Euclid's, with an infinite bound.
    tree, names, itself, rows : as for ``search_tree``; the tree has more than k points.
    queries : (m, 2) float64; those that follow one another should be near one another.
    lists : of at most ``MAX_IN_ORDER`` neighbours each; modified. Those of ``rows`` are empty.

    Returns
    -------
    int
        The number of points that were compared.
    """
    k = lists.ids.shape[1]
    sizes, distances = lists.sizes, lists.distances.reshape(-1)
    ids, flat = lists.ids.reshape(-1), tree.places.reshape(-1)  # numba counts each look into a tuple
    room = leaf_room(names.size, shape_of(tree.low)[0])
    leaves, boxes = np.empty((2, _LEAVES), np.int64), np.empty((4, _LEAVES))
    found, squares = np.empty(_LEAVES * room + _LANES, np.int64), np.empty(_LEAVES * room + _LANES)
    ranked, ranked_distances = np.empty(_RANKED, np.int64), np.empty(_RANKED)
    values, k_distances = np.empty(max(room, _GROUP, _LEAVES) + PLACES), np.empty(_GROUP)
    gaps = np.empty(_LEAVES)
    compared = 0
    for begin in range(0, rows.size, _GROUP):
        end = min(begin + _GROUP, rows.size)
        compared += _search_alone(decision, tree, names, queries, itself, rows, lists, begin, begin + 1)
        k_distances[0] = distances[rows[begin] * k]
        n_leaves = _choose_leaves(
            tree.low, tree.high, names.size, queries, begin, end, k_distances[0], leaves, boxes
        )
        if n_leaves == 0:
            compared += _search_alone(decision, tree, names, queries, itself, rows, lists, begin + 1, end)
            continue
        for number in range(begin + 1, end):
            row = rows[number]
            limit = _limit(queries, begin, number, k_distances, values)
            n_found, n_compared = _find_within(
                limit, queries, number, leaves, boxes, n_leaves, flat, gaps, values, found, squares
            )
            compared += n_compared
            sizes[row] = _fill_list(
                itself[row],
                names,
                found,
                squares,
                n_found,
                ranked,
                ranked_distances,
                ids,
                distances,
                row * k,
                k,
            )
            if sizes[row] < k or reach(EUCLIDEAN, SQUARES, distances[row * k], 0.0) > limit:
                sizes[row] = 0
                compared += _search_alone(
                    decision, tree, names, queries, itself, rows, lists, number, number + 1
                )
            k_distances[number - begin] = distances[row * k]
    return compared


@njit
def _search_alone(
    decision: Decision,
    tree: BoxTree,
    names: Ints,
    queries: Floats,
    itself: Ints,
    rows: Ints,
    lists: NearestLists,
    begin: int,
    end: int,
) -> int:
    """Search for the k nearest of some queries, each on its own; return the number of points compared."""
    some = queries[begin:end]
    return search_tree(decision, SQUARES, tree, names, some, some, itself, rows[begin:end], lists)


@njit
def _choose_leaves(
    low: Floats,
    high: Floats,
    n: int,
    queries: Floats,
    begin: int,
    end: int,
    k_distance: float,
    leaves: Ints,
    boxes: Floats,
) -> int:
    """Choose the leaves that the queries of a group look at; none where there are too many.

    Parameters
    ----------
    low, high, n : the boxes of the tree, and the number of its points.
    queries, begin, end : (m, 2) float64, and where those of the group begin and end.
    k_distance : the k-distance of the first query of the group.
    leaves, boxes : (2, _LEAVES) int64 and (4, _LEAVES) float64, the first point of each chosen leaf and how
        many it has, and the sides of its box; modified.
    """
    n_leaves, levels = shape_of(low)
    left = right = queries[begin, 0]
    below = above = queries[begin, 1]
    far = 0.0
    for number in range(begin + 1, end):
        across, along = queries[number, 0], queries[number, 1]
        left, right, below, above = (
            min(left, across),
            max(right, across),
            min(below, along),
            max(above, along),
        )
        far = max(far, _square(queries, begin, number))
    limit = reach(EUCLIDEAN, SQUARES, k_distance + math.sqrt(far), 0.0)
    nodes = np.empty(DEPTH, np.int64)
    nodes[0] = 0
    waiting, count = 1, 0
    while waiting > 0:
        waiting -= 1
        node = nodes[waiting]
        across = max(left - high[node, 0], low[node, 0] - right, 0.0)
        along = max(below - high[node, 1], low[node, 1] - above, 0.0)
        if across * across + along * along > limit:
            continue
        if node < n_leaves - 1:
            nodes[waiting], nodes[waiting + 1] = 2 * node + 2, 2 * node + 1
            waiting += 2
            continue
        if count == _LEAVES:
            return 0
        leaf = node - (n_leaves - 1)
        leaves[0, count] = n * leaf >> levels
        leaves[1, count] = (n * (leaf + 1) >> levels) - leaves[0, count]
        boxes[0, count], boxes[1, count] = low[node, 0], high[node, 0]
        boxes[2, count], boxes[3, count] = low[node, 1], high[node, 1]
        count += 1
    return count


@njit_inner
def _square(queries: Floats, one: int, other: int | np.uint64) -> float:
    """The square of the distance of two queries."""
    across, along = queries[one, 0] - queries[other, 0], queries[one, 1] - queries[other, 1]
    return float(across * across + along * along)


@njit_inner
def _limit(queries: Floats, begin: int, number: int, k_distances: Floats, values: Floats) -> float:
    """Bound the k-distance of a query by those of its group before it; in squares, by :func:`reach`."""
    n_done = np.uint64(number - begin)
    for other in range(n_done):
        values[other] = k_distances[other] + math.sqrt(_square(queries, number, np.uint64(begin) + other))
    bound = np.inf
    for other in range(n_done):
        bound = min(bound, values[other])
    return reach(EUCLIDEAN, SQUARES, bound, 0.0)


@njit_inner
def _find_within(
    limit: float,
    queries: Floats,
    number: int,
    leaves: Ints,
    boxes: Floats,
    n_leaves: int,
    flat: Floats,
    gaps: Floats,
    values: Floats,
    found: Ints,
    squares: Floats,
) -> tuple[int, int]:
    """Find the points within the limit of a query, in the leaves of its group.

    Parameters
    ----------
    found, squares : the places of the points that are found, and their squared distances; modified.

    Returns
    -------
    n_found, n_compared : numbers of points.
    """
    across, along = queries[number, 0], queries[number, 1]
    for leaf in range(np.uint64(n_leaves)):
        a = max(boxes[0, leaf] - across, across - boxes[1, leaf], 0.0)
        b = max(boxes[2, leaf] - along, along - boxes[3, leaf], 0.0)
        gaps[leaf] = a * a + b * b
    n_found, n_compared = 0, 0
    for leaf in range(np.uint64(n_leaves)):
        if gaps[leaf] > limit:
            continue
        first, size = leaves[0, leaf], leaves[1, leaf]
        n_compared += size
        leaf_values(EUCLIDEAN, queries, number, flat, first, size, values, limit)
        for point in range(0, size, PLACES):
            n_found += keep_near(values, point, size - point, limit, first + point, found, squares, n_found)
    return n_found, n_compared


@njit_inner
def _fill_list(
    own: int,
    names: Ints,
    found: Ints,
    squares: Floats,
    n_found: int,
    ranked: Ints,
    ranked_distances: Floats,
    ids: Ints,
    distances: Floats,
    first: int,
    k: int,
) -> int:
    """Fill a list, which begins at ``first``, with the k nearest points found; return their number.

    Where only k have been found, and one of them is the query itself, the farthest may be infinitely far.

    Parameters
    ----------
    own : the name that the query must not find.
    found, squares : from :func:`_find_within`; become names and distances.
    """
    if n_found < k:
        return n_found
    for point in range(np.uint64(n_found)):
        name = names[found[point]]
        found[point] = name
        squares[point] = math.sqrt(squares[point]) if name != own else np.inf
    if n_found <= _RANKED and _rank(found, squares, n_found, ranked, ranked_distances):
        for i in range(k):
            ids[first + k - 1 - i], distances[first + k - 1 - i] = ranked[i], ranked_distances[i]
        return k
    filled = 0
    for point in range(np.uint64(n_found)):
        if found[point] != own:
            filled = keep_in_order(ids, distances, first, k, filled, found[point], squares[point])
    return filled


@njit_inner
def _rank(found: Ints, distances: Floats, n_found: int, ranked: Ints, ranked_distances: Floats) -> bool:
    """Put found points in order by distance; return False if two distances tie, which names would decide."""
    lanes = np.uint64(-(-n_found // _LANES) * _LANES)
    for point in range(np.uint64(n_found), lanes):
        distances[point] = np.inf
    total = np.uint64(0)
    for point in range(np.uint64(n_found)):
        distance, rank = distances[point], np.uint64(0)
        for other in range(lanes):
            rank += np.uint64(distances[other] < distance)
        ranked[rank], ranked_distances[rank] = found[point], distance
        total += rank
    return bool(total == np.uint64(n_found * (n_found - 1) // 2))
