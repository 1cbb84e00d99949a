"""How many pairs a sample has, counted in the cheapest way."""

from __future__ import annotations

import math
from contextlib import closing
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.pairs.batch import PAIRS, PairBatch
from epsjoin.kernels.projection import Projection
from epsjoin.kernels.sweep.window import is_done, new_state, window_rows, window_sweep
from epsjoin.local.metric import Metric
from epsjoin.local.plan.expectation.held_pairs import HeldPairs
from epsjoin.local.plan.product import MIN_DIMENSIONS, ProductPlan, has_products
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.plan.ways import Tables, choose_way
from epsjoin.local.product.blas import one_thread
from epsjoin.local.product.rows import FilterSpace
from epsjoin.local.product.sweep import NamedRows, sweep_products
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import SweepOptions

BATCH_PAIRS = 1 << 16
"""Maximum number of pairs that a sweep over a sample finds at once."""


class SamplePairs(NamedTuple):
    """Pairs that were counted in a sample.

    Parameters
    ----------
    rows : number of rows that were counted; of two tables those of the right one.
    pairs : number of pairs within eps among them, or with the left table.
    variance : estimated variance of ``pairs`` over samples of very many rows.
    """

    rows: int
    pairs: int
    variance: float


def count_pairs(
    points: Floats,
    embedded: Floats,
    eps: float,
    metric: Metric,
    projection: Projection,
    *,
    is_right: Bools | None = None,
    max_pairs: float = math.inf,
    degree: Ints | None = None,
) -> int:
    """Count the pairs within eps without keeping them, until there are more than ``max_pairs``.

    Parameters
    ----------
    points, embedded : (n, d) and (n, e) float64; not modified.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    projection : coordinates of the sweep; the number does not depend on it.
    is_right : (n,) bool, of two tables: rows of the right one. None: pairs of one table.
    max_pairs : the sweep ends when it has found more.
    degree : (n,) int64, the pairs of each row are added to it.

    Returns
    -------
    int
        The number of pairs when it is at most ``max_pairs``, else some larger number.
    """
    n = len(points)
    limits = metric.embedded_eps(eps), metric.decision(eps)
    places, no_mask = np.arange(n, dtype=np.int64), np.zeros(n, np.int64)
    rows = window_rows(points, embedded, places, no_mask, limits[0], projection, is_right)
    counters = np.zeros(4, np.int64)
    room = BATCH_PAIRS
    batch = PairBatch(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
    state = new_state()
    while not is_done(state) and counters[PAIRS] <= max_pairs:
        found = window_sweep(state, rows, 0, n, limits[1], batch, counters)
        if degree is not None:
            degree += np.bincount(batch.left[:found], minlength=n)
            degree += np.bincount(batch.right[:found], minlength=n)
    return int(counters[PAIRS])


def count_sample_pairs(
    points: Floats,
    eps: float,
    metric: Metric,
    *,
    left: Floats | None = None,
    max_pairs: float = math.inf,
    min_rows: int = 1,
    divisor: int = 2,
    held: HeldPairs | None = None,
) -> SamplePairs:
    """Count the pairs of a sample, or of fewer of its first rows while these have more than ``max_pairs``.

    Parameters
    ----------
    points : (m, d) float64, the sample in random order; not modified.
    eps, metric : see :func:`epsjoin.local.plan.planner.plan_join`.
    left : (l, d) float64, the sample of a left table, whose pairs with ``points`` are counted. None: pairs of
        ``points`` with one another.
    max_pairs : maximum number of pairs that are counted, to save time; by default all are.
    min_rows : minimum number of rows, however many pairs they have.
    divisor : ratio of the rows that are counted next where there were too many pairs.
    held : pairs of this sample that were found before; in many dimensions, those that are found now are
        added.

    Raises
    ------
    ArgumentError
        Points for which the metric is not defined.
    """
    rows, others = len(points), 0 if left is None else len(left)
    while True:
        cap = max_pairs if rows > min_rows else math.inf
        degree = np.zeros(others + rows, np.int64)
        of_all = held if rows == len(points) else None
        known = None if of_all is None else of_all.count(eps, degree)
        if known is not None:
            pairs = known
            break
        pairs = _count_degrees(left, points[:rows], eps, metric, cap, degree, of_all)
        if pairs <= cap:
            break
        rows = max(min_rows, rows // divisor)
    # Hoeffding's first order; at least the variance of a count, which matters where pairs are few
    between = sum(side.size * float(side.var()) for side in np.split(degree, [others]) if side.size)
    return SamplePairs(rows, pairs, max(between, float(pairs)))


def _count_degrees(
    left: Floats | None,
    points: Floats,
    eps: float,
    metric: Metric,
    max_pairs: float,
    degree: Ints,
    held: HeldPairs | None,
) -> int:
    """As :func:`count_pairs`, by the way that costs least; of two tables left rows come first in ``degree``.

    A sample has the dimensions of its set: in hundreds of them a sweep over it takes minutes.
    """
    others = 0 if left is None else len(left)
    if (
        points.shape[1] >= MIN_DIMENSIONS
        and has_products(metric)
        and len(points)
        and (left is None or others > 0)
    ):
        tables = Tables(points, None, len(points), 0)
        if left is not None:
            tables = Tables(left, points, others, len(points))
        with one_thread():
            way = choose_way(tables, eps, metric)
        if isinstance(way, ProductPlan):
            return _count_by_product(tables, way.space, eps, metric, max_pairs, degree, held)
    counted = points if left is None else np.concatenate((left, points))
    is_right = None if left is None else np.arange(len(counted)) >= others
    embedded = metric.embed(counted)
    projection = choose_projection(embedded, len(counted), metric.embedded_eps(eps), metric.norm).projection
    of = eps, metric, projection
    return count_pairs(counted, embedded, *of, is_right=is_right, max_pairs=max_pairs, degree=degree)


def _count_by_product(
    tables: Tables,
    space: FilterSpace,
    eps: float,
    metric: Metric,
    max_pairs: float,
    degree: Ints,
    held: HeldPairs | None,
) -> int:
    left = NamedRows(tables.left, np.arange(tables.n_left))
    right = None
    if tables.right is not None:
        right = NamedRows(tables.right, np.arange(tables.n_left, tables.n_rows))
    pairs = 0
    found: list[Pairs] = []
    with closing(sweep_products(left, right, space, metric, eps, SweepOptions(BATCH_PAIRS, {}))) as batches:
        for batch in batches:
            pairs += len(batch.left)
            degree += np.bincount(batch.left, minlength=len(degree))
            degree += np.bincount(batch.right, minlength=len(degree))
            if pairs > max_pairs:
                return pairs
            if held is not None:
                found.append(batch)
    if held is not None:
        held.hold(eps, found)
    return pairs
