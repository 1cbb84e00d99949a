"""The local outlier factor with scikit-learn's interface."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.metaestimators import available_if

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.arguments import as_number, check_count
from epsjoin.local.neighbours.densities import outlier_factors, reach_densities
from epsjoin.local.neighbours.lof import lof
from epsjoin.sklearn.neighbours import KNeighbours

_ADDED = 1e-10
"""What scikit-learn adds to mean reachability distances, so that factors are finite."""


def _is_for_novelty(estimator: LocalOutlierFactor) -> bool:
    if not estimator.novelty:
        raise AttributeError("it is for new points, with novelty=True; fit_predict is for the fitted ones")
    return True


def _is_for_outliers(estimator: LocalOutlierFactor) -> bool:
    if estimator.novelty:
        raise AttributeError("it is for the fitted points, with novelty=False; predict is for new ones")
    return True


class LocalOutlierFactor(KNeighbours, OutlierMixin, BaseEstimator):
    """Local outlier factors by exact neighbours, a replacement for scikit-learn's estimator of this name.

    Parameters
    ----------
    n_neighbors : int, default=20
        Number of neighbours of each point; all other points where there are fewer.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        Ignored: there is only one algorithm.
    leaf_size : int, default=30
        Ignored.
    metric, p, metric_params : metric="minkowski", p=2, metric_params=None
        See :class:`epsjoin.sklearn.DBSCAN`.
    contamination : "auto" or float, default="auto"
        Fraction of the points that are outliers, above 0 and at most 0.5; "auto": those above 1.5.
    novelty : bool, default=False
        Whether new points will be asked about, by ``predict``, ``decision_function`` and ``score_samples``.
    n_jobs : int, default=None
        Number of threads, see :class:`epsjoin.sklearn.DBSCAN`.

    Attributes
    ----------
    negative_outlier_factor_ : (n_samples,) float64, the factors times -1: the smaller, the farther out.
    n_neighbors_ : int, number of neighbours used.
    offset_ : float, points with a smaller negative factor are outliers.
    n_samples_fit_ : int, number of points that were fitted.
    n_features_in_ : int, the number of columns.
    feature_names_in_ : (n_features_in_,) names of the columns, if X has names that are all strings.

    Notes
    -----
    Of neighbours at the same distance those with the smallest rows count; scikit-learn takes any of them, so
    that factors may differ where neighbours tie. Sums run in the order of the neighbours, which may differ
    from scikit-learn's in the last bits.

    Examples
    --------
    >>> from epsjoin.sklearn import LocalOutlierFactor
    >>> LocalOutlierFactor(n_neighbors=2).fit_predict([[0.0], [1.0], [2.0], [3.5], [9.0]]).tolist()
    [1, 1, 1, 1, -1]
    """

    def __init__(
        self,
        n_neighbors: int = 20,
        *,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: str = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        contamination: str | float = "auto",
        novelty: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.contamination = contamination
        self.novelty = novelty
        self.n_jobs = n_jobs

    def fit(self, X: npt.ArrayLike, y: object = None) -> LocalOutlierFactor:  # noqa: ARG002  # the protocol
        """Compute the factors of all points.

        Parameters
        ----------
        X : (n_samples, n_features) array of numbers; not modified. Sparse matrices are refused.
        y : ignored.

        Returns
        -------
        LocalOutlierFactor
            The estimator itself.

        Raises
        ------
        ArgumentError
            A parameter is not allowed, or the metric is not defined for a point. It is a ValueError, too.
        ValueError, TypeError
            scikit-learn's own checks refuse X.
        """
        k = check_count("n_neighbors", self.n_neighbors)
        points = self._keep(X, least=2)
        if k >= len(points):
            warnings.warn(
                f"n_neighbors ({k}) is not below n_samples ({len(points)}): all other points are neighbours",
                stacklevel=2,
            )
        self.n_neighbors_ = min(k, len(points) - 1)
        how: dict[str, Any] = {"weights": self._fitted_weights, "n_jobs": self._n_jobs()}
        found = lof(points, self.n_neighbors_, self._fitted_metric, added_distance=_ADDED, **how)
        self._k_distance = found.k_distance
        self._density = reach_densities(found.distance, found.k_distance[found.neighbour], _ADDED)
        self.negative_outlier_factor_ = -found.lof
        self.offset_ = self._offset()
        return self

    @available_if(_is_for_outliers)
    def fit_predict(self, X: npt.ArrayLike, y: object = None) -> Ints:
        """Fit, and tell which of the points are outliers.

        Parameters
        ----------
        X, y : see :meth:`fit`.

        Returns
        -------
        (n_samples,) int64, -1 for outliers and 1 for all others.
        """
        self.fit(X, y)
        return np.where(self.negative_outlier_factor_ < self.offset_, -1, 1)

    @available_if(_is_for_novelty)
    def score_samples(self, X: npt.ArrayLike) -> Floats:
        """Compute the factors of new points among the fitted ones, times -1.

        Parameters
        ----------
        X : (m, n_features) array of numbers, not the fitted points: each would find itself. Not modified.

        Returns
        -------
        (m,) float64.
        """
        asked = self._asked_points(X)
        nearest = self._find_nearest(asked, self.n_neighbors_)
        density = reach_densities(nearest.distance, self._k_distance[nearest.neighbour], _ADDED)
        return -outlier_factors(density, self._density[nearest.neighbour])

    @available_if(_is_for_novelty)
    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """Compute the factors of new points, times -1 and shifted: below 0 for outliers.

        Parameters
        ----------
        X : see :meth:`score_samples`.

        Returns
        -------
        (m,) float64.
        """
        return np.asarray(self.score_samples(X) - self.offset_)

    @available_if(_is_for_novelty)
    def predict(self, X: npt.ArrayLike) -> Ints:
        """Tell which of new points are outliers.

        Parameters
        ----------
        X : see :meth:`score_samples`.

        Returns
        -------
        (m,) int64, -1 for outliers and 1 for all others.
        """
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def _usual_k(self) -> int:
        return self.n_neighbors_

    def _offset(self) -> float:
        fraction = self.contamination
        if isinstance(fraction, str) and fraction == "auto":
            return -1.5
        number = as_number(fraction)
        if not 0.0 < number <= 0.5:
            raise ArgumentError(f"contamination must be 'auto', or above 0 and at most 0.5, not {fraction!r}")
        return float(np.percentile(self.negative_outlier_factor_, 100.0 * number))
