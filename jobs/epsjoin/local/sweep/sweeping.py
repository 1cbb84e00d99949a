"""Run a sweep to its end: yield batches of pairs, count, use threads, report progress."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Ints
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.pairs.batch import PairBatch
from epsjoin.kernels.plan.stack_rows import CARRIED, LEFT, RIGHT, StackRows
from epsjoin.kernels.sweep import stack_sweep, window
from epsjoin.kernels.sweep.vectors import BLOCK
from epsjoin.kernels.sweep.window import WindowRows
from epsjoin.local.arguments import check_count
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.threads import in_order

_CHUNK_ROWS = 8192
"""Maximum number of rows of a chunk: they and their neighbours in the grid stay in a core's cache."""
MIN_CHUNKS = 16
"""Number of chunks of fewer rows, so that threads have work and progress is seen."""
MIN_CHUNK_ROWS = 1024
"""Minimum number of rows of a chunk."""
MAX_THREADS = 1024
"""Maximum number of threads; results do not depend on it."""
CHUNKS_AHEAD = 2
"""Number of chunks per thread that may be swept before they are needed."""

COUNTED = ("candidates", "distance_computations", "largest_stack", "pairs")
"""Names of what the sweeps count, in the order of their counters."""

_MAX_BATCH_ROWS = 1 << 26
"""Largest batch, of 1.5 GiB where it is full."""

Chunks = list[tuple[int, int]]
Step = Callable[[Ints, int, int, PairBatch, Ints], int]
"""Sweeps a chunk on, from a state, until it ends or the batch has no room for ``BLOCK`` pairs: it changes the
state, whose last number is not 0 when the chunk is done, fills the batch, adds to the counts, and returns how
many pairs it found."""
Counters = dict[str, int]


UNREAD: Counters = {}
"""The counters of a join whose caller passes none: nobody reads them, so nothing is added."""


def add_counts(counters: Counters, **values: int) -> None:
    """Add to counters; the largest stack keeps its maximum."""
    if counters is UNREAD:
        return
    for name, value in values.items():
        if name == "largest_stack":
            counters[name] = max(counters.get(name, 0), value)
        else:
            counters[name] = counters.get(name, 0) + value


def check_batch_rows(batch_rows: object) -> int:
    """Return the most pairs in a batch as an int, lowered to what can be allocated.

    Raises
    ------
    ArgumentError
        Not a whole number, or below what one step of a sweep may find.
    """
    return min(check_count("batch_rows", batch_rows, BLOCK), _MAX_BATCH_ROWS)


def check_n_jobs(n_jobs: object) -> int:
    """Return the number of threads: one for None, one per processor for -1; at most ``MAX_THREADS``.

    Raises
    ------
    ArgumentError
        Not one of these, and not a whole number of at least 1.
    """
    if n_jobs is None or (type(n_jobs) is int and n_jobs == 1):
        return 1
    if isinstance(n_jobs, (int, np.integer)) and n_jobs == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        return min(check_count("n_jobs", n_jobs), MAX_THREADS)
    except ArgumentError as error:
        raise ArgumentError(f"{error}; -1 is one thread per processor") from None


def check_counters(counters: object) -> Counters:
    """Return the caller's counters, or new ones that nobody reads.

    Raises
    ------
    ArgumentError
        Not a dictionary, and not None.
    """
    if counters is None:
        return {}
    if not isinstance(counters, dict):
        raise ArgumentError(f"counters must be a dictionary, to which counts are added, not {counters!r}")
    return counters


class SweepOptions(NamedTuple):
    """How a sweep runs and what it reports of its work, which does not depend on the rows.

    Parameters
    ----------
    batch_rows : maximum number of pairs in one batch, at least ``BLOCK``.
    counters : dictionary to which the work is added as the batches come.
    n_jobs : number of threads of a window sweep. The pairs come in the same order for any number, in other
        batches.
    """

    batch_rows: int
    counters: Counters
    n_jobs: int = 1


def chunks_of(rows: WindowRows) -> Chunks:
    """Divide the rows whose partners are looked for into chunks that are swept one by one: begin and end."""
    n_queries = int(rows.passes[:, 1].max()) if len(rows.passes) else 0
    chunk_rows = min(_CHUNK_ROWS, max(MIN_CHUNK_ROWS, n_queries // MIN_CHUNKS))
    return [(begin, min(begin + chunk_rows, n_queries)) for begin in range(0, n_queries, chunk_rows)]


def sweep_window(
    rows: WindowRows, decision: Decision, options: SweepOptions, show: Callable[[float], None] | None = None
) -> Generator[Pairs, None, None]:
    """Find all pairs of rows in the order of a window sweep.

    Parameters
    ----------
    rows : from :func:`epsjoin.kernels.sweep.window.window_rows`.
    decision : the metric's.
    options : how to sweep.
    show : called with the fraction of the rows that is done and whose pairs the caller has taken, except for
        those of the batch that is being filled.

    Yields
    ------
    Pairs
        Never empty. ``n_jobs x (1 + batches ahead)`` batches are in memory.

    Notes
    -----
    The rows are swept in chunks; a chunk's pairs depend on nothing that another chunk does.
    """
    add_counts(options.counters, rows=len(rows.place), carried_rows=int(np.count_nonzero(rows.mask & 1)))

    def step(state: Ints, begin: int, end: int, batch: PairBatch, counts: Ints) -> int:
        return int(window.window_sweep(state, rows, begin, end, decision, batch, counts))

    return sweep_chunks(chunks_of(rows), window.new_state, step, options, show)


def sweep_chunks(
    chunks: Chunks,
    new_state: Callable[[], Ints],
    step: Step,
    options: SweepOptions,
    show: Callable[[float], None] | None,
) -> Generator[Pairs, None, None]:
    """Sweep chunks of rows, whose pairs depend on nothing that another chunk does.

    Parameters
    ----------
    chunks : begin and end of each.
    new_state : makes the state of a chunk that has not begun.
    step : sweeps a chunk on.
    options, show : see :func:`sweep_window`.

    Yields
    ------
    Pairs
        Never empty, in the order of the chunks.
    """
    batch_rows, counters, n_jobs = options
    sweep = _Sweep(new_state, step)
    if n_jobs == 1 or len(chunks) < 2:
        swept = _in_turn(sweep, batch_rows, chunks)
    else:
        swept = _in_threads(sweep, batch_rows, chunks, n_jobs)
    with closing(swept):  # an error's traceback would keep its threads alive
        for number, (found, counts) in swept:
            add_counts(counters, **dict(zip(COUNTED, counts.tolist(), strict=True)))
            if len(found.left):
                yield found
            if show is not None and chunks:
                show(number / len(chunks))


def sweep_stack(
    rows: StackRows,
    ids: Ints,
    embedded_eps: float,
    decision: Decision,
    options: SweepOptions,
    n_held: int = 0,
) -> Iterator[Pairs]:
    """Find all pairs of rows in the order of a stack sweep, by the merge of the papers.

    Parameters
    ----------
    rows : from :func:`epsjoin.kernels.plan.regular.stack_rows`.
    ids : (n,) int64, in the order of the rows.
    embedded_eps : L∞ threshold.
    decision, options : see :func:`sweep_window`; there is one thread.
    n_held : number of rows that lie on the stack already; they have been compared.

    Yields
    ------
    Pairs
        Never empty.
    """
    n, counters = len(ids), options.counters
    batch = make_batch(options.batch_rows)
    state = stack_sweep.new_state(n, n_held)
    two_tables = n > 0 and rows.groups[0] & (LEFT | RIGHT) != 0
    add_counts(counters, rows=n, carried_rows=int(np.count_nonzero(rows.groups & CARRIED)))
    while not stack_sweep.is_done(state):
        counts = np.zeros(len(COUNTED), np.int64)
        found = stack_sweep.stack_sweep(state, rows, embedded_eps, decision, batch, counts)
        add_counts(counters, **dict(zip(COUNTED, counts.tolist(), strict=True)))
        if found:
            first, second = batch.left[:found], batch.right[:found]
            left, right = ids[first], ids[second]
            swap = (rows.groups[first] & RIGHT) != 0 if two_tables else left > right
            yield Pairs(
                np.where(swap, right, left), np.where(swap, left, right), batch.distance[:found].copy()
            )


_Swept = tuple[Pairs, Ints]


class _Sweep(NamedTuple):
    """How chunks are swept, see :func:`sweep_chunks`."""

    new_state: Callable[[], Ints]
    step: Step


def make_batch(batch_rows: int) -> PairBatch:
    """Make room for a batch of pairs."""
    return PairBatch(np.empty(batch_rows, np.int64), np.empty(batch_rows, np.int64), np.empty(batch_rows))


def _copy_pairs(batch: PairBatch, found: int) -> Pairs:
    return Pairs(batch.left[:found].copy(), batch.right[:found].copy(), batch.distance[:found].copy())


def _in_turn(sweep: _Sweep, batch_rows: int, chunks: Chunks) -> Generator[tuple[int, _Swept], None, None]:
    """Sweep one chunk after the other into one batch, which is yielded when it is full."""
    batch = make_batch(batch_rows)
    found = 0
    for number, (begin, end) in enumerate(chunks):
        state = sweep.new_state()
        while not state[-1]:
            counts = np.zeros(len(COUNTED), np.int64)
            rest = PairBatch(batch.left[found:], batch.right[found:], batch.distance[found:])
            found += sweep.step(state, begin, end, rest, counts)
            full = found > batch_rows - BLOCK
            yield number, (_copy_pairs(batch, found if full else 0), counts)
            found = 0 if full else found
    yield len(chunks), (_copy_pairs(batch, found), np.zeros(len(COUNTED), np.int64))


def _in_threads(
    sweep: _Sweep, batch_rows: int, chunks: Chunks, n_jobs: int
) -> Generator[tuple[int, _Swept], None, None]:
    """Sweep the chunks in several threads; their pairs come in the order of the chunks."""
    stop = threading.Event()

    def fill_batch(state: Ints, begin: int, end: int) -> _Swept:
        """Sweep until the chunk is done or a batch is full."""
        batch = make_batch(batch_rows)
        counts = np.zeros(len(COUNTED), np.int64)
        found = 0
        while not state[-1] and found <= batch_rows - BLOCK and not stop.is_set():
            rest = PairBatch(batch.left[found:], batch.right[found:], batch.distance[found:])
            found += sweep.step(state, begin, end, rest, counts)
        return _copy_pairs(batch, found), counts

    def sweep_chunk(number: int, begin: int, end: int) -> Iterator[tuple[int, _Swept]]:
        """Sweep a chunk, batch by batch."""
        state = sweep.new_state()
        while not state[-1] and not stop.is_set():
            yield number, fill_batch(state, begin, end)

    sweeps = (sweep_chunk(number, *chunk) for number, chunk in enumerate(chunks))
    yield from in_order(sweeps, n_jobs, CHUNKS_AHEAD, stop)
    yield len(chunks), (_copy_pairs(make_batch(BLOCK), 0), np.zeros(len(COUNTED), np.int64))
