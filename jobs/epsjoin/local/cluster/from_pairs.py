"""Density clusters from pairs (DBSCAN), in steps that compose over parts of the pairs.

The steps, in the words of the definition:

1. :func:`partial_degrees` counts the neighbours of each point. The degree of a point is the sum of the counts
   of all parts plus 1, for the point itself.
2. A point is *core* where its degree is at least ``min_pts``.
3. :func:`connect`: a pair of two core points connects them; clusters are the connected components. A point
   that is not core belongs to the nearest of the core points that it is in a pair with.
4. :func:`spanning_forest` makes one forest of several; of several nearest core points the nearest is kept.
5. :func:`label`: a core point belongs to its component, named by the smallest id; a *border* point to the
   cluster of its nearest core point, of several as near, to that of the one with the smallest id; all other
   points are *noise*.

Each of the steps 1, 3 and 4 may run on any part of the pairs; no step needs all pairs in one place. Step 5 is
that of all points, which :mod:`epsjoin.local.cluster.positions` puts together in few bytes each.

References
----------
Ester, Kriegel, Sander, Xu: A density-based algorithm for discovering clusters, KDD 1996, definitions 1-6.
Departure: in the paper a border point within eps of several clusters belongs to the one that is found first;
here it belongs to that of its nearest core point, so that labels depend on nothing but the points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Bools, Floats, Ints, Ints8, Ints32
from epsjoin.kernels.cluster.density import EndPairs, find_nearest_cores, unite_cores
from epsjoin.kernels.cluster.union_find import flatten, forest
from epsjoin.kernels.ids import index_ids, rows_of
from epsjoin.kernels.sorting import argsort, run_starts, sort_numbers
from epsjoin.local.arguments import check_lengths, distance_column, int_column
from epsjoin.vocabulary import NOISE

CORE_ROLE, BORDER_ROLE, NOISE_ROLE = range(3)
"""Numbers of the roles of a point: their places in ``ROLES``."""


class Degrees(NamedTuple):
    """Numbers of neighbours in a part of the pairs.

    Parameters
    ----------
    ids : (n,) int64, ascending; points with at least one neighbour.
    counts : (n,) int64, numbers of neighbours, the point itself not counted.
    """

    ids: Ints
    counts: Ints


class Part(NamedTuple):
    """A part of the pairs, its points numbered in the order of their ids.

    Parameters
    ----------
    ids : (n,) int64, ascending; every point that is in a pair of the part.
    left, right : (m,) int64, the ends of each pair as rows of ``ids``.
    """

    ids: Ints
    left: Ints
    right: Ints


class Forest(NamedTuple):
    """Trees, each named by its smallest id.

    Parameters
    ----------
    node : (n,) int64, ascending; every node that is not a root.
    root : (n,) int64, the smallest id of the node's tree, always below ``node``.
    """

    node: Ints
    root: Ints


class NearestCore(NamedTuple):
    """The core point that a border point belongs to.

    Parameters
    ----------
    border_id : (n,) int64, ascending.
    core_id : (n,) int64.
    distance : (n,) float64, distance of the two.
    """

    border_id: Ints
    core_id: Ints
    distance: Floats


class Connected(NamedTuple):
    """What remains of a part of the pairs once the core points are known; by rows, by ids or by positions.

    Parameters
    ----------
    trees : the forest of its core points.
    nearest : for each other point that is in a pair with a core point, the nearest core point.
    """

    trees: Forest
    nearest: NearestCore


class Clusters(NamedTuple):
    """Cluster and role of every point, in the order of the ids that were passed.

    Parameters
    ----------
    ids : (n,) int64.
    cluster_id : (n,) int64, the smallest core id of the point's cluster, or ``NOISE``.
    role : (n,) int8, index in ``ROLES``: 0 core, 1 border, 2 noise.
    degree : (n,) int64, number of points within eps, the point itself included.
    """

    ids: Ints
    cluster_id: Ints
    role: Ints8
    degree: Ints


def partial_degrees(left: npt.ArrayLike, right: npt.ArrayLike) -> Degrees:
    """Count the neighbours of every point in a part of the pairs.

    The counts of all parts add up to those of the whole. The degree is ``count + 1``, because it includes the
    point itself.

    Parameters
    ----------
    left, right : (n_pairs,) int64, each pair once.

    Raises
    ------
    ArgumentError
        The columns have different lengths, or are not int64.

    Notes
    -----
    One sort of 2 n_pairs ids, 48 bytes per pair.
    """
    left, right = _check_pairs(left, right)
    ends = np.concatenate((left, right))
    sort_numbers(ends)
    starts = run_starts(ends)
    return Degrees(ends[starts], np.diff(starts, append=ends.size))


def sum_degrees(ids: npt.ArrayLike, counts: npt.ArrayLike) -> Degrees:
    """Add up the counts of all parts.

    Parameters
    ----------
    ids, counts : (n,) int64, the concatenated columns of the results of :func:`partial_degrees`.

    Raises
    ------
    ArgumentError
        The columns have different lengths, or are not int64.
    """
    ids, counts = int_column("ids", ids), int_column("counts", counts)
    check_lengths(ids=ids, counts=counts)
    order = argsort(ids)
    ids = ids[order]
    starts = run_starts(ids)
    return Degrees(ids[starts], np.add.reduceat(counts[order], starts) if starts.size else counts)


def number_points(left: npt.ArrayLike, right: npt.ArrayLike) -> Part:
    """Number the points of a part of the pairs, so that the other steps need no ids.

    Parameters
    ----------
    left, right : (n_pairs,) int64, each pair once.

    Raises
    ------
    ArgumentError
        As :func:`partial_degrees`.

    Notes
    -----
    One sort of 2 n_pairs ids, then hashing; about 100 bytes per pair.
    """
    left, right = _check_pairs(left, right)
    ends = np.concatenate((left, right))
    sort_numbers(ends)
    ids = ends[run_starts(ends)]
    del ends
    index = index_ids(ids)
    return Part(ids, rows_of(index, left), rows_of(index, right))


def connect(part: Part, distance: npt.ArrayLike, is_core: Bools) -> Connected:
    """Reduce a part of the pairs to what is needed for clusters.

    Parameters
    ----------
    part : its points and pairs, from :func:`number_points`.
    distance : (n_pairs,) float64, of the pairs.
    is_core : (n,) bool, for every row of ``part.ids``.

    Returns
    -------
    Connected
        By rows of ``part.ids``, whose order is that of the ids.

    Raises
    ------
    ArgumentError
        The columns have different lengths, or a distance is negative or NaN.

    Notes
    -----
    O(n_pairs).
    """
    distance = distance_column("distance", distance)
    check_lengths(left=part.left, distance=distance)
    check_lengths(ids=part.ids, is_core=is_core)
    n, m = len(part.ids), len(distance)
    parent, others = np.arange(n), EndPairs(np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m))
    size = unite_cores(EndPairs(part.left, part.right, read_only(distance)), is_core, parent, others)
    flatten(parent)
    core, near = np.full(n, NOISE), np.full(n, np.inf)
    find_nearest_cores(
        EndPairs(others.left[:size], others.right[:size], others.distance[:size]), is_core, core, near
    )
    below, border = np.flatnonzero(parent < np.arange(n)), np.flatnonzero(core != NOISE)
    return Connected(Forest(below, parent[below]), NearestCore(border, core[border], near[border]))


def spanning_forest(left: npt.ArrayLike, right: npt.ArrayLike) -> Forest:
    """Replace edges by one edge per node, to the smallest id of its tree.

    The forest connects exactly what the edges connect, with fewer edges than nodes. So parts of the edges may
    be contracted one by one, and then the union of their forests, in any order and any number of rounds.

    Parameters
    ----------
    left, right : (n_edges,) int64, in any order; loops and repeated edges are allowed.

    Raises
    ------
    ArgumentError
        As :func:`partial_degrees`.

    Notes
    -----
    One sort of the ends, then nearly linear; about 100 bytes per edge.
    """
    ids, left, right = number_points(left, right)
    root = forest(ids.size, left, right)
    is_below = root != np.arange(ids.size)
    return Forest(ids[is_below], ids[root[is_below]])


def label(ids: Ints, degree: Ints | Ints32, home: Ints | Ints32, min_pts: int) -> Clusters:
    """Combine degrees and homes into labels; works on any part of the points.

    Parameters
    ----------
    ids : (n,) int64, in any order.
    degree : (n,) int64 or int32, the point itself counted.
    home : (n,) int64, the id of the smallest core point of the point's cluster, or ``NOISE``.
    min_pts : minimum number of points within eps, the point itself included, of a core point; at least 1.
    """
    is_core = degree >= min_pts
    role = np.where(is_core, CORE_ROLE, np.where(home != NOISE, BORDER_ROLE, NOISE_ROLE))
    return Clusters(ids, home.astype(np.int64), role.astype(np.int8), degree.astype(np.int64))


def _check_pairs(left: npt.ArrayLike, right: npt.ArrayLike) -> tuple[Ints, Ints]:
    left, right = int_column("left", left), int_column("right", right)
    check_lengths(left=left, right=right)
    return left, right
