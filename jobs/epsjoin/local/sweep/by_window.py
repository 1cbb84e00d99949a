"""Run a window sweep to its end: all pairs, packed to be sorted, in any order."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from epsjoin.kernels.arrays import Ints
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.pairs.batch import PAIRS
from epsjoin.kernels.pairs.sort_pairs import Block
from epsjoin.kernels.sweep import window
from epsjoin.kernels.sweep.window import WindowRows
from epsjoin.local.sweep.pairs import Blocks, Pairs
from epsjoin.local.sweep.sweeping import COUNTED, SweepOptions, add_counts, chunks_of, make_batch
from epsjoin.local.sweep.threads import in_any_order


class _Own(threading.local):
    """What a thread writes its pairs to.

    Parameters
    ----------
    batch_rows : maximum number of pairs in a batch, which the cache holds until it is packed.
    dtype : of row numbers that are packed.
    packed : the thread's blocks are added to it.
    """

    def __init__(self, batch_rows: int, dtype: type[np.int32 | np.int64], packed: list[Blocks]) -> None:
        self.batch = make_batch(batch_rows)
        self.blocks = Blocks(dtype)
        packed.append(self.blocks)


def window_blocks(
    rows: WindowRows,
    decision: Decision,
    dtype: type[np.int32 | np.int64],
    options: SweepOptions,
    show: Callable[[float], None],
    check: Callable[[int], None],
) -> list[Block]:
    """Find all pairs of row numbers, each thread in chunk after chunk, and pack them, in any order.

    Parameters
    ----------
    rows, decision, options : see :func:`epsjoin.local.sweep.sweeping.sweep_window`.
    dtype : of the row numbers that are packed.
    show : called with the fraction of the work that is done.
    check : called with the number of pairs that have been found so far; raises where they are too many.
    """
    chunks, packed, stop = chunks_of(rows), list[Blocks](), threading.Event()
    own = _Own(options.batch_rows, dtype, packed)
    n_done = n_pairs = 0

    def sweep(chunk: tuple[int, int]) -> Ints:
        state, counts = window.new_state(), np.zeros(len(COUNTED), np.int64)
        while not state[-1] and not stop.is_set():
            found = window.window_sweep(state, rows, *chunk, decision, own.batch, counts)
            left, right, distance = own.batch
            own.blocks.add(Pairs(left[:found], right[:found], distance[:found]))
            check(n_pairs + int(counts[PAIRS]))
        return counts

    def tell(counts: Ints) -> None:
        nonlocal n_done, n_pairs
        n_done, n_pairs = n_done + 1, n_pairs + int(counts[PAIRS])
        add_counts(options.counters, **dict(zip(COUNTED, counts.tolist(), strict=True)))
        check(n_pairs)
        show(n_done / len(chunks))

    add_counts(options.counters, rows=len(rows.place), carried_rows=int(np.count_nonzero(rows.mask & 1)))
    in_any_order(chunks, sweep, options.n_jobs, tell, stop)
    return [block for blocks in packed for block in blocks.take()]
