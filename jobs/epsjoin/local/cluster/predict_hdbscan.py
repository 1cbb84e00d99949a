"""Assigns new points to the clusters that HDBSCAN has found, which do not change."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.arguments import check_count
from epsjoin.local.cluster.hdbscan import Hdbscan, check_alpha
from epsjoin.local.cluster.membership import strength
from epsjoin.local.cluster.predict import check_new_points
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.neighbours.knn import knn_join
from epsjoin.local.sweep.sweeping import check_n_jobs
from epsjoin.vocabulary import NOISE

_MORE = 4
"""The factor by which more neighbours are looked at if the lightest edge may lead to one farther away."""
_AT_ONCE = 1 << 22
"""Number of neighbours that are looked at together."""


class Predicted(NamedTuple):
    """Clusters of new points, in their order; made by :func:`predict_hdbscan`.

    Parameters
    ----------
    labels : (m,) int64, the cluster of each point, ``NOISE`` (-1) for noise.
    probability : (m,) float64, from 0 to 1, as of the points that were clustered; 0 for noise.
    """

    labels: Ints
    probability: Floats


def predict_hdbscan(
    new_points: npt.ArrayLike,
    points: npt.ArrayLike,
    clusters: Hdbscan,
    min_samples: int,
    metric: str | Metric = "euclidean",
    *,
    alpha: float = 1.0,
    n_jobs: int | None = 1,
) -> Predicted:
    """Tell to which of the clusters of HDBSCAN new points belong.

    Parameters
    ----------
    new_points : (m, d) array of finite floats or integers; not modified.
    points : (n, d) the points that were clustered.
    clusters : what :func:`epsjoin.hdbscan` found of them.
    min_samples, metric, alpha : those of the clusters, see :func:`epsjoin.hdbscan`; without ``min_samples``
        there, the ``min_cluster_size``.
    n_jobs : number of threads, 1 by default; -1 is one per processor. The result is the same for any number.

    Returns
    -------
    Predicted
        A label and a probability for each new point.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; a coordinate is NaN or infinite; the metric is not
        defined for a point; the clusters are invalid, or not those of this many points.

    See Also
    --------
    hdbscan : clusters all points anew, so that new ones may make or unite clusters.
    predict_clusters : the same for DBSCAN.

    Notes
    -----
    A new point is attached to the spanning tree by its lightest edge, which leads to the point with the
    smallest mutual reachability; of several to the nearest, and of these to the one with the smallest row.
    Its core distance counts itself and the points that were clustered, whose own core distances stay. It
    belongs to the cluster of that point if the edge is lighter than what split the cluster off: then cutting
    the tree there would leave the two together. Each new point is looked at by itself.

    The cost is a search for the ``2 min_samples`` nearest of each new point, and for more where a farther
    point may have a lighter edge. A point that was clustered need not get its own label again, since it
    counts twice in its core distance.

    Examples
    --------
    >>> from epsjoin import hdbscan
    >>> points = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.3], [20.0]]
    >>> clusters = hdbscan(points, min_cluster_size=3, min_samples=1)
    >>> predict_hdbscan([[0.15], [5.5], [12.0]], points, clusters, min_samples=1).labels.tolist()
    [0, 1, -1]
    """
    if not isinstance(clusters, Hdbscan):
        raise ArgumentError(f"clusters must be what hdbscan returns, not {type(clusters).__name__}")
    asked, known = check_new_points(new_points, points, len(clusters.labels))
    most = len(known) or math.inf  # with no points hdbscan takes any number, too
    samples, scale = check_count("min_samples", min_samples, most=most), check_alpha(alpha)
    check_n_jobs(n_jobs)
    chosen = get_metric(metric)
    chosen.check(known, "points")
    chosen.check(asked, "new_points")
    labels, probability = np.full(len(asked), NOISE), np.zeros(len(asked))
    if not len(clusters.lambdas.birth) or not len(asked):
        return Predicted(labels, probability)
    nearest, weight = _lightest_edges(asked, known, clusters.core_distance, samples, chosen, scale, n_jobs)
    with np.errstate(divide="ignore", over="ignore"):
        density = 1.0 / weight
    label = clusters.labels[nearest]
    is_in = label != NOISE
    is_in &= density > clusters.lambdas.birth[label]  # of noise, that of any cluster
    labels[is_in] = label[is_in]
    probability[is_in] = strength(density[is_in], clusters.lambdas.death[label[is_in]])
    return Predicted(labels, probability)


def _lightest_edges(
    asked: Floats,
    known: Floats,
    core: Floats,
    min_samples: int,
    metric: Metric,
    alpha: float,
    n_jobs: int | None,
) -> tuple[Ints, Floats]:
    """Find the known point to which each point that is asked for has the lightest edge, and its weight."""
    n = len(known)
    nearest, weight = np.empty(len(asked), np.int64), np.empty(len(asked))
    k, rows = min(n, 2 * min_samples), np.arange(len(asked))
    while len(rows):
        is_open = np.zeros(len(rows), np.bool_)
        step = max(1, _AT_ONCE // k)
        for begin in range(0, len(rows), step):
            some = slice(begin, begin + step)
            near = knn_join(asked[rows[some]], known, k, metric, n_jobs=n_jobs)
            own = near.distance[:, min_samples - 2] if min_samples > 1 else np.zeros(len(near.distance))
            with np.errstate(over="ignore"):
                reach = near.distance / alpha
            edges = np.maximum(np.maximum(reach, core[near.neighbour]), own[:, np.newaxis])
            lightest = edges.argmin(axis=1)[:, np.newaxis]  # the first: the nearest, then the smallest row
            nearest[rows[some]] = np.take_along_axis(near.neighbour, lightest, axis=1)[:, 0]
            weight[rows[some]] = np.take_along_axis(edges, lightest, axis=1)[:, 0]
            is_open[some] = reach[:, -1] < weight[rows[some]]
        if k == n:
            break
        rows = rows[is_open]
        k = min(n, _MORE * k)
    return nearest, weight
