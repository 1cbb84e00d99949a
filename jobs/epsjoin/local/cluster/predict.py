"""Assigns new points to existing clusters, which do not change."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.cluster.density import EndPairs, find_nearest_cores
from epsjoin.local.cluster.batches import Dbscan
from epsjoin.local.cluster.dbscan import check_dbscan
from epsjoin.local.coordinates import check_points
from epsjoin.local.join.arrays import iter_join
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.progress import ProgressArgument
from epsjoin.vocabulary import NOISE


def predict_clusters(
    new_points: npt.ArrayLike,
    points: npt.ArrayLike,
    clusters: Dbscan,
    eps: float | npt.ArrayLike,
    metric: str | Metric = "euclidean",
    *,
    weights: npt.ArrayLike | None = None,
    n_jobs: int | None = 1,
    progress: ProgressArgument = False,
) -> Ints:
    """Tell to which of the clusters new points belong.

    Parameters
    ----------
    new_points : (m, d) array of finite floats or integers; not modified.
    points : (n, d) the points that were clustered.
    clusters : what :func:`epsjoin.dbscan` found of them.
    eps, metric, weights : those of the clusters, see :func:`epsjoin.dbscan`.
    n_jobs : number of threads, 1 by default; -1 is one per processor. The result is the same for any number.
    progress : True draws a bar on stderr. A function is called with the fraction of the work that is done,
        from 0 to 1.

    Returns
    -------
    (m,) int64, for each new point the cluster of its nearest core point within eps (of several at the same
    distance, of the one with the smallest row), ``NOISE`` where there is none.

    Raises
    ------
    ArgumentError
        As :func:`epsjoin.join`; or the clusters are invalid, or not those of this many points.

    See Also
    --------
    dbscan : clusters all points anew, so that new ones may become core points and unite clusters.
    update_clusters : clusters kept up to date on stored pairs.

    Notes
    -----
    The cost of a join of the new points with the core points. A border point gets its own label again.

    Examples
    --------
    >>> points = [[0.0], [1.0], [2.0], [9.0]]
    >>> clusters = Dbscan(np.array([0, 0, 0, -1]), np.arange(4) == 1, np.array([2, 3, 2, 1]))
    >>> predict_clusters([[1.5], [3.0], [9.0]], points, clusters, eps=1.0).tolist()
    [0, -1, -1]
    """
    clusters = check_dbscan(clusters)
    asked, known = check_new_points(new_points, points, len(clusters.labels))
    core = known[clusters.is_core]
    if weights is None:  # the join would call them left
        get_metric(metric).check(asked, "new_points")
    n, m = len(core), len(asked)
    is_core = np.arange(n + m) < n
    home, distance = np.full(n + m, NOISE), np.full(n + m, np.inf)
    for pairs in iter_join(asked, core, eps, metric, weights=weights, n_jobs=n_jobs, progress=progress):
        find_nearest_cores(EndPairs(pairs.left + n, pairs.right, pairs.distance), is_core, home, distance)
    labels = np.append(clusters.labels[clusters.is_core], NOISE)  # the last: for points without a partner
    return np.asarray(labels[home[n:]], np.int64)


def check_new_points(
    new_points: npt.ArrayLike, points: npt.ArrayLike, n_clustered: int
) -> tuple[Floats, Floats]:
    """Return new points and those that were clustered as float64; without a copy where that is possible.

    Raises
    ------
    ArgumentError
        They are not what :func:`epsjoin.local.coordinates.check_points` takes; there are other than
        ``n_clustered`` points; or the new ones have another number of columns.
    """
    known, asked = check_points("points", points), check_points("new_points", new_points)
    if len(known) != n_clustered:
        raise ArgumentError(f"clusters must be those of the points, {len(known)}, not of {n_clustered}")
    if asked.shape[1] != known.shape[1]:
        raise ArgumentError(
            f"new_points must have as many columns as points, {known.shape[1]}, not {asked.shape[1]}"
        )
    return asked, known
