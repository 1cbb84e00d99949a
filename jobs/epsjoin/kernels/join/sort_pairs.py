"""Pairs of row numbers in one order, by two counting sorts: by the right row, then by the left.

A counting sort keeps the order of equals, so that after the second the pairs of each left row are sorted by
their right row: linear, without a comparison. In memory, for each pair:

1. :func:`pack` keeps it with row numbers of half the size, 16 bytes; the batch it came in can be used again.
2. :func:`sort_by_right` forgets the right row, which its place tells: 12 bytes, while blocks are let go.
3. :func:`sort_by_left` writes right row and distance, 16 bytes; these and the 12 are the peak.
4. :func:`fill_left` writes the left rows, where the 12 bytes are forgotten: 24 bytes, the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints

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
def sort_by_right(block: Block, places: Ints, to_left: RowNumbers, to_distance: Floats) -> None:
    """Put each pair of a block to the next place of its right row.

    Parameters
    ----------
    block : not modified.
    places : (n_right,) int64, the next place of each right row; modified.
    to_left, to_distance : all pairs; modified.
    """
    has_distance = block.distance.size > 0
    for i in range(block.right.size):
        place = places[block.right[i]]
        places[block.right[i]] = place + 1
        to_left[place] = block.left[i]
        if has_distance:
            to_distance[place] = block.distance[i]


@njit
def sort_by_left(
    ends: Ints, left: RowNumbers, distance: Floats, places: Ints, to_right: RowNumbers, to_distance: Floats
) -> None:
    """Put each pair to the next place of its left row, in the order of the right rows.

    Parameters
    ----------
    ends : (n_right,) int64, where the pairs of each right row end; they begin where those before end.
    left, distance : all pairs in the order of their right rows; not modified.
    places : (n_left,) int64, the next place of each left row; modified.
    to_right, to_distance : the result; modified.
    """
    has_distance = distance.size > 0
    i = 0
    for row in range(ends.size):
        while i < ends[row]:
            place = places[left[i]]
            places[left[i]] = place + 1
            to_right[place] = row
            if has_distance:
                to_distance[place] = distance[i]
            i += 1


@njit
def fill_left(ends: Ints, left: RowNumbers) -> None:
    """Write the number of each left row to its places; ``ends``: (n_left,) int64, where they end."""
    begin = np.int64(0)
    for row in range(ends.size):
        left[begin : ends[row]] = row
        begin = ends[row]
