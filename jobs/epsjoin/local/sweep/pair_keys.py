"""Sort pairs that are keys, in threads, and split them: :mod:`epsjoin.kernels.pairs.pair_keys`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.pairs import sort_pairs
from epsjoin.kernels.pairs.pair_keys import split_keys
from epsjoin.kernels.ranges import Ranges
from epsjoin.kernels.sorting import sort_numbers
from epsjoin.local.sweep.pairs import Pairs

_SHORT_BITS = 32
"""Number of the last bits of a key that are sorted, unless that makes too many buckets of the other bits:
numbers of half the size take half the time."""
_MAX_BUCKETS = 1 << 12
"""Maximum number of these buckets: a processor can write to this many places with little waiting."""
_LONG_BUCKET_BITS = 9
"""Binary logarithm of the number of buckets where those would be more."""
_FEW_BUCKET_BITS = 6
"""Binary logarithm of the number of buckets where those would be fewer: a bucket is copied to be sorted."""


class PairKeys(NamedTuple):
    """Pairs of rows as keys, ``left << right_bits | right``.

    Parameters
    ----------
    n_left : number of left rows.
    right_bits : number of bits of a right row.
    """

    n_left: int
    right_bits: int

    @classmethod
    def of(cls, n_left: int, n_right: int) -> PairKeys:
        """Choose keys for this number of rows on each side."""
        return cls(n_left, max(1, (n_right - 1).bit_length()))

    def sort(self, blocks: list[Ints], points: Floats, first_right: int, ranges: Ranges) -> Pairs:
        """Sort keys, and compute the Euclidean distances of their pairs.

        Parameters
        ----------
        blocks : every key once, in any order; they are taken out of the list.
        points : (n, d) float64, of all rows, the right ones from ``first_right`` on; not modified.
        ranges : how ranges of pairs are worked on.

        Notes
        -----
        Keys are moved to buckets by their first bits, and each bucket is sorted where it is. A pair
        takes 28 bytes at most: 24 of the result and 4 of its key. Each thread has a copy of a bucket's keys.
        """
        m, block_ends = sum(map(len, blocks)), np.cumsum([len(block) for block in blocks])
        shares: list[list[Ints]] = ranges(
            m, lambda _, begin, end: blocks[slice(*np.searchsorted(block_ends, (begin, end), side="right"))]
        )
        blocks.clear()
        shift, dtype = self._choose_buckets()
        n_buckets = (self.n_left << self.right_bits >> shift) + 1
        places = np.zeros((len(shares), n_buckets), np.int64)

        def count(number: int, _: int, __: int) -> None:
            for keys in shares[number]:
                sort_pairs.count_in_buckets(keys, shift, places[number])

        ranges(m, count)
        sort_pairs.add_up(places)
        begins = places[0].copy()
        ends = np.append(begins[1:], m)
        low: NDArray[Any] = np.empty(m, dtype)

        def move(number: int, _: int, __: int) -> None:
            for keys in shares[number]:
                sort_pairs.move_to_buckets(keys, keys, shift, places[number], low)

        ranges(m, move)
        shares.clear()
        left: Ints = low if dtype is np.int64 else np.empty(m, np.int64)
        right, distance = np.empty(m, np.int64), np.empty(m)

        def sort(_: int, begin: int, end: int) -> None:
            first, last = np.searchsorted(begins, (begin, end))
            for one in map(slice, begins[first:last].tolist(), ends[first:last].tolist()):
                sort_numbers(low[one])
            how = shift, first, last, self.right_bits, read_only(points), first_right
            split_keys(low, ends, *how, left, right, distance)

        ranges(m, sort)
        return Pairs(left, right, distance)

    def _choose_buckets(self) -> tuple[int, type[np.uint32 | np.int64]]:
        """Choose in how many of the last bits the keys of a bucket differ, and the type that is sorted."""
        highest = self.n_left << self.right_bits
        if highest >> _SHORT_BITS < _MAX_BUCKETS:
            return max(min(_SHORT_BITS, highest.bit_length() - _FEW_BUCKET_BITS), 0), np.uint32
        return highest.bit_length() - _LONG_BUCKET_BITS, np.int64
