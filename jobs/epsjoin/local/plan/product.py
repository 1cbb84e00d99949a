"""Whether a join in many dimensions goes through products of blocks, and by which filter rows.

On a sample: the principal axes, or the coordinates themselves, the first m of them by falling variance, for
each m of a list; the pairs of the sample that their products let through stand for those of all rows. If a
few directions cannot hold rows apart, no axes are looked for (:mod:`epsjoin.local.plan.separation`). The cost
of the best is compared with that of a window sweep, by the constants of :mod:`epsjoin.local.plan.costs`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Floats32
from epsjoin.kernels.distances import COSINE, EUCLIDEAN
from epsjoin.kernels.product.product import MIN_THRESHOLD
from epsjoin.local.metric import METRICS, Metric
from epsjoin.local.plan.costs import (
    PRODUCT_NS_PER_COORDINATE,
    PRODUCT_NS_PER_PAIR,
    PRODUCT_NS_PER_SURVIVOR,
    PRODUCT_NS_PER_SURVIVOR_TERM,
    PRODUCT_NS_PER_TERM,
)
from epsjoin.local.plan.separation import Separation, separate
from epsjoin.local.product.rows import (
    MAX_DEVIATION,
    FilterSpace,
    half_and_offset,
    place_in_ball,
    reach,
)

MIN_DIMENSIONS, MANY_DIMENSIONS = 12, 32
"""Minimum number of dimensions in which products are considered at all, and in which before any sweep."""
_MAX_AXES = 128
"""Maximum number of principal axes."""
_ROUNDS = 3
"""Number of times that the search for principal axes multiplies with the covariance."""
_SIZES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536)
"""Numbers of axes that are tried."""
PLANNING_NS = 1e8
"""Nanoseconds that looking for a better way takes: joins that take less go through products of all
coordinates."""
_ROWS_OF_CENTRE = 64
"""Maximum number of rows of the sample whose medians are the centre."""
_RADII = 2.0**12
"""Radius of the ball, in medians of the rows' distance from the centre."""


class ProductPlan(NamedTuple):
    """Filter rows, and what a join by them is expected to do.

    Parameters
    ----------
    space : how points become filter rows.
    survivors : pairs of all rows that products let through.
    nanoseconds : of the join, on one core.
    """

    space: FilterSpace
    survivors: float
    nanoseconds: float


class _Join(NamedTuple):
    """What is joined, and rows of a sample whose pairs show how many filter rows let through."""

    placed: Floats
    n_left: int
    pairs: float
    n_rows: int
    eps: float | Floats
    metric: Metric


def has_products(metric: Metric) -> bool:
    """Whether products give the distances of this metric."""
    return type(metric) is Metric and METRICS[metric.name] in (EUCLIDEAN, COSINE)


class ProductSample(NamedTuple):
    """Embedded rows of the tables, float64, none of these arrays empty, no two with a row in common.

    Only if a table has fewer than four rows, or one of two tables has a single row, rows are in several of
    them.

    Parameters
    ----------
    left, right : (m, d) and (l, d), whose pairs tell what filter rows let through; of one table two samples.
    others : (o, d), of all tables, for whose axes filter rows are made. Axes of the same rows would seem to
        separate them better than they separate others, since a sample has few rows compared with its
        dimensions.
    """

    left: Floats
    right: Floats
    others: Floats


def plan_product(
    sample: ProductSample, pairs: float, n_rows: int, eps: float, metric: Metric, each: Floats | None = None
) -> ProductPlan:
    """Choose filter rows on a sample.

    Parameters
    ----------
    sample : uniform samples of the tables; not modified.
    pairs : number of pairs of rows that the join compares.
    n_rows : rows of all tables.
    eps : threshold of the metric.
    metric : one that :func:`has_products`.
    each : (m,) thresholds of the left rows of the sample, if they differ; ``eps`` is then a middle one.

    Returns
    -------
    ProductPlan
        The same for the same arguments.

    Notes
    -----
    O(o d min(d, 128) + m l d): some tens of milliseconds, a few for few pairs.
    """
    space = _enclose(sample.others, metric.embedded_eps(eps))
    placed = place_in_ball(np.concatenate((sample.left, sample.right)), space)
    join = _Join(placed, len(sample.left), pairs, n_rows, eps if each is None else each, metric)
    best = _plan(join, space, *_split(join, placed))
    if best.nanoseconds < PLANNING_NS or len(space.centre) < MANY_DIMENSIONS:
        return best
    separation = separate(placed[: join.n_left], placed[join.n_left :], reach(space, metric, eps))
    if sizes := _promising_sizes(join, separation, best, are_turned=False):
        axes = _by_variance(place_in_ball(sample.others, space))
        best = _best_size(join, space._replace(axes=axes), sizes, best)
    if sizes := _promising_sizes(join, separation, best, are_turned=True):
        for axes in _principal_axes(place_in_ball(sample.others, space)):
            best = _best_size(join, space._replace(axes=axes), sizes, best)
    return best


def _promising_sizes(
    join: _Join, separation: Separation, best: ProductPlan, *, are_turned: bool
) -> list[int]:
    """The numbers of axes whose products may cost less than the best plan so far."""
    d = join.placed.shape[1]

    def may_be_better(m: int) -> bool:
        passing = separation.passing(m, are_turned=are_turned)
        return _nanoseconds(join, m, passing * join.pairs) < best.nanoseconds

    largest = min(d - 2, _MAX_AXES) if are_turned else d - 2
    return [m for m in _SIZES if m <= largest and may_be_better(m)]


def _best_size(join: _Join, space: FilterSpace, sizes: list[int], best: ProductPlan) -> ProductPlan:
    """Try ever more of the axes, as long as their products alone cost less than the best plan so far."""
    on_axes = join.placed @ space.axes[: sizes[-1]].T
    squares = np.einsum("ij,ij->i", join.placed, join.placed)
    for m in sizes:
        if _nanoseconds(join, m, 0.0) >= best.nanoseconds:
            break
        rest = squares - np.einsum("ij,ij->i", on_axes[:, :m], on_axes[:, :m])
        rows = np.column_stack((on_axes[:, :m], np.sqrt(np.maximum(rest, 0.0))))
        plan = _plan(join, space._replace(axes=space.axes[:m]), *_split(join, rows))
        best = min(best, plan, key=lambda each: each.nanoseconds)
    return best


def _split(join: _Join, rows: Floats) -> tuple[Floats32, Floats32]:
    """Filter rows of the sample, those of the left table and the others."""
    rounded = rows.astype(np.float32)
    return rounded[: join.n_left], rounded[join.n_left :]


def _plan(join: _Join, space: FilterSpace, left: Floats32, right: Floats32) -> ProductPlan:
    """What products of these filter rows let through, and so cost."""
    passed = let_through(left, right, space, join.metric, join.eps)
    survivors = float(passed.mean()) * join.pairs
    return ProductPlan(space, survivors, _nanoseconds(join, len(space.axes), survivors))


def let_through(
    left: Floats32, right: Floats32, space: FilterSpace, metric: Metric, eps: float | Floats
) -> Bools:
    """Which pairs of filter rows products let through; (l, r) bool.

    Parameters
    ----------
    left, right : (l, k) and (r, k) float32, of this space; not modified.
    metric, eps : the metric and its threshold, or one for each left row.
    """
    products = left @ right.T
    of_left, offset = half_and_offset(np.einsum("ij,ij->i", left, left), space, metric, eps)
    of_right, _ = half_and_offset(np.einsum("ij,ij->i", right, right), space, metric, 0.0)
    # a threshold of a far row may be beyond float32
    products -= np.maximum(of_left - offset, MIN_THRESHOLD).astype(np.float32)[:, None]
    return np.asarray(products >= of_right.astype(np.float32))


def _nanoseconds(join: _Join, m: int, survivors: float) -> float:
    """What products of filter rows of m axes cost, or of all coordinates where m is 0."""
    d = int(join.placed.shape[1])
    return (
        join.pairs * (PRODUCT_NS_PER_PAIR + PRODUCT_NS_PER_TERM * (m + 1 if m else d))
        + survivors * (PRODUCT_NS_PER_SURVIVOR + PRODUCT_NS_PER_SURVIVOR_TERM * d)
        + join.n_rows * d * (PRODUCT_NS_PER_COORDINATE + 2.0 * PRODUCT_NS_PER_TERM * m)
    )


def _enclose(embedded: Floats, embedded_eps: float) -> FilterSpace:
    """Centre and radius: medians, so that a few far rows cost the others no resolution."""
    some = embedded[:: -(-len(embedded) // _ROWS_OF_CENTRE)]
    with np.errstate(over="ignore"):
        centre = np.sort(some, axis=0)[len(some) // 2]  # a tenth of np.median's time
        length = float(np.median(np.sqrt(np.square(some - centre).sum(axis=1))))
    radius = max(embedded_eps, length * _RADII)
    exponent = math.frexp(radius)[1] if math.isfinite(radius) else 1023
    return FilterSpace(centre, math.ldexp(1.0, min(exponent, 1023)), np.empty((0, embedded.shape[1])))


def _by_variance(placed: Floats) -> Floats:
    """The coordinates by falling variance, as axes."""
    return np.eye(placed.shape[1])[np.argsort(-placed.var(axis=0), kind="stable")]


def _principal_axes(placed: Floats) -> list[Floats]:
    """The first principal axes by falling variance, (min(d, 128), d), by orthogonal iteration.

    None where they are not orthonormal, as where a square underflowed.
    """
    d = placed.shape[1]
    axes = np.random.default_rng(0).standard_normal((d, min(d, _MAX_AXES)))
    for _ in range(_ROUNDS):
        axes = np.linalg.qr(placed.T @ (placed @ axes))[0]
    on_axes = placed @ axes
    turned = axes @ np.linalg.eigh(on_axes.T @ on_axes)[1][:, ::-1]
    axes = np.ascontiguousarray(np.linalg.qr(turned)[0].T)
    deviation = float(np.abs(axes @ axes.T - np.eye(len(axes))).sum(axis=1).max())
    return [axes] if deviation <= MAX_DEVIATION else []
