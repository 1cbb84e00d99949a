"""HDBSCAN with scikit-learn's interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics import pairwise_distances_chunked

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.cluster.hdbscan import hdbscan
from epsjoin.sklearn.parameters import MetricParameters

_CENTERS = (None, "centroid", "medoid", "both")


class HDBSCAN(MetricParameters, ClusterMixin, BaseEstimator):
    """HDBSCAN by an exact spanning tree, a replacement for ``sklearn.cluster.HDBSCAN``.

    Parameters
    ----------
    min_cluster_size : int, default=5
        Minimum number of points of a cluster, at least 2.
    min_samples : int, default=None
        The core distance of a point is that to so many nearest points, itself included; None means
        ``min_cluster_size``.
    cluster_selection_epsilon, max_cluster_size, alpha, cluster_selection_method, allow_single_cluster
        See :func:`epsjoin.hdbscan`, and scikit-learn, whose defaults they have.
    metric : str, default="euclidean"
        See :class:`epsjoin.sklearn.DBSCAN`. Precomputed distances and functions are refused.
    metric_params : dict, default=None
        ``{"p": ...}`` for minkowski; anything else is refused.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        Ignored: there is only one algorithm.
    leaf_size : int, default=40
        Ignored.
    n_jobs : int, default=None
        Number of threads of the search for core distances, see :class:`epsjoin.sklearn.DBSCAN`.
    store_centers : {None, "centroid", "medoid", "both"}, default=None
        Whether to compute ``centroids_``, ``medoids_`` or both. A medoid takes all distances in its cluster.
    copy : bool, default=True
        Ignored: X is never modified.

    Attributes
    ----------
    labels_ : (n_samples,) int64, the cluster of each point, -1 for noise. Clusters are numbered by their
        smallest row; in scikit-learn in the order of its tree.
    probabilities_ : (n_samples,) float64, how strongly each point belongs to its cluster, 0 for noise.
    centroids_ : (n_clusters, n_features) float64, the mean of each cluster, weighted by probabilities.
    medoids_ : (n_clusters, n_features), the point of each cluster whose distances to the others, weighted by
        their probabilities, have the smallest sum.
    n_features_in_ : int, the number of columns.
    feature_names_in_ : (n_features_in_,) names of the columns, if X has names that are all strings.

    Notes
    -----
    Missing values are refused. Where edges of the spanning tree are equally heavy, as where core distances
    are, another tree may split in another order than scikit-learn's. With a ``cluster_selection_method`` of
    "leaf" and no split, all points are noise, as in scikit-learn.

    Examples
    --------
    >>> from epsjoin.sklearn import HDBSCAN
    >>> HDBSCAN(3, min_samples=1).fit_predict([[0.0], [0.1], [0.2], [5.0], [5.1], [5.3], [20.0]]).tolist()
    [0, 0, 0, 1, 1, 1, -1]
    """

    def __init__(
        self,
        min_cluster_size: int = 5,
        min_samples: int | None = None,
        *,
        cluster_selection_epsilon: float = 0.0,
        max_cluster_size: int | None = None,
        metric: str = "euclidean",
        metric_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        algorithm: str = "auto",
        leaf_size: int = 40,
        n_jobs: int | None = None,
        cluster_selection_method: str = "eom",
        allow_single_cluster: bool = False,
        store_centers: str | None = None,
        copy: bool = True,
    ) -> None:
        self.min_cluster_size = min_cluster_size
        self.min_samples = min_samples
        self.cluster_selection_epsilon = cluster_selection_epsilon
        self.max_cluster_size = max_cluster_size
        self.metric = metric
        self.metric_params = metric_params
        self.alpha = alpha
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.n_jobs = n_jobs
        self.cluster_selection_method = cluster_selection_method
        self.allow_single_cluster = allow_single_cluster
        self.store_centers = store_centers
        self.copy = copy

    def fit(self, X: npt.ArrayLike, y: object = None) -> HDBSCAN:  # noqa: ARG002 - the protocol
        """Find the clusters of X.

        Parameters
        ----------
        X : (n_samples, n_features) array of numbers; not modified. Sparse matrices are refused.
        y : ignored.

        Returns
        -------
        HDBSCAN
            The estimator itself.

        Raises
        ------
        ArgumentError
            A parameter is not allowed, or the metric is not defined for a point. It is a ValueError, too.
        ValueError, TypeError
            scikit-learn's own checks refuse X.
        """
        if self.store_centers not in _CENTERS:
            raise ArgumentError(
                f"store_centers must be None, centroid, medoid or both, not {self.store_centers!r}"
            )
        values = self._new_points(X, least=2)
        found = hdbscan(
            values,
            self.min_cluster_size,
            self.min_samples,
            self._metric(),
            cluster_selection_epsilon=self.cluster_selection_epsilon,
            max_cluster_size=self.max_cluster_size,
            alpha=self.alpha,
            cluster_selection_method=self.cluster_selection_method,
            allow_single_cluster=self.allow_single_cluster,
            n_jobs=self._n_jobs(),
        )
        self.labels_: npt.NDArray[np.int64] = found.labels
        self.probabilities_ = found.probability
        of_cluster = [found.labels == number for number in range(found.labels.max() + 1)]
        if self.store_centers in ("centroid", "both"):
            weighted = [
                np.average(values[some], axis=0, weights=found.probability[some]) for some in of_cluster
            ]
            self.centroids_ = np.reshape(weighted, (len(of_cluster), values.shape[1]))
        if self.store_centers in ("medoid", "both"):
            chosen = [
                values[some][self._medoid(values[some], found.probability[some])] for some in of_cluster
            ]
            self.medoids_ = np.reshape(chosen, (len(of_cluster), values.shape[1]))
        return self

    def _medoid(self, points: npt.NDArray[Any] | Floats, weights: Floats) -> int:
        """The row whose distances, weighted by the other ends' weights, have the smallest sum."""

        def sums(distances: Floats, _: int) -> Floats:
            return np.asarray((distances * weights).sum(axis=1))

        how = {"metric": self.metric, "reduce_func": sums, **(self.metric_params or {})}
        return int(np.argmin(np.concatenate(list(pairwise_distances_chunked(points, **how)))))
