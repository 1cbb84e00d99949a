"""Semi joins by products of blocks: which rows of a table have a partner, without pairs.

A block of left rows meets the right blocks one after the other, and a row leaves it when its first partner is
found, so that products become smaller. For one table both triangles are multiplied, since a row that has left
is still a possible partner of others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Ints, Points
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.pairs.batch import CANDIDATES, PAIRS
from epsjoin.kernels.product.product import find_partners_in
from epsjoin.local.metric import Metric
from epsjoin.local.product.blas import one_thread
from epsjoin.local.product.rows import FilteredTable, FilterSpace, filter_table
from epsjoin.local.product.sweep import BLOCK_ROWS
from epsjoin.local.sweep.sweeping import CHUNKS_AHEAD, COUNTED, SweepOptions, add_counts
from epsjoin.local.sweep.threads import in_order


class _Marked(NamedTuple):
    """What a left block, given by its number, has met in a right one: places with a partner, and counts."""

    number: int
    places: Ints
    counts: Ints


def mark_by_products(
    left: Points,
    right: Points | None,
    space: FilterSpace,
    metric: Metric,
    eps: float,
    options: SweepOptions,
    show: Callable[[float], None] | None = None,
) -> Bools:
    """Tell which left rows have a right row within eps, or of one table another row.

    Parameters
    ----------
    left, right : (n, d) and (m, d) points; of one table there are no right ones. Not modified.
    space : the filter rows. Any is exact.
    metric, eps : Euclid or cosine, and its threshold.
    options : threads and counters; there are no batches. The counter ``pairs`` counts rows with a partner.
    show : called with the fraction of the left rows that is done.

    Returns
    -------
    (n,) bool; the same for any number of threads, as are the counts.
    """
    with one_thread():
        first = filter_table(left, np.arange(len(left)), metric, space, eps)
        second = first if right is None else filter_table(right, np.arange(len(right)), metric, space, eps)
    of, stop = (first, second, metric.decision(eps)), threading.Event()
    marked, n_blocks = np.zeros(len(left), np.bool_), -(-len(left) // BLOCK_ROWS)
    add_counts(options.counters, rows=len(left) + (0 if right is None else len(right)), carried_rows=0)
    blocks = (_mark_block(*of, number, stop) for number in range(n_blocks))
    with closing(in_order(blocks, options.n_jobs, CHUNKS_AHEAD, stop)) as found:
        for number, places, counts in found:
            marked[places] = True
            add_counts(options.counters, **dict(zip(COUNTED, counts.tolist(), strict=True)))
            if show is not None:
                show(number / n_blocks)
    return marked


def _mark_block(
    left: FilteredTable, right: FilteredTable, decision: Decision, number: int, stop: threading.Event
) -> Iterator[_Marked]:
    """Multiply what remains of a block with each right block."""
    begin = number * BLOCK_ROWS
    open_rows = np.arange(begin, min(begin + BLOCK_ROWS, len(left.rows.points)))
    buffer = np.empty(len(open_rows) * BLOCK_ROWS, np.float32)
    for column in range(0, len(right.rows.points), BLOCK_ROWS):
        if not len(open_rows) or stop.is_set():
            return
        others = right.filter[column : column + BLOCK_ROWS]
        products = buffer[: len(open_rows) * len(others)].reshape(len(open_rows), len(others))
        with one_thread():
            np.matmul(left.filter[open_rows], others.T, out=products)
        counts, has_partner = np.zeros(len(COUNTED), np.int64), np.zeros(len(open_rows), np.bool_)
        of = left is right, decision, has_partner, counts
        find_partners_in(products, left.rows, open_rows, right.rows, column, *of)
        counts[CANDIDATES] = len(open_rows) * min(BLOCK_ROWS, len(right.rows.points) - column)
        counts[PAIRS] = np.count_nonzero(has_partner)
        yield _Marked(number, open_rows[has_partner], counts)
        open_rows = open_rows[~has_partner]
