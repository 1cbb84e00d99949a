"""Density clusters from pairs (DBSCAN), in steps that compose over parts of the pairs.

The steps, in the words of the definition:

1. :func:`partial_degrees`: neighbours per point; summed over all parts (:func:`sum_degrees`), plus the point
   itself: the degree.
2. A point is *core* where its degree is at least ``min_pts``.
3. :func:`core_pairs`: pairs of two core points connect them; pairs with one core point make the other a
   candidate for the border.
4. :func:`spanning_forest`: clusters are the connected components of the core points.
5. :func:`nearest_core`: a border point goes to the cluster of its nearest core point, ties: smallest id.
6. :func:`label`: all other points are *noise*; :func:`extend_labels`: also those that are in no pair.

Each of 1, 3, 4 and 5 may run on any share of the pairs; no step needs all pairs in one place.

References
----------
Ester, Kriegel, Sander, Xu: A density-based algorithm for discovering clusters, KDD 1996, definitions 1-6.
Departure: there a border point within eps of several clusters goes to the one found first; here to its
nearest core point, so that labels depend on nothing but the points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.cluster.union_find import forest
from epsjoin.kernels.ids import IdIndex, index_ids, rows_of
from epsjoin.local.arguments import (
    FloatColumn,
    IntColumn,
    check_count,
    check_lengths,
    distance_column,
    int_column,
)

NOISE = -1
ROLES = ("core", "border", "noise")
CORE_ROLE, BORDER_ROLE, NOISE_ROLE = range(3)


class Degrees(NamedTuple):
    """Neighbours counted in one share of the pairs.

    Parameters
    ----------
    ids : (n,) int64, rising; points with at least one neighbour.
    counts : (n,) int64, neighbours, the point itself not counted.
    """

    ids: IntColumn
    counts: IntColumn


class CorePairs(NamedTuple):
    """Pairs that make clusters: of two core points, and of a core point and another.

    Parameters
    ----------
    core_left, core_right : (n,) int64, the pairs of two core points, in the order of the input.
    border_id, core_id, distance : (m,) int64, int64, float64, the pairs with exactly one core point.
    """

    core_left: IntColumn
    core_right: IntColumn
    border_id: IntColumn
    core_id: IntColumn
    distance: FloatColumn


class Forest(NamedTuple):
    """Trees, each named by its smallest id.

    Parameters
    ----------
    node : (n,) int64, rising; every node but the roots.
    root : (n,) int64, the smallest id of the node's tree, always below ``node``.
    """

    node: IntColumn
    root: IntColumn


class NearestCore(NamedTuple):
    """The core point that a border point belongs to.

    Parameters
    ----------
    border_id : (n,) int64, rising.
    core_id : (n,) int64.
    distance : (n,) float64.
    """

    border_id: IntColumn
    core_id: IntColumn
    distance: FloatColumn


class Clusters(NamedTuple):
    """Cluster and role of every point, in the order of the ids given.

    Parameters
    ----------
    ids : (n,) int64.
    cluster_id : (n,) int64, the smallest core id of the point's cluster, or ``NOISE``.
    role : (n,) int8, place in ``ROLES``: 0 core, 1 border, 2 noise.
    degree : (n,) int64, points within eps, the point itself included.
    """

    ids: IntColumn
    cluster_id: IntColumn
    role: npt.NDArray[np.int8]
    degree: IntColumn


def partial_degrees(left: npt.ArrayLike, right: npt.ArrayLike) -> Degrees:
    """Count the neighbours of every point in a share of the pairs.

    Counts of shares add up to those of the whole; ``degree = count + 1``: the point itself is included.

    Parameters
    ----------
    left, right : (n_pairs,) int64, each pair once.

    Raises
    ------
    ArgumentError
        Columns of different length, or not int64.

    Notes
    -----
    One sort of 2 n_pairs ids, 48 bytes per pair.
    """
    left, right = _pairs(left, right)
    ends = np.concatenate((left, right))
    ends.sort()
    starts = _starts(ends)
    return Degrees(ends[starts], np.diff(starts, append=ends.size))


def sum_degrees(ids: npt.ArrayLike, counts: npt.ArrayLike) -> Degrees:
    """Add up the counts of shares.

    Parameters
    ----------
    ids, counts : (n,) int64, the columns of :func:`partial_degrees` of all shares, one after the other.

    Raises
    ------
    ArgumentError
        Columns of different length, or not int64.
    """
    ids, counts = int_column("ids", ids), int_column("counts", counts)
    check_lengths(ids=ids, counts=counts)
    order = np.argsort(ids)
    ids = ids[order]
    starts = _starts(ids)
    return Degrees(ids[starts], np.add.reduceat(counts[order], starts) if starts.size else counts)


def core_pairs(
    left: npt.ArrayLike, right: npt.ArrayLike, distance: npt.ArrayLike, core_ids_sorted: npt.ArrayLike
) -> CorePairs:
    """Keep the pairs that make clusters; pairs of two points that are not core say nothing.

    Parameters
    ----------
    left, right, distance : (n_pairs,) int64, int64, float64, a share of the pairs.
    core_ids_sorted : (n_cores,) int64, rising, each once: at least all core points among the pairs' ends.

    Raises
    ------
    ArgumentError
        Columns of different length or type; a distance is negative or NaN; core ids do not rise.

    Notes
    -----
    O(n_pairs + n_cores) by hashing; for a share much smaller than the core points binary search instead.
    """
    left, right = _pairs(left, right)
    distance = distance_column("distance", distance)
    check_lengths(left=left, distance=distance)
    cores = int_column("core_ids_sorted", core_ids_sorted)
    if cores.size > 1 and not (cores[1:] > cores[:-1]).all():
        raise ArgumentError("core_ids_sorted must rise, each id once")
    is_left, is_right = _among(cores, left, right)
    both, one = is_left & is_right, is_left ^ is_right
    border_id = np.where(is_left[one], right[one], left[one])
    core_id = np.where(is_left[one], left[one], right[one])
    return CorePairs(left[both], right[both], border_id, core_id, distance[one])


def spanning_forest(left: npt.ArrayLike, right: npt.ArrayLike) -> Forest:
    """Contract edges to one edge per node, to the smallest id of its tree.

    The forest connects exactly what the edges connect, with fewer edges than nodes. So shares of the edges
    may be contracted one by one, and then the union of their forests, in any order, in any number of rounds.

    Parameters
    ----------
    left, right : (n_edges,) int64, in any order; loops and repeats do no harm.

    Raises
    ------
    ArgumentError
        Columns of different length, or not int64.

    Notes
    -----
    One sort of the ends, then nearly linear; about 100 bytes per edge.
    """
    left, right = _pairs(left, right)
    ends = np.concatenate((left, right))
    ends.sort()
    nodes = ends[_starts(ends)]
    del ends
    index = index_ids(nodes)
    root = forest(nodes.size, rows_of(index, left), rows_of(index, right))
    is_below = root != np.arange(nodes.size)
    return Forest(nodes[is_below], nodes[root[is_below]])


def nearest_core(border_id: npt.ArrayLike, core_id: npt.ArrayLike, distance: npt.ArrayLike) -> NearestCore:
    """Find the nearest core point of every border point, ties: the smallest id.

    The nearest of shares' nearest are the nearest of the whole.

    Parameters
    ----------
    border_id, core_id, distance : (n,) int64, int64, float64: candidates of :func:`core_pairs`, in any order.

    Raises
    ------
    ArgumentError
        Columns of different length or type; a distance is negative or NaN.

    Notes
    -----
    O(n log n) for naming the border points, then linear.
    """
    border_id, core_id = int_column("border_id", border_id), int_column("core_id", core_id)
    distance = distance_column("distance", distance)
    check_lengths(border_id=border_id, core_id=core_id, distance=distance)
    border = np.unique(border_id)
    rows = rows_of(index_ids(border), border_id)
    nearest = np.full(border.size, np.inf)
    np.minimum.at(nearest, rows, distance)
    is_nearest = distance == nearest[rows]
    smallest = np.full(border.size, np.iinfo(np.int64).max)
    np.minimum.at(smallest, rows[is_nearest], core_id[is_nearest])
    return NearestCore(border, smallest, nearest)


def label(
    ids: npt.ArrayLike, degree: npt.ArrayLike, trees: Forest, nearest: NearestCore, min_pts: int
) -> Clusters:
    """Put degrees, trees and nearest core points together; works on any share of the ids.

    Parameters
    ----------
    ids, degree : (n,) int64, points and their degrees (the point itself counted), in any order.
    trees : forest of all pairs of core points, at least those nodes that are ids or their nearest core.
    nearest : the nearest core points of at least those ids that are border points.
    min_pts : points within eps, the point itself included, that make a point core; at least 1.

    Raises
    ------
    ArgumentError
        Columns of different length or type; min_pts is below 1; an id is ``NOISE``.

    Notes
    -----
    O(n + trees + nearest).
    """
    min_pts = check_count("min_pts", min_pts)
    ids, degree = int_column("ids", ids), int_column("degree", degree)
    check_lengths(ids=ids, degree=degree)
    _refuse_noise_id(ids)
    core = np.where(degree >= min_pts, ids, NOISE)
    to_nearest = rows_of(index_ids(nearest.border_id), ids)
    is_border = (degree < min_pts) & (to_nearest >= 0)
    core[is_border] = nearest.core_id[to_nearest[is_border]]
    to_tree = rows_of(index_ids(trees.node), core)
    cluster_id = core.copy()
    cluster_id[to_tree >= 0] = trees.root[to_tree[to_tree >= 0]]
    return Clusters(ids, cluster_id, _roles(degree >= min_pts, is_border), degree)


def extend_labels(ids: npt.ArrayLike, known: Clusters, index: IdIndex, min_pts: int) -> Clusters:
    """Labels of any points, from those of all points that are in a pair.

    Parameters
    ----------
    ids : (n,) int64, each at most once, in any order.
    known : labels of at least those that are in a pair.
    index : ``index_ids(known.ids)``; made once for many shares of the ids.
    min_pts : as in :func:`label`.

    Returns
    -------
    Clusters in the order of ``ids``. A point that is not known has degree 1: noise, or with ``min_pts`` 1 a
    cluster of its own.

    Raises
    ------
    ArgumentError
        ids are not int64, or one is ``NOISE``; min_pts is below 1.
    """
    min_pts = check_count("min_pts", min_pts)
    ids = int_column("ids", ids)
    _refuse_noise_id(ids)
    at = rows_of(index, ids)  # -1, the last: a point that is not known
    cluster_id = np.append(known.cluster_id, NOISE)[at]
    role = np.append(known.role, np.int8(NOISE_ROLE))[at]
    if min_pts == 1:
        cluster_id[at < 0] = ids[at < 0]
        role[at < 0] = CORE_ROLE
    return Clusters(ids, cluster_id, role, np.append(known.degree, 1)[at])


def _pairs(left: npt.ArrayLike, right: npt.ArrayLike) -> tuple[IntColumn, IntColumn]:
    left, right = int_column("left", left), int_column("right", right)
    check_lengths(left=left, right=right)
    return left, right


def _starts(ascending: IntColumn) -> IntColumn:
    """Places where a new value begins."""
    if not ascending.size:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate(([0], np.flatnonzero(ascending[1:] != ascending[:-1]) + 1))


def _among(
    cores: IntColumn, left: IntColumn, right: IntColumn
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    if left.size >= cores.size // 16:
        index = index_ids(cores)
        return rows_of(index, left) >= 0, rows_of(index, right) >= 0
    # A table of all core points would cost more than the few look-ups.
    places = [np.minimum(np.searchsorted(cores, ends), cores.size - 1) for ends in (left, right)]
    return cores[places[0]] == left, cores[places[1]] == right


def _roles(is_core: npt.NDArray[np.bool_], is_border: npt.NDArray[np.bool_]) -> npt.NDArray[np.int8]:
    return np.where(is_core, CORE_ROLE, np.where(is_border, BORDER_ROLE, NOISE_ROLE)).astype(np.int8)


def _refuse_noise_id(ids: IntColumn) -> None:
    if (ids == NOISE).any():
        raise ArgumentError(
            f"the id {NOISE} is kept for noise: a cluster named by it could not be told from noise"
        )
