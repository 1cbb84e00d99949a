"""The power law of pair counts: ``pairs(r) = c * r**P``.

The pairs of a uniform sample by distance are a :class:`Curve`; on log-log scales its straight part has the
slope P, the pair-count exponent, which for a self join is the correlation fractal dimension.

References
----------
Dittrich's dissertation, section 3.7.1, equation 3.15. Belussi, Faloutsos: Estimating the selectivity of
spatial queries using the correlation fractal dimension, VLDB 1995. Faloutsos, Seeger, Traina, Traina: Spatial
join selectivity using power laws, SIGMOD 2000 (the exponent does not change with sampling and the choice of
L_p). Efron, Stein: The jackknife estimate of variance, Annals of Statistics 9 (1981).

Departures: the straight part is found by a rule, not by eye. Pairs of equal points, which make a plateau of
height c0 at small r, are counted separately: ``pairs(r) = c0 + c * r**P``. The border of a filled box is
corrected (``border.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.console import counted
from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.local.arguments import check_count, distance_column, int_column

Batch = npt.ArrayLike | tuple[npt.ArrayLike, ...]

MIN_PAIRS = 30
"""Minimum number of pairs at a radius of the fit: smaller numbers are uncertain by a fifth or more."""

STRAIGHT_R_SQUARED = (0.999, 0.99, 0.95)
"""Minimum R² of a straight part of the curve; the first that a large enough part reaches."""

MAX_PAIR_FRACTION = 0.1
"""Maximum fraction of all pairs at a radius of the fit: above it the curve bends towards its end."""

N_GROUPS = 20
"""Number of groups of rows that are left out one after the other (jackknife)."""

BY_HAND = "choose eps by hand"
"""What a person can do when no power law can be fitted."""

_MIN_GROWTH_FRACTION = 1 / 3
"""Minimum fraction of the growth of pairs between start and end that the straight part covers."""

_MIN_POINTS = 6
"""Minimum number of points of the curve to which a line is fitted."""

_ROUNDING = 1e-9
"""Relative rounding error of a distance that was compared as a power."""

_T_QUANTILE = 2.093
"""97.5 % quantile of Student's t with ``N_GROUPS - 1`` degrees of freedom."""

_PER_OCTAVE, _OCTAVES = 64, 64
"""Numbers of bins per octave and of octaves in which distances are counted."""

_LEADING = 44
"""Last bits of a double that say least; the others make 256 slots per octave, each with one edge at most."""
_MANY = 1 << 13
"""Number of distances from which on a table of the slots saves more than the 0.2 ms that it takes."""


class Curve(NamedTuple):
    """Number of pairs of a sample by distance.

    Parameters
    ----------
    radius : (n,) float64, ascending; the last is the largest radius of the join.
    pairs : (n,) int64, number of pairs at a distance of at most ``radius``, those of equal points included.
        With weights (n,) float64, the sum of the weights of these pairs.
    equal_pairs : number of pairs at distance 0.
    pairs_without : (groups, n), for the interval of the exponent (jackknife): the numbers ``pairs`` without
        the pairs of one group of the sampled rows after the other. There are 0 groups where the rows of the
        pairs are unknown.
    equal_pairs_without : (groups,), the numbers ``equal_pairs`` without each group.
    """

    radius: Floats
    pairs: Ints | Floats
    equal_pairs: int
    pairs_without: Ints | Floats
    equal_pairs_without: Ints | Floats

    @property
    def different_pairs(self) -> Ints | Floats:
        """Number of pairs of different points within each radius; these follow the power law."""
        return self.pairs - self.equal_pairs


class PowerLawFit(NamedTuple):
    """The power law of a sample: ``pairs(r) - equal_pairs = exp(log_c) * r**exponent``.

    Parameters
    ----------
    exponent : pair-count exponent P, the correlation fractal dimension.
    log_c : natural logarithm of c, for r in the metric's unit.
    range_low, range_high : radii between which the line was fitted.
    r_squared : R² of the line. It is high for every ascending curve: a low value shows a bad fit, a high one
        does not prove a good fit.
    interval_low, interval_high : 95 % interval of the exponent; NaN where the curve has no groups.
    """

    exponent: float
    log_c: float
    range_low: float
    range_high: float
    r_squared: float
    interval_low: float
    interval_high: float


def pair_count_curve(
    batches: Iterable[Batch], n_sample: int, r_max: float, n_bins: int = 64, seed: int = 0
) -> Curve:
    """Count pairs within r, for r on a grid up to ``r_max``, while the join runs.

    Parameters
    ----------
    batches : the pairs of a sample within r_max, each once: arrays of distances, or tuples (left, right,
        distance) whose ends are row numbers 0 to n_sample - 1, which make an interval of the exponent
        possible. A fourth column are weights, which are then summed. All batches are of one kind.
    n_sample : number of rows of the sample.
    r_max : the radius of the join.
    n_bins : maximum number of radii. They are evenly spaced on the logarithmic scales of radius and pairs
        together, so that steep and flat parts of the curve both have points.
    seed : seed of the groups.

    Returns
    -------
    Curve
        Begins at the first radius with ``MIN_PAIRS`` pairs of different points; if there is none, r_max is
        the only radius.

    Raises
    ------
    ArgumentError
        r_max is not above 0; a distance is beyond it, negative or NaN; an end is not a row of the sample.

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
    slots = _Slots(edges)
    count = np.zeros(edges.size)  # whole numbers are exact up to 2**53
    touching = np.zeros((N_GROUPS, edges.size))
    has_ends = has_weights = False
    for batch in batches:
        columns: tuple[npt.ArrayLike, ...] = batch if isinstance(batch, tuple) else ()
        has_ends, has_weights = len(columns) > 0, len(columns) == 4
        bins = _assign_bins(columns[2] if has_ends else batch, slots)
        weight = distance_column("weight", columns[3]) if has_weights else None
        count += np.bincount(bins, weight, edges.size)
        if has_ends:
            left, right = _groups_of("left", columns[0], group), _groups_of("right", columns[1], group)
            apart = left != right
            of_right = None if weight is None else weight[apart]
            for ends, at, share in ((left, bins, weight), (right[apart], bins[apart], of_right)):
                touching += np.bincount(ends * edges.size + at, share, touching.size).reshape(touching.shape)
    pairs = np.cumsum(count)
    without = pairs - np.cumsum(touching, axis=1) if has_ends else np.zeros((0, edges.size))
    at = _grid(edges, pairs - pairs[0], n_bins)
    kind: type[np.generic] = np.float64 if has_weights else np.int64
    numbers: list[Ints | Floats] = [each.astype(kind) for each in (pairs[at], without[:, at], without[:, 0])]
    return Curve(edges[at], numbers[0], int(pairs[0]), numbers[1], numbers[2])


def fit_power_law(curve: Curve, n_sample: int, n_pairs: int | None = None) -> PowerLawFit:
    """Find the straight part of the curve on log-log scales, and its slope.

    1. Pairs of equal points are subtracted, because they do not depend on r.
    2. The flat start (fewer than ``MIN_PAIRS`` pairs) and the saturated end (above a tenth of all pairs) are
       left out.
    3. The straight part is the part of the rest that a line fits with an R² of at least 0.999, and over which
       the number of pairs grows most, on the logarithmic scale. If it covers less than a third of the growth,
       an R² of 0.99 is accepted, then one of 0.95, and then the whole rest is used.
    4. For the interval, one group of rows after the other is left out (jackknife), and the same part is
       fitted again. Pairs share points and counts are cumulative, so the errors of the regression itself
       would be far too small. The jackknife interval is too wide rather than too narrow (Efron, Stein), by
       about the root of 2 for pairs.

    Parameters
    ----------
    curve : result of :func:`pair_count_curve`.
    n_sample : number of rows of the sample, of both tables where there are two.
    n_pairs : number of pairs that there are at any distance; by default those of one table.

    Raises
    ------
    ArgumentError
        The curve has too few points between start and end: too few pairs, or too few different distances.

    Notes
    -----
    The interval covers sampling only; the straight part and its R² show whether the data follows one power
    law. At the border of the data balls are cut off, which bends the curve of a d-dimensional cube to a slope
    below d, the more so the larger d is. Points that nearly coincide make a plateau as equal points do. It is
    left out only where it is not straight, so that the slope after it is up to 3 % too low. O(n_bins²).
    """
    different = curve.different_pairs
    all_different = (all_pairs(n_sample) if n_pairs is None else n_pairs) - curve.equal_pairs
    rest = curve.pairs_without - curve.equal_pairs_without[:, None]
    usable = (different >= MIN_PAIRS) & (different <= MAX_PAIR_FRACTION * all_different)
    law = fit_line(curve.radius, different, rest, usable)
    if law is None:
        raise ArgumentError(
            f"the {n_sample:,} sampled points have too few pairs at different distances to fit a power law "
            f"({counted(different[-1], 'pair')} of different points within {curve.radius[-1]:.6g}); {BY_HAND}"
        )
    return law


def fit_line(
    radius: Floats, counts: Ints | Floats, counts_without: Ints | Floats, usable: Bools
) -> PowerLawFit | None:
    """Fit ``counts = exp(log_c) * radius**exponent`` to the straight part of the usable places.

    Parameters
    ----------
    radius, counts : (n,), both ascending.
    counts_without : (groups, n), the counts when one group of rows is left out; with 0 groups there is no
        interval.
    usable : (n,) bool, which places may be used.

    Returns
    -------
    PowerLawFit | None
        By steps 3 and 4 of :func:`fit_power_law`; None where fewer than 6 different counts are usable.
    """
    at = np.flatnonzero(usable)
    if at.size < _MIN_POINTS or np.unique(counts[at]).size < _MIN_POINTS:
        return None
    x, y = np.log(radius[at]), np.log(counts[at])
    first, last = _find_straight_part(x, y)
    part = slice(first, last + 1)
    slope, height, r_squared = _fit_least_squares(x[part], y[part])
    half = math.nan
    if len(counts_without):
        logs = [np.log(np.maximum(row[at][part], 0.5)) for row in counts_without]
        slopes = [_slope(x[part], row) for row in logs]
        half = _T_QUANTILE * math.sqrt((N_GROUPS - 1) * float(np.var(slopes)))
    low, high = radius[at[[first, last]]].tolist()
    return PowerLawFit(slope, height, low, high, r_squared, slope - half, slope + half)


def jackknife_groups(n_rows: int, seed: int) -> Ints:
    """Assign each row to one of 20 groups of equal size, at random."""
    return np.random.default_rng(seed).permutation(n_rows) % N_GROUPS


def all_pairs(n: int) -> int:
    """Return the number of pairs of n points."""
    return n * (n - 1) // 2


class _Slots:
    """The number of edges below a number, by its first bits: a search would take three times as long.

    Parameters
    ----------
    edges : 0 and ``_PER_OCTAVE`` numbers per octave, ascending.
    """

    def __init__(self, edges: Floats) -> None:
        self.edges = edges
        self._below: Ints | None = None
        self._first = self._last = 0

    def bins_of(self, column: Floats) -> Ints:
        """Return for each number how many edges are below it, not counting the last edge."""
        last = self.edges.size - 1
        # numbers that lose bits below the smallest normal one are further apart than their slots
        if column.size < _MANY or self.edges[1] < np.finfo(np.float64).tiny:
            return np.minimum(np.searchsorted(self.edges, column), last)
        if self._below is None:
            self._first, self._last = (int(each) >> _LEADING for each in self.edges[[1, -1]].view(np.int64))
            begins = (np.arange(self._first, self._last + 1) << _LEADING).view(np.float64)
            below = np.searchsorted(self.edges, begins)
            self._below = np.append(0, below)  # for all that is below the first edge above 0, and for 0
        places = np.ascontiguousarray(column).view(np.int64) >> _LEADING
        places -= self._first - 1
        np.clip(places, 0, self._last - self._first + 1, out=places)
        bins: Ints = self._below[places]
        bins += self.edges[bins] < column
        np.minimum(bins, last, out=bins)
        return bins


def _assign_bins(distances: npt.ArrayLike | tuple[npt.ArrayLike, ...], slots: _Slots) -> Ints:
    column, r_max = distance_column("distance", np.asarray(distances)), slots.edges[-1]
    if column.size and column.max() > r_max * (1 + _ROUNDING):
        raise ArgumentError(f"a pair at distance {column.max()} is beyond r_max = {r_max}")
    return slots.bins_of(column)


def _groups_of(name: str, rows: npt.ArrayLike, group: Ints) -> Ints:
    column = int_column(name, rows)
    if column.size and not 0 <= column.min() <= column.max() < group.size:
        raise ArgumentError(f"{name} must be rows of the sample, 0 to {group.size - 1}")
    return group[column]


def _grid(edges: Floats, different: Floats, n_bins: int) -> Ints:
    """Choose the edges that become the radii of the curve: at equal steps of log radius + log pairs."""
    enough = np.flatnonzero(different >= MIN_PAIRS)
    if not enough.size:
        return np.array([edges.size - 1])
    x, y = np.log2(edges[enough]), np.log2(different[enough])
    way = (x - x[0]) / max(x[-1] - x[0], 1.0 / _PER_OCTAVE) + (y - y[0]) / max(y[-1] - y[0], 1.0)
    places = np.searchsorted(way, np.linspace(0, way[-1], n_bins))
    return np.unique(np.append(enough[places], edges.size - 1))


def _fit_least_squares(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Compute slope, height at x = 0 and R² of the least-squares line."""
    dx, dy = x - x.mean(), y - y.mean()
    slope = _slope(x, y)
    return slope, float(y.mean() - slope * x.mean()), float((dx @ dy) ** 2 / ((dx @ dx) * (dy @ dy)))


def _slope(x: Floats, y: Floats) -> float:
    """Compute the slope of the least-squares line: 0 where all y are equal, and R² is not defined."""
    dx = x - x.mean()
    return float(dx @ (y - y.mean()) / (dx @ dx))


def _find_straight_part(x: Floats, y: Floats) -> tuple[int, int]:
    """Find the first and the last place of the straight part, by step 3 of :func:`fit_power_law`."""
    x, y = x - x.mean(), y - y.mean()
    n = np.arange(x.size)
    size = n[None, :] - n[:, None] + 1
    sums = [np.concatenate(([0.0], np.cumsum(terms))) for terms in (x, y, x * x, x * y, y * y)]
    sx, sy, sxx, sxy, syy = (total[None, 1:] - total[:-1, None] for total in sums)
    fits = (size >= _MIN_POINTS) & (y[None, :] > y[:, None])
    safe = np.where(fits, size, 1)
    spread = np.where(fits, (sxx - sx * sx / safe) * (syy - sy * sy / safe), 1.0)
    r_squared = np.where(fits, (sxy - sx * sy / safe) ** 2 / spread, -1.0)
    growth = y[None, :] - y[:, None]
    for straight in STRAIGHT_R_SQUARED:
        candidates = np.where(r_squared >= straight, growth, -1.0)
        if candidates.max() >= _MIN_GROWTH_FRACTION * growth[0, -1]:
            best = int(np.argmax(candidates))
            return best // x.size, best % x.size
    return 0, x.size - 1
