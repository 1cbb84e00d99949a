"""Who is measured. Each builds what it needs from the points alone, so the clock sees all of its work."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin import dbscan, iter_self_join, self_join
from epsjoin.kernels.distances import EARTH_RADIUS_KM

from .sets import Points, Set

Contender = Callable[[Points, float], Any]
MIN_PTS = 5


class Clusters(NamedTuple):
    """Labels, -1 for noise, and which points are core."""

    labels: NDArray[np.int64]
    is_core: NDArray[np.bool_]


def epsjoin_pairs(points: Points, eps: float, metric: str = "euclidean", n_jobs: int = 1) -> int:
    return len(self_join(points, eps, metric, n_jobs=n_jobs).left)


def epsjoin_batches(points: Points, eps: float, metric: str = "euclidean") -> int:
    """All pairs kept, in the order in which they are found, as the peers give them."""
    return sum(len(batch.left) for batch in list(iter_self_join(points, eps, metric)))


def ckdtree_pairs(points: Points, eps: float) -> int:
    from scipy.spatial import cKDTree

    return len(cKDTree(points).query_pairs(eps, output_type="ndarray"))


def balltree_pairs(points: Points, eps: float) -> int:
    """Points are (lat, lon) in degrees, eps in km. The tree gives each pair twice, and each point once."""
    from sklearn.neighbors import BallTree

    radians = np.radians(points)
    rows = BallTree(radians, metric="haversine").query_radius(radians, eps / EARTH_RADIUS_KM)
    return (sum(map(len, rows)) - len(points)) // 2


def join_contenders(chosen: Set) -> dict[str, Contender]:
    """The peer first, then the sorted join, then the pairs as they are found."""
    if chosen.metric == "haversine":
        return {
            "BallTree": balltree_pairs,
            "epsjoin": partial(epsjoin_pairs, metric="haversine"),
            "unsorted": partial(epsjoin_batches, metric="haversine"),
        }
    return {"cKDTree": ckdtree_pairs, "epsjoin": epsjoin_pairs, "unsorted": epsjoin_batches}


def in_order_of_first_coordinate(points: Points) -> Points:
    """Rows in the order of their first coordinate: n keys of 8 bytes are sorted, each with its row in it."""
    row_bits = max(1, (len(points) - 1).bit_length())
    first = points[:, 0] - points[:, 0].min()
    first *= (2.0 ** (62 - row_bits) - 1.0) / (first.max() or 1.0)
    keys = first.astype(np.int64)
    keys <<= row_bits
    keys |= np.arange(len(points))
    keys.sort()
    keys &= (1 << row_bits) - 1
    ordered: Points = points[keys]
    return ordered


def machine_limit(points: Points, n_pairs: int) -> int:
    """What no join that sorts can do without: points are read, n keys sorted, rows gathered, pairs written.

    No distance is computed; returns the number of pairs that were written.
    """
    points.sum()
    in_order_of_first_coordinate(points)
    left, right = np.full(n_pairs, 1), np.full(n_pairs, 2)
    distance = np.full(n_pairs, 0.5)
    return min(len(left), len(right), len(distance))


def epsjoin_clusters(points: Points, eps: float) -> Clusters:
    found = dbscan(points, eps, MIN_PTS, n_jobs=1)
    return Clusters(found.labels, found.is_core)


def sklearn_clusters(points: Points, eps: float, algorithm: str = "auto") -> Clusters:
    from sklearn.cluster import DBSCAN

    found = DBSCAN(eps=eps, min_samples=MIN_PTS, algorithm=algorithm, n_jobs=2).fit(points)
    is_core = np.zeros(len(points), bool)
    is_core[found.core_sample_indices_] = True
    return Clusters(found.labels_, is_core)


def are_same_clusters(one: Clusters, other: Clusters) -> bool:
    """Whether core points, noise, and the core points' clusters are the same, whatever the clusters' names.

    A border point may belong to any cluster of which it has a core point within eps: libraries differ there.
    """
    if not np.array_equal(one.is_core, other.is_core):
        return False
    if not np.array_equal(one.labels == -1, other.labels == -1):
        return False
    names = np.column_stack((one.labels, other.labels))[one.is_core]
    both = len(np.unique(names, axis=0))
    return both == len(np.unique(names[:, 0])) == len(np.unique(names[:, 1]))
