"""DBSCAN with scikit-learn's interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin

from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import as_array, check_count
from epsjoin.local.cluster.batches import Dbscan
from epsjoin.local.cluster.dbscan import dbscan
from epsjoin.local.cluster.predict import predict_clusters
from epsjoin.sklearn.parameters import MetricParameters


class DBSCAN(MetricParameters, ClusterMixin, BaseEstimator):
    """DBSCAN by an exact join, a replacement for ``sklearn.cluster.DBSCAN``.

    Core points, their clusters, the numbers of the clusters, and noise are those of scikit-learn. A border
    point within eps of several clusters belongs to that of its nearest core point (of several as near, the
    one with the smallest row); in scikit-learn it belongs to the cluster with the smallest number.

    Parameters
    ----------
    eps : float, default=0.5
        Threshold, above 0. A point at exactly eps is within it.
    min_samples : int, default=5
        Minimum number of points within eps (or sum of their weights), the point itself included, that makes a
        point a core point; at least 1.
    metric : str, default="euclidean"
        "euclidean" or "l2", "manhattan", "cityblock" or "l1", "chebyshev", "minkowski", "cosine", "haversine"
        (points are (lat, lon) in radians, and so is eps). Precomputed distances and functions are refused.
    metric_params : dict, default=None
        For minkowski ``{"p": ...}``, and ``{"w": ...}``, one weight of each dimension, by which the powers of
        differences are multiplied; anything else is refused.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        Ignored: there is only one algorithm.
    leaf_size : int, default=30
        Ignored: there is no tree.
    p : float, default=None
        Exponent of minkowski, at least 1; None means 2. Ignored for the other metrics.
    n_jobs : int, default=None
        Number of threads. None means 1, unless in a ``joblib.parallel_config`` context; -1 means all
        processors.

    Attributes
    ----------
    labels_ : (n_samples,) int64, the cluster of each point, -1 for noise.
    core_sample_indices_ : (n_core_samples,) int64, row numbers of the core points, ascending.
    components_ : (n_core_samples, n_features), a copy of the core points.
    n_features_in_ : int, the number of columns.
    feature_names_in_ : (n_features_in_,) names of the columns, if X has names that are all strings.

    Notes
    -----
    Distances are summed by the metric's formula, in column order and in float64. scikit-learn's faster
    formulas may decide differently about a pair whose distance is eps up to rounding. Memory does not grow
    with the number of pairs, see :func:`epsjoin.dbscan`.

    Examples
    --------
    >>> from epsjoin.sklearn import DBSCAN
    >>> DBSCAN(eps=3, min_samples=2).fit([[1, 2], [2, 2], [2, 3], [8, 7], [8, 8], [25, 80]]).labels_.tolist()
    [0, 0, 0, 1, 1, -1]
    """

    def __init__(
        self,
        eps: float = 0.5,
        *,
        min_samples: int = 5,
        metric: str = "euclidean",
        metric_params: dict[str, Any] | None = None,
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.eps = eps
        self.min_samples = min_samples
        self.metric = metric
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.n_jobs = n_jobs

    def fit(
        self,
        X: npt.ArrayLike,
        y: object = None,  # noqa: ARG002  # scikit-learn's protocol
        sample_weight: npt.ArrayLike | None = None,
    ) -> DBSCAN:
        """Find the clusters of X.

        Parameters
        ----------
        X : (n_samples, n_features) array of numbers; not modified. Sparse matrices are refused.
        y : ignored.
        sample_weight : (n_samples,) weights of the points, or one number for all; 1 by default. Some may be 0
            or negative.

        Returns
        -------
        DBSCAN
            The estimator itself.

        Raises
        ------
        ArgumentError
            A parameter is not allowed, or the metric is not defined for a point. It is a ValueError, too.
        ValueError, TypeError
            scikit-learn's own checks refuse X.
        """
        min_pts = check_count("min_samples", self.min_samples)
        values = self._new_points(X)
        weight = None if sample_weight is None else as_array("sample_weight", sample_weight)
        if weight is not None and not weight.any():
            raise ArgumentError("sample_weight must not be all zero")
        if weight is not None and weight.ndim == 0:
            weight = np.full(len(values), weight)
        how: dict[str, Any] = {"weights": self._fitted_weights, "n_jobs": self._n_jobs()}
        found = dbscan(values, self.eps, min_pts, self._fitted_metric, sample_weight=weight, **how)
        self._fitted_eps = self.eps
        self.labels_ = found.labels
        self.core_sample_indices_ = np.flatnonzero(found.is_core)
        self.components_ = values[self.core_sample_indices_]
        return self

    def fit_predict(
        self,
        X: npt.ArrayLike,
        y: object = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> npt.NDArray[np.int64]:
        """Find the clusters of X and return the labels; parameters and errors are those of :meth:`fit`."""
        return self.fit(X, y, sample_weight).labels_

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Tell to which cluster new points belong; scikit-learn's estimator has no such method.

        Parameters
        ----------
        X : (m, n_features) array of numbers; not modified.

        Returns
        -------
        (m,) int64, the cluster of the nearest core point within eps (of several as near, of the one with the
        smallest row), -1 where there is none. The core points and the clusters stay as they are.

        Raises
        ------
        ArgumentError
            The metric is not defined for a point.
        ValueError, TypeError
            scikit-learn's own checks refuse X, or the estimator is not fitted.
        """
        values, core = self._asked_points(X), self.components_
        everywhere = np.ones(len(core), np.bool_)
        found = Dbscan(self.labels_[self.core_sample_indices_], everywhere, np.zeros(len(core), np.int64))
        how: dict[str, Any] = {"weights": self._fitted_weights, "n_jobs": self._n_jobs()}
        return predict_clusters(values, core, found, self._fitted_eps, self._fitted_metric, **how)
