"""HDBSCAN with scikit-learn's interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from epsjoin.local.cluster.hdbscan import hdbscan
from epsjoin.sklearn.parameters import as_numbers, metric_of


class HDBSCAN(ClusterMixin, BaseEstimator):
    """HDBSCAN by an exact spanning tree, in place of ``sklearn.cluster.HDBSCAN`` with excess of mass.

    Parameters
    ----------
    min_cluster_size : int, default=5
        Minimum number of points of a cluster, at least 2.
    min_samples : int, default=None
        The core distance of a point is that to so many nearest points, itself included; None means
        ``min_cluster_size``.
    metric : str, default="euclidean"
        See :class:`epsjoin.sklearn.DBSCAN`.
    metric_params : dict, default=None
        ``{"p": ...}`` for minkowski; anything else is refused.
    n_jobs : int, default=None
        Number of threads of the search for core distances, see :class:`epsjoin.sklearn.DBSCAN`.

    Attributes
    ----------
    labels_ : (n_samples,) int64, the cluster of each point, -1 for noise. Clusters are numbered by their
        smallest row; in scikit-learn in the order of its tree.
    probabilities_ : (n_samples,) float64, how strongly each point belongs to its cluster, 0 for noise.
    n_features_in_ : int, the number of columns.
    feature_names_in_ : (n_features_in_,) names of the columns, if X has names that are all strings.

    Notes
    -----
    scikit-learn's other ways to choose clusters (by leaves, an eps, a largest size, all points as one) and
    missing values are not here.

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
        metric: str = "euclidean",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.min_cluster_size = min_cluster_size
        self.min_samples = min_samples
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs

    def fit(self, X: npt.ArrayLike, y: object = None) -> HDBSCAN:  # noqa: N803, ARG002 - the protocol
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
        metric = metric_of(self.metric, None, self.metric_params)
        values = as_numbers(validate_data(self, X, ensure_min_samples=2))
        n_jobs = effective_n_jobs(self.n_jobs)
        found = hdbscan(values, self.min_cluster_size, self.min_samples, metric, n_jobs=n_jobs)
        self.labels_: npt.NDArray[np.int64] = found.labels
        self.probabilities_ = found.probability
        return self
