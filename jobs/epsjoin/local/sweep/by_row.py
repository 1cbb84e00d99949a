"""Run a sweep row by row to its end: all pairs, sorted, without batches of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import numpy as np

from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.pairs import sort_pairs
from epsjoin.kernels.simd.lanes import PLACES
from epsjoin.kernels.sweep.row_sweep import count_partners, find_pairs, write_partners
from epsjoin.kernels.sweep.row_windows import RowWindows, count_candidates, steps_ahead
from epsjoin.local.sweep.pages import make_array
from epsjoin.local.sweep.pair_keys import PairKeys
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import MIN_CHUNK_ROWS, MIN_CHUNKS, SweepOptions, add_counts
from epsjoin.local.sweep.threads import in_any_order, in_ranges

_CHUNK_ROWS = 1 << 14
"""Maximum number of rows of one call: between two calls, progress is shown and an interrupt noticed."""
_CHUNK_CANDIDATES = 1 << 26
"""Maximum number of candidates of a call, unless one row has more: hundredths of a second."""
_SORTED_PER_ROW = 32
"""Maximum number of candidates of each row, on average, whose pairs are sorted after all are found. With
more, that takes longer than counting before, and too much memory."""
_ROOM = 1 << 20
"""Number of keys for which a thread makes room at once."""

T = TypeVar("T")
R = TypeVar("R")


class _Chunk(NamedTuple):
    """Rows that are looked at in one call: their places, their candidates, and the most of one row."""

    begin: int
    end: int
    candidates: int
    largest: int


class _Room(threading.local):
    """Where a thread writes the keys of its chunks: a few large arrays, which are in huge pages."""

    def __init__(self) -> None:
        self.keys = np.empty(0, np.int64)


class RowSweep(NamedTuple):
    """A sweep row by row over all rows.

    Parameters
    ----------
    rows : from :func:`epsjoin.kernels.sweep.row_windows.row_windows`.
    points : the points from which they were made.
    n_left : number of rows of the left table, or of the only one.
    bound : Euclid's, see :class:`epsjoin.kernels.distances.Decision`.
    options : how to sweep. A pair of rows is counted once as a candidate and as a distance that is computed,
        though both rows look at it.
    show : called with the fraction of the work that is done.
    check : called with the number of pairs that have been found so far; raises where they are too many.
    """

    rows: RowWindows
    points: Floats
    n_left: int
    bound: float
    options: SweepOptions
    show: Callable[[float], None]
    check: Callable[[int], None]

    def pairs(self) -> Pairs:
        """Find all pairs, sorted by (left, right).

        Notes
        -----
        The arrays do not depend on the number of threads. If few pairs are expected for each row, they are
        found once and then sorted, which takes 28 bytes for each; otherwise partners are counted first, then
        written to their places: 24 bytes.
        """
        rows, chunks = self.rows, self._chunks()
        n_candidates = sum(chunk.candidates for chunk in chunks)
        largest = max((chunk.largest for chunk in chunks), default=0)
        if n_candidates <= _SORTED_PER_ROW * self.n_left:
            pairs = self._find_and_sort(chunks)
        else:
            pairs = self._count_and_write(chunks)
        if rows.is_self:
            n_candidates = (n_candidates - rows.n_queries) // 2
        add_counts(
            self.options.counters,
            rows=len(rows.row),
            carried_rows=0,
            candidates=n_candidates,
            distance_computations=n_candidates,
            largest_stack=largest,
            pairs=len(pairs.left),
        )
        return pairs

    def _chunks(self) -> list[_Chunk]:
        """Divide the rows whose partners are looked for."""
        n = self.rows.n_queries
        size = min(_CHUNK_ROWS, max(MIN_CHUNK_ROWS, n // MIN_CHUNKS))
        begins = range(0, n, size)
        divided = self._in_threads(begins, lambda begin: _divide(self.rows, begin, min(begin + size, n)))
        return sorted(chunk for chunks in divided for chunk in chunks)

    def _find_and_sort(self, chunks: list[_Chunk]) -> Pairs:
        """Write the pairs of each chunk's rows as they are found, and sort all of them."""
        n_right = self.n_left if self.rows.is_self else len(self.rows.row) - self.n_left
        pair_keys = PairKeys.of(self.n_left, n_right)
        blocks = self._find(chunks, pair_keys.right_bits)
        first_right = 0 if self.rows.is_self else self.n_left
        return pair_keys.sort(blocks, self.points, first_right, in_ranges(self.options.n_jobs))

    def _find(self, chunks: list[_Chunk], right_bits: int) -> list[Ints]:
        steps, own = steps_ahead(self.rows), _Room()
        at_once = min(_ROOM, sum(chunk.candidates for chunk in chunks))

        def find(chunk: _Chunk) -> Ints:
            least = chunk.candidates + PLACES
            if len(own.keys) < least:
                own.keys = np.empty(max(least, at_once), np.int64)
            filled = find_pairs(self.rows, self.bound, chunk.begin, chunk.end, steps, right_bits, own.keys)
            found, own.keys = own.keys[:filled], own.keys[filled:]
            return found

        return self._in_threads(chunks, find, self._tell(len(chunks), len))

    def _count_and_write(self, chunks: list[_Chunk]) -> Pairs:
        """Count the partners of each row, then write them to their places."""
        runs = np.zeros(self.n_left + 1, np.int64)

        def count(chunk: _Chunk) -> int:
            return count_partners(self.rows, self.bound, *chunk[:2], runs)

        n_pairs = sum(self._in_threads(chunks, count, self._tell(2 * len(chunks), int)))
        np.cumsum(runs, out=runs)
        left, right, distance = (
            make_array(n_pairs, dtype, is_written=True) for dtype in (np.int64, np.int64, np.float64)
        )

        def write(chunk: _Chunk) -> int:
            write_partners(self.rows, self.bound, *chunk[:2], runs, chunk.largest, right, distance)
            return 0  # pairs that have not been reported yet

        self._in_threads(chunks, write, self._tell(2 * len(chunks), int, len(chunks)))
        sort_pairs.fill_left(runs[1:], left)
        return Pairs(left, right, distance)

    def _in_threads(
        self, items: Iterable[T], work: Callable[[T], R], tell: Callable[[R], None] | None = None
    ) -> list[R]:
        return in_any_order(items, work, self.options.n_jobs, tell)

    def _tell(self, total: int, count: Callable[[R], int], n_done: int = 0) -> Callable[[R], None]:
        """Make what shows the fraction of the work that is done, and checks the number of pairs."""
        n_pairs = 0

        def tell(found: R) -> None:
            nonlocal n_done, n_pairs
            n_done, n_pairs = n_done + 1, n_pairs + count(found)
            self.show(n_done / total)
            self.check(n_pairs)

        return tell


def _divide(rows: RowWindows, begin: int, end: int) -> list[_Chunk]:
    """Halve a chunk as long as it has too many candidates."""
    chunk = _Chunk(begin, end, *count_candidates(rows, begin, end))
    if chunk.candidates <= _CHUNK_CANDIDATES or end - begin == 1:
        return [chunk]
    middle = (begin + end) // 2
    return [*_divide(rows, begin, middle), *_divide(rows, middle, end)]
