"""Pairs of row numbers in one order: grouped by the left row by counting, each group sorted by the right row.

In memory, for each pair:

1. :func:`pack` keeps it with row numbers of half the size, 16 bytes; the batch it came in can be used again.
2. :func:`group_by_left` forgets the left row, which its place tells: 12 bytes, which with the blocks that are
   not yet let go are the peak.
3. :func:`epsjoin.kernels.join.ranks.write_sorted` writes left and right rows: 24 bytes, the result, and for a
   while the 4 of the right rows that it reads. Or :func:`sort_groups` sorts in place, and :func:`fill_left`
   writes the left rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints

FEW = 32
"""Maximum number of pairs of one row that are always sorted by insertion."""
MOVES_PER_PAIR = 8
"""Moves of a pair, on average over its group, after which insertion is given up for Shell's method."""

RowNumbers = NDArray[np.int32 | np.int64]


class Block(NamedTuple):
    """Pairs as they are kept until they are sorted.

    Parameters
    ----------
    left, right : (m,) row numbers, int32 where it holds them all.
    distance : (m,) float64, or (0,) where nobody asks for distances: then none is moved.
    """

    left: RowNumbers
    right: RowNumbers
    distance: Floats


@njit
def pack(left: Ints, right: Ints, distance: Floats, begin: int, block: Block, filled: int) -> int:
    """Copy pairs from ``begin`` on behind the first ``filled`` of a block, as many as it has room for.

    Parameters
    ----------
    left, right, distance : (m,), a batch; not modified.
    block : modified.

    Returns
    -------
    int
        Pairs copied.
    """
    copied = min(left.size - begin, block.left.size - filled)
    has_distance = block.distance.size > 0
    for i in range(copied):
        block.left[filled + i] = left[begin + i]
        block.right[filled + i] = right[begin + i]
        if has_distance:
            block.distance[filled + i] = distance[begin + i]
    return copied


@njit
def count(rows: RowNumbers, counts: Ints) -> None:
    """Add to ``counts`` how often each row comes."""
    for i in range(rows.size):
        counts[rows[i]] += 1


@njit
def add_up(counts: Ints) -> None:
    """Make counts the places of pairs that are grouped by their left row, each range behind those before it.

    Parameters
    ----------
    counts : (ranges, n_left) int64, how many pairs of each range each left row has; becomes the places of
        the first of them.
    """
    place = 0
    for row in range(counts.shape[1]):
        for number in range(counts.shape[0]):
            count = counts[number, row]
            counts[number, row] = place
            place += count


@njit
def group_by_left(block: Block, places: Ints, to_right: RowNumbers, to_distance: Floats) -> None:
    """Put each pair of a block to the next place of its left row.

    Parameters
    ----------
    block : not modified.
    places : (n_left,) int64, the next place of each left row; modified.
    to_right, to_distance : all pairs; modified.
    """
    has_distance = block.distance.size > 0
    for i in range(block.left.size):
        place = places[block.left[i]]
        places[block.left[i]] = place + 1
        to_right[place] = block.right[i]
        if has_distance:
            to_distance[place] = block.distance[i]


@njit
def _insert(right: RowNumbers, distance: Floats, begin: int, end: int, gap: int, max_moves: int) -> bool:
    """Insert each pair from ``begin`` to ``end`` among every ``gap``-th before it, by its right row.

    Returns whether all are inserted: after more than ``max_moves`` moves it is given up.
    """
    has_distance = distance.size > 0
    its_distance = 0.0
    moves = 0
    for i in range(begin + gap, end):
        row = right[i]
        if has_distance:
            its_distance = distance[i]
        to = i
        while to - gap >= begin and right[to - gap] > row:
            right[to] = right[to - gap]
            if has_distance:
                distance[to] = distance[to - gap]
            to -= gap
            moves += 1
        right[to] = row
        if has_distance:
            distance[to] = its_distance
        if moves > max_moves:
            return False
    return True


@njit
def sort_group(right: RowNumbers, distance: Floats, begin: int, end: int) -> None:
    """Sort the pairs of one left row, from ``begin`` to ``end``, by their right row.

    Notes
    -----
    Most groups are small, or nearly in order, since sweeps go through equal places by row: insertion sorts
    them. One that takes many moves is sorted by Shell's method with Knuth's gaps, O(k**1.5) for k pairs.
    """
    size = end - begin
    if not _insert(right, distance, begin, end, 1, MOVES_PER_PAIR * size):
        gap = 1
        while gap < size // 3:
            gap = 3 * gap + 1
        while gap > 0:
            _insert(right, distance, begin, end, gap, size * size)
            gap //= 3


@njit
def sort_groups(ends: Ints, right: RowNumbers, distance: Floats) -> None:
    """Sort the pairs of each left row by their right row.

    Parameters
    ----------
    ends : (n_left,) int64, where the pairs of each left row end; they begin where those before end.
    right, distance : all pairs, from :func:`group_by_left`; modified. ``distance`` may have no entries.
    """
    has_distance = distance.size > 0
    its_distance = 0.0
    begin = 0
    for row in range(ends.size):
        end = int(ends[row])
        if end - begin > FEW:
            sort_group(right, distance, begin, end)
        else:  # by insertion in here: a call costs more than sorting a few
            for i in range(begin + 1, end):
                partner = right[i]
                to = i
                if has_distance:
                    its_distance = distance[i]
                while to > begin and right[to - 1] > partner:
                    right[to] = right[to - 1]
                    if has_distance:
                        distance[to] = distance[to - 1]
                    to -= 1
                right[to] = partner
                if has_distance:
                    distance[to] = its_distance
        begin = end


@njit
def fill_left(ends: Ints, left: RowNumbers) -> None:
    """Write the number of each left row to its places; ``ends``: (n_left,) int64, where they end."""
    begin = np.int64(0)
    for row in range(ends.size):
        while begin < ends[row]:
            left[begin] = row
            begin += 1
