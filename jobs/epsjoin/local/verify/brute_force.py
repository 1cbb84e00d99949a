"""Distances, neighbours, nearest neighbours and outlier factors by brute force, with NumPy and ``math`` only.

Nothing here uses the kernels, the metrics or the plans of the joins, since it checks what they have stored.
The formulas are written again, term by term in column order, so that distances and factors must be the same
bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EARTH_RADIUS_KM = 6371.0088
ON_SPHERE = "haversine"

# Candidates may be a little beyond eps; the exact formula decides.
_SLACK = 1.0 + 1e-9
_CHORD_SLACK = 1e-9
_BATCH = 1 << 14

Ids = NDArray[np.int64]
Points = NDArray[np.float64]


class QueryPairs(NamedTuple):
    """Pairs of a query and another point; all columns have the same length.

    Parameters
    ----------
    query, other : int64, the ids of the two points; never equal.
    distance : float64.
    """

    query: Ids
    other: Ids
    distance: NDArray[np.float64]


def neighbours_by_brute_force(
    query_ids: Ids, queries: Points, ids: Ids, points: Points, eps: float, metric: str
) -> QueryPairs:
    """Find every pair of a query and another point within eps, by comparing each query with each point.

    Parameters
    ----------
    query_ids, queries : (m,) int64 and (m, d) float64.
    ids, points : (n,) int64 and (n, d) float64; not modified.
    eps : threshold; within it is a pair whose distance, a float64, is at most eps.
    metric : "euclidean", "manhattan", "chebyshev", "cosine" or "haversine" (km between points with latitude
        and longitude in degrees).

    Notes
    -----
    O(m n d) time, O(n d + pairs) memory.
    """
    found = []
    for begin in range(0, len(ids), _BATCH):
        of_batch = slice(begin, begin + _BATCH)
        batch_ids, columns = ids[of_batch], np.ascontiguousarray(points[of_batch].T)
        chords = _on_unit_sphere(points[of_batch]) if metric == ON_SPHERE else columns
        for query_id, query in zip(query_ids.tolist(), queries, strict=True):
            if metric == ON_SPHERE:
                distance = _haversine_within(query, columns, chords, eps)
            else:
                distance = _within(query, columns, eps, metric)
            at = np.flatnonzero((distance >= 0) & (batch_ids != query_id))
            found.append(QueryPairs(np.full(len(at), query_id), batch_ids[at], distance[at]))
    return QueryPairs(*(np.concatenate(column) for column in zip(no_pairs(), *found, strict=True)))


def _within(query: Points, columns: Points, eps: float, metric: str) -> Points:
    """Compute the distances to all points; -1 where they are beyond eps."""
    distance = distances_between(query, columns, metric)
    return np.where(distance <= eps, distance, -1.0)


def distances_between(x: Points, y: Points, metric: str) -> Points:
    """Compute the distances of two points, or of a point and many, term by term in column order.

    Parameters
    ----------
    x : (d,) coordinates of a point, or (d, n) of many.
    y : (d, n) coordinates of the others.
    metric : "euclidean", "manhattan", "chebyshev" or "cosine".
    """
    if metric == "cosine":
        return _cosine(x, y)
    total = np.zeros(y.shape[1:])
    for value, column in zip(x, y, strict=True):
        difference = np.abs(value - column)
        if metric == "euclidean":
            total += difference * difference
        elif metric == "manhattan":
            total += difference
        else:
            np.maximum(total, difference, out=total)
    return np.sqrt(total) if metric == "euclidean" else total


def _cosine(x: Points, y: Points) -> Points:
    """1 minus the cosine of the angle between two vectors, from 0 to 2; exactly 0 for equal ones."""
    dot, x_square, y_square = np.zeros(y.shape[1:]), np.zeros(x.shape[1:]), np.zeros(y.shape[1:])
    for value, column in zip(x, y, strict=True):
        dot += value * column
        x_square = x_square + value * value
        y_square += column * column
    distance = 1.0 - dot / (np.sqrt(x_square) * np.sqrt(y_square))
    is_equal = (dot == x_square) & (dot == y_square)
    return np.where(is_equal, 0.0, np.minimum(2.0, np.maximum(0.0, distance)))


def _on_unit_sphere(degrees: Points) -> Points:
    latitude, longitude = np.radians(degrees.T)
    flat = np.cos(latitude)
    return np.stack((flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)))


def _haversine_within(query: Points, columns: Points, chords: Points, eps: float) -> Points:
    """As :func:`_within`, in km: candidates by the chord, then by ``math``, whose bits are those of C."""
    x, y, z = _on_unit_sphere(query[None, :])
    chord = 2.0 * math.sin(min(math.pi / 2.0, eps / (2.0 * EARTH_RADIUS_KM))) * _SLACK + _CHORD_SLACK
    square = (chords[0] - x) ** 2 + (chords[1] - y) ** 2 + (chords[2] - z) ** 2
    distance = np.full(columns.shape[1], -1.0)
    for at in np.flatnonzero(square <= chord * chord).tolist():
        kilometres = haversine(query[0], query[1], columns[0, at], columns[1, at])
        if kilometres <= eps:
            distance[at] = kilometres
    return distance


def haversine(lat_x: float, lon_x: float, lat_y: float, lon_y: float) -> float:
    """``2 R asin(min(1, sqrt(sin²(Δlat/2) + cos lat_x cos lat_y sin²(Δlon/2))))`` in km, of degrees."""
    lat_x, lon_x, lat_y, lon_y = (math.radians(degrees) for degrees in (lat_x, lon_x, lat_y, lon_y))
    half_lat, half_lon = math.sin(abs(lat_x - lat_y) / 2.0), math.sin(abs(lon_x - lon_y) / 2.0)
    square = half_lat * half_lat + (math.cos(lat_x) * math.cos(lat_y)) * (half_lon * half_lon)
    return 2.0 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(square)))


def nearest_by_brute_force(
    query_ids: Ids, queries: Points, ids: Ids, points: Points, k: int, metric: str
) -> QueryPairs:
    """Find the k nearest other points of each query, by comparing each query with each point.

    Parameters
    ----------
    query_ids, queries, ids, points, metric : see :func:`neighbours_by_brute_force`.
    k : number of neighbours; a query with fewer others has all of them.

    Returns
    -------
    QueryPairs
        Ordered by query, distance and id of the other point; of several as near, those with the smallest ids.

    Notes
    -----
    O(m n d) time, O(n d + m k) memory.
    """
    nearest = no_pairs()
    for begin in range(0, len(ids), _BATCH):
        of_batch = slice(begin, begin + _BATCH)
        batch_ids, columns = ids[of_batch], np.ascontiguousarray(points[of_batch].T)
        chords = _on_unit_sphere(points[of_batch]) if metric == ON_SPHERE else columns
        held = {int(query): float(distance) for query, _, distance in _last_of_k(nearest, k)}
        found = [nearest]
        for query_id, query in zip(query_ids.tolist(), queries, strict=True):
            bound = held.get(query_id, math.inf)
            if metric == ON_SPHERE:
                bound = min(bound, _bound_on_sphere(query, columns, chords, k))
                distance = _haversine_within(query, columns, chords, bound)
            else:
                distance = _within(query, columns, bound, metric)
            at = np.flatnonzero((distance >= 0) & (batch_ids != query_id))
            if len(at) > k:
                at = at[distance[at] <= np.partition(distance[at], k - 1)[k - 1]]
            found.append(QueryPairs(np.full(len(at), query_id), batch_ids[at], distance[at]))
        nearest = keep_nearest(found, k)
    return nearest


def no_pairs() -> QueryPairs:
    """Return an empty set of pairs."""
    return QueryPairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def keep_nearest(found: Sequence[QueryPairs], k: int) -> QueryPairs:
    """Keep the k nearest of each query, in the order of :func:`nearest_by_brute_force`."""
    query, other, distance = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((other, distance, query))
    place = np.arange(len(order)) - np.searchsorted(query[order], query[order])
    order = order[place < k]
    return QueryPairs(query[order], other[order], distance[order])


def _last_of_k(nearest: QueryPairs, k: int) -> Iterator[tuple[int, int, float]]:
    """The k-th neighbour of each query that has at least k."""
    place = np.arange(len(nearest.query)) - np.searchsorted(nearest.query, nearest.query)
    at = np.flatnonzero(place == k - 1)
    return zip(*(column[at].tolist() for column in nearest), strict=True)


def _bound_on_sphere(query: Points, columns: Points, chords: Points, k: int) -> float:
    """A distance within which k other points of the batch lie: the largest to the k + 1 that seem nearest."""
    if columns.shape[1] <= k + 1:
        return math.inf
    x, y, z = _on_unit_sphere(query[None, :])
    square = (chords[0] - x) ** 2 + (chords[1] - y) ** 2 + (chords[2] - z) ** 2
    near = np.argpartition(square, k)[: k + 1].tolist()  # one of them may be the query
    return max(haversine(query[0], query[1], columns[0, at], columns[1, at]) for at in near)


class Scores(NamedTuple):
    """The k-distances and local outlier factors of points, in ascending order of their ids.

    Parameters
    ----------
    ids : int64, distinct.
    k_distance, lof : float64; NaN where unknown.
    """

    ids: Ids
    k_distance: Points
    lof: Points

    def of(self, ids: Ids) -> NDArray[np.intp]:
        """Return the rows of points; -1 where there is none."""
        at = np.minimum(np.searchsorted(self.ids, ids), max(0, len(self.ids) - 1))
        is_known = self.ids[at] == ids if len(self.ids) else np.zeros(len(ids), np.bool_)
        return np.where(is_known, at, -1)


def outlier_factors(nearest: QueryPairs, k: int, k_distances: Scores) -> Scores:
    """Compute the local outlier factors of the queries whose neighbours are queries, too.

    Parameters
    ----------
    nearest : the k nearest of each query, see :func:`nearest_by_brute_force`.
    k : number of neighbours.
    k_distances : the k-distances of the neighbours of all queries; those of queries are computed here.

    Returns
    -------
    Scores
        The k-distance of every query; the factor is NaN if a neighbour is not a query.

    Notes
    -----
    The density of a point is ``k / sum max(k_distance(o), distance(o))`` over its neighbours o; the factor is
    the mean density of its neighbours divided by its own. Sums are taken in the order of distance and id. The
    factor of a point of infinite density is 1.
    """
    ids = nearest.query[::k]
    other, distance = nearest.other.reshape(-1, k), nearest.distance.reshape(-1, k)
    own = Scores(ids, distance[:, -1].copy(), np.full(len(ids), np.nan))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        total = np.zeros(len(ids))
        for column in range(k):
            total += np.maximum(distance[:, column], _k_distances_of(other[:, column], own, k_distances))
        density = k / total
        of_neighbours, is_known = np.zeros(len(ids)), np.ones(len(ids), np.bool_)
        for column in range(k):
            row = own.of(other[:, column])
            of_neighbours += density[row]
            is_known &= row >= 0
        factor = of_neighbours / k / density
    factor[np.isinf(density) & ~np.isnan(of_neighbours)] = 1.0
    return own._replace(lof=np.where(is_known, factor, np.nan))


def _k_distances_of(ids: Ids, own: Scores, others: Scores) -> Points:
    values = np.full(len(ids), np.nan)
    for known in (others, own):
        row = known.of(ids)
        values[row >= 0] = known.k_distance[row[row >= 0]]
    return values
