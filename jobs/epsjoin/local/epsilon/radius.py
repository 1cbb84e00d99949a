"""The largest radius, and the number of rows, for which the join of a sample stays small."""

from __future__ import annotations

import math

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.paired import paired_distances
from epsjoin.local.epsilon.power_law import BY_HAND, MAX_PAIR_FRACTION, all_pairs
from epsjoin.local.metric import Metric

_MIN_DISTANCES = 32
"""Number of different distances on the curve, where the points have as many."""

_MIN_DRAWS, _MAX_DRAWS = 20_000, 2_000_000
"""Range of the number of random pairs whose distances are computed."""

_HITS = 400
"""Number of random pairs within the radius: the fraction of such pairs is then known to a twentieth."""

_MAX_CANDIDATES = 60_000_000
"""Maximum number of pairs that a join compares, in tenths of a second."""


def choose_r_max(
    points: Floats, metric: Metric, target_pairs: int = 2_000_000, seed: int = 0
) -> tuple[float, int]:
    """Choose the largest radius and the number of rows for which a join has about ``target_pairs`` pairs.

    Parameters
    ----------
    points : (m, d) float64, a sample in random order; not modified.
    metric : the metric of the distances.
    target_pairs : number of pairs of different points within the radius, at least 1; up to twice as many are
        accepted.
    seed : seed of the random pairs whose distances are computed.

    Returns
    -------
    tuple[float, int]
        The radius, and the number of rows to join, counted from the first. They are not all rows where equal
        points or ties would make too many pairs, or where the radius is so large that the join would compare
        more than 60 million pairs. Any part of a uniform sample is a uniform sample with the same exponent.

    Raises
    ------
    ArgumentError
        There are fewer than two points, or no two different ones were found; or no join of the metric takes
        eps as large or as small as their distances are.

    Notes
    -----
    The radius is a quantile of the distances of random pairs. It is never beyond a fifth of them, because the
    power law ends there; on a lattice it is large enough for 32 different distances, if that fifth has as
    many. A join compares pairs that are near on a few wide axes; in many dimensions these are nearly all
    pairs. Where fewer rows are used for that reason, the target shrinks in proportion, so that a row keeps
    its number of neighbours: the radius grows by less than (m / rows) ** (1 / P), which is next to nothing
    where P is large. O(m d + draws d) with 20,000 to 2 million draws; of small samples all pairs are used.
    """
    m = len(points)
    if m < 2:
        raise ArgumentError(f"a power law needs at least two points, not {m}; {BY_HAND}")
    left, right = _draw_pairs(m, target_pairs, seed)
    distance = paired_distances(metric.decision(math.inf), points, left, right)
    different = np.sort(distance[distance > 0])
    if not different.size:
        raise ArgumentError(f"no two different points were met among {m:,} sampled; {BY_HAND}")
    rows = _limit_rows(m, 1 - different.size / distance.size, target_pairs)
    r_max = _choose_radius(different, target_pairs / all_pairs(rows) * distance.size / different.size)
    _refuse_inexact(r_max, metric)
    near = _are_near(metric.embed(points), left, right, metric.embedded_eps(r_max))
    fewer = _limit_rows(rows, float(near.mean()), _MAX_CANDIDATES)
    if fewer < rows:
        target_pairs, rows = math.ceil(target_pairs * fewer / rows), fewer
        r_max = _choose_radius(different, target_pairs / all_pairs(rows) * distance.size / different.size)
    return r_max, _limit_rows(rows, float((distance <= r_max).mean()), 2 * target_pairs)


def choose_r_max_between(
    left: Floats, right: Floats, metric: Metric, target_pairs: int = 2_000_000, seed: int = 0
) -> tuple[float, float]:
    """Choose the largest radius and the fraction of the rows for which a join of two tables stays small.

    Parameters
    ----------
    left, right : (l, d) and (r, d) float64, samples in random order; not modified.
    metric, target_pairs, seed : see :func:`choose_r_max`.

    Returns
    -------
    tuple[float, float]
        The radius, and the fraction of the rows of either table to join, counted from the first.

    Raises
    ------
    ArgumentError
        There is no pair of different points; or their distances are too large or too small for a join.
    """
    n_pairs = len(left) * len(right)
    both = np.concatenate((left, right))
    if n_pairs <= _MIN_DRAWS:
        first, second = (each.ravel() for each in np.indices((len(left), len(right))))
    else:
        draws = min(max(_MIN_DRAWS, math.ceil(_HITS * n_pairs / target_pairs)), _MAX_DRAWS)
        random = np.random.default_rng(seed)
        first, second = random.integers(0, len(left), draws), random.integers(0, len(right), draws)
    second = second + len(left)
    distance = paired_distances(metric.decision(math.inf), both, first, second)
    different = np.sort(distance[distance > 0])
    if not different.size:
        raise ArgumentError(
            f"no two different points were met between {len(left)} and {len(right)} sampled; {BY_HAND}"
        )
    share_equal = 1 - different.size / distance.size
    fraction = _limit_fraction(n_pairs * share_equal, target_pairs)
    of_different = target_pairs / (n_pairs * fraction**2) * distance.size / different.size
    r_max = _choose_radius(different, of_different)
    _refuse_inexact(r_max, metric)
    near = _are_near(metric.embed(both), first, second, metric.embedded_eps(r_max))
    fewer = _limit_fraction(n_pairs * float(near.mean()), _MAX_CANDIDATES)
    found = _limit_fraction(n_pairs * float((distance <= r_max).mean()), 2 * target_pairs)
    return r_max, min(fraction, fewer, found)


def _refuse_inexact(r_max: float, metric: Metric) -> None:
    """Refuse distances that cannot be an eps, since float64 does not hold the squares of the coordinates."""
    try:
        metric.check_eps(r_max)
    except ArgumentError as error:
        far = f"about {r_max:.3g} apart" if r_max < math.inf else "farther apart than float64 holds"
        raise ArgumentError(
            f"the sampled points are {far}, which is no eps for exact {metric.name} decisions; divide all "
            "coordinates by one number"
        ) from error


def _are_near(embedded: Floats, left: Ints, right: Ints, embedded_eps: float) -> Bools:
    """Whether two rows are within eps on each of the three axes with the largest variance."""
    largest = math.frexp(float(np.abs(embedded).max()))[1]
    variance = np.ldexp(embedded, -largest).var(axis=0)  # of numbers up to 1, whose squares do not overflow
    wide = embedded[:, np.argsort(-variance, kind="stable")[:3]]
    with np.errstate(over="ignore"):
        return np.asarray((np.abs(wide[left] - wide[right]) <= embedded_eps).all(axis=1))


def _limit_fraction(pairs: float, limit: int) -> float:
    """Find the largest fraction of the rows of both tables that has at most ``limit`` of these pairs."""
    return 1.0 if pairs <= limit else math.sqrt(limit / pairs)


def _choose_radius(rising: Floats, fraction: float) -> float:
    """Compute a quantile of the distances that covers 32 different ones, if the lowest fifth has as many."""
    r_max = float(rising[math.ceil(min(2 * MAX_PAIR_FRACTION, fraction) * rising.size) - 1])
    lattice = np.unique(rising[: math.ceil(2 * MAX_PAIR_FRACTION * rising.size)])[:_MIN_DISTANCES]
    return max(r_max, float(lattice[-1]))


def _draw_pairs(m: int, target_pairs: int, seed: int) -> tuple[Ints, Ints]:
    """Draw random pairs of two rows; all pairs where these are few."""
    draws = min(max(_MIN_DRAWS, math.ceil(_HITS * all_pairs(m) / target_pairs)), _MAX_DRAWS)
    if all_pairs(m) <= draws:
        left, right = np.triu_indices(m, 1)
        return left, right
    random = np.random.default_rng(seed)
    left = random.integers(0, m, draws)
    return left, (left + random.integers(1, m, draws)) % m


def _limit_rows(m: int, fraction: float, pairs: int) -> int:
    """Find the largest number of rows, at most m, of whose pairs this fraction is at most ``pairs``."""
    if fraction * all_pairs(m) <= pairs:
        return m
    return max(2, math.isqrt(int(2 * pairs / fraction)))
