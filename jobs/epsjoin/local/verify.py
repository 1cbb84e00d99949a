"""An independent check of stored pairs, labels, chains of core points and scores, by NumPy and ``math`` only.

Nothing here uses the kernels, the metrics or the plans of the joins that it checks. What is right is computed
by :mod:`epsjoin.local.brute_force`.

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

from epsjoin.local.brute_force import (
    ON_SPHERE,
    Ids,
    Points,
    QueryPairs,
    Scores,
    distances_between,
    haversine,
)

NOISE = -1
"""Cluster id of noise as the table's contract describes it: not the constant of the code that is checked."""
GRID = 32
"""Number of cells of the grid along each axis; the grid has at most two axes."""


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


def compare_distances(
    left: Ids, right: Ids, distance: Points, left_points: Points, right_points: Points, metric: str
) -> Iterator[str]:
    """Describe the stored pairs whose distance is not that of their points, bit for bit.

    Parameters
    ----------
    left, right, distance : the stored pairs, (n,) each.
    left_points, right_points : (n, d) coordinates of the two ends.
    metric : see :func:`epsjoin.local.brute_force.neighbours_by_brute_force`.
    """
    if metric == ON_SPHERE:
        ends = zip(left_points.tolist(), right_points.tolist(), strict=True)
        true_distance = np.array([haversine(*x, *y) for x, y in ends])
    else:
        true_distance = distances_between(left_points.T, right_points.T, metric)
    differs = true_distance.view(np.int64) != np.ascontiguousarray(distance).view(np.int64)
    for at in np.flatnonzero(differs).tolist():
        yield (
            f"pair ({left[at]}, {right[at]}) is stored at {float(distance[at])!r}, "
            f"its distance is {float(true_distance[at])!r}"
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


class Chains(NamedTuple):
    """Core points that chains of core points connect; all columns have the same length.

    Parameters
    ----------
    ids : int64, core points.
    roots : int64, for each a core point that a chain connects with it.
    clusters : int64, the stored clusters of the points.
    """

    ids: Ids
    roots: Ids
    clusters: Ids

    @classmethod
    def merge(cls, parts: Sequence[Chains]) -> Chains:
        """Follow the chains of several results: each point once, with the smallest id connected to it."""
        ids, roots, clusters = (np.concatenate(column) for column in zip(*parts, strict=True))
        every, at = np.unique(np.concatenate([ids, roots]), return_inverse=True)
        smallest = connect(at[: len(ids)], at[len(ids) :], len(every))
        cluster_of = np.empty(len(every), np.int64)
        cluster_of[at] = np.concatenate([clusters, clusters])
        return cls(every, every[smallest], cluster_of)


def connect(left: Ids, right: Ids, n: int) -> Ids:
    """Find the smallest row that each of n rows is connected to, itself included, by chains of pairs of rows.

    Notes
    -----
    In each round the root of every pair's larger end takes the smaller end's root as its parent, and then all
    rows take their parents' parents until nothing changes.
    """
    parent = np.arange(n)
    while len(left):
        low, high = np.minimum(parent[left], parent[right]), np.maximum(parent[left], parent[right])
        is_open = low != high
        left, right = left[is_open], right[is_open]
        np.minimum.at(parent, high[is_open], low[is_open])
        while (parent[parent] != parent).any():
            parent = parent[parent]
    return parent


def torn_clusters(chains: Chains) -> Iterator[str]:
    """Describe the clusters whose core points are not all connected, in the order of their names.

    Parameters
    ----------
    chains : merged, with all core points of each cluster that are in a pair with another one.
    """
    is_root = chains.ids == chains.roots
    roots, clusters = chains.ids[is_root], chains.clusters[is_root]
    order = np.lexsort((roots, clusters))
    roots, clusters = roots[order], clusters[order]
    names, first, count = np.unique(clusters, return_index=True, return_counts=True)
    for at in np.flatnonzero(count > 1).tolist():
        one, other = roots[first[at]], roots[first[at] + 1]
        yield (
            f"cluster {names[at]} is {count[at]} clusters: no chain of core points connects {one} and {other}"
        )


def compare_scores(right: Scores, scored: Ids, stored: Scores) -> Iterator[str]:
    """Describe which stored k-distances and outlier factors are not the right ones, bit for bit.

    Parameters
    ----------
    right : what is right of the checked points.
    scored : those whose factor is checked, too; sorted.
    stored : what is stored of these points, and maybe of others.
    """
    rows, has_factor = stored.of(right.ids), np.isin(right.ids, scored)
    for id_, row, k_distance, lof, is_scored in zip(
        *(column.tolist() for column in (right.ids, rows, right.k_distance, right.lof, has_factor)),
        strict=True,
    ):
        if row < 0:
            yield f"point {id_}: it has no row in outliers"
            continue
        compared = [("k_distance", k_distance, float(stored.k_distance[row]))]
        compared += [("lof", lof, float(stored.lof[row]))] if is_scored else []
        for name, expected, found in compared:
            if not _is_same(found, expected):
                is_stored = "null or NaN" if math.isnan(found) else repr(found)
                is_right = "null" if math.isnan(expected) else repr(expected)
                yield f"point {id_}: {name} {is_stored} is stored, it is {is_right}"


def _is_same(one: float, other: float) -> bool:
    """Whether two numbers are the same in every bit, for zeros have a sign; NaN is the same as NaN."""
    is_equal = one == other and math.copysign(1.0, one) == math.copysign(1.0, other)
    return is_equal or (math.isnan(one) and math.isnan(other))


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
        true_distance = expected.get((left, right))
        if true_distance is None:
            yield f"pair ({left}, {right}) at {distance!r} is stored, but these points are no pair"
        elif not _is_same(true_distance, distance):
            yield f"pair ({left}, {right}) is stored at {distance!r}, its distance is {true_distance!r}"
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
