"""Fields of rows as digests take them, compared row by row instead of hashed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit, read_only
from epsjoin.kernels.arrays import Bytes, Ints, Words
from epsjoin.kernels.digests import Pieces

Field: TypeAlias = Words | Pieces
Signs = NDArray[np.int8]


@njit
def _order_words(one: Words, other: Words, signs: Signs) -> None:
    for i in range(signs.size):
        if signs[i] == 0 and one[i] != other[i]:
            signs[i] = -1 if one[i] < other[i] else 1


@njit
def _order_pieces(
    data: Bytes,
    starts: Ints,
    lengths: Ints,
    other_data: Bytes,
    other_starts: Ints,
    other_lengths: Ints,
    signs: Signs,
) -> None:
    for i in range(signs.size):
        if signs[i] != 0:
            continue
        if lengths[i] != other_lengths[i]:
            signs[i] = -1 if lengths[i] < other_lengths[i] else 1
            continue
        first, other_first = starts[i], other_starts[i]
        for k in range(lengths[i]):
            if data[first + k] != other_data[other_first + k]:
                signs[i] = -1 if data[first + k] < other_data[other_first + k] else 1
                break


def _buffers(pieces: Pieces) -> tuple[Bytes, Ints, Ints]:
    return read_only(pieces.data), read_only(pieces.starts), read_only(pieces.lengths)


def order_rows(n: int, one: Sequence[Field], other: Sequence[Field]) -> Signs:
    """Compare each of n rows with the same row of other fields: -1 before it, 0 equal, 1 after it.

    Rows are compared by their first field that differs: words as numbers, bytes by their length and then one
    after the other. This is an order, though not one for people. It tells whether rows are equal; and in a
    list in which each row comes after the one before, no row comes twice.

    Parameters
    ----------
    n : number of rows.
    one, other : fields of the same kinds in the same order, n rows each.

    Returns
    -------
    (n,) int8.

    Raises
    ------
    TypeError
        A field of one has words where that of the other has bytes.

    Notes
    -----
    O(bytes of all fields) time at most; no row is looked at beyond its first difference.
    """
    signs = np.zeros(n, np.int8)
    for mine, theirs in zip(one, other, strict=True):
        if isinstance(mine, Pieces) and isinstance(theirs, Pieces):
            _order_pieces(*_buffers(mine), *_buffers(theirs), signs)
        elif not isinstance(mine, Pieces) and not isinstance(theirs, Pieces):
            _order_words(read_only(mine), read_only(theirs), signs)
        else:
            raise TypeError("a field of words cannot be compared with one of bytes")
    return signs


def cut_fields(fields: Sequence[Field], rows: slice | Ints) -> list[Field]:
    """The fields of some of the rows."""
    return [
        Pieces(field.data, field.starts[rows], field.lengths[rows])
        if isinstance(field, Pieces)
        else field[rows]
        for field in fields
    ]
