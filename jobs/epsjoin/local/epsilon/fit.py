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
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import FloatColumn, IntColumn, check_count, check_points
from epsjoin.local.epsilon.border import fit_without_border
from epsjoin.local.epsilon.k_distance import (
    Knee,
    PointExponents,
    exponents_from,
    find_knee,
    nearest_distances,
    quantile,
)
from epsjoin.local.epsilon.power_law import (
    BY_HAND,
    Curve,
    PowerLawFit,
    all_pairs,
    fit_power_law,
    pair_count_curve,
)
from epsjoin.local.epsilon.radius import choose_r_max
from epsjoin.local.join.arrays import iter_self_join
from epsjoin.local.metric import Metric, get_metric


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
            k = check_count("k", k)
            eps = quantile(self.k_distance_curve(k), wish, k)
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
        ascending = np.sort(self._nearest[:, self._check_k(k) - 1])
        return np.asarray(ascending * math.exp(math.log(thinning) / self.exponent))

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
        return find_knee(self.k_distance_curve(k), k)

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
        nearest = self._nearest[:, : self._check_k(check_count("k", k, 3))]
        return PointExponents(self.rows[: len(nearest)], exponents_from(nearest))

    @cached_property
    def _nearest(self) -> FloatColumn:
        return nearest_distances(self.sample, self.metric, self.max_k)

    def _check_k(self, k: int) -> int:
        """Return k when the sample shows neighbours of this rank."""
        k, largest = check_count("k", k), min(self.max_k, self.n_sample - 1)
        if k > largest:
            raise ArgumentError(
                f"k must be at most {largest} (max_k of the fit is {self.max_k}, its sample has "
                f"{self.n_sample} points), not {k}"
            )
        return k


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
    is an L_p and the points fill their bounding box, pairs are weighted for that (`local/epsilon/border.py`).
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
    law = fit_without_border(batches, sample, chosen, r_max, measured, seed) or measured
    return EpsilonFit(n_rows, rows, curve, law, measured, order[:rows], sample, chosen, max_k)
