"""Joins in many dimensions by products of blocks of rows; where a window sweep costs less, by that.

A block of left filter rows times a block of right ones (:mod:`epsjoin.local.plan.product_rows`) is one
product of matrices, by NumPy's BLAS; :func:`epsjoin.kernels.join.product.scan_product` looks through it. A
self join multiplies the blocks on and above the diagonal.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.kernels.arrays import Floats, Floats32, Ints, Points
from epsjoin.kernels.blas import one_thread
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.join.product import COLUMN, DONE, ROW, scan_product
from epsjoin.kernels.join.projection import Projection
from epsjoin.kernels.join.stack_sweep import CANDIDATES, PairBatch
from epsjoin.local.arguments import check_coordinates
from epsjoin.local.join.array_join import ArrayJoin, check_dimensions, check_ids, check_metric, limited
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.metric import Metric
from epsjoin.local.plan.costs import SWEEP_NS_PER_TERM
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.expected import expected_pairs_of_tables
from epsjoin.local.plan.product import MIN_DIMENSIONS, ProductPlan, Sample, has_products, plan_product
from epsjoin.local.plan.product_rows import FilteredTable, FilterSpace, embed, filter_table
from epsjoin.local.plan.projection import Choice, choose_projection, draw_tried_rows
from epsjoin.local.progress import Progress
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import Chunks, add_counts, sweep_chunks

BLOCK_ROWS = 512
"""Number of rows of a block, a multiple of ``LANES``: a product of two takes 1 MiB, which a core's cache
holds."""
_BLOCKS_PER_STEP = 16
"""Number of products after which a step returns: hundredths of a second, so that its caller may stop."""
_MIN_PAIRS = 1 << 18
"""Minimum number of pairs of rows for which products are considered: fewer are compared sooner than
planned."""
_SAMPLE_ROWS = 512
"""Number of rows of either table whose pairs tell what products let through; axes are those of as many
others."""


@dataclass(frozen=True)
class ProductJoin:
    """A checked join by products; made by :func:`join_of_one` and :func:`join_of_two`.

    Parameters
    ----------
    left, right : the tables' points, as they came; a self join has no right one.
    ids : (n,) int64, the ids that pairs of a self join consist of; the left row numbers else.
    metric, eps : Euclid or cosine, and its threshold.
    options : all other options.
    space : the filter rows.
    """

    left: Points
    right: Points | None
    ids: Ints
    metric: Metric
    eps: float
    options: JoinOptions
    space: FilterSpace

    @property
    def n_left(self) -> int:
        """Rows of the left table, or of the only one."""
        return len(self.left)

    @property
    def n_right(self) -> int:
        """Rows of the right table."""
        return 0 if self.right is None else len(self.right)

    def batches(self, name: str) -> Generator[Pairs, None, None]:
        """Find all pairs, batch by batch: see :meth:`epsjoin.local.join.array_join.ArrayJoin.batches`."""
        with Progress(self.options.progress, name) as progress:
            yield from limited(self._join(progress), self.options, self.eps, self._expected_pairs)

    def _join(self, progress: Progress) -> Generator[Pairs, None, None]:
        of = self.metric, self.space, self.eps
        with one_thread():
            left = filter_table(self.left, self.ids, *of)
            right = left
            if self.right is not None:
                right = filter_table(self.right, np.arange(len(self.right)), *of)
        sweep = _Blocks(left, right, self.right is None, self.metric.decision(self.eps))
        add_counts(self.options.counters, rows=self.n_left + self.n_right, carried_rows=0)
        return sweep_chunks(sweep.chunks(), _new_state, sweep.step, self.options.for_sweep(), progress.show)

    def _expected_pairs(self) -> float:
        return expected_pairs_of_tables(self.left, self.right, self.eps, self.metric)


def _new_state() -> Ints:
    state = np.zeros(4, np.int64)
    state[COLUMN] = -1
    return state


class _Blocks(threading.local):
    """Products of blocks of two tables; what is written to belongs to a thread.

    Parameters
    ----------
    left, right : the tables; the same of a self join.
    is_self : whether it is one.
    decision : the metric's.
    """

    def __init__(self, left: FilteredTable, right: FilteredTable, is_self: bool, decision: Decision) -> None:
        self.left, self.right, self.is_self, self.decision = left, right, is_self, decision
        self.products: Floats32 = np.empty(BLOCK_ROWS * BLOCK_ROWS, np.float32)
        self.copied: Floats = np.empty((2, left.rows.points.shape[1]))

    def chunks(self) -> Chunks:
        """The left rows, block by block."""
        n = len(self.left.rows.points) if len(self.right.rows.points) else 0
        return [(begin, min(begin + BLOCK_ROWS, n)) for begin in range(0, n, BLOCK_ROWS)]

    def step(self, state: Ints, begin: int, end: int, batch: PairBatch, counts: Ints) -> int:
        """Go on with a block of left rows: see :data:`epsjoin.local.sweep.sweeping.Step`."""
        if state[COLUMN] < 0:
            state[COLUMN] = begin if self.is_self else 0
        found = 0
        with one_thread():
            for _ in range(_BLOCKS_PER_STEP):
                rest = PairBatch(batch.left[found:], batch.right[found:], batch.distance[found:])
                found += self._scan(state, begin, end, rest, counts)
                if state[ROW] < end - begin:
                    break  # the batch is full
                counts[CANDIDATES] += self._n_pairs(begin, end, int(state[COLUMN]))
                state[COLUMN] += BLOCK_ROWS
                state[ROW] = 0
                state[DONE] = state[COLUMN] >= len(self.right.rows.points)
                if state[DONE]:
                    break
        self._order(batch, found)
        return found

    def _scan(self, state: Ints, begin: int, end: int, batch: PairBatch, counts: Ints) -> int:
        """Multiply a block, again where its scan was interrupted, and look through the product."""
        right = self.right.filter[state[COLUMN] : state[COLUMN] + BLOCK_ROWS]
        products = self.products[: (end - begin) * len(right)].reshape(end - begin, len(right))
        np.matmul(self.left.filter[begin:end], right.T, out=products)
        rows = self.left.rows, begin, self.right.rows
        of = self.is_self, self.decision, self.copied
        return int(scan_product(products, *rows, state, *of, batch, counts))

    def _n_pairs(self, begin: int, end: int, column: int) -> int:
        """Pairs that a block has."""
        n_rows = end - begin
        if self.is_self and begin == column:
            return n_rows * (n_rows - 1) // 2
        return n_rows * min(BLOCK_ROWS, len(self.right.rows.points) - column)

    def _order(self, batch: PairBatch, found: int) -> None:
        """Let the smaller id of a pair of a self join be the left one."""
        if self.is_self:
            left, right = batch.left[:found], batch.right[:found]
            batch.left[:found], batch.right[:found] = np.minimum(left, right), np.maximum(left, right)


def join_of_one(
    points: ArrayLike,
    ids: ArrayLike | None,
    eps: float | ArrayLike,
    weights: ArrayLike | None,
    cuts: Cuts | None,
    options: JoinOptions,
) -> ArrayJoin | ProductJoin:
    """Check the arguments of a self join, and choose how it is done."""
    if not _may_multiply(points, eps, weights, cuts, options.metric):
        return ArrayJoin.of_one(points, ids, eps, weights, cuts, options)
    values = check_coordinates("points", points)
    n, metric = len(values), options.metric
    numbers, threshold = check_ids(ids, n), metric.check_eps(eps)
    check_metric(metric, "points", values)
    chosen = _choose(values, None, threshold, metric)
    if isinstance(chosen, ProductPlan):
        return ProductJoin(values, None, numbers, metric, threshold, options, chosen.space)
    values = np.asarray(values, np.float64)
    return ArrayJoin(values, numbers, None, n, metric, threshold, None, options, chosen)


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
    check_dimensions(first, second)
    n_left, metric = len(first), options.metric
    threshold = metric.check_eps(eps)
    check_metric(metric, "left", first)
    check_metric(metric, "right", second)
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
    n_left = len(left)
    pairs = n_left * (n_left - 1) / 2.0 if right is None else float(n_left) * len(right)
    if pairs < _MIN_PAIRS:
        return None
    with one_thread():
        return _choose_on_samples(left, right, pairs, eps, metric)


def _choose_on_samples(
    left: Points, right: Points | None, pairs: float, eps: float, metric: Metric
) -> ProductPlan | Projection:
    sweep = _plan_sweep(left, right, eps, metric)
    n_rows = len(left) + (0 if right is None else len(right))
    widest = 1.0
    if metric.name != "cosine":
        widest = max(_widest(left), 0.0 if right is None else _widest(right))
    product = plan_product(_draw_sample(left, right, metric), pairs, n_rows, eps, metric, widest)
    if product is not None and product.nanoseconds <= sweep.nanoseconds:
        return product
    return sweep.projection


def _draw_sample(left: Points, right: Points | None, metric: Metric) -> Sample:
    """Draw rows of the tables, half of them for axes."""
    random = np.random.default_rng(0)

    def draw(points: Points, n_rows: int) -> Floats:
        return embed(points[random.permutation(len(points))[:n_rows]], metric)

    if right is None:
        rows = draw(left, 4 * _SAMPLE_ROWS)
        quarter = len(rows) // 4
        return Sample(rows[:quarter], rows[quarter : 2 * quarter], rows[2 * quarter :])
    some, others = draw(left, 2 * _SAMPLE_ROWS), draw(right, 2 * _SAMPLE_ROWS)
    n, m = len(some) // 2, len(others) // 2
    return Sample(some[n:], others[m:], np.concatenate((some[:n], others[:m])))


def _plan_sweep(left: Points, right: Points | None, eps: float, metric: Metric) -> Choice:
    """What a window sweep would do, with what it costs to decide the pairs that its filter lets through.

    The cosine takes all coordinates; a sum of squares ends where it is beyond eps, which takes as many of
    them as eps² is of the mean square of a distance.
    """
    n_left, d = left.shape
    n = n_left + (0 if right is None else len(right))
    rows = draw_tried_rows(n, n)
    sample = embed(left[rows[rows < n_left]], metric)
    if right is not None:
        sample = np.concatenate((sample, embed(right[rows[rows >= n_left] - n_left], metric)))
    reach = metric.embedded_eps(eps)
    choice = choose_projection(sample, n, reach, metric.norm)
    terms = float(d)
    if metric.name != "cosine":
        with np.errstate(over="ignore"):
            terms *= min(1.0, reach**2 / max(2.0 * float(sample.var(axis=0).sum()), reach**2))
    return choice._replace(nanoseconds=choice.nanoseconds + SWEEP_NS_PER_TERM * terms * choice.survivors)


def _widest(points: Points) -> float:
    return float(max(points.max(), -points.min()))
