"""The minimum spanning tree of points under mutual reachability, by rounds over a tree of boxes.

The *mutual reachability* of two points is the largest of their distance and their core distances. In a round
each component finds its lightest edge to a point outside of it (Borůvka). A box that is beyond the lightest
edge so far, or holds points of the same component alone, is left out. Of edges as light that with the
smallest rows is the lightest one, so that no round closes a circle and the tree is the same on every run.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.cluster.union_find import find_root, unite
from epsjoin.kernels.distances import BY_AXIS, EUCLIDEAN, Decision, decide
from epsjoin.kernels.neighbours.boxes import DEPTH, BoxTree, child_gaps, leaf_room, leaf_values, shape_of
from epsjoin.kernels.neighbours.tree import least_distance, reach


@njit
def _least_cores(tree: BoxTree, core: Floats) -> Floats:
    """The least core distance below each node."""
    n, n_nodes = tree.order.size, tree.low.shape[0]
    n_leaves = (n_nodes + 1) // 2
    least = np.full(n_nodes, np.inf)
    for node in range(n_nodes - 1, -1, -1):
        if node < n_leaves - 1:
            least[node] = min(least[2 * node + 1], least[2 * node + 2])
        else:
            leaf = node - (n_leaves - 1)
            for place in range(n * leaf // n_leaves, n * (leaf + 1) // n_leaves):
                least[node] = min(least[node], core[tree.order[place]])
    return least


@njit
def _components_below(tree: BoxTree, component: Ints, below: Ints) -> None:
    """Write the one component of the points below each node; -1 where they are of several."""
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
def spanning_tree(
    decision: Decision,
    norm: int,
    tree: BoxTree,
    points: Floats,
    embedded: Floats,
    core: Floats,
    alpha: float,
    most: float,
) -> tuple[Ints, Ints, Floats, bool]:
    """Find the edges of the minimum spanning tree under mutual reachability.

    Parameters
    ----------
    decision : the metric's, with an infinite bound.
    norm : see :attr:`epsjoin.local.metric.Metric.norm`.
    tree : over the points.
    points, embedded : (n, d) and (n, e) float64, in the order of their rows; n at least 1.
    core : (n,) float64, core distances.
    alpha : distances, but not core distances, are divided by it; above 0.
    most : number of comparisons of two points after which the search is given up.

    Returns
    -------
    left, right, weight : (n - 1,) each, ``left < right``, in no order.
    is_whole : whether these are all edges; if not, they have no meaning.

    Notes
    -----
    At most log2(n) rounds; O(n) memory.
    """
    order, places, tree_low, tree_high = tree.order, tree.places, tree.low, tree.high
    n, n_nodes, (n_leaves, levels) = order.size, tree_low.shape[0], shape_of(tree_low)
    flat, metric = places.reshape(-1), decision.metric
    is_by_axis = metric in BY_AXIS
    least = least_distance(metric, decision.p)
    values = np.empty(leaf_room(n, n_leaves))
    least_core = _least_cores(tree, core)
    below = np.empty(n_nodes, np.int64)
    parent, component = np.arange(n), np.arange(n)
    lightest, low, high = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    left, right, weight = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1)
    nodes, gaps = np.empty(DEPTH, np.int64), np.empty(DEPTH)
    partner, known = np.full(n, -1), np.zeros(n)
    reached = np.full(n, np.inf)
    found, compared = 0, 0
    while found < n - 1:
        _components_below(tree, component, below)
        lightest[:] = np.inf
        low[:] = n
        high[:] = n
        for row in range(n):  # what earlier rounds have found is mostly still there
            mine, other = component[row], partner[row]
            if other >= 0 and component[other] != mine:
                if is_lighter(reached[row], row, other, lightest[mine], low[mine], high[mine]):
                    lightest[mine], low[mine], high[mine] = reached[row], min(row, other), max(row, other)
        for start in range(n):
            row = order[start]
            mine = component[row]
            if max(core[row], known[row]) > lightest[mine]:
                continue
            if compared > most:
                return left, right, weight, False
            limit = reach(metric, norm, lightest[mine] * alpha, least)
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
                begin = n * leaf >> levels
                size = (n * (leaf + 1) >> levels) - begin
                compared += size
                if is_by_axis:
                    leaf_values(metric, points, row, flat, begin, size, values, limit)
                else:
                    for j in range(size):
                        values[j] = decide(decision, points, row, places, begin + j)
                for j in range(size):
                    other = order[begin + j]
                    if is_by_axis and values[j] > limit:
                        continue
                    if component[other] == mine or core[other] > lightest[mine]:
                        continue
                    distance = np.sqrt(values[j]) if metric == EUCLIDEAN else values[j]
                    heavy = max(distance / alpha, core[row], core[other])
                    if is_lighter(heavy, row, other, lightest[mine], low[mine], high[mine]):
                        lightest[mine], low[mine], high[mine] = heavy, min(row, other), max(row, other)
                        partner[row], reached[row] = other, heavy
                        limit = reach(metric, norm, heavy * alpha, least)
            known[row] = lightest[mine]  # it has no lighter edge, now or when its component has grown
        for root in range(n):
            if component[root] == root and find_root(parent, low[root]) != find_root(parent, high[root]):
                unite(parent, low[root], high[root])
                left[found], right[found], weight[found] = low[root], high[root], lightest[root]
                found += 1
        for row in range(n):
            component[row] = find_root(parent, row)
    return left, right, weight, True
