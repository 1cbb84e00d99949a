"""Sort all pairs by their rows, in threads: the steps of :mod:`epsjoin.kernels.pairs.sort_pairs`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.pairs import sort_pairs
from epsjoin.kernels.pairs.ranks import sort_buckets
from epsjoin.kernels.pairs.sort_pairs import Block, RowNumbers
from epsjoin.kernels.ranges import Ranges
from epsjoin.local.sweep.threads import in_ranges

_BUCKET_BITS = 9
"""Binary logarithm of the number of buckets: a processor can write to this many places without waiting."""
_FEW_PAIRS = 1 << 16
"""Number of pairs whose copy takes a negligible amount of memory."""


def sort_blocks(
    blocks: list[Block],
    n_rows: tuple[int, int],
    *,
    with_distance: bool = True,
    into: type[np.int32 | np.int64] = np.int64,
    n_jobs: int,
) -> tuple[Any, Any, Floats]:
    """Sort pairs of row numbers by (left, right).

    Parameters
    ----------
    blocks : every pair once; they are taken out of the list, so that each can be freed.
    n_rows : number of rows on each side.
    with_distance : whether distances are asked for.
    into : type of the row numbers that are returned.
    n_jobs : number of threads. The result is the same for any number.

    Returns
    -------
    left, right : (m,) of the type ``into``.
    distance : (m,) float64; (0,) without distances.
    """
    ranges, m = in_ranges(n_jobs), sum(len(block.left) for block in blocks)
    dtype = blocks[0].right.dtype if blocks else np.dtype(into)
    stretches = ranges(m, lambda _, begin, end: _Stretch.of(blocks, begin, end))
    blocks.clear()
    shift, places = _choose_buckets(stretches, m, n_rows[0], ranges)
    begins = places[0]

    def move(column: int, to: NDArray[Any]) -> NDArray[Any]:
        ranges(m, lambda number, _, __: stretches[number].move(column, shift, places[number].copy(), to))
        return to

    distance = move(2, np.empty(m)) if with_distance else np.empty(0)
    right = move(1, np.empty(m, into))
    left = move(0, np.empty(m, into))
    ends = np.append(begins[1:], m)
    copied = int((ends - begins).max()) if shift > 0 else 0

    def sort(_: int, begin: int, end: int) -> None:
        first, last = np.searchsorted(begins, (begin, end))
        room = np.empty(copied, dtype), np.empty(copied if with_distance else 0)
        sort_buckets(ends, shift, first, last, left, right, distance, *room)

    ranges(m, sort)
    return left, right, distance


class _Stretch(NamedTuple):
    """The pairs of one thread: the columns of blocks, or of parts of them."""

    left: list[RowNumbers]
    right: list[RowNumbers]
    distance: list[Floats]

    @classmethod
    def of(cls, blocks: list[Block], begin: int, end: int) -> _Stretch:
        """Take the pairs from ``begin`` to ``end`` of all blocks."""
        parts = list[Block]()
        for block in blocks:
            size = len(block.left)
            part = slice(max(begin, 0), min(end, size))
            if part.start < part.stop:
                parts.append(Block(block.left[part], block.right[part], block.distance[part]))
            begin, end = begin - size, end - size
        return cls(
            [part.left for part in parts],
            [part.right for part in parts],
            [part.distance for part in parts],
        )

    def move(self, column: int, shift: int, places: Ints, to: NDArray[Any]) -> None:
        """Move a column to the buckets of its pairs; each array is freed when it has been moved.

        The left rows tell the buckets, so they are moved last.
        """
        while self[column]:
            left = self.left[len(self[column]) - 1]
            sort_pairs.move_to_buckets(left, self[column].pop(), shift, places, to)


def _choose_buckets(stretches: list[_Stretch], m: int, n_left: int, ranges: Ranges) -> tuple[int, Ints]:
    """Choose buckets of left rows, and where the pairs of each stretch begin in each of them.

    Returns
    -------
    shift : a bucket has the pairs of ``2**shift`` successive left rows.
    places : (stretches, buckets) int64.

    Notes
    -----
    Copies of the buckets that are sorted at the same time have at most a quarter of all pairs together. If
    few rows have most of the pairs, this takes more and smaller buckets, down to those of single rows, which
    are sorted without a copy.
    """
    shift = max(0, n_left.bit_length() - _BUCKET_BITS)
    while True:
        places = np.zeros((len(stretches), (n_left >> shift) + 1), np.int64)

        def count(number: int, _: int, __: int, shift: int = shift, places: Ints = places) -> None:
            for left in stretches[number].left:
                sort_pairs.count_in_buckets(left, shift, places[number])

        ranges(m, count)
        if shift == 0 or 4 * len(stretches) * places.sum(axis=0).max() <= m + _FEW_PAIRS:
            sort_pairs.add_up(places)
            return shift, places
        shift -= 1
