"""The minimum spanning tree under mutual reachability by Prim's algorithm, from all distances."""

from __future__ import annotations

import math

from .join import all_distances


def prim(
    points: list[list[float]], min_samples: int, metric: str, p: float = 0.0, alpha: float = 1.0
) -> list[float]:
    """The weights of the edges, rising: they are the same for every minimum spanning tree."""
    n = len(points)
    far = all_distances(points, points, metric, p).tolist()
    core = [sorted([0.0, *(far[i][:i] + far[i][i + 1 :])])[min_samples - 1] for i in range(n)]
    outside, weights = dict.fromkeys(range(1, n), math.inf), []
    last = 0
    while outside:
        for row in outside:
            outside[row] = min(outside[row], max(far[last][row] / alpha, core[last], core[row]))
        last = min(outside, key=lambda row: outside[row])
        weights.append(outside.pop(last))
    return sorted(weights)
