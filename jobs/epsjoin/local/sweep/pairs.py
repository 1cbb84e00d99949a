"""Pairs: the batches that sweeps find, and all of them sorted."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.pairs import sort_pairs
from epsjoin.kernels.pairs.sort_pairs import Block, RowNumbers
from epsjoin.kernels.sorting import lexsort
from epsjoin.local.arguments import check_lengths, distance_column, int_column
from epsjoin.local.sweep.buckets import sort_blocks

_MIN_BLOCK = 1 << 14
"""Number of pairs in the first block of pairs that wait to be sorted."""
_MAX_BLOCK = 1 << 24
"""Maximum number of pairs in a block. Memory of large arrays goes back to the system at once."""
_INT32_ROWS = 1 << 31
"""Maximum number of rows whose numbers int32 holds."""


class Pairs(NamedTuple):
    """Pairs within eps.

    Parameters
    ----------
    left, right : (m,) int64; of one table with itself ``left < right``.
    distance : (m,) float64, in the metric's unit.

    Examples
    --------
    >>> left, right, distance = Pairs(np.array([0, 0]), np.array([1, 2]), np.array([5.0, 3.0]))
    >>> right[distance < 4.0]
    array([2])
    """

    left: Ints
    right: Ints
    distance: Floats


def check_pairs(left: ArrayLike, right: ArrayLike, distance: ArrayLike) -> Pairs:
    """Return pairs as callers pass them as columns of int64 and float64; without a copy where possible.

    Raises
    ------
    ArgumentError
        A column is not one-dimensional or of another kind, a distance is negative or NaN, or lengths differ.
    """
    pairs = Pairs(int_column("left", left), int_column("right", right), distance_column("distance", distance))
    check_lengths(left=pairs.left, right=pairs.right, distance=pairs.distance)
    return pairs


def check_pair_columns(name: str, pairs: object) -> Pairs:
    """Return pairs as callers pass them in one argument, as :func:`check_pairs`."""
    if not isinstance(pairs, (tuple, list)) or len(pairs) != 3:
        raise ArgumentError(f"{name} must be (left, right, distance), as joins return it, not {pairs!r:.60}")
    return check_pairs(*pairs)


class RowPairs(NamedTuple):
    """Pairs within eps by the numbers of their rows alone; made by :func:`epsjoin.row_pairs`.

    Parameters
    ----------
    left, right : (m,) int32, int64 from 2**31 rows on; of one table with itself ``left < right``.
    """

    left: RowNumbers
    right: RowNumbers


def collect(
    batches: Iterator[Pairs],
    n_rows: tuple[int, int] | None = None,
    *,
    with_distance: bool = True,
    n_jobs: int = 1,
) -> Pairs:
    """Collect all batches in one, sorted by (left, right).

    Parameters
    ----------
    batches : every pair once.
    n_rows : if ``left`` and ``right`` are row numbers, the number of rows on each side: sorting then takes
        about linear time, and at most a sixth more memory than the result.
    with_distance : whether distances are asked for; without them, ``distance`` has no entries where
        ``n_rows`` is given.
    n_jobs : number of threads that sort row numbers. The result is the same for any number.
    """
    if n_rows is not None:
        return Pairs(*_sort_rows(batches, n_rows, with_distance, np.int64, n_jobs))
    with close_at_end(batches):
        collected = list(batches)
    left, right, distance = concatenate(collected)
    order = lexsort((right, left))
    return Pairs(left[order], right[order], distance[order])


def concatenate(batches: Sequence[Pairs]) -> Pairs:
    """Concatenate batches."""
    nothing = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return Pairs(*(np.concatenate(column) for column in zip(nothing, *batches, strict=True)))


def rename(pairs: Pairs, ids: Ints) -> Pairs:
    """Give ids to the rows of pairs of one table, the smaller id to the left."""
    left, right = ids[pairs.left], ids[pairs.right]
    return Pairs(np.minimum(left, right), np.maximum(left, right), pairs.distance)


def cut_pairs(pairs: Pairs, batch_rows: int) -> Generator[Pairs, None, None]:
    """Cut pairs into batches of at most this size, each with its own arrays; no pairs make no batch."""
    for begin in range(0, len(pairs.left), batch_rows):
        some = slice(begin, begin + batch_rows)
        yield Pairs(pairs.left[some].copy(), pairs.right[some].copy(), pairs.distance[some].copy())


def collect_rows(batches: Iterator[Pairs], n_rows: tuple[int, int]) -> RowPairs:
    """Collect the row numbers of all batches, sorted by (left, right), in the smallest type that holds them.

    Parameters
    ----------
    batches : every pair once, of row numbers.
    n_rows : how many rows there are at either side.

    Notes
    -----
    8 bytes for each pair, and 4 more while they are sorted.
    """
    left, right, _ = _sort_rows(batches, n_rows, False, row_type(max(n_rows)))
    return RowPairs(left, right)


def row_type(n: int) -> type[np.int32 | np.int64]:
    """Return the smallest type that holds the numbers of n rows."""
    return np.int32 if n <= _INT32_ROWS else np.int64


def _sort_rows(
    batches: Iterator[Pairs],
    n_rows: tuple[int, int],
    with_distance: bool,
    into: type[np.int32 | np.int64],
    n_jobs: int = 1,
) -> tuple[Any, Any, Floats]:
    """Pack the pairs of all batches, and sort them."""
    blocks = _pack(batches, row_type(max(n_rows)), with_distance)
    return sort_blocks(blocks, n_rows, with_distance=with_distance, into=into, n_jobs=n_jobs)


def _pack(batches: Iterator[Pairs], dtype: type[np.int32 | np.int64], with_distance: bool) -> list[Block]:
    """Pack all pairs in blocks, each full except for the last."""
    packed = Blocks(dtype, with_distance=with_distance)
    with close_at_end(batches):
        for batch in batches:
            packed.add(batch)
    return packed.take()


class Blocks:
    """Pairs that are packed as they come, until they are sorted.

    Parameters
    ----------
    dtype : of the row numbers.
    with_distance : whether distances are kept.
    """

    def __init__(self, dtype: type[np.int32 | np.int64], *, with_distance: bool = True) -> None:
        self._dtype = dtype
        self._with_distance = with_distance
        self._blocks: list[Block] = []
        self._room = self._filled = 0

    def add(self, batch: Pairs) -> None:
        """Copy the pairs of a batch, which can be used again."""
        begin = 0
        while begin < len(batch.left):
            if self._filled == self._room:  # ever larger: few pairs take little memory, many get huge pages
                self._room = min(max(2 * self._room, _MIN_BLOCK), _MAX_BLOCK)
                self._filled = 0
                left, right = np.empty(self._room, self._dtype), np.empty(self._room, self._dtype)
                distance = np.empty(self._room if self._with_distance else 0)
                self._blocks.append(Block(left, right, distance))
            copied = sort_pairs.pack(*batch, begin, self._blocks[-1], self._filled)
            begin += copied
            self._filled += copied

    def take(self) -> list[Block]:
        """Take all blocks, each full except for the last."""
        blocks, filled = self._blocks, self._filled
        self._blocks, self._room, self._filled = [], 0, 0
        if blocks:
            last = blocks[-1]
            blocks[-1] = Block(last.left[:filled], last.right[:filled], last.distance[:filled])
        return blocks


@contextmanager
def close_at_end(batches: Iterator[Pairs]) -> Iterator[None]:
    """Close a generator at once if it fails, not only when its traceback is freed."""
    try:
        yield
    finally:
        if isinstance(batches, Generator):
            batches.close()
