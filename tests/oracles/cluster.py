"""DBSCAN as the paper defines it: sets, loops over all points, reachability step by step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

NOISE = -1


def components(edges: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Every node that has an edge -> the smallest node that can be reached from it."""
    beside: dict[int, set[int]] = {}
    for one, other in edges:
        beside.setdefault(one, set()).add(other)
        beside.setdefault(other, set()).add(one)
    smallest: dict[int, int] = {}
    for start in sorted(beside):
        if start in smallest:
            continue
        reached, todo = {start}, [start]
        while todo:
            for node in beside[todo.pop()] - reached:
                reached.add(node)
                todo.append(node)
        for node in reached:
            smallest[node] = start
    return smallest


def degrees(ids: Iterable[int], pairs: Iterable[tuple[int, int, float]]) -> dict[int, int]:
    """Points within eps of every point, the point itself included."""
    counts = dict.fromkeys(ids, 1)
    for one, other, _ in pairs:
        counts[one] += 1
        counts[other] += 1
    return counts


def weighted_degrees(weight: dict[int, float], pairs: Iterable[tuple[int, int, float]]) -> dict[int, float]:
    """Sum of the weights within eps of every point, its own included, rounded once."""
    terms = {point: [own] for point, own in weight.items()}
    for one, other, _ in pairs:
        terms[one].append(weight[other])
        terms[other].append(weight[one])
    return {point: math.fsum(each) for point, each in terms.items()}


def dbscan(
    ids: list[int],
    pairs: list[tuple[int, int, float]],
    min_pts: int,
    weight: dict[int, float] | None = None,
) -> dict[int, tuple[int, str, float]]:
    """Id -> (cluster id, role, degree); ``pairs`` are all (id, id, distance) within eps, each once."""
    degree = degrees(ids, pairs) if weight is None else weighted_degrees(weight, pairs)
    core = {point for point in ids if degree[point] >= min_pts}
    cluster = components((one, other) for one, other, _ in pairs if one in core and other in core)
    for point in core:
        cluster.setdefault(point, point)
    found = {}
    for point in ids:
        if point in core:
            found[point] = (cluster[point], "core", degree[point])
            continue
        near = [
            (distance, other if one == point else one)
            for one, other, distance in pairs
            if (one == point and other in core) or (other == point and one in core)
        ]
        found[point] = (
            (cluster[min(near)[1]], "border", degree[point]) if near else (NOISE, "noise", degree[point])
        )
    return found


class Labels(NamedTuple):
    """Labels of points 0, 1, ...: cluster id, role ("core", "border", "noise") and degree, an array each."""

    cluster_id: npt.NDArray[np.int64]
    role: npt.NDArray[np.str_]
    degree: npt.NDArray[np.int64]


def dbscan_of_rows(
    n: int,
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    distance: npt.NDArray[np.float64],
    min_pts: int,
) -> Labels:
    """As :func:`dbscan` for the ids 0 to n - 1, by SciPy's components: for sets too large for loops."""
    degree = 1 + np.bincount(left, minlength=n) + np.bincount(right, minlength=n)
    is_core = degree >= min_pts
    both = is_core[left] & is_core[right]
    ones = np.ones(both.sum())
    _, component = connected_components(coo_array((ones, (left[both], right[both])), (n, n)), directed=False)
    _, smallest = np.unique(component, return_index=True)  # the first row of each component
    cluster_id = np.where(is_core, smallest[component], NOISE)
    role = np.where(is_core, "core", "noise").astype("<U6")
    one = is_core[left] != is_core[right]
    core = np.where(is_core[left], left, right)[one]
    border = np.where(is_core[left], right, left)[one]
    order = np.lexsort((core, distance[one], border))
    found, first = np.unique(border[order], return_index=True)
    cluster_id[found], role[found] = cluster_id[core[order][first]], "border"
    return Labels(cluster_id, role, degree)


def numbered(cluster_ids: list[int]) -> list[int]:
    """Clusters named by their smallest core row -> 0, 1, ... in that order; noise stays."""
    names = sorted(set(cluster_ids) - {NOISE})
    return [NOISE if name == NOISE else names.index(name) for name in cluster_ids]
