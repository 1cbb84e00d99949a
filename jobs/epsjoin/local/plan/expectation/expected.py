"""How many pairs all rows are expected to have, judging by those of a sample."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats, Ints, Points
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.expectation.held_pairs import HeldPairs
from epsjoin.local.plan.expectation.sample_pairs import SamplePairs, count_sample_pairs

_MAX_PAIRS = 2_000_000
"""Maximum number of pairs of a sample that are counted in more than ``_MIN_ROWS`` rows: time."""
_MIN_ROWS = 1000
"""Minimum number of rows whose pairs are counted, however many: fewer make the interval wide."""
_MIN_PAIRS = 30
"""Minimum number of pairs of a sample whose number says something about all rows."""
NORMAL_95 = 1.959964
"""Standard deviations around the mean that hold 95 % of a normal distribution."""
_RULE_OF_THREE = 3.0
"""Number of pairs that a sample without any may have missed, at 95 %."""


class ExpectedPairs(NamedTuple):
    """How many pairs within eps all rows are expected to have; made by :func:`expect_pairs`.

    Parameters
    ----------
    pairs : the number; exact where all rows were counted.
    low, high : its 95 % interval.
    sample_rows, sample_pairs : rows that were counted, and pairs among them.
    suffices : whether these are enough to speak for all rows; if not, a power law is better.
    is_by_law : whether ``pairs`` is what a power law says.
    """

    pairs: float
    low: float
    high: float
    sample_rows: int
    sample_pairs: int
    suffices: bool
    is_by_law: bool = False


def draw_rows(n_rows: int, sample_rows: int, seed: int | tuple[int, int]) -> Ints:
    """Draw the rows of a sample, in random order, so that any first of them are a sample, too.

    Of two tables the right one's seed is (seed, 1): with one seed for both, rows of the same numbers would be
    drawn, which in two halves of one table are neighbours.
    """
    return np.random.default_rng(seed).permutation(n_rows)[:sample_rows]


def expect_pairs(
    points: Floats, n_rows: int, eps: float, metric: Metric, held: HeldPairs | None = None
) -> ExpectedPairs:
    """Expect the pairs of all rows from those of a sample: the one count for estimates, plans and refusals.

    Parameters
    ----------
    points : (m, d) float64, a uniform sample in random order, see :func:`draw_rows`; not modified.
    n_rows : all rows, at least m.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    held : see :func:`count_sample_pairs`.

    Notes
    -----
    All rows of the sample are counted, fewer of the first where they have more than two million pairs. The
    number of pairs of m rows is a U-statistic. Its variance is 4 / m times the variance of the fraction of
    the sample that is within eps of a point (Hoeffding 1948), and at least the variance of a count; both
    vanish as m becomes n.
    """
    m, pairs, variance = count_sample_pairs(
        points, eps, metric, max_pairs=_MAX_PAIRS, min_rows=_MIN_ROWS, divisor=2, held=held
    )
    scale = n_rows * (n_rows - 1.0) / (m * (m - 1.0)) if m > 1 else 0.0
    remaining = 1.0 - m / n_rows if m else 0.0
    most = n_rows * max(0.0, n_rows - 1.0) / 2.0
    return _expect(SamplePairs(m, pairs, variance), scale, remaining, most, is_whole=m == n_rows)


def expect_pairs_between(
    left: Floats,
    right: Floats,
    n_rows: tuple[int, int],
    eps: float,
    metric: Metric,
    held: HeldPairs | None = None,
) -> ExpectedPairs:
    """Expect the pairs of two tables from those of samples of both, as :func:`expect_pairs` for one.

    Parameters
    ----------
    left, right : (l, d) and (r, d) float64, uniform samples in random order, drawn independently; not
        modified.
    n_rows : all rows of the left table and of the right one, n and m.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    held : see :func:`count_sample_pairs`.

    Returns
    -------
    ExpectedPairs
        ``sample_rows`` are those of the right table.

    Notes
    -----
    The number of pairs is a U-statistic of two samples. Its variance is, to Hoeffding's first order, that of
    the degrees of both sides' rows, and at least that of a count. It is multiplied by 1 - l r / (n m), which
    is more than each side's own 1 - l / n and 1 - r / m: the interval is rather too wide.
    """
    (n, m), l_rows = n_rows, len(left)
    limits = {"max_pairs": _MAX_PAIRS, "min_rows": _MIN_ROWS}
    found = count_sample_pairs(right, eps, metric, left=left, held=held, **limits)
    r_rows = min(found.rows, len(right))
    if not l_rows or not r_rows:
        return ExpectedPairs(0.0, 0.0, 0.0, r_rows, 0, True)
    is_whole = l_rows == n and r_rows == m
    scale = (n / l_rows) * (m / r_rows)
    found = found._replace(rows=r_rows)
    return _expect(found, scale, max(0.0, 1.0 - 1.0 / scale), float(n) * m, is_whole=is_whole)


def _expect(
    found: SamplePairs, scale: float, remaining: float, most: float, *, is_whole: bool
) -> ExpectedPairs:
    """Expect the pairs of all rows, with their interval.

    Parameters
    ----------
    scale : pairs of rows for each pair of rows of the sample.
    remaining : fraction of the variance that is left, since the sample is a part of all rows.
    most : pairs of rows.
    is_whole : whether the sample is all rows.
    """
    pairs = found.pairs
    half = NORMAL_95 * math.sqrt(found.variance * remaining)
    few = _RULE_OF_THREE if pairs < _RULE_OF_THREE and not is_whole else 0.0
    high = min(most, (pairs + half + few) * scale)
    suffices = pairs >= _MIN_PAIRS or is_whole
    return ExpectedPairs(pairs * scale, max(0.0, pairs - half) * scale, high, found.rows, pairs, suffices)


def expected_pairs_of_tables(left: Points, right: Points | None, eps: float, metric: Metric) -> float:
    """Estimate the pairs of one table or of two, for the message of a join that is refused.

    Parameters
    ----------
    left, right : (n, d) and (m, d) points; None for one table with itself. Not modified.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    """
    n, sample = len(left), Cuts()
    some = np.asarray(left[draw_rows(n, sample.sample_rows, sample.seed)], np.float64)
    if right is None:
        return expect_pairs(some, n, eps, metric).pairs
    others = np.asarray(right[draw_rows(len(right), sample.sample_rows, (sample.seed, 1))], np.float64)
    return expect_pairs_between(some, others, (n, len(right)), eps, metric).pairs
