"""DBSCAN of rows whose pairs come batch by batch, of which few are kept.

1. *Degrees* grow with every batch. Without negative weights they never fall, so a point that has reached
   ``min_pts`` stays core.
2. A pair of two points that are known to be core unites their clusters at once and is dropped. Any other pair
   waits until it is known whether its points are core. One end of a waiting pair has fewer than ``min_pts``
   points so far, so each point is that end of at most ``min_pts - 2`` waiting pairs: there are at most
   ``n (min_pts - 2)``, however dense the data is.
3. After the last batch the roles are final. A waiting pair of two core points unites their clusters. One with
   a single core point is a candidate for the other end, a *border* point, which takes its nearest core
   point. All others are dropped.

The clusters are those of :mod:`epsjoin.local.cluster.from_pairs`, which works on parts of stored pairs.

References
----------
Ester, Kriegel, Sander, Xu: A density-based algorithm for discovering clusters, KDD 1996, definitions 1-6.
Departure: there a border point within eps of several clusters goes to the one found first; here to that of
its nearest core point, so that labels depend on nothing but the points and their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.cluster import density
from epsjoin.kernels.cluster.density import EndPairs, Ends
from epsjoin.local.cluster.equal_rows import EqualRows
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.vocabulary import NOISE


class Dbscan(NamedTuple):
    """Clusters of points, in the order of the points; made by :func:`epsjoin.dbscan`.

    Parameters
    ----------
    labels : (n,) int64, the cluster of each point, ``NOISE`` (-1) for noise. Clusters are 0, 1, ... in the
        order of their smallest core row.
    is_core : (n,) bool, whether the point is a core point.
    degree : (n,) int64, number of points within eps, the point itself included; with sample weights (n,)
        float64, the sum of their weights.
    """

    labels: Ints
    is_core: Bools
    degree: Ints | Floats


def cluster_rows(
    batches: Iterable[Pairs],
    n: int,
    min_pts: int,
    sample_weight: Floats | None = None,
    equal: EqualRows | None = None,
) -> Dbscan:
    """Cluster points that are numbered as rows, from all pairs within eps.

    Parameters
    ----------
    batches : the pairs of rows, each once, in any order; a batch is released before the next one comes.
    n : number of points.
    min_pts : see :func:`epsjoin.dbscan`.
    sample_weight : (n,) float64, finite; None: 1 for each point.
    equal : groups of equal points; the rows in the pairs are then numbers of groups. None: there are none.

    Returns
    -------
    Dbscan
        The same for the same pairs, in whatever order and batches they come.

    Notes
    -----
    See :func:`epsjoin.dbscan`.
    """
    degrees: _Counts | _Sizes | _Weights
    if sample_weight is not None:
        degrees = _Weights(sample_weight, min_pts, equal)
    elif equal is None:
        degrees = _Counts(n, min_pts)
    else:
        degrees = _Sizes(equal.sizes, min_pts)
    n_rows = len(degrees.is_core)
    parent = np.arange(n_rows)
    waiting: list[EndPairs] = []  # of which at least one end is not known to be core
    for pairs in batches:
        degrees.add(pairs)
        # After all degrees of the batch have grown.
        waiting.append(_unite(EndPairs(*pairs), degrees.is_core, parent))
    degree, is_core = degrees.final()
    home, home_distance = np.full(n_rows, NOISE), np.full(n_rows, np.inf)
    for waited in waiting:
        others = _unite(waited, is_core, parent)
        density.find_nearest_cores(others, is_core, home, home_distance)
    labels = density.number_clusters(parent, is_core, home)
    if equal is not None:  # the first of equal points stands for all, also where the smallest row decides
        labels, is_core, degree = labels[equal.group], is_core[equal.group], degree[equal.group]
    return Dbscan(labels, is_core, degree)


class _Counts:
    """Degrees that grow with each batch of pairs, and the points that are core whatever follows."""

    def __init__(self, n: int, min_pts: int) -> None:
        self.min_pts = min_pts
        self.degree = np.ones(n, dtype=np.int64)
        self.is_core = self.degree >= min_pts

    def add(self, pairs: Pairs) -> None:
        density.count_ends(pairs.left, pairs.right, self.min_pts, self.degree, self.is_core)

    def final(self) -> tuple[Ints, Bools]:
        return self.degree, self.is_core


class _Sizes:
    """Degrees of rows that stand for some equal points each, as :class:`_Counts`."""

    def __init__(self, sizes: Ints, min_pts: int) -> None:
        self.min_pts, self.sizes = min_pts, sizes
        self.degree = sizes.copy()
        self.is_core = self.degree >= min_pts

    def add(self, pairs: Pairs) -> None:
        density.add_sizes(pairs.left, pairs.right, self.sizes, self.min_pts, self.degree, self.is_core)

    def final(self) -> tuple[Ints, Bools]:
        return self.degree, self.is_core


class _Weights:
    """Degrees that are sums of weights, and the points that are core whatever follows."""

    def __init__(self, weight: Floats, min_pts: int, equal: EqualRows | None) -> None:
        self.min_pts = min_pts
        # With a negative weight, sums may fall again.
        self.core_at = math.inf if (weight < 0).any() else float(min_pts)
        self.weight, self.weight_rest = weight, np.zeros(weight.size)
        if equal is not None:
            self.weight, self.weight_rest = np.zeros(len(equal.sizes)), np.zeros(len(equal.sizes))
            density.sum_weights(equal.group, weight, self.weight, self.weight_rest)
        self.degree, self.rest = self.weight.copy(), self.weight_rest.copy()
        self.is_core = self.degree + self.rest >= self.core_at

    def add(self, pairs: Pairs) -> None:
        of = self.weight, self.weight_rest, self.core_at, self.degree, self.rest, self.is_core
        density.add_weights(pairs.left, pairs.right, *of)

    def final(self) -> tuple[Floats, Bools]:
        degree = self.degree + self.rest
        return degree, self.is_core | (degree >= self.min_pts)  # a point that was united as core stays core


def _unite(pairs: EndPairs, is_core: Bools, parent: Ints) -> EndPairs:
    """Unite the clusters of pairs of core points; return the other pairs, in the smallest type for rows."""
    m = len(pairs.left)
    others = EndPairs(_empty_rows(parent.size, m), _empty_rows(parent.size, m), np.empty(m))
    size = density.unite_cores(pairs, is_core, parent, others)
    left, right, distance = others
    return EndPairs(left[:size].copy(), right[:size].copy(), distance[:size].copy())


def _empty_rows(n: int, m: int) -> Ends:
    return np.empty(m, np.int32) if n <= np.iinfo(np.int32).max else np.empty(m, np.int64)
