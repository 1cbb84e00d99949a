"""Density clusters from pairs (DBSCAN), in steps that compose over parts of the pairs.

The steps, in the words of the definition:

1. :func:`partial_degrees` counts the neighbours of each point; :func:`sum_degrees` adds the counts of all
   parts. The degree of a point is that sum plus 1, for the point itself.
2. A point is *core* where its degree is at least ``min_pts``.
3. :func:`core_pairs`: a pair of two core points connects them; a pair with one core point makes the other
   point a candidate for the border.
4. :func:`spanning_forest`: clusters are the connected components of the core points.
5. :func:`nearest_core`: a *border* point belongs to the cluster of its nearest core point; of several as
   near, to that of the one with the smallest id.
6. :func:`label`: all other points are *noise*; :func:`extend_labels` adds the points that are in no pair.

Each of the steps 1, 3, 4 and 5 may run on any part of the pairs; no step needs all pairs in one place.

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

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints, Ints8
from epsjoin.kernels.cluster.union_find import forest
from epsjoin.kernels.ids import IdIndex, index_ids, rows_of
from epsjoin.local.arguments import check_count, check_lengths, distance_column, int_column

NOISE = -1
"""Label of the points that belong to no cluster."""

ROLES = ("core", "border", "noise")
"""Names of the roles of a point, in the order of their numbers."""

CORE_ROLE, BORDER_ROLE, NOISE_ROLE = range(3)


class Degrees(NamedTuple):
    """Numbers of neighbours in a part of the pairs.

    Parameters
    ----------
    ids : (n,) int64, ascending; points with at least one neighbour.
    counts : (n,) int64, numbers of neighbours, the point itself not counted.
    """

    ids: Ints
    counts: Ints


class CorePairs(NamedTuple):
    """Pairs that make clusters: those of two core points, and those of a core point and another point.

    Parameters
    ----------
    core_left, core_right : (n,) int64, the pairs of two core points, in the order of the input.
    border_id, core_id, distance : (m,) int64, int64, float64, the pairs with exactly one core point.
    """

    core_left: Ints
    core_right: Ints
    border_id: Ints
    core_id: Ints
    distance: Floats


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
    ends.sort()
    starts = _starts(ends)
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
    order = np.argsort(ids)
    ids = ids[order]
    starts = _starts(ids)
    return Degrees(ids[starts], np.add.reduceat(counts[order], starts) if starts.size else counts)


def core_pairs(
    left: npt.ArrayLike, right: npt.ArrayLike, distance: npt.ArrayLike, core_ids_sorted: npt.ArrayLike
) -> CorePairs:
    """Keep the pairs that make clusters, and drop pairs of two points that are not core.

    Parameters
    ----------
    left, right, distance : (n_pairs,) int64, int64, float64, a part of the pairs.
    core_ids_sorted : (n_cores,) int64, ascending, each once: at least all core points that are in these
        pairs.

    Raises
    ------
    ArgumentError
        The columns have a wrong type or different lengths; a distance is negative or NaN; the core ids are
        not ascending.

    Notes
    -----
    O(n_pairs + n_cores) by hashing; by binary search where there are many more core points than pairs.
    """
    left, right = _check_pairs(left, right)
    distance = distance_column("distance", distance)
    check_lengths(left=left, distance=distance)
    cores = int_column("core_ids_sorted", core_ids_sorted)
    if cores.size > 1 and not (cores[1:] > cores[:-1]).all():
        raise ArgumentError("core_ids_sorted must be ascending, each id once")
    is_left, is_right = _are_core(cores, left, right)
    both, one = is_left & is_right, is_left ^ is_right
    border_id = np.where(is_left[one], right[one], left[one])
    core_id = np.where(is_left[one], left[one], right[one])
    return CorePairs(left[both], right[both], border_id, core_id, distance[one])


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
    left, right = _check_pairs(left, right)
    ends = np.concatenate((left, right))
    ends.sort()
    nodes = ends[_starts(ends)]
    del ends
    index = index_ids(nodes)
    root = forest(nodes.size, rows_of(index, left), rows_of(index, right))
    is_below = root != np.arange(nodes.size)
    return Forest(nodes[is_below], nodes[root[is_below]])


def nearest_core(border_id: npt.ArrayLike, core_id: npt.ArrayLike, distance: npt.ArrayLike) -> NearestCore:
    """Find the nearest core point of every border point; of several as near, that with the smallest id.

    It may run on parts of the candidates, and then on the union of the results.

    Parameters
    ----------
    border_id, core_id, distance : (n,) int64, int64, float64, candidates of :func:`core_pairs`, in any order.

    Raises
    ------
    ArgumentError
        The columns have a wrong type or different lengths; a distance is negative or NaN.

    Notes
    -----
    O(n log n) for sorting the border points, then O(n).
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
    """Combine degrees, trees and nearest core points into labels; works on any part of the ids.

    Parameters
    ----------
    ids, degree : (n,) int64, points and their degrees (the point itself counted), in any order.
    trees : forest of all pairs of core points; at least the nodes that are ids or their nearest core points.
    nearest : the nearest core points of at least those ids that are border points.
    min_pts : minimum number of points within eps, the point itself included, of a core point; at least 1.

    Raises
    ------
    ArgumentError
        The columns have a wrong type or different lengths; min_pts is below 1; an id is ``NOISE``.

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
    """Label any points, also those that are in no pair.

    Parameters
    ----------
    ids : (n,) int64, each at most once, in any order.
    known : labels of at least those ids that are in a pair.
    index : ``index_ids(known.ids)``, which the caller makes once for many parts of the ids.
    min_pts : as for :func:`label`.

    Returns
    -------
    Clusters in the order of ``ids``. A point that is in no pair has degree 1: it is noise, or with
    ``min_pts`` 1 a cluster of its own.

    Raises
    ------
    ArgumentError
        The ids are not int64, or one is ``NOISE``; min_pts is below 1.
    """
    min_pts = check_count("min_pts", min_pts)
    ids = int_column("ids", ids)
    _refuse_noise_id(ids)
    at = rows_of(index, ids)  # -1, so the value appended last, for a point that is in no pair
    cluster_id = np.append(known.cluster_id, NOISE)[at]
    role = np.append(known.role, np.int8(NOISE_ROLE))[at]
    if min_pts == 1:
        cluster_id[at < 0] = ids[at < 0]
        role[at < 0] = CORE_ROLE
    return Clusters(ids, cluster_id, role, np.append(known.degree, 1)[at])


def _check_pairs(left: npt.ArrayLike, right: npt.ArrayLike) -> tuple[Ints, Ints]:
    left, right = int_column("left", left), int_column("right", right)
    check_lengths(left=left, right=right)
    return left, right


def _starts(ascending: Ints) -> Ints:
    """Find the places where a new value begins."""
    if not ascending.size:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate(([0], np.flatnonzero(ascending[1:] != ascending[:-1]) + 1))


def _are_core(cores: Ints, left: Ints, right: Ints) -> tuple[Bools, Bools]:
    if left.size >= cores.size // 16:
        index = index_ids(cores)
        return rows_of(index, left) >= 0, rows_of(index, right) >= 0
    # An index of all core points would cost more than these few searches.
    places = [np.minimum(np.searchsorted(cores, ends), cores.size - 1) for ends in (left, right)]
    return cores[places[0]] == left, cores[places[1]] == right


def _roles(is_core: Bools, is_border: Bools) -> Ints8:
    return np.where(is_core, CORE_ROLE, np.where(is_border, BORDER_ROLE, NOISE_ROLE)).astype(np.int8)


def _refuse_noise_id(ids: Ints) -> None:
    if (ids == NOISE).any():
        raise ArgumentError(
            f"the id {NOISE} is kept for noise: a cluster of this name could not be told from noise"
        )
