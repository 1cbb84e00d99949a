"""How many pairs a join in parts will have, and how long it takes, while some of its parts are done.

The plan expects ``p_i`` pairs of part i. Parts that are done have found ``z_i``, and their ratio to what was
expected corrects what is expected of the rest:

    Z = sum(z over done) + beta sum(p over rest),  beta = (sum(z over done) + k) / (sum(p over done) + k)

With ``k = 0`` this is the ratio estimator of survey sampling. ``k``, here what is expected of two mean parts,
is the weight of the plan: it counts as much as two parts that went as planned, and hardly matters once ten
parts are done.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats
from epsjoin.local.plan.join_plan import ExpectedParts
from epsjoin.local.progressive.running import RunningEstimate, student

PLAN_PARTS = 2.0
"""The plan's own expectation counts as much as this number of mean parts."""
_TYPICAL = 0.75
"""Fraction of the finished parts whose ratio to what was expected is at most that given to the rest."""
RADII_PER_OCTAVE = 64
"""Radii between eps and eps / 2 by which distances are counted, to find a smaller eps."""
_OCTAVES = 40
N_RADII = RADII_PER_OCTAVE * _OCTAVES
"""Number of radii by which distances are counted."""


class PartsAhead(NamedTuple):
    """What is expected of each part of a join.

    Parameters
    ----------
    pairs : (k,) float64, above 0.
    work : (k,) float64, in any unit, above 0.
    """

    pairs: Floats
    work: Floats


def look_ahead(
    expected: ExpectedParts | None, rows: Floats | None, n_pairs: float, n_parts: int
) -> PartsAhead:
    """Correct what the plan expects of each part by the rows that it really has.

    Parameters
    ----------
    expected : what the plan expects of each part; None: pairs are expected in proportion to rows.
    rows : (k,) float64, rows of each part; None if they are not known before the join.
    n_pairs : pairs that the plan expects of all parts.
    n_parts : k.

    Notes
    -----
    A sample that misses rows misses their pairs, too. Rows are counted exactly before the join begins; pairs
    are taken to grow with their square, and work in proportion to them.
    """
    if expected is None or len(expected.rows) != n_parts:
        shares = np.ones(n_parts) if rows is None else np.maximum(rows, 1.0)
        return PartsAhead(shares * (max(n_pairs, 1.0) / shares.sum()), shares)
    pairs, work = np.maximum(expected.pairs, 1e-3), np.maximum(expected.seconds, 1e-9)
    if rows is not None:
        ratio = np.maximum(rows, 1.0) / np.maximum(expected.rows, 1.0)
        pairs, work = pairs * ratio**2, work * ratio
    return PartsAhead(pairs, work)


def estimate_parts(expected: Floats, found: Floats, is_done: Bools) -> RunningEstimate:
    """Estimate the pairs of all parts from those of the parts that are done, which may be any of them.

    Parameters
    ----------
    expected : (k,) float64, pairs expected of each part, above 0.
    found : (k,) float64, pairs that were found; read only of parts that are done.
    is_done : (k,) bool.

    Returns
    -------
    RunningEstimate
        Exact when all parts are done. The lower end is never below the pairs that were found. No interval
        while fewer than two parts are done.

    Notes
    -----
    The interval is that of Student's t by the residuals of the ratio. Where a part is expected to have more
    pairs, its residual is larger in proportion: ``Var(z_i) = s² p_i²``, with ``s²`` from ``(z_i / p_i -
    beta)²``. It needs no random order of the parts, only that the errors of the plan are independent of when
    a part ends. Pairs are counts: the variance is at least that of independent pairs.

    References
    ----------
    Cochran, Sampling Techniques, 3rd edition 1977, chapter 6 (ratio estimators).
    """
    known, rest = float(found[is_done].sum()), float(expected[~is_done].sum())
    n_done = int(np.count_nonzero(is_done))
    if n_done == len(expected):
        return RunningEstimate(known, known, known)
    word = PLAN_PARTS * float(expected.mean())
    done = float(expected[is_done].sum()) + word
    ratio = (known + word) / done
    pairs = known + ratio * rest
    if n_done < 2:
        return RunningEstimate(pairs, note="too few parts are done")
    residuals = found[is_done] / expected[is_done] - ratio
    spread = float((residuals**2).sum()) / (n_done - 1)
    of_ratio = float((expected[is_done] ** 2).sum()) / done**2
    variance = spread * (rest**2 * of_ratio + float((expected[~is_done] ** 2).sum()))
    variance = max(variance, ratio * rest * (1.0 + rest / done))
    half = student(n_done - 1) * math.sqrt(variance)
    return RunningEstimate(pairs, max(known, pairs - half), pairs + half)


def fraction_done(work: Floats, is_done: Bools) -> float:
    """Fraction of the work that is done, 0 to 1."""
    return float(work[is_done].sum() / work.sum())


def seconds_left(work: Floats, is_done: Bools, is_running: Bools, seconds: float) -> float | None:
    """Estimate the seconds until all parts are done; None while none is.

    Parameters
    ----------
    work : (k,) float64, work of each part.
    is_done, is_running : (k,) bool. Of what runs, half is taken to be done.
    seconds : time since the first part began.
    """
    if not is_done.any():
        return None
    done = float(work[is_done].sum()) + 0.5 * float(work[is_running].sum())
    return seconds * (float(work.sum()) - done) / done


def count_radii(distances: Floats, eps: float) -> Floats:
    """Count distances by radius: entry j holds those above ``eps 2**(-(j + 1) / 64)`` up to that of j.

    Parameters
    ----------
    distances : (n,) float64, 0 to eps.
    eps : the threshold.

    Returns
    -------
    (N_RADII,) float64. The last entry holds all smaller ones, those of equal points among them.
    """
    with np.errstate(divide="ignore"):
        places = np.floor(RADII_PER_OCTAVE * np.log2(eps / distances))
    places = np.clip(places, 0, N_RADII - 1).astype(np.int64)
    return np.bincount(places, minlength=N_RADII).astype(np.float64)


def largest_fitting_eps(
    by_radius: Floats, expected: Floats, rest: float, eps: float, max_pairs: float
) -> float | None:
    """Find the largest smaller eps that fits, by the distances of the pairs that were found so far.

    Parameters
    ----------
    by_radius : (j, N_RADII) float64, distances of each part that is done, by :func:`count_radii`.
    expected : (j,) float64, pairs that were expected of each of them, above 0.
    rest : pairs that were expected of all others.
    eps : the threshold of these numbers.
    max_pairs : how many pairs are allowed.

    Returns
    -------
    In 6 significant digits, rounded down. None if more pairs than are allowed are of (nearly) equal points,
    which no eps separates, or if no part is done.

    Notes
    -----
    For each radius, the pairs of finished parts are counted, and for the others the ratio to what was
    expected of them is taken that three of four finished parts do not exceed. Unlike the estimate's own
    ratio, it does not follow a single part with very many pairs, whose distances may differ from all others.
    A few parts say little, so with j parts ``1 / sqrt(j)`` is added to it.
    """
    if not len(by_radius):
        return None
    within = by_radius.sum(axis=1, keepdims=True) - np.cumsum(by_radius, axis=1)  # the next smaller radius
    ratio = np.quantile(within / expected[:, None], _TYPICAL, axis=0, method="lower")
    ratio *= 1.0 + 1.0 / math.sqrt(len(by_radius))
    fits = np.flatnonzero(within.sum(axis=0) + ratio * rest <= max_pairs)
    if not len(fits) or fits[0] == N_RADII - 1:
        return None
    radius = eps * 2.0 ** (-(float(fits[0]) + 1.0) / RADII_PER_OCTAVE)
    unit = 10.0 ** (math.floor(math.log10(radius)) - 5)
    return float(f"{math.floor(radius / unit) * unit:.6g}")
