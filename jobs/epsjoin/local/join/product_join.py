"""The join by products of blocks of rows, in many dimensions.

A block of left filter rows times a block of right ones (:mod:`epsjoin.local.plan.product_rows`) is one
product of matrices, by NumPy's BLAS; :func:`epsjoin.kernels.join.product.scan_product` looks through it. A
self join multiplies the blocks on and above the diagonal.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from epsjoin.kernels.arrays import Floats, Floats32, Ints, Points
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.join.product import COLUMN, DONE, ROW, scan_product
from epsjoin.kernels.join.stack_sweep import CANDIDATES, PairBatch
from epsjoin.local.blas import one_thread
from epsjoin.local.join.array_join import limited
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.metric import Metric
from epsjoin.local.plan.expected import expected_pairs_of_tables
from epsjoin.local.plan.product_rows import FilteredTable, FilterSpace, filter_table
from epsjoin.local.progress import Progress
from epsjoin.local.sweep.pairs import Pairs, collect
from epsjoin.local.sweep.sweeping import Chunks, add_counts, sweep_chunks

BLOCK_ROWS = 512
"""Number of rows of a block, a multiple of ``LANES``: a product of two takes 1 MiB, which a core's cache
holds."""
_BLOCKS_PER_STEP = 16
"""Number of products after which a step returns: hundredths of a second, so that its caller may stop."""


@dataclass(frozen=True)
class ProductJoin:
    """A checked join by products; see :mod:`epsjoin.local.join.by_product`.

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

    def pairs(self, name: str) -> Pairs:
        """Find all pairs of row numbers, sorted by (left, right): see :meth:`batches`."""
        n_right = self.n_left if self.right is None else self.n_right
        return collect(self.batches(name), (self.n_left, n_right))

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
