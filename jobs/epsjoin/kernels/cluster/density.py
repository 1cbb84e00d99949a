"""DBSCAN on pairs that come in batches: the degrees of rows, and the unions of pairs of core rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit, njit_inner
from epsjoin.kernels.arrays import Bools, Floats, Ints, Ints32
from epsjoin.kernels.cluster.union_find import find_root, unite

Ends = Ints | Ints32


class EndPairs(NamedTuple):
    """Pairs by the rows of their ends.

    Parameters
    ----------
    left, right : (m,) int64 row numbers, or int32 below 2**31 points.
    distance : (m,) float64.
    """

    left: Ends
    right: Ends
    distance: Floats


@njit
def count_ends(left: Ends, right: Ends, core_at: int, degree: Ints, is_core: Bools) -> None:
    """Add the pairs to the degrees of both their ends.

    Parameters
    ----------
    left, right : (n_pairs,) rows, 0 to n - 1.
    core_at : degree that makes a row core.
    degree : (n,) int64, modified.
    is_core : (n,) bool, modified: set where the degree comes to ``core_at`` from below.
    """
    for i in range(left.size):
        for row in (left[i], right[i]):
            degree[row] += 1
            if degree[row] == core_at:
                is_core[row] = True


@njit
def add_sizes(left: Ends, right: Ends, sizes: Ints, core_at: int, degree: Ints, is_core: Bools) -> None:
    """Add to the degree of each end the number of points that the other stands for.

    Parameters
    ----------
    left, right, core_at, degree : see :func:`count_ends`.
    sizes : (n,) int64, at least 1.
    is_core : (n,) bool, modified: set where the degree is at least ``core_at``.
    """
    for i in range(left.size):
        for row, other in ((left[i], right[i]), (right[i], left[i])):
            degree[row] += sizes[other]
            if degree[row] >= core_at:
                is_core[row] = True


@njit_inner
def _add(total: Floats, rest: Floats, at: int, added: float) -> None:
    """Add a number to a sum, and the rounding error to its rest (theorem B): see :func:`add_weights`."""
    before = total[at]
    after = before + added
    part = after - before
    rest[at] += (before - (after - part)) + (added - part)
    total[at] = after


@njit
def add_weights(
    left: Ends,
    right: Ends,
    weight: Floats,
    weight_rest: Floats,
    core_at: float,
    degree: Floats,
    rest: Floats,
    is_core: Bools,
) -> None:
    """Add to the degree of each end the weight of the other.

    Parameters
    ----------
    left, right : (n_pairs,) rows, 0 to n - 1.
    weight, weight_rest : (n,) float64; the weight is their sum, as :func:`sum_weights` returns it.
    core_at : degree that makes a row core; infinity where sums may fall again.
    degree, rest : (n,) float64, the sum is ``degree + rest``; modified. The rest is what rounding took from
        the degree: their sum is off by about ``(m u)**2 sum(|weight|)`` for m terms, u = 2**-53.
    is_core : (n,) bool, modified: set where the sum reaches ``core_at``.

    References
    ----------
    Knuth, The Art of Computer Programming 2, 4.2.2, theorem B: the error of an addition is a float itself.
    Ogita, Rump, Oishi: Accurate sum and dot product, SIAM J. Sci. Comput. 26 (2005), algorithm 4.4 (Sum2).
    """
    for i in range(left.size):
        for row, other in ((left[i], right[i]), (right[i], left[i])):
            _add(degree, rest, row, weight[other])
            rest[row] += weight_rest[other]
            if degree[row] + rest[row] >= core_at:
                is_core[row] = True


@njit
def sum_weights(group: Ints, weight: Floats, total: Floats, rest: Floats) -> None:
    """Add up the weights of the rows of each group, as :func:`add_weights` does.

    Parameters
    ----------
    group : (n,) int64, the number of each row's group.
    weight : (n,) float64.
    total, rest : (g,) float64, at first 0; modified. The sum is ``total + rest``.
    """
    for row in range(group.size):
        _add(total, rest, group[row], weight[row])


@njit
def unite_cores(pairs: EndPairs, is_core: Bools, parent: Ints, others: EndPairs) -> int:
    """Unite the ends of every pair of two core rows, and hand on the other pairs.

    Parameters
    ----------
    pairs : n_pairs pairs of rows, 0 to n - 1.
    is_core : (n,) bool.
    parent : (n,) int64, a forest as in :mod:`epsjoin.kernels.cluster.union_find`; modified.
    others : room for n_pairs pairs or more; modified.

    Returns
    -------
    int
        Pairs handed on, written from the first place on, in their order.
    """
    left, right, distance = pairs
    other_left, other_right, other_distance = others
    handed_on = 0
    for i in range(left.size):
        if is_core[left[i]] and is_core[right[i]]:
            if parent[left[i]] != parent[right[i]]:  # most pairs of a dense cluster end here
                unite(parent, left[i], right[i])
        else:
            other_left[handed_on] = left[i]
            other_right[handed_on] = right[i]
            other_distance[handed_on] = distance[i]
            handed_on += 1
    return handed_on


@njit
def find_nearest_cores(pairs: EndPairs, is_core: Bools, home: Ends, home_distance: Floats) -> None:
    """Keep for every row that is not core its nearest core row; of equally near ones the smallest.

    Parameters
    ----------
    pairs : pairs of rows, 0 to n - 1.
    is_core : (n,) bool.
    home, home_distance : (n,) the nearest so far, -1 and infinity where there is none; modified.
    """
    left, right, distance = pairs
    for i in range(left.size):
        if is_core[left[i]] == is_core[right[i]]:
            continue
        row, core = (right[i], left[i]) if is_core[left[i]] else (left[i], right[i])
        if distance[i] < home_distance[row] or (distance[i] == home_distance[row] and core < home[row]):
            home[row] = core
            home_distance[row] = distance[i]


@njit
def number_clusters(parent: Ints, is_core: Bools, home: Ints) -> Ints:
    """Clusters 0, 1, ... in the order of their smallest core row; -1 for rows in none.

    Parameters
    ----------
    parent : (n,) int64, a forest as in :mod:`epsjoin.kernels.cluster.union_find`; modified, the sets stay.
    is_core : (n,) bool; rows that are not core are roots.
    home : (n,) int64, the core row that another row belongs to, -1 for none.

    Returns
    -------
    (n,) int64.
    """
    label = np.full(parent.size, -1, dtype=np.int64)
    n_clusters = 0
    for row in range(parent.size):
        if is_core[row]:
            root = find_root(parent, row)  # the smallest row of its tree: it has its number already
            if root == row:
                label[row] = n_clusters
                n_clusters += 1
            else:
                label[row] = label[root]
    for row in range(parent.size):
        if home[row] >= 0:
            label[row] = label[home[row]]
    return label


@njit
def find_homes(home: Ints32, is_core: Bools) -> None:
    """Replace what each row belongs to by the smallest core row of its cluster.

    Parameters
    ----------
    home : (n,) int32, modified. Before: for core rows a forest as in
        :mod:`epsjoin.kernels.cluster.union_find`; for other rows their nearest core row, or the row itself
        where there is none. After: the smallest core row of the cluster; -1 for rows in none.
    is_core : (n,) bool.
    """
    for row in range(home.size):
        if is_core[row]:
            home[row] = home[home[row]]  # a parent is never larger than its row, so it is a root already
    for row in range(home.size):
        if not is_core[row]:
            home[row] = home[home[row]] if home[row] != row else -1
