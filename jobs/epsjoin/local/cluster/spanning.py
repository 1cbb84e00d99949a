"""The minimum spanning tree under mutual reachability: by a tree of boxes, or by the distances of all pairs.

Each call of a kernel searches only for some time, and returns only numbers, so that an interrupt from the
keyboard is noticed between two calls.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.cluster.dense_tree import Outside, grow_dense_tree
from epsjoin.kernels.cluster.spanning_tree import Forest, grow_forest, least_cores
from epsjoin.kernels.distances import BY_AXIS
from epsjoin.kernels.neighbours.boxes import BoxTree
from epsjoin.kernels.sorting import lexsort
from epsjoin.local.cluster.equal_rows import EqualRows, find_equal_rows
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.knn import k_distance
from epsjoin.local.neighbours.tree import grow_boxes, widen

Edges = tuple[Ints, Ints, Floats]
"""Rows, the smaller one first, and weights, in no order."""

_AT_ONCE = 1 << 24
"""Approximate number of coordinates that one call of a kernel compares."""

_FEW_ROWS, _FEW_WIDE_ROWS, _WIDE = 512, 2048, 16
"""Number of rows up to which all pairs are compared at once; the same from ``_WIDE`` dimensions on."""
_MAX_COMPARED = 1 / 4
"""Fraction of n² comparisons after which a tree of boxes is given up: half of all pairs."""


class SpanningTree(NamedTuple):
    """The edges of a minimum spanning tree, the lightest first, edges of equal weight by their rows.

    Parameters
    ----------
    left, right : (n - 1,) int64, rows, ``left < right``.
    weight : (n - 1,) float64, the mutual reachability of the two.

    Examples
    --------
    >>> from epsjoin import hdbscan
    >>> tree = hdbscan([[0.0], [1.0], [5.0]], 2, min_samples=1).tree
    >>> tree.left.tolist(), tree.right.tolist(), tree.weight.tolist()
    ([0, 1], [1, 2], [1.0, 4.0])
    """

    left: Ints
    right: Ints
    weight: Floats


def core_distances(points: Floats, min_samples: int, metric: Metric, *, n_jobs: int | None = 1) -> Floats:
    """Find the distance of each point to its ``min_samples``-th nearest, itself included.

    Parameters
    ----------
    points : (n, d) float64, for which the metric is defined.
    min_samples, metric, n_jobs : see :func:`epsjoin.hdbscan`.
    """
    if min_samples == 1:
        return np.zeros(len(points))
    return k_distance(points, min_samples - 1, metric, n_jobs=n_jobs)


def mutual_reachability_tree(
    points: Floats, core: Floats, metric: Metric, *, alpha: float = 1.0
) -> SpanningTree:
    """Find the minimum spanning tree of points under mutual reachability.

    Parameters
    ----------
    points : (n, d) float64, at least one, for which the metric is defined.
    core : (n,) float64, their core distances.
    metric, alpha : see :func:`epsjoin.hdbscan`.
    """
    equal = find_equal_rows(points)
    if equal is None:
        left, right, weight = _span(points, core, alpha, metric)
    else:
        firsts = equal.firsts
        i, j, weight = _span(points[firsts], core[firsts], alpha, metric)
        left, right, weight = _append_equal((firsts[i], firsts[j], weight), core, equal)
    order = lexsort((right, left, weight))
    return SpanningTree(left[order], right[order], weight[order])


def _append_equal(edges: Edges, core: Floats, equal: EqualRows) -> Edges:
    """Append to the edges of the first of equal points those of all others, which are leaves of the tree.

    An edge of a point and that of the first point equal to it to the same third point weigh the same, and the
    latter has the smaller rows. So a point that is not the first has a single edge, its lightest one, whose
    weight is its core distance: to the smallest row that is no farther. That is the first point equal to it,
    or a smaller one, and then the first point's own lightest edge, which is in the tree, leads there, too.
    """
    left, right, weight = edges
    smallest = np.arange(len(core))
    is_core = weight == core[right]  # to a smaller row, no farther than the larger row's core distance
    np.minimum.at(smallest, right[is_core], left[is_core])
    later = np.setdiff1d(np.arange(len(core)), equal.firsts, assume_unique=True)
    others = smallest[equal.firsts[equal.group[later]]]
    return (
        np.concatenate((left, others)),
        np.concatenate((right, later)),
        np.concatenate((weight, core[later])),
    )


def _span(points: Floats, core: Floats, alpha: float, metric: Metric) -> Edges:
    """Find the edges by a tree of boxes, or, if that tells little apart, by the distances of all pairs."""
    (n, d), decision, points = points.shape, metric.decision(math.inf), read_only(points)
    may_be_dense = decision.metric in BY_AXIS
    if not (may_be_dense and n <= (_FEW_WIDE_ROWS if d >= _WIDE else _FEW_ROWS)):
        most = _MAX_COMPARED * n * n if may_be_dense else math.inf
        tree = widen(grow_boxes(points, metric), metric)
        edges = span_by_boxes(points, core, alpha, metric, tree, most)
        if edges is not None:
            return edges
    return span_by_pairs(points, core, alpha, decision.metric)


def span_by_boxes(
    points: Floats, core: Floats, alpha: float, metric: Metric, tree: BoxTree, most: float
) -> Edges | None:
    """Find the edges by a tree of boxes; None if more than ``most`` pairs of points were compared.

    Parameters
    ----------
    points, core, alpha : see :func:`epsjoin.kernels.cluster.spanning_tree.grow_forest`.
    tree : over the points, its boxes widened.
    """
    (n, d), decision = points.shape, metric.decision(math.inf)
    of = decision, metric.norm, tree, points, read_only(metric.embed(points)), core, alpha
    forest = _plant(tree, core)
    found, begin, compared = 0, 0, 0.0
    while found < n - 1:
        at_once = min(_AT_ONCE / d, most - compared)  # a float, for which the kernel is compiled
        found, begin, more = grow_forest(*of, forest, found, begin, at_once)
        compared += more
        if compared > most:
            return None
    return forest.left, forest.right, forest.weight


def _plant(tree: BoxTree, core: Floats) -> Forest:
    """A forest in which each point is a tree of its own."""
    n, n_nodes = len(core), len(tree.low)
    least_core = np.full(n_nodes, np.inf)
    least_cores(tree, core, least_core)
    return Forest(
        left=np.empty(n - 1, np.int64),
        right=np.empty(n - 1, np.int64),
        weight=np.empty(n - 1),
        parent=np.arange(n),
        component=np.arange(n),
        lightest=np.empty(n),
        low=np.empty(n, np.int64),
        high=np.empty(n, np.int64),
        partner=np.full(n, -1),
        reached=np.full(n, np.inf),
        known=np.zeros(n),
        below=np.empty(n_nodes, np.int64),
        least_core=least_core,
    )


def span_by_pairs(points: Floats, core: Floats, alpha: float, metric: int) -> Edges:
    """Find the edges by the distances of all pairs.

    Parameters
    ----------
    points, core, alpha, metric : see :func:`epsjoin.kernels.cluster.dense_tree.grow_dense_tree`.
    """
    n_edges, d = len(points) - 1, points.shape[1]
    outside = Outside(
        rows=np.arange(1, n_edges + 1),
        cores=core[1:].copy(),
        flat=points[1:].T.flatten(),
        lightest=np.full(n_edges, np.inf),
        partner=np.full(n_edges, n_edges + 1),
        values=np.empty(n_edges),
    )
    edges = np.empty(n_edges, np.int64), np.empty(n_edges, np.int64), np.empty(n_edges)
    newest, step = 0, max(1, _AT_ONCE // max(1, n_edges * d))
    for begin in range(0, n_edges, step):
        end = min(begin + step, n_edges)
        newest = grow_dense_tree(metric, points, core, alpha, outside, *edges, newest, begin, end)
    return edges
