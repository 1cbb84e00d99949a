"""How many points are within eps of a query, by a tree of boxes.

A box beyond eps is left out. A box that lies within eps as a whole is counted without a look at its points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_inner
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import BY_AXIS, Decision, decide
from epsjoin.kernels.neighbours.boxes import (
    DEPTH,
    BoxTree,
    add_gap,
    box_gap,
    leaf_room,
    leaf_values,
    shape_of,
)

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


@njit_inner
def _farthest(norm: int, low: Floats, high: Floats, at: int, tree: BoxTree, node: int) -> float:
    """Add up the differences between the farthest places of a box and a node's: squares, sum or maximum."""
    total = 0.0
    for i in range(low.shape[1]):
        total = add_gap(norm, total, max(high[at, i] - tree.low[node, i], tree.high[node, i] - low[at, i]))
    return total


@njit_inner
def _count_below(n: int, n_leaves: int, node: int) -> int:
    """Number of points below a node."""
    first = node
    last = node
    while first < n_leaves - 1:
        first = 2 * first + 1
        last = 2 * last + 2
    return n * (last - n_leaves + 2) // n_leaves - n * (first - n_leaves + 1) // n_leaves


@njit_inner
def _count_in_leaf(
    decision: Decision,
    places: Floats,
    flat: Floats,
    begin: int,
    size: int,
    queries: Floats,
    number: int,
    values: Floats,
) -> int:
    """Count the points of a leaf within eps of a query; no root is taken."""
    within = 0
    if decision.metric in BY_AXIS:
        leaf_values(decision.metric, queries, number, flat, begin, size, values, decision.bound)
        for j in range(size):
            within += values[j] <= decision.bound
    else:
        for j in range(size):
            within += decide(decision, queries, number, places, begin + j) >= 0.0
    return within


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
    reach : the reach of eps.
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
    Some queries at a time go down the tree as one box; at a leaf each is compared on its own.
    """
    m, e = embedded.shape
    n, (n_leaves, levels) = tree.order.size, shape_of(tree.low)
    flat = tree.places.reshape(-1)
    low, high = np.empty((1, e)), np.empty((1, e))
    values = np.empty(leaf_room(n, n_leaves))
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
                begin = n * leaf >> levels
                n_points = (n * (leaf + 1) >> levels) - begin
                for number in range(first, end):
                    gap = box_gap(reach.norm, embedded, embedded, number, tree.low, tree.high, node)
                    if gap > reach.near:
                        continue
                    if _farthest(reach.norm, embedded, embedded, number, tree, node) <= reach.whole:
                        counts[rows[number]] += n_points
                        continue
                    counts[rows[number]] += _count_in_leaf(
                        decision, tree.places, flat, begin, n_points, queries, number, values
                    )
                    compared += n_points
        for number in range(first, end):
            counts[rows[number]] += of_all
    return compared
