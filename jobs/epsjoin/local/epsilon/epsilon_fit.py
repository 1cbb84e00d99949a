"""What a fitted power law says: the pairs of an eps, and the eps for a number of pairs or neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.arguments import as_number, check_count
from epsjoin.local.epsilon.bracket import PRECISION, bracket_eps
from epsjoin.local.epsilon.k_distance import (
    ALL_DIGITS,
    TYPED_DIGITS,
    Knee,
    PointExponents,
    exponents_from,
    find_knee,
    nearest_between,
    nearest_distances,
    quantile,
    round_up,
)
from epsjoin.local.epsilon.power_law import (
    BY_HAND,
    Curve,
    PowerLawFit,
    all_pairs,
)
from epsjoin.local.epsilon.two_tables import RightSample
from epsjoin.local.metric import Metric
from epsjoin.local.plan.expectation.expected import ExpectedPairs, expect_pairs, expect_pairs_between


@dataclass(frozen=True)
class EpsilonFit:
    """The power law of the pair counts of a sample, and eps from it; made by :func:`fit_epsilon`.

    Parameters
    ----------
    n_rows : number of rows of the whole set.
    n_sample : number of rows that were fitted: the first of the sample, all where their join stays small.
    curve : number of pairs of these rows by distance.
    power_law : power law of the curve; corrected for the border where the points fill their bounding box.
    measured_law : power law of the curve as it is; equal to ``power_law`` where nothing was corrected.
    rows : (m,) int64, row numbers of the sample, in random order.
    sample : (m, d) float64, the points of these rows; with weights, their coordinates are multiplied
        accordingly.
    metric : the metric of the distances.
    max_k : largest k of the methods that have a k.
    right : the right table of a fit of two: then all pairs, neighbours and k-distances are those of the rows
        above with rows of it. None: a fit of one table with itself.

    Examples
    --------
    >>> from epsjoin import fit_epsilon
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
    rows: Ints
    sample: Floats
    metric: Metric
    max_k: int
    right: RightSample | None = None

    @property
    def exponent(self) -> float:
        """The pair-count exponent P."""
        return self.power_law.exponent

    def expected_pairs(self, eps: float) -> float:
        """Estimate the number of pairs of the whole set within eps: that of :meth:`expect`.

        Parameters
        ----------
        eps : threshold in the metric's unit, finite and above 0.

        Raises
        ------
        ArgumentError
            eps is not above 0, or too small or too large for the metric.
        """
        return self.expect(eps).pairs

    def expect(self, eps: float) -> ExpectedPairs:
        """Estimate the number of pairs of the whole set within eps, with its 95 % interval.

        The pairs of the sample within eps are counted. Where they are fewer than 30, and the set is larger
        than the sample, the power law continues the curve to smaller eps, within the interval of the count.

        Parameters
        ----------
        eps : threshold in the metric's unit, finite and above 0.

        Raises
        ------
        ArgumentError
            eps is not above 0, or too small or too large for the metric.
        """
        eps = self.metric.check_eps(eps)
        if self.right is None:
            return self.by_law(eps, expect_pairs(self.sample, self.n_rows, eps, self.metric))
        n_rows, right = (self.n_rows, self.right.n_rows), self.right.sample
        return self.by_law(eps, expect_pairs_between(self.sample, right, n_rows, eps, self.metric))

    def by_law(self, eps: float, counted: ExpectedPairs) -> ExpectedPairs:
        """Replace a count that does not suffice by what the power law says, within the interval of the count.

        Parameters
        ----------
        eps : threshold in the metric's unit.
        counted : the expectation from the sample's own pairs.
        """
        if counted.suffices:
            return counted
        way = math.log(eps / self.curve.radius[0])
        different = float(self.curve.different_pairs[0]) * math.exp(self.exponent * way)
        pairs = self._scale() * (self.curve.equal_pairs + different)
        return counted._replace(pairs=min(max(pairs, counted.low), counted.high), is_by_law=True)

    def eps_for(
        self,
        *,
        neighbours: float | None = None,
        different_neighbours: float | None = None,
        pairs: float | None = None,
        k_distance_quantile: float | None = None,
        k: int | None = None,
        digits: int = TYPED_DIGITS,
    ) -> float:
        """Choose eps, rounded to a few significant digits so that it can be typed.

        Pass exactly one of ``neighbours``, ``different_neighbours``, ``pairs`` and ``k_distance_quantile``
        (with ``k``). The nearest number with so many digits is taken; a k-distance is rounded up, so that it
        is within eps. What :meth:`expected_pairs` says of the rounded eps holds for it, not for the target.

        Parameters
        ----------
        neighbours : average number of points within eps of a point of the whole set, the point itself not
            counted; of two tables, of right rows within eps of a left one. Rows that are equal to the point
            are counted: where there are many, they alone may be more than the number passed, and then no eps
            is small enough.
        different_neighbours : the same, without the rows that are equal to the point.
        pairs : number of pairs of the whole set.
        k_distance_quantile : fraction of the points, between 0 and 1, whose k-th neighbour is within eps.
        k : rank of that neighbour, 1 for the nearest; at most ``max_k`` of the fit.
        digits : number of significant digits, 1 to 17, 6 by default; 17 keep every bit. With few digits, sets
            that differ little get the same eps.

        Raises
        ------
        ArgumentError
            Not exactly one target was passed, or digits are not 1 to 17. Or no eps reaches the target: fewer
            pairs than equal points make, or more than the set has; or the k-distance is 0 or infinite.

        Notes
        -----
        The k-distances of the whole set are estimated from those of at most 1,000 sampled rows, which the
        first call computes in O(1,000 n_sample d). A sample of m of n rows has only the fraction f = (m - 1)
        / (n - 1) of the neighbours of a point, so its k-distances are too large. By the power law they are
        multiplied by ``f ** (1 / P)``. (The distance to the neighbour of rank k f would need no law, but its
        quantiles are others: the smaller the rank, the more the distances vary.) Near a border of the data
        the result is too large, since there the law does not hold.
        """
        targets = {
            "neighbours": neighbours,
            "different_neighbours": different_neighbours,
            "pairs": pairs,
            "k_distance_quantile": k_distance_quantile,
        }
        passed = {name: target for name, target in targets.items() if target is not None}
        if len(passed) != 1:
            names = ", ".join(passed) or "none"
            raise ArgumentError(f"pass exactly one of {', '.join(targets)}, not {names}")
        (name, given), *_ = passed.items()
        target = as_number(given)
        digits = check_count("digits", digits)
        if digits > ALL_DIGITS:
            raise ArgumentError(f"digits must be at most {ALL_DIGITS}, not {digits}")
        if (name == "k_distance_quantile") != (k is not None):
            raise ArgumentError("k_distance_quantile and k belong together")
        if not 0 < target < (1 if k is not None else math.inf):
            raise ArgumentError(
                f"{name} must be above 0 and below {'1' if k is not None else 'infinity'}, not {given!r}"
            )
        if k is not None:
            k = check_count("k", k)
            return round_up(quantile(self.k_distance_curve(k), target, k), digits)
        wanted = target if name == "pairs" else target * self.n_rows / self._ends
        if name == "different_neighbours":
            wanted += self._scale() * self.curve.equal_pairs
        eps = self._eps_for_pairs(wanted)
        if not 0 < eps < math.inf:
            raise ArgumentError(
                f"the power law with exponent {self.exponent:.3g} leads to eps = {eps}; {BY_HAND}"
            )
        return float(f"{eps:.{digits}g}")

    @property
    def _ends(self) -> int:
        """For how many rows a pair counts as a neighbour: for both, or only for the left one."""
        return 2 if self.right is None else 1

    @property
    def _all_pairs(self) -> int:
        return all_pairs(self.n_rows) if self.right is None else self.n_rows * self.right.n_rows

    def _scale(self) -> float:
        if self.right is None:
            return self._all_pairs / all_pairs(self.n_sample)
        return self._all_pairs / (self.n_sample * self.right.n_sample)

    def _eps_for_pairs(self, pairs: float) -> float:
        if pairs > self._all_pairs:
            of_right = "" if self.right is None else f" and {self.right.n_rows:,}"
            raise ArgumentError(
                f"{pairs:,.10g} pairs ({self._ends * pairs / self.n_rows:,.10g} neighbours) are too many: "
                f"{self.n_rows:,}{of_right} points have {self._all_pairs:,}; choose fewer"
            )
        # for hardly any pairs of all rows, those of the sample are fewer than a float64 can tell from 0
        target = max(pairs / self._scale(), math.ulp(0.0)) - self.curve.equal_pairs
        if target <= 0:
            neighbours = self._ends * pairs / self.n_rows
            raise ArgumentError(
                f"{self._scale() * self.curve.equal_pairs:,.0f} pairs are of equal points, whatever eps is: "
                f"{pairs:,.10g} pairs ({neighbours:,.6g} neighbours) are too few; choose "
                "a quantile of the k-distances instead (k_distance_quantile), or in the library "
                "different_neighbours, which does not count equal points, or knee"
            )
        guess = self._eps_on_curve(target)
        if not 0 < guess < math.inf:
            return guess
        found = self.expect(guess)
        counted = all_pairs(found.sample_rows)
        if self.right is not None:
            counted = len(self.sample) * found.sample_rows
        one_pair = self._all_pairs / counted
        if not found.suffices or abs(found.pairs - pairs) <= max(one_pair, PRECISION * pairs):
            return guess
        low, high = bracket_eps(self.expected_pairs, pairs, guess)
        is_low_nearer = pairs**2 <= self.expected_pairs(low) * self.expected_pairs(high)  # by their ratios
        return low if is_low_nearer else high

    def _eps_on_curve(self, target: float) -> float:
        """The radius of the curve, continued by the law, with so many pairs of different fitted points."""
        radius, different = self.curve.radius, self.curve.different_pairs
        for end, is_outside in ((0, target <= different[0]), (-1, target > different[-1])):
            if is_outside:
                log_ratio = (math.log(target) - math.log(different[end])) / self.exponent
                return float(radius[end] * np.exp(log_ratio))
        above = int(np.searchsorted(different, target))
        ends = [above - 1, above]  # the last radius with fewer pairs, the first with as many
        return float(np.exp(np.interp(math.log(target), np.log(different[ends]), np.log(radius[ends]))))

    def k_distance_curve(self, k: int) -> Floats:
        """Estimate the distances to the k-th nearest neighbour in the whole set: the sorted k-distance plot.

        Parameters
        ----------
        k : rank of the neighbour, 1 for the nearest; at most ``max_k``. For DBSCAN use ``min_pts - 1``,
            because min_pts counts the point itself.

        Returns
        -------
        (min(n_sample, 1000),) float64, ascending, one distance for each of as many sampled rows. Where the
        set is larger than the sample, the measured distances are reduced by the power law, see
        :meth:`eps_for`.

        Raises
        ------
        ArgumentError
            k is not a whole number from 1 to ``max_k``, or the sample has fewer neighbours.
        """
        if self.right is None:
            thinning = (self.n_sample - 1) / (self.n_rows - 1)
        else:
            thinning = self.right.n_sample / self.right.n_rows
        ascending = np.sort(self._nearest[:, self._check_k(k) - 1])
        return np.asarray(ascending * math.exp(math.log(thinning) / self.exponent))

    def knee(self, k: int) -> Knee:
        """Find the knee of the k-distance curve: a classic choice of eps for DBSCAN.

        Both axes of the curve, the fraction of the points and the distance, are scaled to [0, 1]. The knee is
        the place farthest below the straight line from the first point of the curve to its last; of several,
        the first. From there on distances rise faster than on average.

        Parameters
        ----------
        k : rank of the neighbour, as for :meth:`k_distance_curve`.

        Raises
        ------
        ArgumentError
            As :meth:`k_distance_curve`. Or all k-distances are equal, or the one at the knee is 0.

        Notes
        -----
        Satopaa et al. 2011, sections 3.1 to 3.3, for a convex ascending curve. Not used here: the smoothing
        spline (the curve is monotone, so there is nothing to smooth), the sensitivity, which chooses among
        several knees, and the online form. The last distance sets the scale, so one point far from all others
        moves the knee towards itself.
        """
        return find_knee(self.k_distance_curve(k), k)

    def point_exponents(self, k: int = 20) -> PointExponents:
        """Estimate the exponent around each point from the distances to its k nearest neighbours.

        ``(k - 2) / sum(log(T_k / T_j))``, j from 1 to k - 1, with T_j the distance to the j-th nearest.

        Parameters
        ----------
        k : number of neighbours, 3 to ``max_k``; 20 by default. The standard error is about
            ``exponent / sqrt(k - 2)``.

        Returns
        -------
        PointExponents
            Exponents of at most 1,000 of the sampled rows. Distances of 0 are left out, so that k is smaller
            there. NaN where fewer than 3 distances are left, or all are equal.

        Raises
        ------
        ArgumentError
            k is not a whole number from 3 to ``max_k``, or the sample has fewer neighbours.

        Notes
        -----
        Levina, Bickel 2004, equation 8, with k - 2 instead of k - 1; they show that this has no bias where
        the density is constant around the point. Near a border a part of the ball is empty, which adds a
        bias.
        """
        nearest = self._nearest[:, : self._check_k(check_count("k", k, 3))]
        return PointExponents(self.rows[: len(nearest)], exponents_from(nearest))

    @cached_property
    def _nearest(self) -> Floats:
        if self.right is not None:
            others = self.right.sample[: self.right.n_sample]
            return nearest_between(self.sample[: self.n_sample], others, self.metric, self.max_k)
        return nearest_distances(self.sample[: self.n_sample], self.metric, self.max_k)

    def _check_k(self, k: int) -> int:
        """Return k, if the fit knows neighbours of this rank."""
        others = self.n_sample if self.right is None else self.right.n_sample
        k, largest = check_count("k", k), min(self.max_k, others - (self.right is None))
        if k > largest:
            raise ArgumentError(
                f"k must be at most {largest} (max_k of the fit is {self.max_k}, its sample has "
                f"{others} points), not {k}"
            )
        return k
