"""One eps per dimension and weights, as a change of the coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.metric import Metric


def scale_points(
    points: Floats, eps: float | ArrayLike, weights: ArrayLike | None, metric: Metric
) -> tuple[Floats, float]:
    """Scale the coordinates, so that one threshold and no weights are left.

    Parameters
    ----------
    points : (n, d) float64; not modified.
    eps : one threshold, or (d,) one per dimension.
    weights : (d,) numbers of at least 0, or None.
    metric : the metric of the distances.

    Returns
    -------
    points : (n, d) float64, divided by eps where it is one per dimension, and multiplied by the weights: by
        ``w`` (manhattan, chebyshev), ``w ** (1 / 2)`` (euclidean), ``w ** (1 / p)`` (minkowski).
    eps : the threshold for these; 1 where there was one per dimension.

    Raises
    ------
    ArgumentError
        eps or weights of a wrong shape or value, or for a metric that does not add up dimensions.
    """
    d = points.shape[1]
    factors = np.ones(d)
    threshold = eps
    if np.ndim(eps) > 0:
        each = np.asarray(eps)
        if each.shape != (d,) or each.dtype.kind not in "fiu" or not ((each > 0) & np.isfinite(each)).all():
            raise ArgumentError(
                f"eps must be one number, or one per dimension ({d}), finite and above 0, not {eps!r}"
            )
        with np.errstate(over="ignore"):
            factors = factors / each
        threshold = 1.0
    if weights is not None:
        given = np.asarray(weights)
        if (
            given.shape != (d,)
            or given.dtype.kind not in "fiu"
            or not ((given >= 0) & np.isfinite(given)).all()
        ):
            raise ArgumentError(
                f"weights must be one per dimension ({d}), finite and at least 0, not {weights!r}"
            )
        power = {"euclidean": 2.0, "minkowski": metric.p}.get(metric.name, 1.0)
        factors = factors * given.astype(np.float64) ** (1.0 / power)
    if np.ndim(eps) > 0 or weights is not None:
        if metric.name not in ("euclidean", "manhattan", "chebyshev", "minkowski"):
            raise ArgumentError(f"{metric.name} has no eps per dimension and no weights")
        if not np.isfinite(factors).all():
            raise ArgumentError("eps per dimension and weights must have a quotient that float64 can hold")
        with np.errstate(over="ignore"):
            points = points / np.asarray(eps, np.float64) if weights is None else points * factors
        if not np.isfinite(points).all():
            raise ArgumentError("points divided by eps per dimension, times weights, must be finite")
    return points, metric.check_eps(threshold)  # type: ignore[arg-type]  # checks what it is
