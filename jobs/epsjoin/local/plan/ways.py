"""How a join in many dimensions is done: by products of blocks, or by a window sweep.

Both are planned on samples, and the one with the lower cost is taken, by the constants of
:mod:`epsjoin.local.plan.costs`. If products take less time than planning, only the simplest sweeps are
considered, or none; also none if a few coordinates cannot tell rows apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Points
from epsjoin.kernels.projection import FILTER_SIZES
from epsjoin.kernels.ranges import Ranges, in_one_range
from epsjoin.local.metric import Metric
from epsjoin.local.plan.costs import PRODUCT_NS_PER_PAIR, SWEEP_NS_PER_TERM
from epsjoin.local.plan.product import (
    MANY_DIMENSIONS,
    PLANNING_NS,
    ProductPlan,
    ProductSample,
    plan_product,
)
from epsjoin.local.plan.projection import Choice, choose_projection, draw_tried_rows
from epsjoin.local.plan.separation import separate
from epsjoin.local.product.rows import embed

_QUICK_PLANNING_NS = 1e7
"""Nanoseconds of products from which on the simplest sweeps are looked at, too, which takes less."""
_MAX_QUICK_DIMENSIONS = 128
"""Maximum number of dimensions for that: of more, principal axes take tens of milliseconds."""
_MIN_TERMS = 1 << 23
"""Minimum number of coordinates of all pairs of rows for which products are considered."""
_SAMPLE_ROWS = 512
"""Number of rows of each table whose pairs show what products let through; axes are those of as many
others."""


class Tables(NamedTuple):
    """What is joined.

    Parameters
    ----------
    left, right : (l, d) and (r, d), the tables' points, or uniform samples of them; a self join has no right
        one.
    n_left, n_right : rows of the tables.
    """

    left: Points
    right: Points | None
    n_left: int
    n_right: int

    @property
    def n_rows(self) -> int:
        """Rows of all tables."""
        return self.n_left + self.n_right

    @property
    def n_pairs(self) -> float:
        """Pairs of rows that are compared."""
        if self.right is None:
            return self.n_left * (self.n_left - 1) / 2.0
        return float(self.n_left) * self.n_right


def are_few(n_pairs: float, d: int) -> bool:
    """Whether comparing this number of pairs of rows takes less time than planning."""
    return n_pairs * d < _MIN_TERMS


def choose_way(
    tables: Tables, eps: float, metric: Metric, ranges: Ranges = in_one_range
) -> ProductPlan | Choice:
    """Choose products, or a sweep, with its coordinates.

    Parameters
    ----------
    tables : none without rows.
    eps : threshold of the metric.
    metric : one that :func:`epsjoin.local.plan.product.has_products`.
    ranges : how the kinds of coordinates of a sweep are tried, in fewer than ``MANY_DIMENSIONS``.

    Returns
    -------
    ProductPlan | Choice
        The same for the same arguments.
    """
    if tables.left.shape[1] < MANY_DIMENSIONS:
        return _choose_in_few_dimensions(tables, eps, metric, ranges)
    sample = _draw_sample(tables, metric)
    product = plan_product(sample, tables.n_pairs, tables.n_rows, eps, metric)
    is_quick = product.nanoseconds < PLANNING_NS
    is_wide = tables.left.shape[1] > _MAX_QUICK_DIMENSIONS
    if is_quick and (is_wide or product.nanoseconds < _QUICK_PLANNING_NS):
        return product
    if _least_sweep_nanoseconds(sample, tables, eps, metric) >= product.nanoseconds:
        return product
    sweep = _plan_sweep(tables, eps, metric, is_quick)
    return product if product.nanoseconds <= sweep.nanoseconds else sweep


def _choose_in_few_dimensions(
    tables: Tables, eps: float, metric: Metric, ranges: Ranges
) -> ProductPlan | Choice:
    """Plan a sweep, and products where these may cost less.

    For most sets of few dimensions a sweep is fastest, and a sample shows that in less time than its products
    take.
    """
    least = tables.n_pairs * PRODUCT_NS_PER_PAIR
    sweep = _plan_sweep(tables, eps, metric, is_quick=least < PLANNING_NS, ranges=ranges)
    if sweep.nanoseconds <= least:
        return sweep
    product = plan_product(_draw_sample(tables, metric), tables.n_pairs, tables.n_rows, eps, metric)
    return product if product.nanoseconds <= sweep.nanoseconds else sweep


def _draw_sample(tables: Tables, metric: Metric) -> ProductSample:
    """Draw rows of the tables, half of them for axes; if they are too few to divide, all for both."""
    random = np.random.default_rng(0)

    def draw(points: Points, n_rows: int) -> Floats:
        return embed(points[random.permutation(len(points))[:n_rows]], metric)

    if tables.right is None:
        rows = draw(tables.left, 4 * _SAMPLE_ROWS)
        quarter = len(rows) // 4
        if not quarter:
            return ProductSample(rows, rows, rows)
        return ProductSample(rows[:quarter], rows[quarter : 2 * quarter], rows[2 * quarter :])
    some, others = draw(tables.left, 2 * _SAMPLE_ROWS), draw(tables.right, 2 * _SAMPLE_ROWS)
    n, m = len(some) // 2, len(others) // 2
    if not n + m:
        return ProductSample(some, others, np.concatenate((some, others)))
    return ProductSample(some[n:], others[m:], np.concatenate((some[:n], others[:m])))


def _least_sweep_nanoseconds(sample: ProductSample, tables: Tables, eps: float, metric: Metric) -> float:
    """The cost of deciding the pairs that every filter of a sweep lets through, whatever its coordinates."""
    reach = metric.embedded_eps(eps)
    passing = separate(sample.left, sample.right, reach).passing(FILTER_SIZES[-1], are_turned=True)
    return SWEEP_NS_PER_TERM * _decided_terms(sample.left, reach, metric) * passing * tables.n_pairs


def _plan_sweep(
    tables: Tables, eps: float, metric: Metric, is_quick: bool, ranges: Ranges = in_one_range
) -> Choice:
    """What a window sweep would do, with what it costs to decide the pairs that its filter lets through.

    Only the simplest sweeps are tried where products take less time than to look for the best.
    """
    sample, is_right = _draw_proportionally(tables, metric)
    reach = metric.embedded_eps(eps)
    choice = choose_projection(
        sample, tables.n_rows, reach, metric.norm, is_right=is_right, is_quick=is_quick, ranges=ranges
    )
    terms = _decided_terms(sample, reach, metric)
    return choice._replace(nanoseconds=choice.nanoseconds + SWEEP_NS_PER_TERM * terms * choice.survivors)


def _decided_terms(sample: Floats, reach: float, metric: Metric) -> float:
    """Coordinates of a pair that a sweep looks at to decide it.

    The cosine takes all; a sum of squares ends where it is beyond eps, which takes as many of them as eps² is
    of the mean square of a distance.
    """
    terms = float(sample.shape[1])
    if metric.name == "cosine":
        return terms
    with np.errstate(over="ignore"):
        return terms * min(1.0, reach**2 / max(2.0 * float(sample.var(axis=0).sum()), reach**2))


def _draw_proportionally(tables: Tables, metric: Metric) -> tuple[Floats, Bools | None]:
    """Draw rows of the tables by their sizes, embedded, and which of them are right ones."""
    left, right = tables.left, tables.right
    if right is None:
        return embed(left[draw_tried_rows(len(left), tables.n_rows)], metric), None
    n_tried = len(draw_tried_rows(len(left) + len(right), tables.n_rows))
    random = np.random.default_rng(0)
    n_of_left = min(max(1, round(n_tried * tables.n_left / tables.n_rows)), len(left))
    rows = random.permutation(len(left))[:n_of_left]
    others = random.permutation(len(right))[: max(1, n_tried - n_of_left)]
    both = np.concatenate((embed(left[rows], metric), embed(right[others], metric)))
    return both, np.arange(len(both)) >= len(rows)
