"""The local outlier factor of every point of an array, by a k-nearest-neighbour join.

It needs no eps, and no factor is unknown. The formulas are in ``densities.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy.typing as npt

from epsjoin.local.arguments import FloatColumn, IntColumn
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.densities import outlier_factors, reach_densities
from epsjoin.local.neighbours.knn import knn_join
from epsjoin.local.progress import ProgressArgument


class Lof(NamedTuple):
    """Scores of every point of an array, in the order of the points.

    Parameters
    ----------
    lof : (n,) float64, about 1 inside a cluster, larger outside.
    k_distance : (n,) float64, distance to the k-th nearest neighbour.
    neighbour, distance : (n, k) int64 and float64, the k nearest, see
        :class:`epsjoin.local.neighbours.knn.KNearest`.
    """

    lof: FloatColumn
    k_distance: FloatColumn
    neighbour: IntColumn
    distance: FloatColumn


def lof(
    points: npt.ArrayLike,
    k: int,
    metric: str | Metric = "euclidean",
    *,
    n_jobs: int = 1,
    progress: ProgressArgument = False,
) -> Lof:
    """Local outlier factor of every point.

    Parameters
    ----------
    points : (n, d) floats or integers, see :func:`epsjoin.local.arguments.check_points`; not modified.
    k : neighbours that count, the point itself not among them; 1 to n - 1.
    metric : a name for :func:`epsjoin.local.metric.get_metric`, or what it returned.
    n_jobs, progress : see :func:`epsjoin.local.neighbours.knn.knn_join`.

    Returns
    -------
    Lof
        In the order of the points.

    Raises
    ------
    ArgumentError
        See :func:`epsjoin.local.neighbours.knn.knn_join`.

    Notes
    -----
    The k-nearest-neighbour join, then O(n k), about 40 bytes per point and neighbour. Where more than k
    points are equal, factors are 1 on them and may be infinite beside them, see :func:`outlier_factors`;
    scikit-learn keeps these finite by adding 1e-10 to every mean distance.

    Examples
    --------
    >>> found = lof([[0.0], [1.0], [2.0], [3.5], [9.0]], k=2)
    >>> found.lof.round(2).tolist(), found.k_distance.tolist()
    ([0.86, 1.08, 0.94, 1.14, 3.35], [2.0, 1.0, 1.5, 2.5, 7.0])
    """
    nearest = knn_join(None, points, k, metric, n_jobs=n_jobs, progress=progress)
    k_distance = nearest.distance[:, -1].copy()
    density = reach_densities(nearest.distance, k_distance[nearest.neighbour])
    return Lof(outlier_factors(density, density[nearest.neighbour]), k_distance, *nearest)
