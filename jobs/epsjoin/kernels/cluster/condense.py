"""From the edges of a spanning tree to clusters: single linkage, and those clusters that are large enough."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.cluster.union_find import find_root


class Condensed(NamedTuple):
    """The condensed tree: clusters that split, and points that fall out of them.

    Parameters
    ----------
    cluster : (n,) int64, the cluster that each point falls out of.
    at : (n,) float64, the density (1 / distance) at which the point falls out.
    parent : (c,) int64, the cluster that each cluster was split from, -1 for the first; parents come first.
    birth : (c,) float64, the density at which it was split from its parent, 0 for the first.
    split_at : (c,) float64, the distance at which it was split, infinite for the first; 1 / birth would be
        rounded twice.
    size : (c,) int64, points of each cluster at its birth.
    """

    cluster: Ints
    at: Floats
    parent: Ints
    birth: Floats
    split_at: Floats
    size: Ints


@njit
def link(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Join the points by edges, one after the other.

    Parameters
    ----------
    left, right : (n - 1,) rows of the edges of a tree, the lightest first.

    Returns
    -------
    children : (n - 1, 2) int64, the two nodes that each edge joins: points, or n + the number of an edge.
    size : (2 n - 1,) int64, points of each node.
    """
    n = left.size + 1
    children, size = np.empty((n - 1, 2), np.int64), np.ones(2 * n - 1, np.int64)
    parent, node = np.arange(n), np.arange(n)
    for i in range(n - 1):
        one, other = find_root(parent, left[i]), find_root(parent, right[i])
        children[i, 0] = node[one]
        children[i, 1] = node[other]
        size[n + i] = size[node[one]] + size[node[other]]
        root, child = min(one, other), max(one, other)
        parent[child] = root
        node[root] = n + i
    return children, size


@njit
def condense(children: Ints, size: Ints, weight: Floats, least: int) -> Condensed:
    """Follow the clusters from the largest down; a split into clusters of enough points makes new ones.

    Parameters
    ----------
    children, size : of :func:`link`.
    weight : (n - 1,) float64, the weights of the edges.
    least : number of points that make a cluster, at least 2.

    Notes
    -----
    Edges of equal weight are removed at once, so a cluster may split into more than two. Therefore every
    minimum spanning tree gives the same result: two points are together as long as a path of lighter edges
    joins them. Removed one by one, such edges would make clusters that last no time and depend on the order
    of the rows.
    """
    n = weight.size + 1
    cluster, at = np.zeros(n, np.int64), np.zeros(n)
    parent, birth, split_at, sizes = np.full(n, -1), np.zeros(n), np.full(n, np.inf), np.full(n, n)
    n_clusters = 1
    nodes, homes, falls = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    nodes[0], homes[0], falls[0] = 2 * n - 2, 0, -1.0
    waiting = 1 if n > 1 else 0
    while waiting > 0:
        waiting -= 1
        node, home, falling = nodes[waiting], homes[waiting], falls[waiting]
        if node < n:
            cluster[node] = home
            at[node] = falling
            continue
        # the pieces lie behind the nodes that wait; a piece whose top edge is as heavy is split further
        distance = weight[node - n]
        begin, end, done = waiting, waiting + 1, waiting
        n_large = 0
        while done < end:
            piece = nodes[done]
            if piece >= n and weight[piece - n] == distance:
                nodes[done] = children[piece - n, 0]
                nodes[end] = children[piece - n, 1]
                end += 1
                continue
            n_large += size[piece] >= least
            done += 1
        density = 1.0 / distance if distance > 0.0 else np.inf
        for waiting in range(begin, end):
            piece = nodes[waiting]
            homes[waiting], falls[waiting] = home, falling
            if falling < 0.0:
                if size[piece] < least:
                    falls[waiting] = density
                elif n_large > 1:
                    parent[n_clusters], sizes[n_clusters] = home, size[piece]
                    birth[n_clusters], split_at[n_clusters] = density, distance
                    homes[waiting] = n_clusters
                    n_clusters += 1
        waiting = end
    clusters = parent[:n_clusters], birth[:n_clusters], split_at[:n_clusters], sizes[:n_clusters]
    return Condensed(cluster, at, *clusters)
