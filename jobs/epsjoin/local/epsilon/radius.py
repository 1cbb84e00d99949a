"""The largest radius, and the rows, for which a join of a sample stays small."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.paired import paired_distances
from epsjoin.local.arguments import FloatColumn, IntColumn
from epsjoin.local.epsilon.power_law import BY_HAND, SATURATED, all_pairs
from epsjoin.local.metric import Metric

_DISTANCES = 32  # different ones wished on the curve
_FEWEST_DRAWS, _MOST_DRAWS = 20_000, 2_000_000
_WANTED_HITS = 400  # draws within the radius: its share of all pairs is then known to a twentieth
_MOST_CANDIDATES = 60_000_000  # pairs that a join compares in tenths of a second


def choose_r_max(
    points: npt.NDArray[np.float64], metric: Metric, target_pairs: int = 2_000_000, seed: int = 0
) -> tuple[float, int]:
    """Choose the largest radius and the rows for which a join has about ``target_pairs`` pairs.

    Parameters
    ----------
    points : (m, d) float64, a sample in random order; not modified.
    metric : what :func:`epsjoin.local.metric.get_metric` returned.
    target_pairs : pairs of different points wished within the radius; twice as many are borne, at least 1.
    seed : of the pairs whose distances are looked at.

    Returns
    -------
    tuple[float, int]
        The radius, and how many of the rows (from the first on) to join. Not all of them where equal points
        or ties would make too many pairs, or where the radius is so large that the join would compare more
        than 60 million: any share of a uniform sample is one, its exponent the same.

    Raises
    ------
    ArgumentError
        Fewer than two points, or no two different ones were met; a point for which the metric is not defined.

    Notes
    -----
    The radius is a quantile of the distances of random pairs, never beyond a fifth of them, as there the
    power law ends; on a lattice it is large enough for 32 different distances, if that fifth has so many.
    A join compares pairs that are near on a few wide axes; in many dimensions these are nearly all. Where
    fewer rows are taken for that, the pairs wished shrink with them, so that a row keeps its neighbours: the
    radius grows by less than (m / rows) ** (1 / P), next to nothing where P is large.
    O(m d + draws d), 20,000 to 2 million draws; small samples are looked at in full.
    """
    metric.check(points)
    m = len(points)
    if m < 2:
        raise ArgumentError(f"a power law needs at least two points, not {m}; {BY_HAND}")
    left, right = _random_pairs(m, target_pairs, seed)
    distance = paired_distances(metric.decision(math.inf), points, left, right)
    different = np.sort(distance[distance > 0])
    if not different.size:
        raise ArgumentError(f"no two different points were met among {m} sampled; {BY_HAND}")
    rows = _affordable(m, 1 - different.size / distance.size, target_pairs)
    r_max = _radius(different, target_pairs / all_pairs(rows) * distance.size / different.size)
    embedded = metric.embed(points)
    wide = embedded[:, np.argsort(-embedded.var(axis=0), kind="stable")[:3]]
    near = (np.abs(wide[left] - wide[right]) <= metric.embedded_eps(r_max)).all(axis=1)
    fewer = _affordable(rows, float(near.mean()), _MOST_CANDIDATES)
    if fewer < rows:
        target_pairs, rows = math.ceil(target_pairs * fewer / rows), fewer
        r_max = _radius(different, target_pairs / all_pairs(rows) * distance.size / different.size)
    return r_max, _affordable(rows, float((distance <= r_max).mean()), 2 * target_pairs)


def _radius(rising: FloatColumn, share: float) -> float:
    """Quantile of the distances; at least 32 different ones, if the lowest fifth has so many."""
    r_max = float(rising[math.ceil(min(2 * SATURATED, share) * rising.size) - 1])
    lattice = np.unique(rising[: math.ceil(2 * SATURATED * rising.size)])[:_DISTANCES]
    return max(r_max, float(lattice[-1]))


def _random_pairs(m: int, target_pairs: int, seed: int) -> tuple[IntColumn, IntColumn]:
    """Rows of random pairs of two rows; all pairs where they are few."""
    draws = min(max(_FEWEST_DRAWS, math.ceil(_WANTED_HITS * all_pairs(m) / target_pairs)), _MOST_DRAWS)
    if all_pairs(m) <= draws:
        left, right = np.triu_indices(m, 1)
        return left, right
    random = np.random.default_rng(seed)
    left = random.integers(0, m, draws)
    return left, (left + random.integers(1, m, draws)) % m


def _affordable(m: int, share: float, pairs: int) -> int:
    """Rows, at most m, of which this share of all pairs is not more than ``pairs``."""
    if share * all_pairs(m) <= pairs:
        return m
    return max(2, math.isqrt(int(2 * pairs / share)))
