"""Union-find on dense numbers: the trees of a forest, named by their smallest node."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Ints, Ints32

Rows = Ints | Ints32


@njit
def find_root(parent: Rows, node: int) -> int:
    """Find the root of the tree of ``node``; every second node on the way is moved up (path halving).

    Parameters
    ----------
    parent : (n,) int64 or int32, ``parent[i] <= i``, ``parent[i] == i`` for roots; modified, the sets stay.
    node : 0 <= node < n.
    """
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@njit
def unite(parent: Rows, one: int, other: int) -> bool:
    """Join the trees of two nodes under the smaller root; return whether they were two trees before.

    Parameters
    ----------
    parent : (n,) int64 or int32 as in :func:`find_root`; modified.
    one, other : 0 <= one, other < n.
    """
    one = find_root(parent, one)
    other = find_root(parent, other)
    if one == other:
        return False
    if one < other:
        parent[other] = one
    else:
        parent[one] = other
    return True


@njit
def unite_all(parent: Rows, left: Rows, right: Rows) -> None:
    """Join the trees of the ends of every edge ``(left[i], right[i])``.

    Parameters
    ----------
    parent : (n,) int64 or int32 as in :func:`find_root`; modified.
    left, right : (n_edges,) nodes, in any order; loops and repeated edges do no harm.
    """
    for edge in range(left.size):
        unite(parent, left[edge], right[edge])


@njit
def flatten(parent: Rows) -> None:
    """Make the root of its tree the parent of every node."""
    # A parent is never larger than its node, so going up the numbers every parent is a root already.
    for node in range(parent.size):
        parent[node] = parent[parent[node]]


@njit
def forest(n_nodes: int, left: Ints, right: Ints) -> Ints:
    """Find the smallest node that each node is connected with by the edges ``(left[i], right[i])``.

    Parameters
    ----------
    n_nodes : number of nodes, numbered 0 to n_nodes - 1.
    left, right : (n_edges,) int64, the ends of the edges, in any order; loops and repeated edges do no harm.
        Not modified.

    Returns
    -------
    (n_nodes,) int64. ``root[i] <= i``, and ``root[i] == i`` where no smaller node is connected with i.

    Notes
    -----
    O((n_nodes + n_edges) log n_nodes) at worst, in practice linear: path halving alone bounds the cost;
    uniting by the smaller node instead of the smaller tree loses the inverse Ackermann bound, and
    gets names that depend on nothing but the sets.

    References
    ----------
    Tarjan, van Leeuwen: Worst-case analysis of set union algorithms, J. ACM 31 (1984): path halving.
    """
    parent = np.arange(n_nodes)
    unite_all(parent, left, right)
    flatten(parent)
    return parent
