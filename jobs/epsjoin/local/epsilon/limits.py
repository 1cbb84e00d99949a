"""The pairs to expect of a set, by one sample of it: for estimates, for the choice of eps, for refusals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from epsjoin.console import in_unit
from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels.arrays import Floats
from epsjoin.local.epsilon.bracket import bracket_eps
from epsjoin.local.epsilon.epsilon_fit import EpsilonFit
from epsjoin.local.epsilon.fit import fit_epsilon
from epsjoin.local.metric import Metric
from epsjoin.local.plan.expectation.expected import (
    ExpectedPairs,
    draw_rows,
    expect_pairs,
    expect_pairs_between,
)
from epsjoin.local.plan.expectation.held_pairs import HeldPairs


@dataclass(frozen=True)
class Expectation:
    """The pairs to expect of a set for any eps: the sample's own count, and the power law where it has few.

    The same points, rows and seed always give the same number.

    Parameters
    ----------
    points : (n, d) float64, the set or a uniform sample of it.
    n_rows : number of rows of the set.
    metric : the metric of the distances.
    seed : seed of the sample and its order, and of the fit.
    sample_rows : maximum number of rows that are sampled.
    fit : the fit of these arguments, if it is at hand; otherwise it is made where it is needed.
    right : (m, d) float64, the right table of a join of two, or a uniform sample of it.
    right_rows : number of rows of the right table.
    """

    points: Floats
    n_rows: int
    metric: Metric
    seed: int
    sample_rows: int
    fit: EpsilonFit | None = None
    right: Floats | None = None
    right_rows: int = 0

    def at(self, eps: float) -> ExpectedPairs:
        """Expect so many pairs within eps, with an interval.

        Raises
        ------
        ArgumentError
            eps is not above 0, or too small or too large for the metric.
        """
        eps = self.metric.check_eps(eps)
        if self.right is None:
            counted = expect_pairs(self._sample, self.n_rows, eps, self.metric, self._held)
        else:
            n_rows = self.n_rows, self.right_rows
            samples = self._sample, self._right_sample
            counted = expect_pairs_between(*samples, n_rows, eps, self.metric, self._held)
        if counted.suffices or self._any_fit is None:
            return counted
        return self._any_fit.by_law(eps, counted)

    def refuse_too_many(
        self, eps: float, max_pairs: float, unit: str = "", limit: str = "max_pairs", *, is_each: bool = False
    ) -> ExpectedPairs:
        """Refuse an eps for which more pairs are expected than allowed.

        In doubt, where ``max_pairs`` is within the interval of a count, the eps is accepted: a join counts
        its pairs, too, and ends where they become too many. If there is only the power law, its number
        decides.

        Parameters
        ----------
        eps : threshold in the metric's unit.
        max_pairs : maximum number of pairs.
        unit : unit of eps, for the message.
        limit : name of the limit, for the message.
        is_each : whether there is one eps per dimension, of which ``eps`` is a multiple.

        Returns
        -------
        ExpectedPairs
            What is expected.

        Raises
        ------
        BudgetError
            Too many are expected. The message has the number, and the largest eps that fits.
        """
        expected = self.at(eps)
        if (expected.pairs if expected.is_by_law else expected.low) <= max_pairs:
            return expected
        number, certainty = f"{expected.pairs:.3g}", f"{expected.low:.3g} to {expected.high:.3g}"
        if expected.is_by_law:
            certainty = "by the power law, the sample has few"
        elif expected.low == expected.high:
            number, certainty = f"{expected.pairs:,.0f}", "of all rows"
        named = "these eps" if is_each else f"eps {in_unit(eps, unit)}"
        raise BudgetError(
            f"{named} would give about {number} pairs ({certainty}), "
            f"{max_pairs:,} are allowed ({limit}); {self.what_fits(max_pairs, eps, unit, is_each=is_each)}"
        )

    def what_fits(self, max_pairs: float, eps: float, unit: str = "", *, is_each: bool = False) -> str:
        """Say which is the largest eps that fits, or why none does; parameters as for ``refuse_too_many``."""
        try:
            largest = in_unit(self.largest_eps(max_pairs, eps), unit)
            if is_each:
                return f"about {largest} times these eps fit"
            return f"the largest eps that fits is about {largest}"
        except ArgumentError as error:
            return f"no eps fits: {error}"

    def largest_eps(self, max_pairs: float, eps: float) -> float:
        """Find the largest eps for which at most so many pairs are expected, in 6 significant digits.

        Parameters
        ----------
        max_pairs : maximum number of pairs.
        eps : where to begin.

        Raises
        ------
        ArgumentError
            Equal points alone make more pairs than that.
        """
        fitting, _ = bracket_eps(lambda each: self.at(each).pairs, max_pairs, eps)
        typed, step = float(f"{fitting:.6g}"), 1e-6
        while self.at(typed).pairs > max_pairs:
            step *= 2.0
            typed = float(f"{fitting * (1.0 - step):.6g}")
        return typed

    @property
    def samples(self) -> tuple[Floats, Floats]:
        """The samples of both tables whose pairs are counted; of one table the second is empty."""
        return self._sample, self._right_sample

    @cached_property
    def _sample(self) -> Floats:
        if self.fit is not None:
            return self.fit.sample
        return np.ascontiguousarray(self.points[draw_rows(len(self.points), self.sample_rows, self.seed)])

    @cached_property
    def _held(self) -> HeldPairs:
        return HeldPairs()

    @cached_property
    def _right_sample(self) -> Floats:
        if self.fit is not None and self.fit.right is not None:
            return self.fit.right.sample
        others = np.empty((0, self.points.shape[1])) if self.right is None else self.right
        return np.ascontiguousarray(others[draw_rows(len(others), self.sample_rows, (self.seed, 1))])

    @cached_property
    def _any_fit(self) -> EpsilonFit | None:
        if self.fit is not None:
            return self.fit
        try:
            sampling = self.metric, self.sample_rows, self.seed, self.n_rows
            right_rows = None if self.right is None else self.right_rows
            return fit_epsilon(self.points, *sampling, right=self.right, right_rows=right_rows)
        except ArgumentError:  # no power law: the count is all there is
            return None
