"""Local outlier factors as definitions 3 to 7 of the paper, with exactly k neighbours, ties by id."""

from __future__ import annotations

import math
from collections.abc import Iterable


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
    """Id -> (k-distance, factor), each None where it hangs on a distance beyond eps."""
    near = nearest(pairs, k)
    k_distance = {point: near[point][-1][0] for point in ids if len(near.get(point, [])) == k}
    density: dict[int, float] = {}
    for point in k_distance:
        if all(other in k_distance for _, other in near[point]):
            total = sum(max(k_distance[other], distance) for distance, other in near[point])
            density[point] = k / total if total > 0 else math.inf
    factor: dict[int, float] = {}
    for point, own in density.items():
        if all(other in density for _, other in near[point]):
            mean = sum(density[other] for _, other in near[point]) / k
            factor[point] = 1.0 if math.isinf(own) else mean / own
    return {point: (k_distance.get(point), factor.get(point)) for point in ids}


def rank(rows: list[tuple[int, float | None, float | None, int]]) -> dict[int, int]:
    """Id -> rank of (id, k-distance, factor, degree): the order of outlyingness, said in three lists."""
    far = sorted((degree, point) for point, k_distance, _, degree in rows if k_distance is None)
    near_far = sorted(
        (-k_distance, point)
        for point, k_distance, factor, _ in rows
        if factor is None and k_distance is not None
    )
    scored = sorted((-factor, point) for point, _, factor, _ in rows if factor is not None)
    return {point: place for place, (_, point) in enumerate([*far, *near_far, *scored], start=1)}
