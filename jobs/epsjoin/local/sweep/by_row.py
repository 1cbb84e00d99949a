"""Run a sweep row by row to its end: all pairs, sorted, without batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np

from epsjoin.kernels.join import sort_pairs
from epsjoin.kernels.join.row_sweep import (
    SIZE_BITS,
    count_pairs,
    count_partners,
    find_partners,
    put_in_order,
    write_partners,
)
from epsjoin.kernels.join.row_windows import RowWindows, count_candidates
from epsjoin.local.sweep.pages import make_array
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import SweepOptions, add_counts
from epsjoin.local.sweep.threads import in_order

_CHUNK_ROWS = 2048
"""Maximum number of rows that are looked at in one call: progress is told, and ctrl-c heard, between two."""
_CHUNK_CANDIDATES = 1 << 26
"""Maximum number of candidates of a call, where one row has fewer: hundredths of a second."""
_KEPT_PER_ROW = 32
"""Maximum number of candidates of each row, on average, whose partners are kept as they are found and then
put in order. With more, that takes too much memory, and longer than counting before."""
_ORDERED_ROWS = 1 << 16
"""Number of rows whose partners are put in order in one call."""
_AHEAD = 2
"""Number of chunks per thread that may be done before they are needed."""


T = TypeVar("T")


class _Chunk(NamedTuple):
    """Rows that are looked at in one call: their places, their candidates, and the most of one row."""

    begin: int
    end: int
    candidates: int
    largest: int


class RowSweep(NamedTuple):
    """A sweep row by row over all rows.

    Parameters
    ----------
    rows : from :func:`epsjoin.kernels.join.row_windows.row_windows`.
    n_left : number of rows of the left table, or of the only one.
    bound : Euclid's, see :class:`epsjoin.kernels.distances.Decision`.
    options : how to sweep. A pair of rows is counted once as a candidate and as a distance that is computed,
        though both rows look at it.
    show : called with the fraction of the work that is done.
    check : called with the number of pairs that have been found so far; raises where they are too many.
    """

    rows: RowWindows
    n_left: int
    bound: float
    options: SweepOptions
    show: Callable[[float], None]
    check: Callable[[int], None]

    def pairs(self) -> Pairs:
        """Find all pairs, sorted by (left, right).

        Notes
        -----
        The arrays do not depend on the number of threads. Where few pairs are to be expected for each row,
        they are found once and copied, which takes 36 bytes for each; else partners are counted, then written
        where they belong: 24 bytes.
        """
        rows, chunks = self.rows, self._chunks()
        n_candidates = sum(chunk.candidates for chunk in chunks)
        largest = max((chunk.largest for chunk in chunks), default=0)
        if n_candidates <= _KEPT_PER_ROW * self.n_left and largest < 1 << SIZE_BITS:
            pairs = self._find_once(chunks, n_candidates)
        else:
            pairs = self._count_and_find(chunks)
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
        return [
            chunk
            for begin in range(0, n, _CHUNK_ROWS)
            for chunk in _divide(self.rows, begin, min(begin + _CHUNK_ROWS, n))
        ]

    def _find_once(self, chunks: list[_Chunk], most: int) -> Pairs:
        """Write the partners of each chunk's rows as they are found, and put them in order."""
        # what is not written takes no memory
        found, distance = make_array(most, np.int32), make_array(most, np.float64)
        runs = np.zeros(self.n_left, np.int64)
        begins = np.cumsum([0] + [chunk.candidates for chunk in chunks])

        def find(number: int) -> int:
            chunk, begin = chunks[number], int(begins[number])
            to = find_partners(self.rows, self.bound, *chunk[:2], runs, begin, chunk.largest, found, distance)
            return to - begin

        n_pairs = 0
        for number, count in enumerate(self._in_order(find, range(len(chunks)))):
            self.show(number / len(chunks))
            n_pairs += count
            self.check(n_pairs)
        left, right, distances = _make_room(n_pairs)
        firsts = range(0, self.n_left, _ORDERED_ROWS)

        def last_of(first: int) -> int:
            return min(first + _ORDERED_ROWS, self.n_left)

        counts = self._in_order(lambda first: count_pairs(runs, first, last_of(first)), firsts)
        ends = np.cumsum([0, *counts])

        def order(number: int) -> int:
            rows = firsts[number], last_of(firsts[number])
            put_in_order(runs, *rows, int(ends[number]), found, distance, left, right, distances)
            return number

        for _ in self._in_order(order, range(len(firsts))):
            pass
        return Pairs(left, right, distances)

    def _count_and_find(self, chunks: list[_Chunk]) -> Pairs:
        """Count the partners of each row, then write them where they belong."""
        runs = np.zeros(self.n_left + 1, np.int64)

        def count(chunk: _Chunk) -> int:
            return count_partners(self.rows, self.bound, *chunk[:2], runs)

        n_pairs = 0
        for number, found in enumerate(self._in_order(count, chunks)):
            self.show(0.5 * number / len(chunks))
            n_pairs += found
            self.check(n_pairs)
        np.cumsum(runs, out=runs)
        left, right, distance = _make_room(n_pairs)

        def write(chunk: _Chunk) -> int:
            write_partners(self.rows, self.bound, *chunk[:2], runs, chunk.largest, right, distance)
            return chunk.end

        for number, _ in enumerate(self._in_order(write, chunks)):
            self.show(0.5 + 0.5 * number / len(chunks))
        sort_pairs.fill_left(runs[1:], left)
        return Pairs(left, right, distance)

    def _in_order(self, work: Callable[[T], int], of: Iterable[T]) -> Iterator[int]:
        """Work on everything, in threads, and yield what comes of each."""

        def once(one: T) -> Iterator[int]:
            yield work(one)

        return in_order(map(once, of), self.options.n_jobs, _AHEAD)


def _divide(rows: RowWindows, begin: int, end: int) -> list[_Chunk]:
    """Halve a chunk as long as it has too many candidates."""
    chunk = _Chunk(begin, end, *count_candidates(rows, begin, end))
    if chunk.candidates <= _CHUNK_CANDIDATES or end - begin == 1:
        return [chunk]
    middle = (begin + end) // 2
    return [*_divide(rows, begin, middle), *_divide(rows, middle, end)]


def _make_room(n_pairs: int) -> Pairs:
    left, right, distance = (
        make_array(n_pairs, dtype, is_written=True) for dtype in (np.int64, np.int64, np.float64)
    )
    return Pairs(left, right, distance)
