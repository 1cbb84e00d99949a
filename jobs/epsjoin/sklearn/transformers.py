"""Graphs of neighbours as steps of scikit-learn's pipelines."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import check_choice, check_count
from epsjoin.sklearn.neighbours import MODES, FittedPoints, KNeighbours, RadiusNeighbours


class _GraphTransformer(FittedPoints, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What both transformers share: they keep the points, and make a row of the graph for each new point."""

    mode: str

    def fit(self, X: npt.ArrayLike, y: object = None) -> Any:  # noqa: ARG002  # scikit-learn's protocol
        """Keep the points whose neighbours are looked for later.

        Parameters
        ----------
        X : (n_samples, n_features) array of numbers; not modified. Sparse matrices are refused.
        y : ignored.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        ArgumentError
            A parameter is not allowed, or the metric is not defined for a point. It is a ValueError, too.
        ValueError, TypeError
            scikit-learn's own checks refuse X.
        """
        check_choice("mode", self.mode, MODES)
        self._keep(X)
        return self

    @property
    def _n_features_out(self) -> int:
        return int(self.n_samples_fit_)


class RadiusNeighborsTransformer(RadiusNeighbours, _GraphTransformer):
    """The graph of all points within a radius, a replacement for scikit-learn's transformer of this name.

    Parameters
    ----------
    mode : {"distance", "connectivity"}, default="distance"
        Whether the entries are distances or ones.
    radius : float, default=1.0
        Threshold, above 0. A point at exactly the radius is within it.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        Ignored: there is only one algorithm.
    leaf_size : int, default=30
        Ignored.
    metric, p, metric_params : metric="minkowski", p=2, metric_params=None
        See :class:`epsjoin.sklearn.DBSCAN`.
    n_jobs : int, default=None
        Number of threads, see :class:`epsjoin.sklearn.DBSCAN`.

    Attributes
    ----------
    n_samples_fit_ : int, number of points that were fitted.
    n_features_in_ : int, the number of columns.
    feature_names_in_ : (n_features_in_,) names of the columns, if X has names that are all strings.

    Notes
    -----
    As in scikit-learn, a fitted point that is transformed is its own neighbour at the distance 0, which is an
    entry, and the entries of a row come by distance. Ties come by row.

    Examples
    --------
    >>> from epsjoin.sklearn import RadiusNeighborsTransformer
    >>> RadiusNeighborsTransformer(radius=1.0).fit_transform([[0.0], [1.0], [3.0]]).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        *,
        mode: str = "distance",
        radius: float = 1.0,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: str = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.mode = mode
        self.radius = radius
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.n_jobs = n_jobs

    def transform(self, X: npt.ArrayLike) -> csr_matrix:
        """Find the fitted points within the radius of each point.

        Parameters
        ----------
        X : (n_samples, n_features) array of numbers; not modified.

        Returns
        -------
        (n_samples, n_samples_fit_) sparse matrix in compressed rows, float64.

        Raises
        ------
        ArgumentError
            The radius is not above 0, or the metric is not defined for a point.
        ValueError, TypeError
            scikit-learn's own checks refuse X, or the estimator is not fitted.
        """
        return self._graph(*self._within(self._asked_points(X), self.radius), self.mode)


class KNeighborsTransformer(KNeighbours, _GraphTransformer):
    """The graph of the k nearest points, a replacement for scikit-learn's transformer of this name.

    Parameters
    ----------
    mode : {"distance", "connectivity"}, default="distance"
        Whether the entries are distances or ones.
    n_neighbors : int, default=5
        Number of neighbours of each point; with distances one more: a fitted point is its own neighbour.
    algorithm, leaf_size, metric, p, metric_params, n_jobs : as of the other transformer
        See :class:`epsjoin.sklearn.RadiusNeighborsTransformer`.

    Attributes
    ----------
    n_samples_fit_ : int, number of points that were fitted.
    n_features_in_ : int, the number of columns.
    feature_names_in_ : (n_features_in_,) names of the columns, if X has names that are all strings.

    Notes
    -----
    Neighbours are exact; of points at the same distance, those with the smallest rows. The entries of a row
    come by distance.

    Examples
    --------
    >>> from epsjoin.sklearn import KNeighborsTransformer
    >>> KNeighborsTransformer(n_neighbors=1).fit_transform([[0.0], [1.0], [3.0]]).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    """

    def __init__(
        self,
        *,
        mode: str = "distance",
        n_neighbors: int = 5,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: str = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.n_jobs = n_jobs

    def transform(self, X: npt.ArrayLike) -> csr_matrix:
        """Find the fitted points that are nearest to each point.

        Parameters
        ----------
        X : (n_samples, n_features) array of numbers; not modified.

        Returns
        -------
        (n_samples, n_samples_fit_) sparse matrix in compressed rows, float64.

        Raises
        ------
        ArgumentError
            There are fewer fitted points than neighbours, or the metric is not defined for a point.
        ValueError, TypeError
            scikit-learn's own checks refuse X, or the estimator is not fitted.
        """
        asked = self._asked_points(X)
        is_among = self.mode == "distance"
        k = check_count("n_neighbors", self.n_neighbors) + is_among
        if is_among and k > self.n_samples_fit_:
            raise ArgumentError(
                f"n_neighbors must be at most {self.n_samples_fit_ - 1}, not {self.n_neighbors}: "
                f"{self.n_samples_fit_} points were fitted, and with distances each is its own neighbour"
            )
        return self._nearest_graph(asked, k, self.mode)
