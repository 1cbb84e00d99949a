"""An independent check of stored pairs and labels: brute force on some points, with NumPy and ``math`` only.

Nothing here uses the kernels, the metrics or the plans of the joins that it checks. The formulas are written
again, term by term in column order, so that distances must be the same bit for bit.

Two kinds of points are checked: random points (each with the same probability), and the points of random
*cells* of a grid (each occupied cell with the same probability, however few points it has), see
:func:`points_of_cells`. Random points find an error in a fraction of all points. Cells find an error in one
region, such as a lost part or file, with a higher probability where the region has few points.
:func:`missed_probability` is the probability that an error is not found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EARTH_RADIUS_KM = 6371.0088
ON_SPHERE = "haversine"
NOISE = -1
GRID = 32
"""Number of cells of the grid along each axis; the grid has at most two axes."""

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


class Labels(NamedTuple):
    """Stored labels of some points, in ascending order of their ids.

    Parameters
    ----------
    ids, cluster_id, degree : int64.
    role : str, "core", "border" or "noise".
    """

    ids: Ids
    cluster_id: Ids
    role: NDArray[np.str_]
    degree: Ids

    def of(self, id_: int) -> tuple[int, str, int] | None:
        """Return cluster, role and degree of a point; None where it has no labels."""
        at = int(np.searchsorted(self.ids, id_))
        if at == len(self.ids) or self.ids[at] != id_:
            return None
        return int(self.cluster_id[at]), str(self.role[at]), int(self.degree[at])


def neighbours_by_brute_force(
    query_ids: Ids, queries: Points, ids: Ids, points: Points, eps: float, metric: str
) -> QueryPairs:
    """Find every pair of a query and another point within eps, by comparing each query with each point.

    Parameters
    ----------
    query_ids, queries : (m,) int64 and (m, d) float64.
    ids, points : (n,) int64 and (n, d) float64; not modified.
    eps : threshold; within it is a pair whose distance, a float64, is at most eps.
    metric : "euclidean", "manhattan", "chebyshev" or "haversine" (km between points with latitude and
        longitude in degrees).

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
    nothing = QueryPairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return QueryPairs(*(np.concatenate(column) for column in zip(nothing, *found, strict=True)))


def _within(query: Points, columns: Points, eps: float, metric: str) -> Points:
    """Compute the distances to all points; -1 where they are beyond eps."""
    distance = _distances(query, columns, metric)
    return np.where(distance <= eps, distance, -1.0)


def _distances(x: Points, y: Points, metric: str) -> Points:
    """Compute the distances of two points, or of a point and many, term by term in column order."""
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


def compare_distances(
    left: Ids, right: Ids, distance: Points, left_points: Points, right_points: Points, metric: str
) -> Iterator[str]:
    """Describe the stored pairs whose distance is not that of their points, bit for bit.

    Parameters
    ----------
    left, right, distance : the stored pairs, (n,) each.
    left_points, right_points : (n, d) coordinates of the two ends.
    metric : see :func:`neighbours_by_brute_force`.
    """
    if metric == ON_SPHERE:
        ends = zip(left_points.tolist(), right_points.tolist(), strict=True)
        right_distance = np.array([haversine(*x, *y) for x, y in ends])
    else:
        right_distance = _distances(left_points.T, right_points.T, metric)
    for at in np.flatnonzero(right_distance != distance).tolist():
        yield (
            f"pair ({left[at]}, {right[at]}) is stored at {float(distance[at])!r}, "
            f"its distance is {float(right_distance[at])!r}"
        )


class NearestCores(NamedTuple):
    """The nearest core point of some points, itself not counted; all columns have the same length.

    Parameters
    ----------
    ids : int64, distinct.
    cores, clusters : int64, ids of the core points and of their clusters.
    distance : float64.
    """

    ids: Ids
    cores: Ids
    distance: NDArray[np.float64]
    clusters: Ids

    @classmethod
    def merge(cls, parts: Sequence[NearestCores]) -> NearestCores:
        """Take the nearest of several results."""
        return nearest_cores(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def nearest_cores(ids: Ids, cores: Ids, distance: NDArray[np.float64], clusters: Ids) -> NearestCores:
    """Choose the nearest core point of each id; of several as near, the one with the smallest id."""
    order = np.lexsort((cores, distance, ids))
    first = order[np.flatnonzero(np.r_[True, np.diff(ids[order]) != 0][: len(order)])]
    return NearestCores(ids[first], cores[first], distance[first], clusters[first])


def compare_pairs(found: QueryPairs, stored: QueryPairs) -> Iterator[str]:
    """Describe how stored pairs differ from those that were found, in one sentence per pair, ordered by ids.

    Parameters
    ----------
    found : the pairs of some queries, found by brute force: each pair once for each of its ends that is a
        query.
    stored : the stored pairs of the same queries, in the same form; a pair that is stored twice is in it
        twice.
    """
    expected = _as_dict(found)
    seen: set[tuple[int, int]] = set()
    for (left, right), distance in _as_pairs(stored):
        if (left, right) in seen:
            continue  # once from each end; duplicates are found by another check
        seen.add((left, right))
        right_distance = expected.get((left, right))
        if right_distance is None:
            yield f"pair ({left}, {right}) at {distance!r} is stored, but these points are no pair"
        elif right_distance != distance:
            yield f"pair ({left}, {right}) is stored at {distance!r}, its distance is {right_distance!r}"
    for (left, right), distance in sorted(expected.items()):
        if (left, right) not in seen:
            yield f"pair ({left}, {right}) at {distance!r} is missing"


def _as_pairs(neighbours: QueryPairs) -> Iterator[tuple[tuple[int, int], float]]:
    left = np.minimum(neighbours.query, neighbours.other)
    right = np.maximum(neighbours.query, neighbours.other)
    order = np.lexsort((right, left))
    ends = zip(left[order].tolist(), right[order].tolist(), strict=True)
    return zip(ends, neighbours.distance[order].tolist(), strict=True)


def _as_dict(neighbours: QueryPairs) -> dict[tuple[int, int], float]:
    return dict(_as_pairs(neighbours))


def check_labels(query_ids: Ids, found: QueryPairs, labels: Labels, min_pts: int) -> Iterator[str]:
    """Describe which queries have wrong labels by the definition, in one sentence each.

    Parameters
    ----------
    query_ids : (m,) distinct ids.
    found : all neighbours of all queries.
    labels : labels of the queries and of all their neighbours.
    min_pts : minimum number of points within eps, the point itself included, of a core point.

    Notes
    -----
    A point and its neighbours can show whether the degree is right; whether the point is core by its degree;
    whether core points within eps of each other are in one cluster, and none of them has a smaller id than
    the cluster's name; whether a border point is in the cluster of its nearest core point (of several as
    near, the one with the smallest id); and whether a noise point has no core point within eps. They cannot
    show that two clusters have one name though no chain of core points connects them. Whether the neighbours
    are core points is taken from their labels.
    """
    order = np.lexsort((found.other, found.distance, found.query))
    query, other = found.query[order], found.other[order]
    for id_ in np.sort(query_ids).tolist():
        begin, end = np.searchsorted(query, [id_, id_ + 1])
        fault = _fault_of(id_, other[begin:end].tolist(), labels, min_pts)
        if fault is not None:
            yield f"point {id_}: {fault}"


def _fault_of(id_: int, neighbours: list[int], labels: Labels, min_pts: int) -> str | None:
    """Describe what is wrong with the labels of a point, None if nothing is; neighbours are nearest first."""
    own = labels.of(id_)
    if own is None:
        return "it has no row in clusters"
    cluster_id, role, degree = own
    if degree != len(neighbours) + 1:
        return f"degree {degree} is stored, {len(neighbours) + 1} points are within eps, itself included"
    of_neighbours = [(other, labels.of(other)) for other in neighbours]
    cores = [(other, label[0]) for other, label in of_neighbours if label is not None and label[1] == "core"]
    expected = "core" if degree >= min_pts else "border" if cores else "noise"
    if role != expected:
        return f"role {role} is stored, it is {expected} (degree {degree}, min_pts {min_pts})"
    if role == "noise":
        return None if cluster_id == NOISE else f"it is noise, but in cluster {cluster_id}"
    if role == "border":
        nearest, name = cores[0]
        return (
            None
            if cluster_id == name
            else (f"cluster {cluster_id} is stored, its nearest core point {nearest} is in {name}")
        )
    if cluster_id > id_:
        return f"cluster {cluster_id} is stored, it is named by its smallest core id, at most {id_}"
    for other, name in cores:
        if name != cluster_id:
            return f"it is core in cluster {cluster_id}, the core point {other} within eps is in {name}"
    return None


class Cells(NamedTuple):
    """A grid of cells over points.

    Parameters
    ----------
    axes : (a,) int64, the widest axes, at most two.
    low, side : (a,) float64, lower corner of the grid, and sides of a cell. Points beyond the grid are in its
        outermost cells.
    seed : seed of the choice of cells and points.
    """

    axes: Ids
    low: Points
    side: Points
    seed: int

    @classmethod
    def over(cls, sample: Points, seed: int) -> Cells:
        """Make a grid over the bounding box of some points."""
        low, high = sample.min(axis=0), sample.max(axis=0)
        width = high - low
        axes = np.sort(np.argsort(-width, kind="stable")[:2])
        with np.errstate(over="ignore"):
            side = np.where(width[axes] > 0, width[axes] / GRID, 1.0)
        return cls(axes, low[axes], side, seed)

    def of(self, points: Points) -> Ids:
        """Return the number of the cell of each point."""
        place = np.clip((points[:, self.axes] - self.low) / self.side, 0, GRID - 1).astype(np.int64)
        return np.asarray(place @ GRID ** np.arange(len(self.axes), dtype=np.int64))


def points_of_cells(ids: Ids, points: Points, cells: Cells, n_cells: int, per_cell: int) -> Ids:
    """Choose ``n_cells`` random occupied cells, and at most ``per_cell`` random points of each.

    The cells and points with the smallest seeded hashes are chosen. So the choice may run on parts of the
    points, and then on the union of the results: that is the choice from all points.

    Returns
    -------
    (k,) int64, row numbers, ascending.
    """
    cell = cells.of(points)
    occupied = np.unique(cell)
    chosen = occupied[np.argsort(_hash(occupied, cells.seed), kind="stable")[:n_cells]]
    rows = np.flatnonzero(np.isin(cell, chosen))
    rows = rows[np.lexsort((ids[rows], _hash(ids[rows], cells.seed), cell[rows]))]
    begins = np.searchsorted(cell[rows], cell[rows])  # where the cell of the row begins
    return np.sort(rows[np.arange(len(rows)) - begins < per_cell])


def _hash(values: Ids, seed: int) -> NDArray[np.uint64]:
    """Mix 64 bits (splitmix64, Steele et al., OOPSLA 2014)."""
    x = values.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def missed_probability(fraction: float, n: int, checked: int) -> float:
    """Compute the probability that no wrong point is among ``checked`` of n points, chosen at random.

    With b = ceil(fraction n) wrong points it is ``C(n - b, checked) / C(n, checked)``, at most
    ``(1 - fraction) ** checked``. For cells, n is the number of occupied cells.
    """
    wrong = math.ceil(fraction * n)
    if checked > n - wrong:
        return 0.0
    log_ways = (math.lgamma(n - wrong + 1), -math.lgamma(n - wrong - checked + 1))
    return math.exp(math.fsum((*log_ways, -math.lgamma(n + 1), math.lgamma(n - checked + 1))))
