"""The sweep over products of blocks: which pairs of the rows of two tables are within eps.

A block of left filter rows times a block of right ones (:mod:`epsjoin.local.product.rows`) is one product of
matrices, by NumPy's BLAS; :func:`epsjoin.kernels.product.product.scan_product` looks through it. A self join
multiplies the blocks on and above the diagonal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats32, Ints, Points
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.pairs.batch import CANDIDATES, PairBatch
from epsjoin.kernels.product.product import COLUMN, DONE, ROW, scan_product
from epsjoin.local.metric import Metric
from epsjoin.local.product.blas import one_thread
from epsjoin.local.product.rows import FilteredTable, FilterSpace, filter_table
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import Chunks, SweepOptions, add_counts, sweep_chunks

BLOCK_ROWS = 512
"""Number of rows of a block, a multiple of ``LANES``: a product of two takes 1 MiB, which a core's cache
holds."""
_BLOCKS_PER_STEP = 16
"""Number of products after which a step returns: hundredths of a second, so that the caller can stop."""


class NamedRows(NamedTuple):
    """Rows, and what their pairs consist of.

    Parameters
    ----------
    points : (n, d), for which the metric is defined; not modified.
    names : (n,) int64.
    """

    points: Points
    names: Ints


def sweep_products(
    left: NamedRows,
    right: NamedRows | None,
    space: FilterSpace,
    metric: Metric,
    eps: float,
    options: SweepOptions,
    show: Callable[[float], None] | None = None,
    *,
    is_ordered: bool = False,
) -> Generator[Pairs, None, None]:
    """Find all pairs of left and right rows within eps, or of left rows with one another.

    Parameters
    ----------
    left, right : the rows; of one table there are no right ones.
    space : the filter rows. Any is exact.
    metric, eps : Euclid or cosine, and its threshold.
    options, show : see :func:`epsjoin.local.sweep.sweeping.sweep_chunks`.
    is_ordered : whether the smaller name of a pair comes first; for one table it always does.

    Yields
    ------
    Pairs
        Never empty, in the order of the blocks of left rows.
    """
    of = metric, space, eps
    with one_thread():
        first = filter_table(left.points, left.names, *of)
        second = first if right is None else filter_table(right.points, right.names, *of)
    sweep = _Blocks(first, second, right is None, is_ordered or right is None, metric.decision(eps))
    n_rows = len(left.points) + (0 if right is None else len(right.points))
    add_counts(options.counters, rows=n_rows, carried_rows=0)
    return sweep_chunks(sweep.chunks(), _new_state, sweep.step, options, show)


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
    is_ordered : whether the smaller name of a pair comes first.
    decision : the metric's.
    """

    def __init__(
        self,
        left: FilteredTable,
        right: FilteredTable,
        is_self: bool,
        is_ordered: bool,
        decision: Decision,
    ) -> None:
        self.left, self.right, self.decision = left, right, decision
        self.is_self, self.is_ordered = is_self, is_ordered
        self.products: Floats32 = np.empty(BLOCK_ROWS * BLOCK_ROWS, np.float32)

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
        of = self.is_self, self.decision
        return int(scan_product(products, *rows, state, *of, batch, counts))

    def _n_pairs(self, begin: int, end: int, column: int) -> int:
        """Pairs that a block has."""
        n_rows = end - begin
        if self.is_self and begin == column:
            return n_rows * (n_rows - 1) // 2
        return n_rows * min(BLOCK_ROWS, len(self.right.rows.points) - column)

    def _order(self, batch: PairBatch, found: int) -> None:
        """Make the smaller name of a pair the left one, if that is asked for."""
        if self.is_ordered:
            left, right = batch.left[:found], batch.right[:found]
            batch.left[:found], batch.right[:found] = np.minimum(left, right), np.maximum(left, right)
