"""How many points are within eps of a query, by a tree of boxes.

A box beyond eps is left out. A box that lies within eps as a whole is counted without a look at its points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import CHEBYSHEV, EUCLIDEAN, MANHATTAN, Decision, decide
from epsjoin.kernels.join.projection import MAXIMUM, SQUARES
from epsjoin.kernels.neighbours.tree import LEAF_POINTS, BoxTree

DEPTH = 128
"""Maximum number of boxes that wait: one for each level of the tree, and one."""

_QUERIES_IN_BOX = 16
"""Number of queries that are counted for together."""


class Reach(NamedTuple):
    """What is within eps of a query, in embedded coordinates.

    Parameters
    ----------
    norm : see :attr:`epsjoin.local.metric.Metric.norm`.
    near : a box farther than this, by the norm, is beyond eps.
    whole : a box whose farthest place is at most this far is within eps as a whole; -1 where none is sure.
    """

    norm: int
    near: float
    whole: float


@njit
def _farthest(norm: int, low: Floats, high: Floats, at: int, tree: BoxTree, node: int) -> float:
    """The differences between the farthest places of a box and a node's: squares, sum or maximum."""
    total = 0.0
    for i in range(low.shape[1]):
        gap = max(high[at, i] - tree.low[node, i], tree.high[node, i] - low[at, i])
        if norm == SQUARES:
            total += gap * gap
        elif norm == MAXIMUM:
            total = max(total, gap)
        else:
            total += gap
    return total


@njit
def box_gap(
    norm: int, low: Floats, high: Floats, at: int, node_low: Floats, node_high: Floats, node: int
) -> float:
    """The differences between the nearest places of two boxes."""
    total = 0.0
    for i in range(low.shape[1]):
        gap = max(low[at, i] - node_high[node, i], node_low[node, i] - high[at, i], 0.0)
        if norm == SQUARES:
            total += gap * gap
        elif norm == MAXIMUM:
            total = max(total, gap)
        else:
            total += gap
    return total


@njit
def _count_below(n: int, n_leaves: int, node: int) -> int:
    """Number of points below a node."""
    first = node
    last = node
    while first < n_leaves - 1:
        first = 2 * first + 1
        last = 2 * last + 2
    return n * (last - n_leaves + 2) // n_leaves - n * (first - n_leaves + 1) // n_leaves


@njit
def leaf_sums(
    metric: int, queries: Floats, number: int, places: Floats, begin: int, size: int, values: Floats
) -> None:
    """Write the sums (or maxima) of a query and the points of a leaf, which stand axis by axis.

    Column by column, as :func:`epsjoin.kernels.distances.decide` adds: the same bits.
    """
    d = queries.shape[1]
    for j in range(size):
        values[j] = 0.0
    for i in range(d):
        value = queries[number, i]
        first = begin * d + i * size
        if metric == EUCLIDEAN:
            for j in range(size):
                difference = value - places[first + j]
                values[j] += difference * difference
        elif metric == MANHATTAN:
            for j in range(size):
                values[j] += abs(value - places[first + j])
        else:
            for j in range(size):
                values[j] = max(values[j], abs(value - places[first + j]))


@njit
def _count_in_leaf(
    decision: Decision, tree: BoxTree, leaf: int, queries: Floats, number: int, values: Floats
) -> tuple[int, int]:
    """Number of points of a leaf, and of those within eps of a query; no root is taken."""
    n = tree.order.size
    n_leaves = (tree.low.shape[0] + 1) // 2
    begin = n * leaf // n_leaves
    size = n * (leaf + 1) // n_leaves - begin
    within = 0
    if decision.metric in (EUCLIDEAN, MANHATTAN, CHEBYSHEV):
        leaf_sums(decision.metric, queries, number, tree.places.reshape(-1), begin, size, values)
        for j in range(size):
            within += values[j] <= decision.bound
    else:
        for j in range(size):
            within += decide(decision, queries, number, tree.places, begin + j) >= 0.0
    return size, within


@njit
def count_within_tree(
    decision: Decision,
    reach: Reach,
    tree: BoxTree,
    queries: Floats,
    embedded: Floats,
    rows: Ints,
    counts: Ints,
) -> int:
    """Add to ``counts`` how many points of a tree are within eps of queries.

    Parameters
    ----------
    decision : the metric's, "within eps".
    reach : of eps.
    tree : the tree.
    queries, embedded : (m, d) and (m, e) float64; those that follow one another should be near one another.
    rows : (m,) int64, the place of each query in ``counts``.
    counts : int64; modified.

    Returns
    -------
    int
        The number of points that were compared.

    Notes
    -----
    Some queries at a time walk down the tree as one box; at a leaf each looks for itself.
    """
    m, e = embedded.shape
    n, n_leaves = tree.order.size, (tree.low.shape[0] + 1) // 2
    low, high = np.empty((1, e)), np.empty((1, e))
    values = np.empty(LEAF_POINTS)
    nodes = np.empty(DEPTH, np.int64)
    compared = 0
    for first in range(0, m, _QUERIES_IN_BOX):
        end = min(m, first + _QUERIES_IN_BOX)
        for i in range(e):
            low[0, i] = embedded[first:end, i].min()
            high[0, i] = embedded[first:end, i].max()
        of_all = 0
        nodes[0] = 0
        waiting = 1
        while waiting > 0:
            waiting -= 1
            node = nodes[waiting]
            if box_gap(reach.norm, low, high, 0, tree.low, tree.high, node) > reach.near:
                continue
            if _farthest(reach.norm, low, high, 0, tree, node) <= reach.whole:
                of_all += _count_below(n, n_leaves, node)
            elif node < n_leaves - 1:
                nodes[waiting] = 2 * node + 1
                nodes[waiting + 1] = 2 * node + 2
                waiting += 2
            else:
                leaf = node - (n_leaves - 1)
                for number in range(first, end):
                    gap = box_gap(reach.norm, embedded, embedded, number, tree.low, tree.high, node)
                    if gap > reach.near:
                        continue
                    if _farthest(reach.norm, embedded, embedded, number, tree, node) <= reach.whole:
                        counts[rows[number]] += _count_below(n, n_leaves, node)
                        continue
                    size, within = _count_in_leaf(decision, tree, leaf, queries, number, values)
                    compared += size
                    counts[rows[number]] += within
        for number in range(first, end):
            counts[rows[number]] += of_all
    return compared
