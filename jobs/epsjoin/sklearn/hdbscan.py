"""HDBSCAN with scikit-learn's interface."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics import pairwise_distances_chunked
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.arguments import as_number
from epsjoin.local.cluster.hdbscan import Hdbscan, hdbscan
from epsjoin.local.cluster.predict_hdbscan import predict_hdbscan
from epsjoin.sklearn.parameters import Asked, MetricParameters

_INFINITE, _MISSING = -2, -3
"""Labels of points that no cluster is looked for."""

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
    cluster_selection_epsilon, max_cluster_size, alpha, cluster_selection_method, allow_single_cluster :
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
    labels_ : (n_samples,) int64, the cluster of each point, -1 for noise, -2 for points that are infinite
        somewhere, -3 for those that miss a value. Clusters are numbered by their smallest row; in
        scikit-learn in the order of its tree.
    probabilities_ : (n_samples,) float64, how strongly each point belongs to its cluster, 0 for noise and
        infinite points, NaN where a value is missing.
    outlier_scores_ : (n_samples,) float64, from 0 to 1 (GLOSH), as in the package hdbscan; 1 for infinite
        points, NaN where a value is missing.
    centroids_ : (n_clusters, n_features) float64, the mean of each cluster, weighted by probabilities.
    medoids_ : (n_clusters, n_features), the point of each cluster whose distances to the others, weighted by
        their probabilities, have the smallest sum.
    n_features_in_ : int, the number of columns.
    feature_names_in_ : (n_features_in_,) names of the columns, if X has names that are all strings.

    Notes
    -----
    Points with missing or infinite values are left out, and labelled as in scikit-learn. Where edges of the
    spanning tree are equally heavy, as where core distances are, they are removed at once, in scikit-learn
    one after the other, see :func:`epsjoin.hdbscan`. With a ``cluster_selection_method`` of "leaf" and no
    split, all points are noise, as in scikit-learn.

    Examples
    --------
    >>> from epsjoin.sklearn import HDBSCAN
    >>> HDBSCAN(3, min_samples=1).fit_predict([[0.0], [0.1], [0.2], [5.0], [5.1], [5.3], [20.0]]).tolist()
    [0, 0, 0, 1, 1, 1, -1]
    """

    _has_weights = False

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

    def fit(self, X: npt.ArrayLike, y: object = None) -> HDBSCAN:  # noqa: ARG002  # the protocol
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
            A parameter is not allowed, the metric is not defined for a point, or the points without missing
            and infinite values are fewer than ``min_samples``, but not none. It is a ValueError, too.
        ValueError, TypeError
            scikit-learn's own checks refuse X.
        """
        if self.store_centers not in _CENTERS:
            raise ArgumentError(
                f"store_centers must be None, centroid, medoid or both, not {self.store_centers!r}"
            )
        points = self._new_points(X, least=2, is_finite=False)
        self._unusual = _unusual(points)
        is_missing, is_finite = self._unusual == _MISSING, self._unusual == 0
        values = points[is_finite]
        found = hdbscan(
            values,
            self.min_cluster_size,
            self.min_samples,
            self._fitted_metric,
            cluster_selection_epsilon=self.cluster_selection_epsilon,
            max_cluster_size=self.max_cluster_size,
            alpha=self.alpha,
            cluster_selection_method=self.cluster_selection_method,
            allow_single_cluster=self.allow_single_cluster,
            n_jobs=self._n_jobs(),
        )
        self._found, self._clustered, self._fitted_alpha = found, values, self.alpha
        self._fitted_samples = self.min_cluster_size if self.min_samples is None else self.min_samples
        self.labels_ = self._of_all(found.labels)
        self.probabilities_ = np.where(is_missing, np.nan, 0.0)
        self.probabilities_[is_finite] = found.probability
        self.outlier_scores_ = np.where(is_missing, np.nan, 1.0)
        self.outlier_scores_[is_finite] = found.outlier_score
        self._store_centers(values, found)
        return self

    def dbscan_clustering(self, cut_distance: float, min_cluster_size: int = 5) -> npt.NDArray[np.int64]:
        """Find the clusters of one density, those of DBSCAN without its border points.

        Parameters
        ----------
        cut_distance : threshold of mutual reachability, above 0. Points at exactly this distance are
            connected, as in DBSCAN; scikit-learn's method cuts there.
        min_cluster_size : minimum number of points of a cluster, at least 2; smaller pieces are noise.

        Returns
        -------
        (n_samples,) int64, as ``labels_``.

        Raises
        ------
        ArgumentError
            A number is out of its range.
        ValueError
            The estimator is not fitted.
        """
        check_is_fitted(self)
        if not 0.0 < as_number(cut_distance) < math.inf:
            raise ArgumentError(f"cut_distance must be a finite number above 0, not {cut_distance!r}")
        return self._of_all(self._found.labels_at(cut_distance, min_cluster_size))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Tell to which cluster new points belong; scikit-learn's estimator has no such method.

        Parameters
        ----------
        X : (m, n_features) array of numbers; not modified.

        Returns
        -------
        (m,) int64, the cluster of each point, see :func:`epsjoin.predict_hdbscan`; -1, -2 and -3 as in
        ``labels_``. The clusters stay as they are.

        Raises
        ------
        ArgumentError
            The metric is not defined for a point.
        ValueError, TypeError
            scikit-learn's own checks refuse X, or the estimator is not fitted.
        """
        points = self._asked_points(X, is_finite=False)
        unusual = _unusual(points)
        is_finite = unusual == 0
        if is_finite.any():
            unusual[is_finite] = predict_hdbscan(
                points[is_finite],
                self._clustered,
                self._found,
                self._fitted_samples,
                self._fitted_metric,
                alpha=self._fitted_alpha,
                n_jobs=self._n_jobs(),
            ).labels
        return unusual

    def _of_all(self, labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The labels of finite points and of those that are not."""
        found = self._unusual.copy()
        found[found == 0] = labels
        return found

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that missing values are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _store_centers(self, values: Asked, found: Hdbscan) -> None:
        """Keep the centers that were asked for, in the order of the labels."""
        for name in ("centroids_", "medoids_"):  # of a fit before
            self.__dict__.pop(name, None)
        of_cluster = [found.labels == number for number in range(found.labels.max(initial=-1) + 1)]
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

    def _medoid(self, points: Asked, weights: Floats) -> int:
        """The row whose distances, weighted by the other ends' weights, have the smallest sum."""

        def sums(distances: Floats, _: int) -> Floats:
            return np.asarray((distances * weights).sum(axis=1))

        how = {"metric": self.metric, "reduce_func": sums, **(self.metric_params or {})}
        return int(np.argmin(np.concatenate(list(pairwise_distances_chunked(points, **how)))))


def _unusual(points: Asked) -> npt.NDArray[np.int64]:
    """The labels of points that are not finite, 0 for all others."""
    is_missing, is_finite = np.isnan(points).any(axis=1), np.isfinite(points).all(axis=1)
    return np.where(is_missing, _MISSING, np.where(is_finite, 0, _INFINITE))
