"""The minimum spanning tree of points under mutual reachability, by rounds over a tree of boxes.

The *mutual reachability* of two points is the largest of their distance and their core distances. In a round
each component finds its lightest edge to a point outside of it (Borůvka). A box that is beyond the lightest
edge so far, or holds only points of the same component, is left out. Of equally light edges the one with the
smallest rows comes first, so that no round closes a cycle and the tree is the same on every run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.cluster.union_find import find_root, unite
from epsjoin.kernels.distances import (
    BY_AXIS,
    EUCLIDEAN,
    OF_PLACES,
    Decision,
    are_surely_beyond,
    decide,
    latitude_cosine,
)
from epsjoin.kernels.neighbours.boxes import DEPTH, BoxTree, child_gaps, leaf_room, leaf_values, shape_of
from epsjoin.kernels.neighbours.tree import least_distance, reach

_LEAST = 5e-324
"""The smallest number: more than a distance / alpha is rounded by where a float64 has few digits."""


class Forest(NamedTuple):
    """The components of n points, and what is known of the edges that leave them.

    Parameters
    ----------
    left, right, weight : (n - 1,) the edges that were found, ``left < right``, in no order.
    parent, component : (n,) int64, the parent of each row in a forest of union-find, and its root; at first
        the row itself.
    lightest, low, high : (n,) the lightest edge that leaves each component, by the component's root: its
        weight, its smaller and its larger row.
    partner, reached : (n,) the lightest edge of each row that was seen: the other row, at first -1, and the
        weight.
    known : (n,) float64, no edge that leaves the row's component from this row is lighter; at first 0.
    below : (nodes,) int64, the component of all points below each node, -1 where they are of several.
    least_core : (nodes,) float64, the least core distance below each node; at first infinite.
    """

    left: Ints
    right: Ints
    weight: Floats
    parent: Ints
    component: Ints
    lightest: Floats
    low: Ints
    high: Ints
    partner: Ints
    reached: Floats
    known: Floats
    below: Ints
    least_core: Floats


@njit
def least_cores(tree: BoxTree, core: Floats, least: Floats) -> None:
    """Write the least core distance below each node."""
    n, n_nodes = tree.order.size, tree.low.shape[0]
    n_leaves = (n_nodes + 1) // 2
    for node in range(n_nodes - 1, -1, -1):
        if node < n_leaves - 1:
            least[node] = min(least[2 * node + 1], least[2 * node + 2])
        else:
            leaf = node - (n_leaves - 1)
            for place in range(n * leaf // n_leaves, n * (leaf + 1) // n_leaves):
                least[node] = min(least[node], core[tree.order[place]])


@njit
def _components_below(tree: BoxTree, component: Ints, below: Ints) -> None:
    """Write the component of all points below each node; -1 where they are of several."""
    n, n_nodes = tree.order.size, tree.low.shape[0]
    n_leaves = (n_nodes + 1) // 2
    for node in range(n_nodes - 1, -1, -1):
        if node < n_leaves - 1:
            left, right = below[2 * node + 1], below[2 * node + 2]
            below[node] = left if left == right else -1
        else:
            leaf = node - (n_leaves - 1)
            begin = n * leaf // n_leaves
            below[node] = component[tree.order[begin]]
            for place in range(begin + 1, n * (leaf + 1) // n_leaves):
                if component[tree.order[place]] != below[node]:
                    below[node] = -1


@njit
def is_lighter(weight: float, one: int, other: int, than: float, first: int, second: int) -> bool:
    """Whether an edge comes before another: by weight, then by its smaller and its larger row."""
    if weight != than:
        return weight < than
    low, high = min(one, other), max(one, other)
    return low < first or (low == first and high < second)


@njit
def _begin_round(tree: BoxTree, forest: Forest) -> None:
    """Forget the lightest edges of all components but those that were seen and still leave one."""
    _components_below(tree, forest.component, forest.below)
    lightest, low, high, component = forest.lightest, forest.low, forest.high, forest.component
    n = component.size
    lightest[:] = np.inf
    low[:] = n
    high[:] = n
    for row in range(n):
        mine, other, weight = component[row], forest.partner[row], forest.reached[row]
        if other >= 0 and component[other] != mine:
            if is_lighter(weight, row, other, lightest[mine], low[mine], high[mine]):
                lightest[mine], low[mine], high[mine] = weight, min(row, other), max(row, other)


@njit
def _end_round(forest: Forest, found: int) -> int:
    """Take the lightest edge of each component; return the number of all edges."""
    parent, component, low, high = forest.parent, forest.component, forest.low, forest.high
    for root in range(component.size):
        if component[root] == root and find_root(parent, low[root]) != find_root(parent, high[root]):
            unite(parent, low[root], high[root])
            forest.left[found], forest.right[found] = low[root], high[root]
            forest.weight[found] = forest.lightest[root]
            found += 1
    for row in range(component.size):
        component[row] = find_root(parent, row)
    return found


@njit
def grow_forest(
    decision: Decision,
    norm: int,
    tree: BoxTree,
    points: Floats,
    embedded: Floats,
    core: Floats,
    alpha: float,
    forest: Forest,
    found: int,
    begin: int,
    at_once: float,
) -> tuple[int, int, float]:
    """Continue a round of the search for the minimum spanning tree under mutual reachability.

    Parameters
    ----------
    decision : the metric's, with an infinite bound.
    norm : see :attr:`epsjoin.local.metric.Metric.norm`.
    tree : over the points.
    points, embedded : (n, d) and (n, e) float64, in the order of their rows; n at least 1.
    core : (n,) float64, core distances.
    alpha : distances, but not core distances, are divided by it; above 0.
    forest : written.
    found : number of its edges.
    begin : place in the tree's order of the row to begin with; 0 at the beginning of a round.
    at_once : number of comparisons of two points after which the search pauses.

    Returns
    -------
    found : number of edges.
    begin : place of the row to go on with.
    compared : number of comparisons.

    Notes
    -----
    There are at most log2(n) rounds; O(n) memory. It returns only numbers: were Ctrl-C pressed while numba
    makes arrays of a result, a ``SystemError`` would be raised instead of a ``KeyboardInterrupt``.
    """
    order, places, tree_low, tree_high = tree.order, tree.places, tree.low, tree.high
    n, (n_leaves, levels) = order.size, shape_of(tree_low)
    flat, metric = places.reshape(-1), decision.metric
    is_by_axis, are_places = metric in BY_AXIS, metric in OF_PLACES
    least = least_distance(metric, decision.p, points.shape[1])
    values = np.empty(leaf_room(n, n_leaves))
    nodes, gaps = np.empty(DEPTH, np.int64), np.empty(DEPTH)
    component, lightest, low, high = forest.component, forest.lightest, forest.low, forest.high
    partner, reached, known = forest.partner, forest.reached, forest.known
    below, least_core = forest.below, forest.least_core
    compared = 0.0
    if begin == 0:
        _begin_round(tree, forest)
    for start in range(begin, n):
        row = order[start]
        mine = component[row]
        if max(core[row], known[row]) > lightest[mine]:
            continue
        if compared > at_once:
            return found, start, compared
        limit = reach(metric, norm, (lightest[mine] + _LEAST) * alpha, least)
        cosine = latitude_cosine(metric, points, row) if are_places else 0.0
        nodes[0] = 0
        gaps[0] = 0.0
        waiting = 1
        while waiting > 0:
            waiting -= 1
            node = nodes[waiting]
            if below[node] == mine or gaps[waiting] > limit or least_core[node] > lightest[mine]:
                continue
            if node < n_leaves - 1:
                near, far = 2 * node + 1, 2 * node + 2
                near_gap, far_gap = child_gaps(norm, embedded, row, tree_low, tree_high, node)
                if far_gap < near_gap:
                    near, far = far, near
                    near_gap, far_gap = far_gap, near_gap
                nodes[waiting], gaps[waiting] = far, far_gap
                nodes[waiting + 1], gaps[waiting + 1] = near, near_gap
                waiting += 2
                continue
            leaf = node - (n_leaves - 1)
            first = n * leaf >> levels
            size = (n * (leaf + 1) >> levels) - first
            compared += size
            if is_by_axis:
                leaf_values(metric, points, row, flat, first, size, values, limit)
            elif are_places:
                most = (lightest[mine] + _LEAST) * alpha
                for j in range(size):
                    if are_surely_beyond(metric, points, row, places, first + j, cosine, most):
                        values[j] = np.inf
                    else:
                        values[j] = decide(decision, points, row, places, first + j)
            else:
                for j in range(size):
                    values[j] = decide(decision, points, row, places, first + j)
            for j in range(size):
                other = order[first + j]
                if is_by_axis and values[j] > limit:
                    continue
                if component[other] == mine or core[other] > lightest[mine]:
                    continue
                distance = np.sqrt(values[j]) if metric == EUCLIDEAN else values[j]
                heavy = max(distance / alpha, core[row], core[other])
                if is_lighter(heavy, row, other, lightest[mine], low[mine], high[mine]):
                    lightest[mine], low[mine], high[mine] = heavy, min(row, other), max(row, other)
                    partner[row], reached[row] = other, heavy
                    limit = reach(metric, norm, (heavy + _LEAST) * alpha, least)
        known[row] = lightest[mine]  # it has no lighter edge, now or when its component has grown
    return _end_round(forest, found), 0, compared
