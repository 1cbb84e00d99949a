"""The power law of the pairs between two tables: equation 3.15 of the dissertation as it is written."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.coordinates import check_dimensions
from epsjoin.local.epsilon.power_law import (
    BY_HAND,
    MIN_PAIRS,
    Curve,
    PowerLawFit,
    fit_power_law,
    pair_count_curve,
)
from epsjoin.local.epsilon.radius import choose_r_max_between
from epsjoin.local.join.arrays import iter_join
from epsjoin.local.metric import Metric
from epsjoin.local.plan.expectation.expected import draw_rows
from epsjoin.local.sweep.pairs import Pairs


class RightSample(NamedTuple):
    """The right table of a fit of two.

    Parameters
    ----------
    n_rows : number of rows of the whole table.
    n_sample : number of rows that were fitted: the first of the sample.
    sample : (m, d) float64, sampled points in random order.
    """

    n_rows: int
    n_sample: int
    sample: Floats


class FitBetween(NamedTuple):
    """What is fitted to samples of two tables.

    Parameters
    ----------
    rows : (l,) int64, row numbers of the left sample, in random order.
    left : (l, d) float64, the points of these rows.
    n_left : number of left rows that were fitted, the first.
    right : the right table.
    curve : number of pairs of the fitted rows by distance.
    law : the power law of the curve.
    """

    rows: Ints
    left: Floats
    n_left: int
    right: RightSample
    curve: Curve
    law: PowerLawFit


def fit_between(
    left: Floats,
    right: Floats,
    metric: Metric,
    sample_rows: int,
    seed: int,
    right_rows: int,
    weigh: Callable[[Floats], Floats],
) -> FitBetween:
    """Fit the power law of the pairs between two tables; parameters as of :func:`epsjoin.fit_epsilon`.

    Parameters
    ----------
    weigh : multiplies the coordinates of the samples, see :func:`epsjoin.local.scale.multiply`.

    Raises
    ------
    ArgumentError
        As :func:`epsjoin.fit_epsilon`. Or the tables lie apart.
    """
    check_dimensions(points=left.shape[1], right=right.shape[1])
    if not len(left) or not len(right):
        raise ArgumentError(f"a power law needs points in both tables, not {len(left)} and {len(right)}")
    rows = draw_rows(len(left), sample_rows, seed)
    of_left = np.ascontiguousarray(weigh(left[rows]))
    of_right = np.ascontiguousarray(weigh(right[draw_rows(len(right), sample_rows, (seed, 1))]))
    r_max, fraction = choose_r_max_between(of_left, of_right, metric, seed=seed)
    n_left, n_right = (max(1, int(fraction * len(each))) for each in (of_left, of_right))
    below = [
        Pairs(pairs.left, pairs.right + n_left, pairs.distance)
        for pairs in iter_join(of_left[:n_left], of_right[:n_right], r_max, metric)
    ]
    curve = pair_count_curve(below, n_left + n_right, r_max, seed=seed)
    refuse_apart(curve, of_left.shape[1])
    law = fit_power_law(curve, n_left + n_right, n_left * n_right)
    return FitBetween(rows, of_left, n_left, RightSample(right_rows, n_right, of_right), curve, law)


def refuse_apart(curve: Curve, dimensions: int) -> None:
    """Refuse tables that lie apart: their pairs begin at the gap, and then rise faster than by a power law.

    Where tables overlap the exponent is at most the number of dimensions; where boxes touch in a corner, and
    both ends of a pair are near it, twice that number.

    Raises
    ------
    ArgumentError
        There are no equal points, and from its first radius to its last the curve rises faster than that.
    """
    pairs = curve.different_pairs
    if curve.equal_pairs or pairs[0] < MIN_PAIRS:
        return
    way = math.log(curve.radius[-1] / curve.radius[0])
    growth = math.log(pairs[-1] / pairs[0]) / way if way > 0.0 else math.inf
    if growth > 2 * dimensions:
        raise ArgumentError(
            f"the tables lie apart: the first pairs of their samples are about {curve.radius[0]:.3g} apart, "
            f"and then grow with the exponent {growth:.3g}, where {dimensions} dimensions allow "
            f"{2 * dimensions} at most; there is no power law between them, {BY_HAND}"
        )
