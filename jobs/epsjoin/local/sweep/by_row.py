"""Run a sweep row by row to its end: all pairs, sorted, without batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.join import sort_pairs
from epsjoin.kernels.join.row_sweep import (
    BEGIN,
    SIZE,
    RowWindows,
    count_candidates,
    count_partners,
    find_partners,
    put_in_order,
)
from epsjoin.local.sweep.pages import make_array
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import SweepOptions, add_counts
from epsjoin.local.sweep.threads import in_order

_CHUNK_ROWS = 2048
"""Maximum number of rows that are looked at in one call: progress is told, and ctrl-c heard, between two."""
_CHUNK_CANDIDATES = 1 << 26
"""Maximum number of candidates of a call, where one row has fewer: hundredths of a second."""
_KEPT_PER_ROW = 16
"""Maximum number of pairs for each row, should all candidates be pairs, that one thread keeps as it finds
them and then puts in order. With more, that takes too much memory, and longer than counting before."""
_AHEAD = 2
"""Number of chunks per thread that may be done before they are needed."""


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
    rows : from :func:`epsjoin.kernels.join.row_sweep.row_windows`.
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
        The arrays do not depend on the number of threads. One thread that may expect few pairs for each row
        finds them once and copies them, which takes 40 bytes for each; else partners are counted, then
        written where they belong: 24 bytes.
        """
        rows, chunks = self.rows, self._chunks()
        n_candidates = sum(chunk.candidates for chunk in chunks)
        if rows.is_self:
            n_candidates = (n_candidates - rows.n_queries) // 2
        if self.options.n_jobs == 1 and n_candidates <= _KEPT_PER_ROW * self.n_left:
            pairs = self._find_once(chunks, n_candidates)
        else:
            pairs = self._count_and_find(chunks)
        add_counts(
            self.options.counters,
            rows=len(rows.row),
            carried_rows=0,
            candidates=n_candidates,
            distance_computations=n_candidates,
            largest_stack=max((chunk.largest for chunk in chunks), default=0),
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
        """Write the pairs as they are found, at most so many, and put them in order."""
        # what is not written takes no memory
        found = make_array(most, np.int64), make_array(most, np.float64)
        runs = np.zeros((self.n_left, 2), np.int64)
        filled = 0
        for number, chunk in enumerate(chunks):
            self.show(number / len(chunks))
            room = chunk.largest + 1
            filled = find_partners(self.rows, self.bound, *chunk[:2], runs, filled, room, *found)
            self.check(filled)
        ends = np.cumsum(runs[:, SIZE])
        left, right, distance = _make_room(ends)
        put_in_order(runs, ends, *found, right, distance)
        sort_pairs.fill_left(ends, left)
        return Pairs(left, right, distance)

    def _count_and_find(self, chunks: list[_Chunk]) -> Pairs:
        """Count the partners of each row, then write them where they belong."""
        runs = np.zeros((self.n_left, 2), np.int64)

        def count(chunk: _Chunk) -> int:
            return count_partners(self.rows, self.bound, *chunk[:2], runs)

        n_pairs = 0
        for number, found in enumerate(self._in_order(count, chunks)):
            self.show(0.5 * number / len(chunks))
            n_pairs += found
            self.check(n_pairs)
        ends = np.cumsum(runs[:, SIZE])
        runs[:, BEGIN] = ends - runs[:, SIZE]
        left, right, distance = _make_room(ends)

        def find(chunk: _Chunk) -> int:
            room = chunk.largest + 1
            return find_partners(self.rows, self.bound, *chunk[:2], runs, -1, room, right, distance)

        for number, _ in enumerate(self._in_order(find, chunks)):
            self.show(0.5 + 0.5 * number / len(chunks))
        sort_pairs.fill_left(ends, left)
        return Pairs(left, right, distance)

    def _in_order(self, work: Callable[[_Chunk], int], chunks: list[_Chunk]) -> Iterator[int]:
        """Work on all chunks, in threads, and yield what comes of each."""

        def once(chunk: _Chunk) -> Iterator[int]:
            yield work(chunk)

        return in_order(map(once, chunks), self.options.n_jobs, _AHEAD)


def _divide(rows: RowWindows, begin: int, end: int) -> list[_Chunk]:
    """Halve a chunk as long as it has too many candidates."""
    chunk = _Chunk(begin, end, *count_candidates(rows, begin, end))
    if chunk.candidates <= _CHUNK_CANDIDATES or end - begin == 1:
        return [chunk]
    middle = (begin + end) // 2
    return [*_divide(rows, begin, middle), *_divide(rows, middle, end)]


def _make_room(ends: Ints) -> tuple[Ints, Ints, Floats]:
    n_pairs = int(ends[-1]) if len(ends) else 0
    left, right = make_array(n_pairs, np.int64), make_array(n_pairs, np.int64)
    return left, right, make_array(n_pairs, np.float64)
