"""Local outlier factors from the pairs within eps, in steps that also work on parts of the pairs.

1. :func:`nearest_within`: the *k nearest* of a point are the k smallest (distance, neighbour id) within eps.
2. :func:`k_distances`: the distance to the k-th of them; unknown where fewer than k lie within eps.
3. :func:`lof_from_neighbours`: the local outlier factors, by the formulas of ``densities.py``.

Step 1 may run on any part of the pairs, and then :func:`merge_nearest` on the union of the results. A factor
that depends on a k-distance beyond eps is unknown: NaN, never a guess. So every value is exact.

References
----------
Breunig, Kriegel, Ng, Sander: LOF: identifying density-based local outliers, SIGMOD 2000, definitions 3-7.
Departure: in the paper all points that are tied at the k-distance are neighbours; here exactly k are, ties by
id, because with many equal points the ties are quadratic (scikit-learn takes exactly k, too).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.ids import index_ids, rows_of
from epsjoin.kernels.neighbours.heaps import NearestLists, keep_nearest, sort_nearest
from epsjoin.local.arguments import check_count, check_lengths, distance_column, index_distinct, int_column
from epsjoin.local.neighbours.densities import outlier_factors, reach_densities

_EPS_SLACK = 1e-9
"""Fraction of eps by which a stored distance may exceed it: it is a rounded root of what was compared."""


class Neighbours(NamedTuple):
    """At most k neighbours of each point, sorted by (id, distance, neighbour).

    Parameters
    ----------
    id, neighbour : (n,) int64, ids of the point and of its neighbour.
    distance : (n,) float64.
    """

    id: Ints
    neighbour: Ints
    distance: Floats


def nearest_within(left: npt.ArrayLike, right: npt.ArrayLike, distance: npt.ArrayLike, k: int) -> Neighbours:
    """Find the k nearest neighbours of every point in a part of the pairs; both ends of a pair are points.

    Parameters
    ----------
    left, right, distance : (n_pairs,) int64, int64, float64, each pair once, in any order.
    k : maximum number of neighbours of each point, at least 1.

    Raises
    ------
    ArgumentError
        The columns have a wrong type or different lengths; a distance is negative or NaN; k is below 1.

    Notes
    -----
    :func:`merge_nearest` combines the results of several parts. O(n_pairs log k) after one sort of the ids.
    """
    left, right = int_column("left", left), int_column("right", right)
    distance = distance_column("distance", distance)
    check_lengths(left=left, right=right, distance=distance)
    return _keep_nearest(((left, right), (right, left)), distance, check_count("k", k))


def merge_nearest(
    id: npt.ArrayLike,  # noqa: A002 - the column's name
    neighbour: npt.ArrayLike,
    distance: npt.ArrayLike,
    k: int,
) -> Neighbours:
    """Find the k nearest of every id in the concatenated results of :func:`nearest_within`.

    Parameters
    ----------
    id, neighbour, distance : (n,) int64, int64, float64, the rows of all results, in any order.
    k : maximum number of neighbours of each point, at least 1; not larger than the k of the results.

    Raises
    ------
    ArgumentError
        As :func:`nearest_within`.
    """
    ids, neighbour = int_column("id", id), int_column("neighbour", neighbour)
    distance = distance_column("distance", distance)
    check_lengths(id=ids, neighbour=neighbour, distance=distance)
    return _keep_nearest(((ids, neighbour),), distance, check_count("k", k))


def k_distances(neighbours: Neighbours, k: int) -> tuple[Ints, Floats]:
    """Return the ids with at least k neighbours, ascending, and the distance to the k-th.

    Parameters
    ----------
    neighbours : sorted rows: of each id all, or its k nearest.
    k : rank of the neighbour, at least 1.

    Raises
    ------
    ArgumentError
        The rows are not sorted by (id, distance, neighbour); k is below 1.
    """
    k = check_count("k", k)
    starts, _ = _group_rows(neighbours)
    has_k = np.diff(starts) >= k
    first = starts[:-1][has_k]
    return neighbours.id[first], neighbours.distance[first + (k - 1)]


def lof_from_neighbours(ids: npt.ArrayLike, neighbours: Neighbours, k: int, eps: float) -> Outliers:
    """Compute local outlier factors and k-distances of points whose k nearest within eps are known.

    Parameters
    ----------
    ids : (n,) int64, points to score, each once, in any order.
    neighbours : the k nearest within eps of at least the ids, of their neighbours, and of the neighbours of
        these; a point without rows counts as one without neighbours. Sorted as by :func:`nearest_within`.
    k : number of neighbours that count, the point itself not among them; at least 1.
    eps : the distance up to which neighbours are known.

    Returns
    -------
    Outliers in the order of ``ids``.

    Raises
    ------
    ArgumentError
        k is below 1; an id occurs twice; the rows are not sorted; a distance is negative, NaN or beyond eps.

    Notes
    -----
    O(rows), with about 5 x 8 bytes x k of memory per point.
    """
    k = check_count("k", k)
    ids = int_column("ids", ids)
    columns = int_column("id", neighbours.id), int_column("neighbour", neighbours.neighbour)
    neighbours = Neighbours(*columns, distance_column("distance", neighbours.distance))
    check_lengths(id=neighbours.id, neighbour=neighbours.neighbour, distance=neighbours.distance)
    if neighbours.distance.size and not neighbours.distance.max() <= eps * (1 + _EPS_SLACK):
        raise ArgumentError(f"a neighbour at distance {neighbours.distance.max()} is beyond eps = {eps}")
    index = index_distinct(ids)
    starts, owners = _group_rows(neighbours)
    has_k = np.diff(starts) >= k
    # From here on only points with k neighbours count; the values of the others are unknown.
    width = k if has_k.any() else 1  # k may be larger than memory while no point has k neighbours
    places = starts[:-1][has_k][:, None] + np.arange(width)
    known = index_ids(owners[has_k])
    near = rows_of(known, neighbours.neighbour[places].ravel()).reshape(places.shape)
    distance = neighbours.distance[places]
    k_distance = distance[:, -1]
    density = reach_densities(distance, _take(k_distance, near))
    factor = outlier_factors(density, _take(density, near))
    row = rows_of(known, ids)
    counts = np.zeros(ids.size, dtype=np.int64)
    at = rows_of(index, owners)
    counts[at[at >= 0]] = np.minimum(np.diff(starts), k)[at >= 0]
    return Outliers(ids, _take(k_distance, row), _take(factor, row), counts)


def _keep_nearest(directions: tuple[tuple[Ints, Ints], ...], distance: Floats, k: int) -> Neighbours:
    ends = np.concatenate([end for end, _ in directions])
    ends.sort()
    owners, counts = np.unique(ends, return_counts=True)
    del ends
    sizes = np.minimum(counts, k)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    index = index_ids(owners)
    filled = np.zeros(owners.size, dtype=np.int64)
    lists = NearestLists(filled, np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1]))
    for end, other in directions:
        entries = rows_of(index, end), read_only(other), read_only(distance)
        keep_nearest(entries, starts, lists)
    sort_nearest(starts, lists.ids, lists.distances)
    return Neighbours(np.repeat(owners, sizes), lists.ids, lists.distances)


def _group_rows(neighbours: Neighbours) -> tuple[Ints, Ints]:
    """Find where the rows of each id begin (then the end of the last), and the ids; check the order."""
    owner, neighbour, distance = neighbours
    is_new = owner[1:] > owner[:-1]
    same = owner[1:] == owner[:-1]
    farther = distance[1:] > distance[:-1]
    tied = (distance[1:] == distance[:-1]) & (neighbour[1:] > neighbour[:-1])
    if not (is_new | (same & (farther | tied))).all():
        raise ArgumentError("neighbours must be sorted by (id, distance, neighbour), each row once")
    first = np.concatenate(([0], np.flatnonzero(is_new) + 1)) if owner.size else np.zeros(0, dtype=np.int64)
    return np.append(first, owner.size), owner[first]


def _take(values: Floats, rows: Ints) -> Floats:
    """Take the values at these rows; NaN where the row is -1."""
    return np.append(values, np.nan)[rows]


class Outliers(NamedTuple):
    """Scores of every point, in the order of the ids that were passed.

    Parameters
    ----------
    ids : (n,) int64.
    k_distance : (n,) float64, distance to the k-th nearest neighbour; NaN where it exceeds eps.
    lof : (n,) float64, about 1 inside a cluster, larger outside; NaN where it depends on a distance beyond
        eps.
    neighbours : (n,) int64, number of neighbours within eps, at most k.
    """

    ids: Ints
    k_distance: Floats
    lof: Floats
    neighbours: Ints
