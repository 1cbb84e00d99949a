"""The k nearest points of queries by a tree of boxes over the points, in threads."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import CHEBYSHEV, EUCLIDEAN, MANHATTAN
from epsjoin.kernels.neighbours.heaps import NearestLists
from epsjoin.kernels.neighbours.tree import BoxTree, count_leaves, fill_leaves, order_by_leaf, search_tree
from epsjoin.local.metric import Metric

_QUERIES_AT_ONCE = 4096
"""Number of queries that a thread searches for before it takes the next ones."""


def grow_tree(points: Floats, metric: Metric, n_jobs: int = 1) -> BoxTree:
    """Grow the tree of points.

    Parameters
    ----------
    points : (n, d) float64, at least one, for which the metric is defined; not modified.
    metric : the metric of the distances.
    n_jobs : number of threads. The tree is the same for any number.

    Notes
    -----
    O(n log n). The tree takes the bytes of the points and 8 for each, and some 16 / 24 of them in boxes.
    """
    embedded = read_only(metric.embed(points))
    n, n_leaves = len(points), count_leaves(len(points))
    order, values = np.arange(n), np.empty(n)
    n_inner = n_leaves - 1
    top = min(n_inner, (1 << (n_jobs - 1).bit_length()) - 1)
    order_by_leaf(embedded, n_leaves, 0, top, order, values)

    def work(node: int) -> None:
        order_by_leaf(embedded, n_leaves, node, n_inner, order, values)

    with ThreadPoolExecutor(n_jobs, "epsjoin") as threads:
        list(threads.map(work, range(top, 2 * top + 1)))
    tree = BoxTree(
        order,
        np.empty(points.shape),
        *(np.empty((2 * n_leaves - 1, embedded.shape[1])) for _ in range(2)),
    )
    is_by_axis = metric.decision(math.inf).metric in (EUCLIDEAN, MANHATTAN, CHEBYSHEV)
    fill_leaves(embedded, read_only(points), is_by_axis, *tree)
    return BoxTree(read_only(tree.order), read_only(tree.places), read_only(tree.low), read_only(tree.high))


def has_leaf_of_equal(tree: BoxTree) -> bool:
    """Whether all points of some leaf are equal, as where many points are."""
    n_leaves = (len(tree.low) + 1) // 2
    first = n_leaves - 1
    return n_leaves > 1 and bool((tree.low[first:] == tree.high[first:]).all(axis=1).any())


def make_lists(n: int, k: int) -> NearestLists:
    """Make empty lists of n queries, for k neighbours each."""
    return NearestLists(np.zeros(n, np.int64), np.empty((n, k), np.int64), np.zeros((n, k)))


def search(
    tree: BoxTree,
    names: Ints,
    queries: Floats,
    itself: Ints,
    lists: NearestLists,
    metric: Metric,
    n_jobs: int = 1,
) -> int:
    """Put the points of the tree into the lists of the queries; see :func:`search_tree`.

    Returns
    -------
    int
        The number of points that were compared.
    """
    names, itself = read_only(names), read_only(itself)
    queries, embedded = read_only(queries), read_only(metric.embed(queries))
    decision, norm = metric.decision(math.inf), metric.norm

    def work(first: int) -> int:
        last = min(first + _QUERIES_AT_ONCE, len(queries))
        return search_tree(decision, norm, tree, names, queries, embedded, itself, first, last, lists)

    with ThreadPoolExecutor(n_jobs, "epsjoin") as threads:
        return sum(threads.map(work, range(0, len(queries), _QUERIES_AT_ONCE)))
