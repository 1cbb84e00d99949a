"""Joins in a dozen dimensions and more: by products of blocks of rows, or by a sweep if that costs less."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.kernels.projection import Projection
from epsjoin.local.arguments import is_one_number
from epsjoin.local.coordinates import check_coordinates, check_dimensions
from epsjoin.local.join.array_join import ArrayJoin, check_ids
from epsjoin.local.join.few_rows import MAX_ORDERED
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.join.product_join import ProductJoin
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.product import MANY_DIMENSIONS, MIN_DIMENSIONS, ProductPlan, has_products
from epsjoin.local.plan.ways import Tables, are_few, choose_way
from epsjoin.local.product.blas import one_thread
from epsjoin.local.product.rows import FilterSpace
from epsjoin.local.sweep.threads import in_ranges


def join_of_one(
    points: ArrayLike,
    ids: ArrayLike | None,
    eps: float | ArrayLike,
    weights: ArrayLike | None,
    cuts: Cuts | None,
    options: JoinOptions,
    *,
    is_semi: bool = False,
    name: str = "points",
) -> ArrayJoin | ProductJoin:
    """Check the arguments of a self join, and choose how it is done; a semi join compares all with all.

    ``name`` is that of the argument ``points``, for the messages.
    """
    if not _may_multiply(points, points if is_semi else None, eps, weights, cuts, options.metric):
        return ArrayJoin.of_one(points, ids, eps, weights, cuts, options, name)
    values = check_coordinates(name, points)
    n, metric = len(values), options.metric
    numbers, threshold = check_ids(ids, n), metric.check_eps(eps)
    metric.check(values, name)

    def sweep(projection: Projection | None) -> ArrayJoin:
        rows, names = np.asarray(values, np.float64), None if ids is None else numbers
        return ArrayJoin(rows, names, n, True, metric, threshold, None, options, projection)

    def multiply(space: FilterSpace) -> ProductJoin:
        return ProductJoin(values, None, numbers, metric, threshold, options, space)

    tables = Tables(values, values if is_semi else None, n, n if is_semi else 0)
    return _choose(tables, threshold, options, sweep, multiply)


def join_of_two(
    left: ArrayLike,
    right: ArrayLike,
    eps: float | ArrayLike,
    weights: ArrayLike | None,
    cuts: Cuts | None,
    options: JoinOptions,
) -> ArrayJoin | ProductJoin:
    """Check the arguments of a join of two tables, and choose how it is done."""
    if not _may_multiply(left, right, eps, weights, cuts, options.metric):
        return ArrayJoin.of_two(left, right, eps, weights, cuts, options)
    first, second = check_coordinates("left", left), check_coordinates("right", right)
    check_dimensions(left=first.shape[1], right=second.shape[1])
    n_left, metric = len(first), options.metric
    threshold = metric.check_eps(eps)
    metric.check(first, "left")
    metric.check(second, "right")

    def sweep(projection: Projection | None) -> ArrayJoin:
        both = np.concatenate((first, second), dtype=np.float64)
        return ArrayJoin(both, None, n_left, False, metric, threshold, None, options, projection)

    def multiply(space: FilterSpace) -> ProductJoin:
        return ProductJoin(first, second, np.arange(n_left), metric, threshold, options, space)

    tables = Tables(first, second, n_left, len(second))
    return _choose(tables, threshold, options, sweep, multiply)


def _may_multiply(
    left: ArrayLike,
    right: ArrayLike | None,
    eps: float | ArrayLike,
    weights: ArrayLike | None,
    cuts: Cuts | None,
    metric: Metric,
) -> bool:
    """Whether the arguments allow a join by products; wrong arguments are refused later."""
    shape: tuple[int, ...] = getattr(left, "shape", ())
    of_right: tuple[int, ...] = getattr(right, "shape", ())
    if len(shape) != 2 or shape[1] < MIN_DIMENSIONS or cuts is not None or weights is not None:
        return False
    if right is None:
        n_pairs = shape[0] * (shape[0] - 1) / 2.0
    else:
        n_pairs = shape[0] * of_right[0] if of_right else math.inf  # for a list this is seen later
    return not are_few(n_pairs, shape[1]) and has_products(metric) and is_one_number(eps)


def _choose(
    tables: Tables,
    eps: float,
    options: JoinOptions,
    sweep: Callable[[Projection | None], ArrayJoin],
    multiply: Callable[[FilterSpace], ProductJoin],
) -> ArrayJoin | ProductJoin:
    """Choose products, a sweep with its coordinates, or a sweep that chooses them when it begins.

    Parameters
    ----------
    sweep, multiply : make the join of these tables, from coordinates and from the filter rows.
    """
    d = tables.left.shape[1]
    if are_few(tables.n_pairs, d):
        return sweep(None)
    if d < MANY_DIMENSIONS and tables.n_rows <= MAX_ORDERED:  # of more, nothing is copied in vain
        swept = sweep(None)
        few_rows = swept.find_few_rows()
        if few_rows is not None:
            return swept._replace(few_rows=few_rows)
    with one_thread():
        chosen = choose_way(tables, eps, options.metric, in_ranges(options.n_jobs, are_long=True))
    return multiply(chosen.space) if isinstance(chosen, ProductPlan) else sweep(chosen.projection)
