"""Joins in many dimensions: by products of blocks of rows, or where that costs less by a window sweep."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.kernels.arrays import Points
from epsjoin.kernels.join.projection import Projection
from epsjoin.local.arguments import check_coordinates, check_dimensions
from epsjoin.local.join.array_join import ArrayJoin, check_ids
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.join.product_join import ProductJoin
from epsjoin.local.metric import Metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.product import MIN_DIMENSIONS, ProductPlan, has_products
from epsjoin.local.plan.ways import Tables, choose_way
from epsjoin.local.product.blas import one_thread

_MIN_TERMS = 1 << 23
"""Minimum number of coordinates of all pairs of rows for which products are considered: fewer are compared
sooner than planned."""


def join_of_one(
    points: ArrayLike,
    ids: ArrayLike | None,
    eps: float | ArrayLike,
    weights: ArrayLike | None,
    cuts: Cuts | None,
    options: JoinOptions,
    *,
    is_semi: bool = False,
) -> ArrayJoin | ProductJoin:
    """Check the arguments of a self join, and choose how it is done; a semi join compares all with all."""
    if not _may_multiply(points, eps, weights, cuts, options.metric):
        return ArrayJoin.of_one(points, ids, eps, weights, cuts, options)
    values = check_coordinates("points", points)
    n, metric = len(values), options.metric
    numbers, threshold = check_ids(ids, n), metric.check_eps(eps)
    metric.check(values, "points")
    chosen = _choose(values, values if is_semi else None, threshold, metric)
    if isinstance(chosen, ProductPlan):
        return ProductJoin(values, None, numbers, metric, threshold, options, chosen.space)
    values = np.asarray(values, np.float64)
    return ArrayJoin(
        values, None if ids is None else numbers, None, n, metric, threshold, None, options, chosen
    )


def join_of_two(
    left: ArrayLike,
    right: ArrayLike,
    eps: float | ArrayLike,
    weights: ArrayLike | None,
    cuts: Cuts | None,
    options: JoinOptions,
) -> ArrayJoin | ProductJoin:
    """Check the arguments of a join of two tables, and choose how it is done."""
    if not _may_multiply(left, eps, weights, cuts, options.metric):
        return ArrayJoin.of_two(left, right, eps, weights, cuts, options)
    first, second = check_coordinates("left", left), check_coordinates("right", right)
    check_dimensions(left=first.shape[1], right=second.shape[1])
    n_left, metric = len(first), options.metric
    threshold = metric.check_eps(eps)
    metric.check(first, "left")
    metric.check(second, "right")
    chosen = _choose(first, second, threshold, metric)
    if isinstance(chosen, ProductPlan):
        return ProductJoin(first, second, np.arange(n_left), metric, threshold, options, chosen.space)
    both = np.concatenate((first, second), dtype=np.float64)
    numbers = np.concatenate((np.arange(n_left), np.arange(len(second))))
    is_right = np.arange(len(both)) >= n_left
    return ArrayJoin(both, numbers, is_right, n_left, metric, threshold, None, options, chosen)


def _may_multiply(
    points: ArrayLike, eps: float | ArrayLike, weights: ArrayLike | None, cuts: Cuts | None, metric: Metric
) -> bool:
    """Whether a join may go through products by what its arguments are; wrong ones are refused later."""
    shape: tuple[int, ...] = getattr(points, "shape", ())
    is_wide = len(shape) == 2 and shape[1] >= MIN_DIMENSIONS
    return is_wide and cuts is None and weights is None and np.ndim(eps) == 0 and has_products(metric)


def _choose(
    left: Points, right: Points | None, eps: float, metric: Metric
) -> ProductPlan | Projection | None:
    """Choose products or the coordinates of a sweep; None where a sweep chooses them as it begins."""
    tables = Tables(left, right, len(left), 0 if right is None else len(right))
    if tables.n_pairs * left.shape[1] < _MIN_TERMS:
        return None
    with one_thread():
        chosen = choose_way(tables, eps, metric)
    return chosen if isinstance(chosen, ProductPlan) else chosen.projection
