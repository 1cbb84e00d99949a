"""Whether the k nearest are found by products of matrices: decided before a tree is grown, or after it.

In hundreds of dimensions, growing a tree and searching it a few times costs more than all products, and
points in float32 would be copied for it. So trees of few points come first: a tree of all points compares at
least as many with a query as they do. If that does not decide it, the growth from one tree to another of
twice the points predicts how many a tree of all points would compare. If products cost less, it is never
grown.
"""

from __future__ import annotations

import math

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints, Points
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.by_product import count_products
from epsjoin.local.neighbours.tree import PointTree, make_lists
from epsjoin.local.plan.costs import PRODUCT_NS_PER_PAIR
from epsjoin.local.plan.product import (
    MANY_DIMENSIONS,
    MIN_DIMENSIONS,
    ProductPlan,
    ProductSample,
    has_products,
    plan_product,
)
from epsjoin.local.product.blas import one_thread
from epsjoin.local.product.rows import embed

_NS_PER_WORK = {"euclidean": 0.18, "cosine": 0.7}
"""Nanoseconds of a unit of work: a coordinate of a point that a tree compares with a query. Points of a leaf
are compared side by side by Euclid's distance, one by one by cosine."""
POINT_WORK = 20
"""Work of a compared point beside that of its coordinates."""
SCAN_FRACTION = 0.6
"""A scan's work for each point, as a fraction of the tree's: it compares the points in their order."""
SAMPLE_QUERIES = 32
"""Number of queries with which products are planned."""
_MIN_QUERIES = 192
"""Number of open queries below which nothing is planned."""
_MIN_PAIRS = 1 << 21
"""Number of open queries times points below which nothing is planned in fewer than ``MANY_DIMENSIONS``."""
_MIN_POINTS = 128
"""Number of points below which a tree is grown at once."""
_TREE_POINTS, _FEWER, _PLAN_POINTS = 1 << 11, 2, 512
"""Number of points of the first tree, by how much fewer the second one has; number of points with which
products are planned, and of others for axes."""
_PER_TREE_POINT, _PER_PLAN_POINT, _MIN_DRAWN = 4, 8, 128
"""Number of points for each one that is drawn for the first tree, and for plans; minimum number drawn. Among
few points the neighbours are found sooner than a large sample is asked."""
_NS_PER_NEIGHBOUR, _NS_PER_DECIDED_TERM = 950.0, 1.7
"""Nanoseconds of a search by products for a query's neighbour, for which others leave the pool, and for a
coordinate of it, since a few are decided for each; by ``benchmarks.neighbour_ways``."""


def may_multiply(metric: Metric, shape: tuple[int, int], n_open: int) -> bool:
    """Whether products are worth considering for points of this shape."""
    n, d = shape
    is_many = n >= _MIN_POINTS and n_open >= _MIN_QUERIES + SAMPLE_QUERIES
    is_wide = d >= MANY_DIMENSIONS or (d >= MIN_DIMENSIONS and n * n_open >= _MIN_PAIRS)
    return is_many and is_wide and has_products(metric)


def work_of(n_points: float, d: int) -> float:
    """The work of comparing a query with this number of points of a tree."""
    return float(n_points * (POINT_WORK + d))


def plan_before_tree(
    queries: Points, points: Points, rows: Ints, itself: Ints, k: int, metric: Metric
) -> ProductPlan | None:
    """Plan products that are expected to cost less than a tree; None if they are not.

    None also in fewer than ``MANY_DIMENSIONS``, where a tree is grown in less time than this takes.

    Parameters
    ----------
    queries, points, itself, metric : see :func:`epsjoin.local.neighbours.search.fill_lists`.
    rows : (r,) int64, the open queries.
    k : number of neighbours.
    """
    if points.shape[1] < MANY_DIMENSIONS or not may_multiply(metric, points.shape, len(rows)):
        return None
    n, random = len(points), np.random.default_rng(0)
    n_few = min(_TREE_POINTS, max(_MIN_DRAWN, n // _PER_TREE_POINT))
    drawn, sample = random.permutation(n)[:n_few], random.choice(rows, SAMPLE_QUERIES, replace=False)
    few, fewer = np.sort(drawn), np.sort(drawn[: len(drawn) // _FEWER])
    of = queries, points, sample, itself, metric
    some = drawn[: max(_MIN_DRAWN, n // _PER_PLAN_POINT)]
    nearest = max(1, round(k * len(some) / n))  # of these points as far as the k-th of all
    plan = _plan(queries, points, sample, _ask_all(some, nearest, *of), len(rows), metric)
    if plan is None:
        return None
    of_fewer = _ask_tree(fewer, k, *of)  # a tree of all points compares no less
    if not is_cheaper(plan.nanoseconds, points.shape, len(rows), k, of_fewer, metric):
        compared = _ask_tree(few, k, *of)
        growth = math.log(compared / of_fewer, _FEWER)
        compared *= (n / len(few)) ** min(1.0, max(0.0, growth))
        if not is_cheaper(plan.nanoseconds, points.shape, len(rows), k, compared, metric):
            return None
    return plan


def _ask_tree(
    few: Ints, k: int, queries: Points, points: Points, sample: Ints, itself: Ints, metric: Metric
) -> float:
    """How many of a few points their tree compares with a query."""
    k = min(k, len(few) - 1)
    tree = PointTree.grow(np.asarray(points[few], np.float64), few, k + 1, metric)
    lists = make_lists(len(sample), k)
    asked = np.asarray(queries[sample], np.float64)
    return tree.search(asked, itself[sample], np.arange(len(sample)), lists) / len(sample)


def _ask_all(
    few: Ints, nearest: int, queries: Points, points: Points, sample: Ints, itself: Ints, metric: Metric
) -> Floats:
    """About the distances of some queries to the ``nearest``-th of a few points, but never to the last; (s,).

    The last may be the query itself.
    """
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        asked, others = embed(queries[sample], metric), embed(points[few], metric)
        centre = others.mean(axis=0)
        asked, others = asked - centre, others - centre  # squares of small numbers lose few digits
        squares = np.square(asked).sum(axis=1)[:, None] + np.square(others).sum(axis=1)
        squares -= 2.0 * (asked @ others.T)
    squares[few == itself[sample, None]] = np.inf
    place = min(nearest, len(few) - 1) - 1
    square = np.maximum(np.partition(squares, place, axis=1)[:, place], 0.0)
    return square / 2.0 if metric.name == "cosine" else np.sqrt(square)


def may_be_cheaper(
    shape: tuple[int, int], n_open: int, k: int, compared: float, metric: Metric, *, is_own: bool
) -> bool:
    """Whether products cost no more than a tree if they let nothing through; this is known without a plan.

    Parameters
    ----------
    shape : of the points.
    n_open, k, compared, metric : see :func:`plan_if_cheaper`.
    is_own : whether the queries are among the points.
    """
    least = PRODUCT_NS_PER_PAIR * count_products(n_open, shape[0], is_own=is_own)
    return is_cheaper(least, shape, n_open, k, compared, metric)


def plan_if_cheaper(
    queries: Points,
    points: Points,
    sample: Ints,
    k_distances: Floats,
    n_open: int,
    k: int,
    compared: float,
    metric: Metric,
) -> ProductPlan | None:
    """Plan products of open queries and all points; None where they cost more than a tree.

    Parameters
    ----------
    queries, points, k, metric : see :func:`plan_before_tree`.
    sample : rows of a uniform sample of the open queries.
    k_distances : their approximate k-distances, which tell what products let through.
    n_open : number of open queries.
    compared : number of points that the tree compares with a query.
    """
    plan = _plan(queries, points, sample, k_distances, n_open, metric)
    if plan is None or not is_cheaper(plan.nanoseconds, points.shape, n_open, k, compared, metric):
        return None
    return plan


def _plan(
    queries: Points, points: Points, sample: Ints, k_distances: Floats, n_open: int, metric: Metric
) -> ProductPlan | None:
    """Plan products; None where no distance can be a threshold."""
    n, radius = len(points), float(np.median(k_distances))
    try:
        metric.check_eps(radius)
    except ArgumentError:
        return None
    n_drawn = min(2 * _PLAN_POINTS, max(_MIN_DRAWN, n // _PER_PLAN_POINT))
    drawn = np.random.default_rng(0).permutation(n)[:n_drawn]
    half = len(drawn) // 2
    with one_thread():
        some = embed(points[drawn], metric)
        both = ProductSample(embed(queries[sample], metric), some[:half], some[half:])
        pairs = count_products(n_open, n, is_own=queries is points)
        # with queries in clusters and others, one radius says little of what the others let through
        each = np.nan_to_num(k_distances, nan=radius, posinf=np.finfo(np.float64).max)
        return plan_product(both, pairs, n_open + n, radius, metric, each)


def is_cheaper(
    nanoseconds: float, shape: tuple[int, int], n_open: int, k: int, compared: float, metric: Metric
) -> bool:
    """Whether products cost no more than a tree: see :func:`expected_nanoseconds`."""
    of_products, of_tree = expected_nanoseconds(nanoseconds, shape, n_open, k, compared, metric)
    return of_products <= of_tree


def expected_nanoseconds(
    nanoseconds: float, shape: tuple[int, int], n_open: int, k: int, compared: float, metric: Metric
) -> tuple[float, float]:
    """The expected cost of products, and of a tree that compares this many points with a query, or of a scan.

    Parameters
    ----------
    nanoseconds : of a join by the same products.
    shape : of the points.
    n_open, k, compared, metric : see :func:`plan_if_cheaper`.
    """
    n, d = shape
    of_neighbours = k * (_NS_PER_NEIGHBOUR + _NS_PER_DECIDED_TERM * d)
    of_tree = _NS_PER_WORK[metric.name] * work_of(min(compared, SCAN_FRACTION * n), d)
    return nanoseconds + n_open * of_neighbours, n_open * of_tree
