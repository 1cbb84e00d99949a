"""Local outlier factors as definitions 3 to 7 of the paper, with exactly k neighbours, ties by id."""

from __future__ import annotations

import functools
import heapq
import math
import operator
from collections.abc import Callable, Iterable


def nearest(pairs: Iterable[tuple[int, int, float]], k: int) -> dict[int, list[tuple[float, int]]]:
    """Id -> its at most k smallest (distance, neighbour); ids in no pair are left out."""
    near: dict[int, list[tuple[float, int]]] = {}
    for one, other, distance in pairs:
        near.setdefault(one, []).append((distance, other))
        near.setdefault(other, []).append((distance, one))
    return {point: sorted(entries)[:k] for point, entries in near.items()}


def lof(
    ids: list[int], pairs: list[tuple[int, int, float]], k: int
) -> dict[int, tuple[float | None, float | None]]:
    """Id -> (k-distance, factor), each None where it hangs on a distance that no pair has."""
    near = nearest(pairs, k)
    k_distance = {point: near[point][-1][0] for point in ids if len(near.get(point, [])) == k}
    density: dict[int, float] = {}
    for point in k_distance:
        if all(other in k_distance for _, other in near[point]):
            total = _sum(max(k_distance[other], distance) for distance, other in near[point])
            density[point] = k / total if total > 0 else math.inf
    factor: dict[int, float] = {}
    for point, own in density.items():
        if all(other in density for _, other in near[point]):
            mean = _sum(density[other] for _, other in near[point]) / k
            factor[point] = 1.0 if math.isinf(own) else mean / own
    return {point: (k_distance.get(point), factor.get(point)) for point in ids}


def _sum(terms: Iterable[float]) -> float:
    return functools.reduce(operator.add, terms)  # in order: sum() compensates rounding since Python 3.12


def rank(rows: list[tuple[int, float | None, float | None]]) -> dict[int, int]:
    """Id -> rank of (id, k-distance, factor): by factor, then by k-distance, largest first, then by id."""
    unknown = math.inf
    ordered = sorted(
        (
            -(unknown if factor is None else factor),
            -(unknown if k_distance is None else k_distance),
            point,
        )
        for point, k_distance, factor in rows
    )
    return {point: place for place, (_, _, point) in enumerate(ordered, start=1)}


def knn(
    queries: list[list[float]] | None,
    points: list[list[float]],
    k: int,
    distance: Callable[[list[float], list[float]], float],
) -> list[list[tuple[float, int]]]:
    """For each query its k smallest (distance, row); without queries the points, each without itself."""
    return [
        heapq.nsmallest(
            k,
            (
                (distance(query, point), row)
                for row, point in enumerate(points)
                if queries is not None or row != number
            ),
        )
        for number, query in enumerate(points if queries is None else queries)
    ]


def db_outliers(n: int, pairs: Iterable[tuple[int, int]], share: tuple[int, int]) -> list[bool]:
    """Whether at least ``share[0]`` of ``share[1]`` points are in no pair with the point."""
    farther = [n - 1] * n  # no point is far from itself
    for ends in pairs:
        for row in ends:
            farther[row] -= 1
    return [each * share[1] >= share[0] * n for each in farther]
