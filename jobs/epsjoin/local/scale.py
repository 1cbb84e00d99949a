"""One eps per dimension, and weights: metrics whose differences are divided and weighted.

Pairs are decided on differences of the coordinates as they came. A join searches for them among scaled
coordinates, which are rounded; so the threshold of the search has slack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels import distances
from epsjoin.kernels.arrays import Floats, Points
from epsjoin.kernels.distances import Decision
from epsjoin.local.arguments import as_array, is_one_number
from epsjoin.local.metric import METRICS, Metric

_REACH = 2.0**31
"""Number of eps from the centre at which scaled coordinates are clipped, which increases no difference."""
_LARGEST_REACH = 1e300
"""The largest coordinates to which they are clipped, so that differences are finite; no eps is larger."""
_ROUNDING = 2.0**-50
"""Slack of the difference of two scaled coordinates, relative to the largest: more than four roundings."""
_MIN_TERM = 1e-300
"""Power of a difference from which on it has all its digits."""
_ROWS_OF_CENTRE = 10_000
"""Number of rows from which the centre is computed, roughly."""


class Scale(NamedTuple):
    """How differences are scaled.

    Parameters
    ----------
    divisors : one per dimension, by which differences are divided: its eps, or 1 where one eps is for all.
    weights : one per dimension, by which powers of differences are multiplied.
    centre : one coordinate per dimension, from which scaled coordinates are counted; any choice is exact.
    reach : scaled coordinates are clipped to it; any choice is exact.
    """

    divisors: tuple[float, ...]
    weights: tuple[float, ...]
    centre: tuple[float, ...]
    reach: float


_UNSCALED = Scale((), (), (), 0.0)


@dataclass(frozen=True)
class ScaledMetric(Metric):
    """A metric with one eps per dimension or weights; made by :func:`scale_metric`."""

    scale: Scale = _UNSCALED

    def embed(self, points: Floats) -> Floats:
        """Compute scaled coordinates in which pairs within eps differ by at most ``embedded_eps(eps)``."""
        scale = self.scale
        factors = np.array(scale.weights) ** (1.0 / self.power) / np.array(scale.divisors)
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore", divide="ignore"):
            limits = np.where(factors > 0.0, np.minimum(scale.reach / factors, largest), 0.0)
            scaled: Floats = points - np.array(scale.centre)
        np.clip(scaled, -limits, limits, out=scaled)
        scaled *= factors
        return scaled

    def embedded_eps(self, eps: float) -> float:
        """Return the threshold of scaled coordinates, with slack for their rounding."""
        return super().embedded_eps(eps) + _ROUNDING * self.scale.reach

    def decision(self, eps: float) -> Decision:
        """Return what the sweeps need to decide a pair on its coordinates as they came."""
        divisors, weights = np.array(self.scale.divisors), np.array(self.scale.weights)
        return distances.make_scaled_decision(METRICS[self.name], self.p, float(eps), divisors, weights)


@dataclass(frozen=True)
class WeightedMetric(ScaledMetric):
    """A metric with weights and no eps, by which nearest points are searched for; by :func:`weigh_metric`.

    Its scaled coordinates are not clipped to any eps. Code that compares them must allow for what their
    rounding may hide: see :meth:`slack`.
    """

    @property
    def plain(self) -> Metric:
        """The metric without weights."""
        return Metric(self.name, self.p)

    @property
    def weights(self) -> Floats:
        """(d,) float64, one weight per dimension."""
        return np.array(self.scale.weights)

    def check_eps(self, eps: object, name: str = "eps") -> float:
        """Return eps as a float, if pairs within it can be decided exactly in every weighted dimension."""
        number = super().check_eps(eps, name)
        _check_sizes(self.plain, np.full(len(self.scale.weights), number), self.weights)
        return number

    def embedded_eps(self, eps: float) -> float:
        """Return the threshold of scaled coordinates that :meth:`slack` has been taken from."""
        return self.plain.embedded_eps(eps)

    def slack(self, largest: Floats) -> Floats:
        """Bound by how much scaled coordinates of two points may seem too far apart, in each dimension.

        Parameters
        ----------
        largest : (d,) float64, the largest absolute scaled coordinates of one of the points. Those of the
            other point may have any size: if they are larger, so is the difference, and its rounding is
            relative.

        Returns
        -------
        (d,) float64. It includes differences whose powers underflow, so that a distance does not show them.
        """
        least = _MIN_TERM ** (1.0 / self.power)
        factors = self.weights ** (1.0 / self.power)
        bound: Floats = _ROUNDING * largest + least * np.maximum(factors, 1.0)
        return bound


def _check_sizes(metric: Metric, eps: Floats, weights: Floats) -> None:
    """Refuse a dimension whose weighted differences could underflow or overflow unnoticed."""
    for dimension in np.flatnonzero(weights):
        with np.errstate(over="ignore"):
            alone = eps[dimension] / weights[dimension] ** (1.0 / metric.power)
        try:
            metric.check_eps(alone)
        except ArgumentError as error:
            raise ArgumentError(
                f"dimension {dimension} has eps = {eps[dimension]:g} and the weight {weights[dimension]:g}: "
                f"too small or too large for exact {metric.name} decisions"
            ) from error


def scale_metric(
    metric: Metric, points: Floats, eps: float | ArrayLike, weights: ArrayLike | None
) -> tuple[Metric, float]:
    """Make the metric that decides by one eps per dimension and by weights.

    Parameters
    ----------
    metric : the metric of the distances.
    points : (n, d) float64, the points or a sample of them; not modified.
    eps : one threshold, or (d,) one per dimension.
    weights : (d,) numbers of at least 0, or None.

    Returns
    -------
    metric : the same metric if there is one eps and no weights, otherwise a :class:`ScaledMetric`.
    eps : its threshold; 1 where there was one per dimension.

    Raises
    ------
    ArgumentError
        eps or weights of a wrong shape or value, or for a metric that does not add up dimensions.
    """
    is_one = is_one_number(eps)
    if is_one and weights is None:
        return metric, metric.check_eps(eps)
    d = points.shape[1]
    _check_adds_up(metric)
    divisors, threshold = np.ones(d), 1.0
    if is_one:
        threshold = metric.check_eps(eps)
    else:
        divisors = as_array("eps", eps)
        is_number = divisors.shape == (d,) and divisors.dtype.kind in "fiu"
        if not is_number or not ((divisors > 0) & np.isfinite(divisors)).all():
            raise ArgumentError(
                f"eps must be one number, or one per dimension ({d}), finite and above 0, not {eps!r}"
            )
    given = np.ones(d) if weights is None else _weights(weights, d)
    _check_sizes(metric, threshold * divisors, given)
    scale = _scale(divisors, given, points, min(_REACH * threshold, _LARGEST_REACH))
    return ScaledMetric(metric.name, metric.p, scale), threshold


def check_weights(metric: Metric, d: int, weights: ArrayLike | None) -> Floats | None:
    """Return weights of d dimensions as numbers; None where there are none.

    Raises
    ------
    ArgumentError
        They have a wrong shape or value, or are for a metric that does not add up dimensions.
    """
    if weights is None:
        return None
    _check_adds_up(metric)
    return _weights(weights, d)


def weigh_metric(metric: Metric, points: Points, weights: Floats) -> Metric:
    """Make the metric that decides by weights, however far apart points are.

    Parameters
    ----------
    metric : the metric of the distances, which adds up dimensions.
    points : (n, d) float64 or float32, the points or a sample of them; not modified.
    weights : (d,) finite numbers of at least 0.

    Returns
    -------
    A :class:`WeightedMetric`; the same metric where all weights are 1.
    """
    if (weights == 1.0).all():
        return metric
    return WeightedMetric(
        metric.name, metric.p, _scale(np.ones(len(weights)), weights, points, _LARGEST_REACH)
    )


def multiply(metric: Metric, points: Points, weights: Floats) -> Callable[[Floats], Floats]:
    """Make what multiplies coordinates so that distances without weights are about those with them.

    Parameters
    ----------
    metric, points, weights : see :func:`weigh_metric`.

    Returns
    -------
    A function of (m, d) float64 points. It counts coordinates from the centre, multiplies and rounds them,
    and leaves out those of weight 0, but for one where all are.
    """
    columns = np.flatnonzero(weights) if weights.any() else np.arange(1)
    some = points[:: max(1, len(points) // _ROWS_OF_CENTRE)].take(columns, axis=1)
    scale = _scale(np.ones(len(columns)), weights[columns], some, _LARGEST_REACH)
    weighted = WeightedMetric(metric.name, metric.p, scale)
    return lambda given: weighted.embed(given.take(columns, axis=1))


def _check_adds_up(metric: Metric) -> None:
    if metric.name not in ("euclidean", "manhattan", "chebyshev", "minkowski"):
        raise ArgumentError(f"{metric.name} has no eps per dimension and no weights")


def _weights(weights: ArrayLike, d: int) -> Floats:
    given = as_array("weights", weights)
    if given.shape != (d,) or given.dtype.kind not in "fiu" or not ((given >= 0) & np.isfinite(given)).all():
        raise ArgumentError(
            f"weights must be one per dimension ({d}), finite and at least 0, not {weights!r}"
        )
    return given.astype(np.float64)


def _scale(divisors: Floats, weights: Floats, points: Points, reach: float) -> Scale:
    n, d = points.shape
    some = points[:: max(1, n // _ROWS_OF_CENTRE)]
    centre = np.partition(some, len(some) // 2, axis=0)[len(some) // 2] if n else np.zeros(d)
    return Scale(
        tuple(divisors.astype(np.float64).tolist()), tuple(weights.tolist()), tuple(centre.tolist()), reach
    )
