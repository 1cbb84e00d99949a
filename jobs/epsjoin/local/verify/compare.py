"""How stored pairs, distances, labels and scores differ from the right ones, in a sentence for each fault."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.local.verify.brute_force import (
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
    metric : see :func:`epsjoin.local.verify.brute_force.neighbours_by_brute_force`.
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
