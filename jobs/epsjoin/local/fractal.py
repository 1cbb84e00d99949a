"""Choosing eps from the fractal dimension of the points.

1. :func:`choose_r_max`: the largest radius, and the rows, for which the sample's join stays small.
2. :func:`pair_count_curve`: pairs within r for r on a grid, from one join at the largest radius.
3. :func:`fit_power_law`: the straight part of the curve on log-log scales; its slope is the exponent P.
   Where the points fill their bounding box, its border is corrected.
4. :class:`EpsilonFit`: eps for a wished number of neighbours, of pairs, a quantile of k-distances, or their
   knee.

:func:`fit_epsilon` is all four; :func:`local_exponents` is the same region by region. The sample must be a
uniform one: then the exponent is that of the whole set, and pairs grow by n (n - 1) / (m (m - 1)) from m
sampled rows to n. Steps 2 and 3 are in ``power_law.py``; ``box_count.py`` is another way to P,
without a join.

References
----------
Dittrich's dissertation, sections 3.7 and 6.2 (local fractal dimensions). Levina, Bickel: Maximum likelihood
estimation of intrinsic dimension, NIPS 2004. Satopaa, Albrecht, Irwin, Raghavan: Finding a "kneedle" in a
haystack, ICDCS workshops 2011.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.paired import paired_distances
from epsjoin.local.columns import FloatColumn, IntColumn, check_count, check_points, int_column
from epsjoin.local.join import iter_self_join
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.power_law import (
    BY_HAND,
    SATURATED,
    Curve,
    PowerLawFit,
    all_pairs,
    border_weights,
    fit_power_law,
    pair_count_curve,
)
from epsjoin.local.sweeping import Pairs

__all__ = [
    "Curve",
    "EpsilonFit",
    "Knee",
    "LocalExponents",
    "PointExponents",
    "PowerLawFit",
    "choose_r_max",
    "fit_epsilon",
    "fit_power_law",
    "local_exponents",
    "pair_count_curve",
]

_DISTANCES = 32  # different ones wished on the curve
_FEWEST_DRAWS, _MOST_DRAWS = 20_000, 2_000_000
_WANTED_HITS = 400  # draws within the radius: its share of all pairs is then known to a twentieth
_MOST_CANDIDATES = 60_000_000  # pairs that a join compares in tenths of a second
_QUERIES = 1_000  # rows with k-distances: a quantile's share is then known to a hundredth
_BATCH = 1 << 21  # numbers in a temporary array
_FEWEST_IN_REGION = 100  # rows: fewer hardly make a power law, as its start alone takes 30 pairs


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


class Knee(NamedTuple):
    """Where the k-distance curve turns up.

    Parameters
    ----------
    eps : the k-distance there.
    share : of the points with a k-distance of at most ``eps``.
    """

    eps: float
    share: float


class PointExponents(NamedTuple):
    """Exponents of single points.

    Parameters
    ----------
    row : (n,) int64, rows of the points that were fitted.
    exponent : (n,) float64, NaN where unknown.
    """

    row: IntColumn
    exponent: FloatColumn


class LocalExponents(NamedTuple):
    """Exponents by region; made by :func:`local_exponents`. All but ``region`` are of shape (n_regions,).

    Parameters
    ----------
    region : (n,) int64, region of each point, from 0 on.
    rows : int64, points in each region.
    exponent, interval_low, interval_high, r_squared, range_low, range_high : float64, see
        :class:`PowerLawFit`; NaN where a region's points follow no power law.
    eps : float64, gives the wished neighbours within the region; NaN where there is none.
    """

    region: IntColumn
    rows: IntColumn
    exponent: FloatColumn
    interval_low: FloatColumn
    interval_high: FloatColumn
    r_squared: FloatColumn
    range_low: FloatColumn
    range_high: FloatColumn
    eps: FloatColumn


@dataclass(frozen=True)
class EpsilonFit:
    """What a sample says about eps; made by :func:`fit_epsilon`.

    Parameters
    ----------
    n_rows : rows of the whole set.
    n_sample : rows whose pairs were counted.
    curve : pairs of the sample by distance.
    power_law : fitted to the curve, its border corrected where the points fill their bounding box.
    measured_law : fitted to the curve as it is; equal to ``power_law`` where nothing was corrected.
    rows : (n_sample,) int64, the sampled rows, in random order.
    sample : (n_sample, d) float64, those points.
    metric : of the distances.
    max_k : largest rank of a neighbour that may be asked for.

    Examples
    --------
    >>> fit = fit_epsilon(np.random.default_rng(1).random((5000, 2)))
    >>> 3_500 < fit.expected_pairs(0.01) < 4_300
    True
    >>> eps = fit.eps_for(k_distance_quantile=0.9, k=4)
    >>> abs(float(np.mean(fit.k_distance_curve(4) <= eps)) - 0.9) < 0.01
    True
    """

    n_rows: int
    n_sample: int
    curve: Curve
    power_law: PowerLawFit
    measured_law: PowerLawFit
    rows: IntColumn
    sample: FloatColumn
    metric: Metric
    max_k: int

    @property
    def exponent(self) -> float:
        """The pair-count exponent P."""
        return self.power_law.exponent

    def expected_pairs(self, eps: float) -> float:
        """Pairs of the whole set within eps.

        Within the measured radii the curve is interpolated on log-log scales; below and above, the power law
        continues it. Above the last radius this is too many, as the law ends where the data does.

        Raises
        ------
        ArgumentError
            eps is not above 0.
        """
        if not 0 < eps < math.inf:
            raise ArgumentError(f"eps must be a finite number above 0, not {eps!r}")
        x, measured = math.log(eps), np.log(self.curve.radius)
        y = float(np.interp(x, measured, np.log(self.curve.different_pairs)))
        y += self.exponent * (min(0.0, x - measured[0]) + max(0.0, x - measured[-1]))
        different = math.exp(min(y, math.log(all_pairs(self.n_sample))))
        return self._scale() * min(self.curve.equal_pairs + different, all_pairs(self.n_sample))

    def eps_for(
        self,
        *,
        neighbours: float | None = None,
        pairs: float | None = None,
        k_distance_quantile: float | None = None,
        k: int | None = None,
    ) -> float:
        """Choose eps, rounded to 6 significant digits so that it can be typed.

        Exactly one of ``neighbours``, ``pairs`` and ``k_distance_quantile`` (with ``k``) must be given.

        Parameters
        ----------
        neighbours : wished on average per point of the whole set, the point itself not counted.
        pairs : wished in the whole set.
        k_distance_quantile : share of the points, between 0 and 1, whose k-th neighbour should be within eps.
        k : rank of that neighbour, 1 the nearest; at most ``max_k`` of the fit.

        Raises
        ------
        ArgumentError
            Not exactly one wish; a wish that no eps fulfils: fewer pairs than equal points make, more than
            there are, a k-distance of 0.

        Notes
        -----
        The k-distance: sampled rows are thinned by f = (m - 1) / (n - 1), so a ball with k neighbours in the
        sample has k / f in the whole set, and by the power law the one with k is smaller by ``f ** (1 / P)``.
        The same rank k is taken in the sample, not the rank k f: the number of neighbours in a ball scatters
        by its own square root, so the quantiles of k-distances keep their shape only at the same rank. It
        takes the law to hold up to the sample's k-distances; near a border, which cuts these larger balls
        off, the result is too large. k-distances are those of at most 1,000 of the sampled rows, exactly:
        O(1,000 n_sample d) when first asked for.
        """
        wishes = {"neighbours": neighbours, "pairs": pairs, "k_distance_quantile": k_distance_quantile}
        given = {name: wish for name, wish in wishes.items() if wish is not None}
        if len(given) != 1:
            raise ArgumentError(f"give exactly one of {', '.join(wishes)}, not {', '.join(given) or 'none'}")
        (name, wish), *_ = given.items()
        if (name == "k_distance_quantile") != (k is not None):
            raise ArgumentError("k_distance_quantile and k belong together")
        if not 0 < wish < (1 if k is not None else math.inf):
            raise ArgumentError(
                f"{name} must be above 0 and below {'1' if k is not None else 'infinity'}, not {wish!r}"
            )
        if k is not None:
            eps = self._k_distance(wish, check_count("k", k))
        else:
            eps = self._eps_for_pairs(wish if name == "pairs" else wish * self.n_rows / 2)
        if not 0 < eps < math.inf:
            raise ArgumentError(
                f"the power law with exponent {self.exponent:.3g} leads to eps = {eps}; {BY_HAND}"
            )
        return float(f"{eps:.6g}")

    def _scale(self) -> float:
        return all_pairs(self.n_rows) / all_pairs(self.n_sample)

    def _eps_for_pairs(self, pairs: float) -> float:
        if pairs > all_pairs(self.n_rows):
            raise ArgumentError(
                f"{pairs:.6g} pairs are wished, {self.n_rows} points have {all_pairs(self.n_rows)}"
            )
        radius, different = self.curve.radius, self.curve.different_pairs
        wished = pairs / self._scale() - self.curve.equal_pairs
        if wished <= 0:
            raise ArgumentError(
                f"{self._scale() * self.curve.equal_pairs:.6g} pairs are of equal points, whatever eps is: "
                f"{pairs:.6g} pairs ({2 * pairs / self.n_rows:.6g} neighbours) are too few"
            )
        for end, is_outside in ((0, wished <= different[0]), (-1, wished > different[-1])):
            if is_outside:
                way = math.log(wished / different[end]) / self.exponent
                return float(radius[end] * np.exp(way))
        above = int(np.searchsorted(different, wished))
        ends = [above - 1, above]  # the last radius with fewer pairs, the first with as many
        return float(np.exp(np.interp(math.log(wished), np.log(different[ends]), np.log(radius[ends]))))

    def _k_distance(self, quantile: float, k: int) -> float:
        rising = self.k_distance_curve(k)
        chosen = float(rising[max(0, math.ceil(quantile * rising.size) - 1)])
        if chosen == 0:
            raise ArgumentError(
                f"a share of {quantile:g} of the points, or more, has {k} equal points: the k-distance is 0"
            )
        return chosen

    def k_distance_curve(self, k: int) -> FloatColumn:
        """Distances to the k-th nearest neighbour in the whole set, rising: the sorted k-distance plot.

        Parameters
        ----------
        k : rank, 1 the nearest; for DBSCAN ``min_pts - 1``, as a point counts itself. At most ``max_k``.

        Returns
        -------
        (min(n_sample, 1000),) float64, for as many sampled rows. Where the set is larger than the sample,
        they are smaller than measured by the power law, see :meth:`eps_for`.

        Raises
        ------
        ArgumentError
            k is no whole number from 1 to ``max_k``, or the sample has fewer neighbours.
        """
        thinning = (self.n_sample - 1) / (self.n_rows - 1)
        rising = np.sort(self._nearest[:, self._rank(k) - 1])
        return np.asarray(rising * math.exp(math.log(thinning) / self.exponent))

    def knee(self, k: int) -> Knee:
        """Find the knee of the k-distance curve: a classic choice of eps for DBSCAN.

        The curve's share of points and its distances are scaled to [0, 1]. The knee is the place farthest
        below the chord from its first point to its last, the first of equals: there distances begin to rise
        faster than on average.

        Raises
        ------
        ArgumentError
            As :meth:`k_distance_curve`; all k-distances are equal; the k-distance at the knee is 0.

        Notes
        -----
        Satopaa et al. 2011, sections 3.1 to 3.3, for a convex rising curve. Left out: the smoothing spline
        (the curve is monotone, so there is nothing to smooth), the sensitivity, which chooses among several
        knees, and the online form. The last distance sets the scale: one point far from all others moves the
        knee towards itself.
        """
        rising = self.k_distance_curve(k)
        if rising[0] == rising[-1]:
            raise ArgumentError(f"all {k}-distances are {rising[0]:.6g}: their curve has no knee; {BY_HAND}")
        share = np.linspace(0.0, 1.0, rising.size)
        at = int(np.argmax(share - (rising - rising[0]) / (rising[-1] - rising[0])))
        if rising[at] == 0:
            raise ArgumentError(f"the {k}-distance at the knee is 0, of equal points; {BY_HAND}")
        eps = float(f"{rising[at]:.6g}")
        return Knee(eps, float(np.searchsorted(rising, max(eps, rising[at]), "right")) / rising.size)

    def point_exponents(self, k: int = 20) -> PointExponents:
        """Estimate the exponent around each point from the distances to its k nearest neighbours.

        ``(k - 2) / sum(log(T_k / T_j))``, j from 1 to k - 1, with T_j the distance to the j-th nearest.

        Parameters
        ----------
        k : neighbours to look at, 3 to ``max_k``. The standard error is about ``exponent / sqrt(k - 2)``.

        Returns
        -------
        PointExponents
            Of at most 1,000 of the sampled rows. Distances of 0 do not count, k is smaller for them; NaN
            where fewer than 3 are left, or all are equal.

        Raises
        ------
        ArgumentError
            k is no whole number from 3 to ``max_k``, or the sample has fewer neighbours.

        Notes
        -----
        Levina, Bickel 2004, equation 8, with k - 2 instead of k - 1, which they show to be free of bias where
        density is constant around the point. A point at a border sees less than its ball.
        """
        self._rank(check_count("k", k, 3))
        nearest = self._nearest[:, :k]
        is_apart = nearest > 0
        count = is_apart.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.where(is_apart, np.log(nearest[:, -1:]) - np.log(nearest), 0.0).sum(axis=1)
            exponent = np.where((count >= 3) & (total > 0), (count - 2) / total, np.nan)
        return PointExponents(self.rows[: len(nearest)], exponent)

    def _rank(self, k: int) -> int:
        k, most = check_count("k", k), min(self.max_k, self.n_sample - 1)
        if k > most:
            raise ArgumentError(
                f"k must be at most {most} (max_k of the fit is {self.max_k}, its sample has {self.n_sample} "
                f"points), not {k}"
            )
        return k

    @cached_property
    def _nearest(self) -> FloatColumn:
        """Distances of the first sampled rows to their nearest others, rising in each row."""
        m, decision = self.n_sample, self.metric.decision(math.inf)
        ranks, queries = min(self.max_k, m - 1), min(m, _QUERIES)
        nearest = np.empty((queries, ranks))
        step = max(1, _BATCH // m)
        for begin in range(0, queries, step):
            left = np.arange(begin, min(begin + step, queries))
            ends = np.repeat(left, m), np.tile(np.arange(m), left.size)
            distance = paired_distances(decision, self.sample, *ends).reshape(left.size, m)
            distance.partition(ranks, axis=1)
            # The least is that of the point to itself.
            nearest[left] = np.sort(distance[:, : ranks + 1], axis=1)[:, 1:]
        return nearest


def fit_epsilon(
    points: npt.ArrayLike,
    metric: str | Metric = "euclidean",
    sample_rows: int = 20_000,
    seed: int = 0,
    n_rows: int | None = None,
    max_k: int = 64,
) -> EpsilonFit:
    """Fit the power law of pair counts, from which eps follows.

    Parameters
    ----------
    points : (n, d) floats or integers, the whole set or a uniform sample of it; not modified.
    metric : a name for :func:`epsjoin.local.metric.get_metric`, or what it returned.
    sample_rows : rows to look at, at most; fewer are taken where the join would be too large, see
        :func:`choose_r_max`.
    seed : of every random choice: the same points and seed give the same fit.
    n_rows : rows of the whole set where ``points`` is a sample; by default the number of points.
    max_k : largest rank for k-distances.

    Returns
    -------
    EpsilonFit
        The same for the same arguments.

    Raises
    ------
    ArgumentError
        Wrong shapes or arguments, a value that is NaN or infinite (the message names its row and column); too
        few points, or too few different ones, for a power law: the message says so, and to give eps by hand.

    Notes
    -----
    One join of the sample with some million pairs.

    At a border balls are cut off, which lowers the slope, the more so the more dimensions. Where the metric
    is an L_p and the points fill their bounding box, pairs are weighted for that (:func:`border_weights`).
    They fill it when the weighted slope's interval holds d, the number of axes that vary: a set of lower
    dimension does not reach it, because weights can only correct the border that the box has. Other
    sets keep the slope of the plain curve. Of ``default_rng(0).random((20_000, d))`` the exponent is 5.04
    for d = 5 (4.85 uncorrected), 7.89 for 8 (7.21), 16.2 for 16 (13.2). On a lattice with many equal points
    it can come out too large, as equal points are not counted: R² is then low.

    Examples
    --------
    >>> square = np.random.default_rng(1).random((5000, 2))
    >>> fit = fit_epsilon(square)
    >>> round(fit.exponent, 1), round(fit.eps_for(neighbours=10), 2)
    (2.0, 0.03)
    """
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    values = check_points("points", points)
    sample_rows, max_k = check_count("sample_rows", sample_rows, 2), check_count("max_k", max_k)
    seed = check_count("seed", seed, 0)
    n_rows = len(values) if n_rows is None else check_count("n_rows", n_rows, len(values))
    # In random order, so that any first rows are a uniform sample as well.
    order = np.random.default_rng(seed).permutation(len(values))[:sample_rows]
    sample = np.ascontiguousarray(values[order])
    r_max, rows = choose_r_max(sample, chosen, seed=seed)
    sample = np.ascontiguousarray(sample[:rows])
    batches = list(iter_self_join(sample, r_max, chosen))
    if not batches:
        raise ArgumentError(f"{rows} sampled points have no pair within {r_max:.6g}; {BY_HAND}")
    curve = pair_count_curve(batches, rows, r_max, seed=seed)
    measured = fit_power_law(curve, rows)
    law = _without_border(batches, sample, chosen, r_max, measured, seed) or measured
    return EpsilonFit(n_rows, rows, curve, law, measured, order[:rows], sample, chosen, max_k)


def local_exponents(
    points: npt.ArrayLike,
    n_regions: int = 8,
    labels: npt.ArrayLike | None = None,
    neighbours: float = 10.0,
    metric: str | Metric = "euclidean",
    sample_rows: int = 3_000,
    seed: int = 0,
) -> LocalExponents:
    """Fit a power law to each region of the points: sets may have different dimensions in different places.

    Parameters
    ----------
    points : (n, d) floats or integers, finite; not modified.
    n_regions : regions to divide the points into: the region with the most points is cut at the median of its
        widest axis, until there are so many, or all have fewer than 200 points. Equal values stay together.
    labels : (n,) integers instead: points of one label are a region, regions by rising label. ``n_regions``
        does not count then.
    neighbours : wished on average per point within its region, for ``eps``.
    metric : as for :func:`fit_epsilon`. The axes that are cut are those of the given coordinates.
    sample_rows : of each region, at most.
    seed : of every random choice.

    Returns
    -------
    LocalExponents
        The region of each point, and a row for each region.

    Raises
    ------
    ArgumentError
        Wrong shapes or arguments, a value that is NaN or infinite; labels not one per point.

    Notes
    -----
    Each region is fitted on its own, by :func:`fit_epsilon`: pairs across its borders are not seen, which
    lowers the exponent as any border does. O(n log n_regions d), and a fit of ``sample_rows`` rows each.

    References
    ----------
    Dittrich's dissertation, section 6.2, which proposes disjoint parts with an exponent each and an index as
    their hierarchy; here it is a kd-tree.

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> line, square = random.random((2000, 2)) * [1, 0], random.random((2000, 2)) + [2, 0]
    >>> local_exponents(np.concatenate((line, square)), n_regions=2).exponent.round(1)
    array([1., 2.])
    """
    values = check_points("points", points)
    if isinstance(neighbours, (bool, str)) or not 0 < neighbours < math.inf:
        raise ArgumentError(f"neighbours must be above 0 and below infinity, not {neighbours!r}")
    sample_rows, seed = check_count("sample_rows", sample_rows, 2), check_count("seed", seed, 0)
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    chosen.check(values)
    if labels is None:
        region = _median_cuts(values, check_count("n_regions", n_regions))
    else:
        column = int_column("labels", labels)
        if column.size != len(values):
            raise ArgumentError(f"labels must be one per point, {len(values)}, not {column.size}")
        region = np.unique(column, return_inverse=True)[1].astype(np.int64)
    order = np.argsort(region, kind="stable")
    rows = np.bincount(region)
    table = np.full((7, rows.size), np.nan)
    for place, members in enumerate(np.split(order, np.cumsum(rows)[:-1]) if rows.size else []):
        try:
            fit = fit_epsilon(values[members], chosen, sample_rows, seed)
            law = fit.power_law
            table[:6, place] = (
                law.exponent,
                law.interval_low,
                law.interval_high,
                law.r_squared,
                law.range_low,
                law.range_high,
            )
            table[6, place] = fit.eps_for(neighbours=neighbours)
        except ArgumentError:  # no power law here, or fewer neighbours than equal points make
            continue
    return LocalExponents(region, rows, *table)


def _median_cuts(values: FloatColumn, n_regions: int) -> IntColumn:
    """Region of each row, by cuts of the largest region at the median of its widest axis."""
    regions = [np.arange(len(values))]
    whole: list[IntColumn] = []  # regions that no cut divides
    while regions and len(regions) + len(whole) < n_regions:
        rows = regions.pop(max(range(len(regions)), key=lambda place: regions[place].size))
        if rows.size < 2 * _FEWEST_IN_REGION:
            regions.append(rows)
            break
        inside = values[rows]
        axis = int(np.argmax(np.ptp(inside, axis=0)))
        is_low = inside[:, axis] <= np.partition(inside[:, axis], rows.size // 2 - 1)[rows.size // 2 - 1]
        if is_low.all():
            whole.append(rows)
        else:
            regions += [rows[is_low], rows[~is_low]]
    region = np.empty(len(values), dtype=np.int64)
    # Numbered by their first rows, so that the order of cuts does not show.
    for number, rows in enumerate(
        sorted((each for each in regions + whole if each.size), key=lambda r: r[0])
    ):
        region[rows] = number
    return region


def _without_border(
    batches: list[Pairs], sample: FloatColumn, metric: Metric, r_max: float, measured: PowerLawFit, seed: int
) -> PowerLawFit | None:
    """Fit the law with the border of the bounding box corrected; None where the points do not fill it."""
    sides = np.ptp(sample, axis=0)
    varying = np.flatnonzero(sides)
    # On a cube under L∞ the slope at r is 2 d (1 - r) / (2 - r): below d / 2 only beyond two thirds of a
    # side, so a flatter curve has no border to blame.
    if metric.name in ("cosine", "haversine") or measured.interval_high < varying.size / 2:
        return None
    sides, inside = sides[varying], sample[:, varying]
    reach = min(r_max, float(np.nextafter(sides.min(), 0.0)))  # beyond a side the box cannot hold a pair

    def weighted() -> Iterator[tuple[IntColumn, IntColumn, FloatColumn, FloatColumn]]:
        step = max(1, _BATCH // varying.size)
        for batch in batches:
            near = np.flatnonzero(batch.distance <= reach)
            for begin in range(0, near.size, step):
                chunk = near[begin : begin + step]
                left, right = batch.left[chunk], batch.right[chunk]
                weight = border_weights(inside[left] - inside[right], sides)
                yield left, right, batch.distance[chunk], weight

    try:
        law = fit_power_law(pair_count_curve(weighted(), len(sample), reach, seed=seed), len(sample))
    except ArgumentError:  # too few pairs within the shortest side
        return None
    return law if law.interval_low <= varying.size <= law.interval_high else None


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
