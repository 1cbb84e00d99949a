"""HDBSCAN by its definition: cut the heaviest edges of a tree, look at what is left, again and again."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

Edge = tuple[float, int, int]
"""Weight and two points."""


@dataclass
class Cluster:
    """A cluster of the hierarchy: when it begins, when its points fall out, and what it splits into."""

    points: set[int]
    birth: float
    above: Cluster | None = None
    falls: dict[int, float] = field(default_factory=dict)
    parts: list[Cluster] = field(default_factory=list)

    @property
    def stability(self) -> float:
        of_parts = sum((part.birth - self.birth) * len(part.points) for part in self.parts)
        return sum(at - self.birth for at in self.falls.values()) + of_parts

    @property
    def size(self) -> int:
        return len(self.points) if self.above else sum(len(part.points) for part in self.parts)


def hierarchy(
    points: set[int], edges: list[Edge], least: int, birth: float = 0.0, above: Cluster | None = None
) -> Cluster:
    """The cluster of these points, which the edges join, and all below it."""
    cluster = Cluster(set(points), birth, above)
    while edges:
        heaviest = max(weight for weight, _, _ in edges)
        edges = [edge for edge in edges if edge[0] < heaviest]
        density = 1.0 / heaviest
        pieces, left = [], set(points)
        while left:
            pieces.append(_joined(min(left), edges))
            left -= pieces[-1]
        large = [piece for piece in pieces if len(piece) >= least]
        for piece in pieces:
            if len(piece) < least:
                cluster.falls |= dict.fromkeys(piece, density)
                points = points - piece
        edges = [edge for edge in edges if edge[1] in points]
        if len(large) > 1:
            cluster.parts = [
                hierarchy(piece, [e for e in edges if e[1] in piece], least, density, cluster)
                for piece in large
            ]
            return cluster
    return cluster


def _joined(point: int, edges: list[Edge]) -> set[int]:
    found, waiting = {point}, [point]
    while waiting:
        at = waiting.pop()
        for _, one, other in edges:
            for near, far in ((one, other), (other, one)):
                if near == at and far not in found:
                    found.add(far)
                    waiting.append(far)
    return found


def taken(root: Cluster, eps: float, most: int | None, method: str, allow_single: bool) -> list[Cluster]:
    """The clusters that are chosen."""
    chosen = _leaves(root) if method == "leaf" else _best(root, most, allow_single)[1]
    chosen = [each for each in chosen if each is not root or method != "leaf"]
    if eps > 0.0 and chosen != [root]:
        chosen = [_climb(each, eps, allow_single) for each in chosen]
    others = [each for each in chosen if each is not root]
    return others or chosen[:1]


def _leaves(cluster: Cluster) -> list[Cluster]:
    return [leaf for part in cluster.parts for leaf in _leaves(part)] or [cluster]


def _best(cluster: Cluster, most: int | None, allow_single: bool) -> tuple[float, list[Cluster]]:
    below = [_best(part, most, allow_single) for part in cluster.parts]
    value, chosen = sum(each[0] for each in below), [one for each in below for one in each[1]]
    is_refused = cluster.above is None and not allow_single
    if is_refused or value > cluster.stability or (most is not None and cluster.size > most):
        return value, chosen
    return cluster.stability, [cluster]


def _climb(cluster: Cluster, eps: float, allow_single: bool) -> Cluster:
    if cluster.above is None or 1.0 / cluster.birth >= eps:
        return cluster
    while True:
        above = cluster.above
        if above is None or (above.above is None and not allow_single):
            return cluster
        cluster = above
        if cluster.above is None or 1.0 / cluster.birth >= eps:
            return cluster


def labels(root: Cluster, chosen: list[Cluster], eps: float) -> list[int]:
    """The cluster of each point, by its smallest point; -1 for none."""
    found = [-1] * len(root.points)
    for cluster in chosen:
        inside = cluster.points
        if cluster is root:
            at = _all_falls(root)
            densest = max([*root.falls.values(), *(part.birth for part in root.parts)])
            enough = 1.0 / eps if eps > 0.0 else densest
            inside = {point for point in inside if at[point] >= enough}
        for point in inside:
            found[point] = min(inside)
    return found


def outlier_scores(root: Cluster) -> dict[int, float]:
    """GLOSH of each point: how much denser it becomes where the point falls out."""
    densest = max(_all_falls(root).values())
    scores = {point: (densest - at) / densest for point, at in root.falls.items()}
    for part in root.parts:
        scores |= outlier_scores(part)
    return scores


def _all_falls(cluster: Cluster) -> dict[int, float]:
    found = dict(cluster.falls)
    for part in cluster.parts:
        found |= _all_falls(part)
    return found


def edges_of(points: list[tuple[float, float]], min_samples: int = 1) -> list[Edge]:
    """A shortest spanning tree of points under mutual reachability (Kruskal)."""
    core = [sorted(math.dist(x, y) for y in points)[min_samples - 1] for x in points]
    pairs = sorted(
        (max(math.dist(x, y), core[i], core[j]), i, j)
        for i, x in enumerate(points)
        for j, y in enumerate(points[:i])
    )
    home, edges = list(range(len(points))), []
    for weight, i, j in pairs:
        if home[i] != home[j]:
            edges.append((weight, i, j))
            home = [home[i] if each == home[j] else each for each in home]
    return edges
