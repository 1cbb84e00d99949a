"""What all estimators share: scikit-learn's names of metrics and algorithms, and its arrays, as epsjoin's."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted, validate_data

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.arguments import as_array, check_choice
from epsjoin.local.metric import Metric, get_metric

Asked = npt.NDArray[Any] | Floats
"""Points as scikit-learn has checked them: numbers of any type."""

_NAMES = ("euclidean", "l2", "manhattan", "cityblock", "l1", "chebyshev", "cosine")
_METRICS = {**{name: name for name in _NAMES}, "haversine": "haversine_radians"}
"""Our metrics by scikit-learn's names; its points on the sphere, and their distances, are in radians."""
_BY_P = {1.0: "manhattan", 2.0: "euclidean", math.inf: "chebyshev"}
_ALGORITHMS = ("auto", "ball_tree", "kd_tree", "brute")


def metric_of(name: Any, p: float | None, metric_params: dict[str, Any] | None) -> Metric:
    """Make the metric that an estimator's parameters name.

    Parameters
    ----------
    name, p, metric_params : the estimator's. Weights are not looked at, see :func:`take_weights`.

    Raises
    ------
    ArgumentError
        The metric is unknown, or a function, or precomputed; or it has no such parameters.
    """
    params = dict(metric_params or {})
    if name == "minkowski":
        p = params.pop("p", p)
        p = 2.0 if p is None else p
        if isinstance(p, Real) and float(p) in _BY_P:
            name = _BY_P[float(p)]
        elif not params:
            return get_metric("minkowski", p)
    if params:
        raise ArgumentError(
            "metric_params may hold p and w, for minkowski of a finite p, "
            f"not {', '.join(params)} for {name!r}"
        )
    if not isinstance(name, str) or name not in _METRICS:
        known = ", ".join([*_METRICS, "minkowski"])
        raise ArgumentError(
            f"metric must be one of {known}, not {name!r}; precomputed distances and functions are not "
            "supported, scikit-learn's own estimators take them"
        )
    return get_metric(_METRICS[name])


def take_weights(
    name: Any, p: float | None, metric_params: dict[str, Any] | None
) -> tuple[Floats | None, dict[str, Any] | None]:
    """Take the weights of the dimensions out of an estimator's parameters.

    Only minkowski of a finite p has weights, by which scikit-learn multiplies the powers of differences.

    Returns
    -------
    A copy of the weights, or None, and the other ``metric_params``.
    """
    params = dict(metric_params or {})
    if name != "minkowski" or params.get("p", p) == math.inf or params.get("w") is None:
        return None, metric_params
    return np.array(as_array("w", params.pop("w"))), params


def check_algorithm(algorithm: object) -> None:
    """Refuse what is no algorithm of scikit-learn; ours is one for all of them.

    Raises
    ------
    ArgumentError
        The algorithm is unknown.
    """
    check_choice("algorithm", algorithm, _ALGORITHMS)


def as_numbers(values: npt.NDArray[Any]) -> Asked:
    """Return what scikit-learn has checked as numbers; it lets strings of numbers pass."""
    return values if values.dtype.kind in "fiu" else values.astype(np.float64)


class MetricParameters:
    """An estimator with a metric: its parameters as those of epsjoin, and its points checked.

    ``p`` is the estimator's where it has one. Once it is fitted, the metric and its weights stay as they were
    then. ``_has_weights`` tells whether it may have weights.
    """

    _has_weights = True
    _fitted_metric: Metric
    _fitted_weights: Floats | None

    metric: str
    metric_params: dict[str, Any] | None
    algorithm: str
    n_jobs: int | None
    p: float | None = None

    def _n_jobs(self) -> int:
        return int(effective_n_jobs(self.n_jobs))

    def _new_points(self, X: npt.ArrayLike, least: int = 1, *, is_finite: bool = True) -> Asked:
        """Check the parameters and the points to fit, at least so many and perhaps all finite."""
        check_algorithm(self.algorithm)
        weights, params = None, self.metric_params
        if self._has_weights:
            weights, params = take_weights(self.metric, self.p, params)
        self._fitted_metric = metric_of(self.metric, self.p, params)
        self._fitted_weights = weights
        return as_numbers(validate_data(self, X, ensure_min_samples=least, ensure_all_finite=is_finite))

    def _asked_points(self, X: npt.ArrayLike, *, is_finite: bool = True) -> Asked:
        """Check points, perhaps all finite, that a fitted estimator is asked about."""
        check_is_fitted(self)
        return as_numbers(validate_data(self, X, reset=False, ensure_all_finite=is_finite))

    def _asked_or_none(self, X: npt.ArrayLike | None) -> Asked | None:
        """As :meth:`_asked_points`; None stands for the points that were fitted."""
        check_is_fitted(self)
        return None if X is None else self._asked_points(X)
