"""DBSCAN of an array: the join's pairs are taken batch by batch, few of them are kept.

1. *Degrees* grow with every batch. Without negative weights they never fall, so a point that has reached
   ``min_pts`` is core for good.
2. A pair of two points known to be core is a *union* at once, and forgotten. The others wait. A pair waits
   only where one end has fewer than ``min_pts`` points so far, so a point lets at most ``min_pts - 2`` pairs
   wait: all in all ``n (min_pts - 2)``, however dense the data is.
3. After the last batch the roles are final: a waiting pair is a union, or shows a *border* point one of its
   core points, of which the nearest counts, or says nothing.

The same clusters as those of :mod:`epsjoin.local.cluster`, which works on pairs in parts.

References
----------
Ester, Kriegel, Sander, Xu: A density-based algorithm for discovering clusters, KDD 1996, definitions 1-6.
Departure: there a border point within eps of several clusters goes to the one found first; here to that of
its nearest core point, so that labels depend on nothing but the points and their order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.cluster import density
from epsjoin.kernels.cluster.density import Ends, Flags
from epsjoin.local.arguments import FloatColumn, IntColumn, check_count, check_points
from epsjoin.local.cluster.from_pairs import NOISE
from epsjoin.local.join.arrays import iter_self_join
from epsjoin.local.metric import Metric
from epsjoin.local.progress import ProgressArgument
from epsjoin.local.sweep.pairs import Pairs


class Dbscan(NamedTuple):
    """Clusters of points, in the order of the points.

    Parameters
    ----------
    labels : (n,) int64, clusters 0, 1, ... in the order of their smallest core row; ``NOISE`` (-1) for noise.
    is_core : (n,) bool.
    degree : (n,) int64, points within eps, the point itself included; with weights (n,) float64, their sum.
    """

    labels: IntColumn
    is_core: Flags
    degree: IntColumn | FloatColumn


class Waiting(NamedTuple):
    """Pairs of which one end at least was not known to be core.

    Parameters
    ----------
    left, right : (m,) int32 rows, int64 from 2**31 points on.
    distance : (m,) float64.
    """

    left: Ends
    right: Ends
    distance: FloatColumn


def dbscan(
    points: npt.ArrayLike,
    eps: float,
    min_pts: int,
    metric: str | Metric = "euclidean",
    *,
    sample_weight: npt.ArrayLike | None = None,
    n_jobs: int = 1,
    progress: ProgressArgument = False,
    max_pairs: int | None = None,
) -> Dbscan:
    """Find the density clusters of points.

    Parameters
    ----------
    points : (n, d) floats or integers, see :func:`epsjoin.local.arguments.check_points`; not modified.
    eps : threshold in the metric's unit, finite and above 0; within means at most eps.
    min_pts : points within eps, the point itself included, that make a point core; at least 1.
    metric : a name for :func:`epsjoin.local.metric.get_metric`, or what it returned.
    sample_weight : (n,) finite numbers, may be 0 or negative; a point counts as often as its weight says,
        also for itself. It is core where the weights within eps add up to ``min_pts`` at least.
    n_jobs, progress, max_pairs : of the join, see :func:`epsjoin.local.join.arrays.iter_self_join`.

    Returns
    -------
    Dbscan
        A border point has the label of its nearest core point, ties: the smallest row.

    Raises
    ------
    ArgumentError
        A wrong argument, a value that is NaN or infinite, a point for which the metric is not defined.
    BudgetError
        There are more than ``max_pairs`` pairs.

    Notes
    -----
    Beside the join: O(pairs), some 10 to 30 ns each. 41 bytes per point and 16 per waiting pair (24 from
    2**31 points on), of which there are at most ``n (min_pts - 2)``; with weights there may be more, with a
    negative one, which lets degrees fall, all pairs wait. Weights are added in twice the precision of float64
    and rounded once, so that the order of points and pairs does not show in the degree: ten tenths are one.

    Examples
    --------
    >>> found = dbscan([[0.0], [1.0], [2.0], [3.5], [9.0]], eps=1.5, min_pts=3)
    >>> found.labels.tolist(), found.is_core.tolist(), found.degree.tolist()
    ([0, 0, 0, 0, -1], [False, True, True, False, False], [2, 3, 3, 2, 1])
    """
    min_pts = check_count("min_pts", min_pts)
    values = check_points("points", points)
    n = len(values)
    weight = None if sample_weight is None else _weights(sample_weight, n)
    batches = iter_self_join(values, eps, metric, n_jobs=n_jobs, progress=progress, max_pairs=max_pairs)
    degrees = _Counts(n, min_pts) if weight is None else _Weights(weight, min_pts)
    parent = np.arange(n)
    waiting: list[Waiting] = []
    for pairs in batches:
        degrees.add(pairs)
        waiting.append(_unite(pairs, degrees.is_core, parent))  # after all degrees of the batch have grown
    degree, is_core = degrees.final()
    home, home_distance = np.full(n, NOISE), np.full(n, np.inf)
    for waited in waiting:
        others = _unite(waited, is_core, parent)
        density.find_nearest_cores(*others, is_core, home, home_distance)
    return Dbscan(density.number_clusters(parent, is_core, home), is_core, degree)


class _Counts:
    """Degrees that grow by batches of pairs, and the points that are core whatever follows."""

    def __init__(self, n: int, min_pts: int) -> None:
        self.min_pts = min_pts
        self.degree = np.ones(n, dtype=np.int64)
        self.is_core = self.degree >= min_pts

    def add(self, pairs: Pairs) -> None:
        density.count_ends(pairs.left, pairs.right, self.min_pts, self.degree, self.is_core)

    def final(self) -> tuple[IntColumn, Flags]:
        return self.degree, self.is_core


class _Weights:
    """The same for sums of weights."""

    def __init__(self, weight: FloatColumn, min_pts: int) -> None:
        self.min_pts, self.weight = min_pts, weight
        self.degree, self.rest = weight.copy(), np.zeros(weight.size)
        self.core_at = math.inf if (weight < 0).any() else float(min_pts)  # with one, sums may fall again
        self.is_core = weight >= self.core_at

    def add(self, pairs: Pairs) -> None:
        density.add_weights(
            pairs.left, pairs.right, self.weight, self.core_at, self.degree, self.rest, self.is_core
        )

    def final(self) -> tuple[FloatColumn, Flags]:
        degree = self.degree + self.rest
        return degree, self.is_core | (degree >= self.min_pts)  # once core, core: it was united as such


def _unite(pairs: Pairs | Waiting, is_core: Flags, parent: IntColumn) -> Waiting:
    """Unite the cores among the pairs; the other pairs, with rows as small as they fit."""
    m = len(pairs.left)
    left, right, distance = _rows(parent.size, m), _rows(parent.size, m), np.empty(m)
    size = density.unite_cores(
        pairs.left, pairs.right, pairs.distance, is_core, parent, left, right, distance
    )
    return Waiting(left[:size].copy(), right[:size].copy(), distance[:size].copy())


def _rows(n: int, m: int) -> Ends:
    return np.empty(m, np.int32) if n <= np.iinfo(np.int32).max else np.empty(m, np.int64)


def _weights(sample_weight: npt.ArrayLike, n: int) -> FloatColumn:
    weight = np.asarray(sample_weight)
    if weight.shape != (n,) or weight.dtype.kind not in "fiu":
        raise ArgumentError(
            f"sample_weight must be one number per point, {n}, not {weight.dtype} of shape {weight.shape}"
        )
    weight = weight.astype(np.float64)
    if not np.isfinite(np.abs(weight).sum()):
        raise ArgumentError("sample_weight must be finite numbers with a finite sum")
    return weight
