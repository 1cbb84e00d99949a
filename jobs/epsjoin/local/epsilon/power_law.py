"""The power law of pair counts: ``pairs(r) = c * r**P``.

The pairs of a uniform sample by distance are a :class:`Curve`; on log-log scales its straight part has the
slope P, the pair-count exponent, which for a self join is the correlation fractal dimension.

References
----------
Dittrich's dissertation, section 3.7.1, equation 3.15. Belussi, Faloutsos: Estimating the selectivity of
spatial queries using the correlation fractal dimension, VLDB 1995. Faloutsos, Seeger, Traina, Traina: Spatial
join selectivity using power laws, SIGMOD 2000 (the exponent does not change with sampling and the choice of
L_p). Efron, Stein: The jackknife estimate of variance, Annals of Statistics 9 (1981).

Departures: the straight part is found by a rule, not by eye; pairs of equal points, which make a plateau of
height c0 at small r, are counted apart: ``pairs(r) = c0 + c * r**P``; the border of a filled box is
corrected (``border.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import FloatColumn, IntColumn, check_count, distance_column, int_column

Batch = npt.ArrayLike | tuple[npt.ArrayLike, ...]

# Fewer pairs than this are left out as the flat start: their number alone is uncertain by a fifth.
LEAST_PAIRS = 30
# A part of the curve is straight where a line explains this share of its variance; the first that serves.
STRAIGHT = (0.999, 0.99, 0.95)
# Above this share of all pairs the curve bends towards its end.
SATURATED = 0.1
# Groups of rows, left out one after the other.
N_GROUPS = 20
# What a person can do when no power law can be fitted.
BY_HAND = "give eps by hand"

_LEAST_SHARE = 1 / 3  # of the growth of pairs between start and end, that the straight part must cover
_LEAST_POINTS = 6  # of the curve, that a line may be fitted to
_ROUNDING = 1e-9  # of a distance that was compared as a power
_T_QUANTILE = 2.093  # 97.5 % of Student's t with N_GROUPS - 1 degrees of freedom
_PER_OCTAVE, _OCTAVES = 64, 64  # bins in which distances are counted, before a grid is chosen among them


class Curve(NamedTuple):
    """Pairs of a sample by distance.

    Parameters
    ----------
    radius : (n,) float64, rising; the last is the largest radius of the join.
    pairs : (n,) int64, pairs at distance at most ``radius``, equal points among them; float64, the sum of
        their weights, where weights were given.
    equal_pairs : pairs at distance 0.
    pairs_without : (groups, n) int64, the same without the pairs that have an end in one group of the
        sampled rows; 0 groups where the ends were not given.
    equal_pairs_without : (groups,) int64.
    """

    radius: FloatColumn
    pairs: IntColumn | FloatColumn
    equal_pairs: int
    pairs_without: IntColumn | FloatColumn
    equal_pairs_without: IntColumn | FloatColumn

    @property
    def different_pairs(self) -> IntColumn | FloatColumn:
        """Pairs of different points within each radius: what follows the power law."""
        return self.pairs - self.equal_pairs


class PowerLawFit(NamedTuple):
    """``pairs(r) - equal_pairs = exp(log_c) * r**exponent``, for the sample.

    Parameters
    ----------
    exponent : pair-count exponent P, the correlation fractal dimension.
    log_c : natural logarithm of c, r in the metric's unit.
    range_low, range_high : radii between which the line was fitted.
    r_squared : of the line; high for every rising curve, so it shows a bad fit but proves no good one.
    interval_low, interval_high : 95 % interval of the exponent, NaN where the curve has no groups.
    """

    exponent: float
    log_c: float
    range_low: float
    range_high: float
    r_squared: float
    interval_low: float
    interval_high: float


def pair_count_curve(
    batches: Iterable[Batch],
    n_sample: int,
    r_max: float,
    n_bins: int = 64,
    seed: int = 0,
) -> Curve:
    """Count pairs within r, for r on a grid up to ``r_max``, while the join runs.

    Parameters
    ----------
    batches : the pairs of a sample within r_max, each once: arrays of distances, or tuples (left, right,
        distance) with ends as row numbers 0 to n_sample - 1, which make an interval of the exponent possible.
        With weights as a fourth column, the pairs' weights are summed. All of one kind.
    n_sample : rows of the sample.
    r_max : the radius of the join.
    n_bins : radii wanted, at most; evenly spaced on the logarithmic scales of radius and of pairs together,
        so that neither a steep nor a flat part of the curve is left without points.
    seed : of the groups.

    Returns
    -------
    Curve
        From the first radius with ``LEAST_PAIRS`` pairs of different points on; else of one radius, r_max.

    Raises
    ------
    ArgumentError
        r_max is not above 0, a distance is beyond it, negative or NaN; an end is no row of the sample.

    Notes
    -----
    Distances are counted in 64 bins per octave over 64 octaves, exactly (``<=``) at the grid's radii: 0.7 MB,
    whatever the number of pairs.
    """
    n_sample, n_bins = check_count("n_sample", n_sample), check_count("n_bins", n_bins, 2)
    if not 0 < r_max < math.inf:
        raise ArgumentError(f"r_max must be a finite number above 0, not {r_max!r}")
    # Bin 0 holds exact zeros, bin i the distances in (edges[i - 1], edges[i]].
    edges = np.concatenate(([0.0], r_max * 2.0 ** (np.arange(1 - _OCTAVES * _PER_OCTAVE, 1) / _PER_OCTAVE)))
    group = jackknife_groups(n_sample, seed)
    count = np.zeros(edges.size)  # whole numbers are exact up to 2**53
    touching = np.zeros((N_GROUPS, edges.size))
    has_ends = has_weights = False
    for batch in batches:
        columns: tuple[npt.ArrayLike, ...] = batch if isinstance(batch, tuple) else ()
        has_ends, has_weights = len(columns) > 0, len(columns) == 4
        bins = _bins(columns[2] if has_ends else batch, edges)
        weight = distance_column("weight", columns[3]) if has_weights else np.ones(bins.size)
        count += np.bincount(bins, weight, edges.size)
        if has_ends:
            left, right = _groups_of("left", columns[0], group), _groups_of("right", columns[1], group)
            apart = left != right
            for ends, at, share in ((left, bins, weight), (right[apart], bins[apart], weight[apart])):
                touching += np.bincount(ends * edges.size + at, share, touching.size).reshape(touching.shape)
    pairs = np.cumsum(count)
    without = pairs - np.cumsum(touching, axis=1) if has_ends else np.zeros((0, edges.size))
    at = _grid(edges, pairs - pairs[0], n_bins)
    kind: type[np.generic] = np.float64 if has_weights else np.int64
    numbers: list[IntColumn | FloatColumn] = [
        each.astype(kind) for each in (pairs[at], without[:, at], without[:, 0])
    ]
    return Curve(edges[at], numbers[0], int(pairs[0]), numbers[1], numbers[2])


def fit_power_law(curve: Curve, n_sample: int) -> PowerLawFit:
    """Find the straight part of the curve on log-log scales, and its slope.

    1. Pairs of equal points are taken off: they do not depend on r.
    2. Left out are the flat start (fewer than ``LEAST_PAIRS``) and the saturated end (above a tenth of all).
    3. Of all parts of the rest that a line fits with an R² of at least 0.999, the one over which the number
       of pairs grows most, on the logarithmic scale, is the straight part. Where it covers less than a third
       of the growth, 0.99 will do, then 0.95, and then the rest as a whole is taken.
    4. The interval comes from leaving out one group of rows after the other (jackknife) and fitting the same
       part again. Pairs share points and counts are cumulative, so the regression's own errors would be far
       too small; the jackknife errs on the wide side (Efron, Stein), by about the root of 2 for pairs.

    Parameters
    ----------
    curve : of :func:`pair_count_curve`.
    n_sample : rows of the sample.

    Raises
    ------
    ArgumentError
        The curve has too few points between start and end: too few pairs, or too few different distances.

    Notes
    -----
    The interval is about sampling alone; whether the data follows one power law, the straight part and its R²
    tell. At the border of the data balls are cut off, which bends the curve of a d-dimensional cube to a
    slope below d, the more so the larger d. Points that nearly coincide make a plateau like equal ones, which
    is left out only as far as it is not straight: the slope after it is up to 3 % too low. O(n_bins²).
    """
    different = curve.different_pairs
    all_different = all_pairs(n_sample) - curve.equal_pairs
    rest = curve.pairs_without - curve.equal_pairs_without[:, None]
    usable = (different >= LEAST_PAIRS) & (different <= SATURATED * all_different)
    law = fit_line(curve.radius, different, rest, usable)
    if law is None:
        raise ArgumentError(
            f"the {n_sample} sampled points have too few pairs at different distances to fit a power law "
            f"({different[-1]:.0f} pairs of different points within {curve.radius[-1]:.6g}); {BY_HAND}"
        )
    return law


def fit_line(
    radius: FloatColumn,
    counts: IntColumn | FloatColumn,
    counts_without: IntColumn | FloatColumn,
    usable: npt.NDArray[np.bool_],
) -> PowerLawFit | None:
    """Fit ``counts = exp(log_c) * radius**exponent`` to the straight part of the usable places.

    Parameters
    ----------
    radius, counts : (n,), both rising.
    counts_without : (groups, n), the counts when one group of rows is left out; 0 groups: no interval.
    usable : (n,) bool; places that may take part.

    Returns
    -------
    PowerLawFit | None
        By steps 3 and 4 of :func:`fit_power_law`; None where fewer than 6 different counts are usable.
    """
    at = np.flatnonzero(usable)
    if at.size < _LEAST_POINTS or np.unique(counts[at]).size < _LEAST_POINTS:
        return None
    x, y = np.log(radius[at]), np.log(counts[at])
    first, last = _straight_part(x, y)
    part = slice(first, last + 1)
    slope, height, r_squared = _line(x[part], y[part])
    half = math.nan
    if len(counts_without):
        slopes = [_line(x[part], np.log(np.maximum(row[at][part], 0.5)))[0] for row in counts_without]
        half = _T_QUANTILE * math.sqrt((N_GROUPS - 1) * float(np.var(slopes)))
    low, high = radius[at[[first, last]]].tolist()
    return PowerLawFit(slope, height, low, high, r_squared, slope - half, slope + half)


def jackknife_groups(n_rows: int, seed: int) -> IntColumn:
    """Group, 0 to 19, of each row: equally large, at random."""
    return np.random.default_rng(seed).permutation(n_rows) % N_GROUPS


def all_pairs(n: int) -> int:
    """Pairs of n points."""
    return n * (n - 1) // 2


def _bins(distances: npt.ArrayLike | tuple[npt.ArrayLike, ...], edges: FloatColumn) -> IntColumn:
    column = distance_column("distance", np.asarray(distances))
    if column.size and column.max() > edges[-1] * (1 + _ROUNDING):
        raise ArgumentError(f"a pair at distance {column.max()} is beyond r_max = {edges[-1]}")
    return np.minimum(np.searchsorted(edges, column), edges.size - 1)


def _groups_of(name: str, rows: npt.ArrayLike, group: IntColumn) -> IntColumn:
    column = int_column(name, rows)
    if column.size and not 0 <= column.min() <= column.max() < group.size:
        raise ArgumentError(f"{name} must be rows of the sample, 0 to {group.size - 1}")
    return group[column]


def _grid(edges: FloatColumn, different: FloatColumn, n_bins: int) -> IntColumn:
    """Places of the edges that become the curve's radii: rising steadily in log radius + log pairs."""
    enough = np.flatnonzero(different >= LEAST_PAIRS)
    if not enough.size:
        return np.array([edges.size - 1])
    x, y = np.log2(edges[enough]), np.log2(different[enough])
    way = (x - x[0]) / max(x[-1] - x[0], 1.0 / _PER_OCTAVE) + (y - y[0]) / max(y[-1] - y[0], 1.0)
    places = np.searchsorted(way, np.linspace(0, way[-1], n_bins))
    return np.unique(np.append(enough[places], edges.size - 1))


def _line(x: FloatColumn, y: FloatColumn) -> tuple[float, float, float]:
    """Slope, height at x = 0 and R² of the least-squares line."""
    dx, dy = x - x.mean(), y - y.mean()
    slope = float(dx @ dy / (dx @ dx))
    return slope, float(y.mean() - slope * x.mean()), float((dx @ dy) ** 2 / ((dx @ dx) * (dy @ dy)))


def _straight_part(x: FloatColumn, y: FloatColumn) -> tuple[int, int]:
    """First and last place of the straight part, by the rule of :func:`fit_power_law`."""
    x, y = x - x.mean(), y - y.mean()
    n = np.arange(x.size)
    size = n[None, :] - n[:, None] + 1
    sums = [np.concatenate(([0.0], np.cumsum(terms))) for terms in (x, y, x * x, x * y, y * y)]
    sx, sy, sxx, sxy, syy = (total[None, 1:] - total[:-1, None] for total in sums)
    fits = (size >= _LEAST_POINTS) & (y[None, :] > y[:, None])
    safe = np.where(fits, size, 1)
    spread = np.where(fits, (sxx - sx * sx / safe) * (syy - sy * sy / safe), 1.0)
    r_squared = np.where(fits, (sxy - sx * sy / safe) ** 2 / spread, -1.0)
    growth = y[None, :] - y[:, None]
    for straight in STRAIGHT:
        candidates = np.where(r_squared >= straight, growth, -1.0)
        if candidates.max() >= _LEAST_SHARE * growth[0, -1]:
            best = int(np.argmax(candidates))
            return best // x.size, best % x.size
    return 0, x.size - 1
