"""The largest eps that stays within a limit of pairs, as a sentence for an error message."""

from __future__ import annotations

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.epsilon.fit import EpsilonFit
from epsjoin.local.epsilon.fit import fit_epsilon as fit_points
from epsjoin.local.metric import Metric


def what_fits(
    sample: Floats, metric: str | Metric, n_points: int, max_pairs: int, seed: int, unit: str = ""
) -> str:
    """Say which is the largest eps for which no more pairs are expected than allowed.

    Parameters
    ----------
    sample : (m, d) float64, a uniform sample of the points.
    metric : the metric of the distances.
    n_points : number of all points.
    max_pairs : maximum number of pairs.
    seed : seed of the fit.
    unit : unit of eps.
    """
    try:
        fit = fit_points(sample, metric, len(sample), seed, n_points)
    except ArgumentError as error:
        return f"which eps fits cannot be told: {error}"
    return largest_that_fits(fit, max_pairs, unit)


def largest_that_fits(fit: EpsilonFit, max_pairs: int, unit: str) -> str:
    """Say which is the largest eps with at most ``max_pairs`` pairs, or why there is none."""
    try:
        return f"the largest eps that fits is about {fit.eps_for(pairs=max_pairs):g} {unit}".rstrip()
    except ArgumentError as error:
        return f"no eps fits: {error}"
