"""Pairs of row numbers in one order: grouped by the left row by counting, each group sorted by the right row.

Pairs come in the order of space, so their left rows are anywhere, and each pair that is put to its place
would wait for memory. Many are therefore moved to buckets first, each of some thousands of successive rows,
which then are sorted within a cache (a radix sort by two digits). In memory, for each pair:

1. :func:`pack` keeps it with row numbers of half the size, 16 bytes; the batch it came in can be used again.
2. :func:`move_to_buckets` writes one column of the result after the other, and each is let go when it is
   written. When the last one is not yet let go, there are 28 bytes: the peak.
3. :func:`epsjoin.kernels.pairs.ranks.sort_buckets` sorts one bucket after the other: 24 bytes, the result,
   and a copy of a bucket.

Few pairs are sorted in one call: :func:`sort_by_rows`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints

FEW = 32
"""Maximum number of pairs of one row that are put in order without a copy: by rank, or by insertion."""
_MAX_AT_ONCE = 1 << 13
"""Maximum number of pairs of a row that are sorted with room for copies of all of them."""
_DIGIT_BITS = 8
"""Maximum number of bits of a digit: the counts of its values stay in the fastest cache."""

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
    """Add to ``counts`` how often each row occurs."""
    for i in range(rows.size):
        counts[rows[i]] += 1


@njit
def count_in_buckets(left: RowNumbers, shift: int, counts: Ints) -> None:
    """Add to ``counts`` the number of pairs of each bucket, which has ``2**shift`` successive left rows."""
    for i in range(left.size):
        counts[left[i] >> shift] += 1


@njit
def add_up(counts: Ints) -> None:
    """Turn counts into the places of pairs grouped by bucket; in a bucket the ranges follow one another.

    Parameters
    ----------
    counts : (ranges, buckets) int64, how many pairs of each range lie in each bucket; replaced by the place
        of the first of them.
    """
    place = 0
    for bucket in range(counts.shape[1]):
        for number in range(counts.shape[0]):
            count = counts[number, bucket]
            counts[number, bucket] = place
            place += count


@njit
def move_to_buckets(
    left: RowNumbers, column: RowNumbers | Floats, shift: int, places: Ints, to: RowNumbers | Floats
) -> None:
    """Move a column of some pairs, each to the next place of its bucket.

    Parameters
    ----------
    left : (m,) left rows; column : (m,) what is moved. Not modified.
    shift : a bucket has the pairs of ``2**shift`` successive left rows.
    places : (buckets,) int64, the next place of each bucket; modified.
    to : the column of all pairs; modified.
    """
    for i in range(left.size):
        bucket = left[i] >> shift
        place = places[bucket]
        places[bucket] = place + 1
        to[place] = column[i]


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
def sort_group(right: RowNumbers, distance: Floats, begin: int, end: int) -> None:
    """Sort the pairs of one left row, from ``begin`` to ``end``, by their right row.

    Notes
    -----
    A radix sort: k pairs whose right rows span a range of b bits are sorted by b / 8 digits, the lowest
    first, in O(k b). Groups that are in order already, as where sweeps go through equal places by row, are
    left as they are. Large groups are first parted in place by their highest digit, so that 24 bytes a pair
    are needed for only one part at a time; if the rows are distinct, it has at most 1 / 256 of the range.
    """
    if end - begin < 2:
        return
    least = most = before = np.int64(right[begin])
    is_sorted = True
    for i in range(begin + 1, end):
        row = np.int64(right[i])
        if row < before:
            is_sorted = False
        least, most, before = min(least, row), max(most, row), row
    if is_sorted:
        return
    bits = _bit_length(int(most - least))
    if end - begin <= _MAX_AT_ONCE or bits <= _DIGIT_BITS:
        _sort_by_digits(right, distance, begin, end, int(least), bits)
        return
    rest = bits - _DIGIT_BITS
    ends = _part_in_place(right, distance, begin, end, int(least), rest)
    for part in range(ends.size):
        _sort_by_digits(right, distance, begin, int(ends[part]), int(least) + (part << rest), rest)
        begin = int(ends[part])


@njit
def _sort_by_digits(right: RowNumbers, distance: Floats, begin: int, end: int, least: int, bits: int) -> None:
    """Sort pairs whose right rows are from ``least`` on, within ``2**bits``.

    A key holds the row and the place that its pair had, so that a pass moves 8 bytes; both together have 63
    bits at most, as rows and pairs in memory have.
    """
    size = end - begin
    if size < 2 or bits == 0:
        return
    place_bits = _bit_length(size)
    n_digits = (bits + _DIGIT_BITS - 1) // _DIGIT_BITS
    digit_bits = (bits + n_digits - 1) // n_digits
    keys, moved = np.empty(size, np.int64), np.empty(size, np.int64)
    for i in range(size):
        keys[i] = (np.int64(right[begin + i]) - least) << place_bits | i
    counts = np.empty(1 << digit_bits, np.int64)
    for digit in range(n_digits):
        shift = place_bits + digit * digit_bits
        counts[:] = 0
        for i in range(size):
            counts[(keys[i] >> shift) & (counts.size - 1)] += 1
        place = 0
        for value in range(counts.size):
            number = counts[value]
            counts[value] = place
            place += number
        for i in range(size):
            value = (keys[i] >> shift) & (counts.size - 1)
            moved[counts[value]] = keys[i]
            counts[value] += 1
        keys, moved = moved, keys
    for i in range(size):
        right[begin + i] = least + (keys[i] >> place_bits)
    if distance.size > 0:
        held = distance[begin:end].copy()
        for i in range(size):
            distance[begin + i] = held[keys[i] & ((1 << place_bits) - 1)]


@njit
def _part_in_place(right: RowNumbers, distance: Floats, begin: int, end: int, least: int, shift: int) -> Ints:
    """Part pairs by the digit above ``shift`` of their right rows; returns where each part ends.

    Each pair is swapped to the next place of its part, until one of this part comes (an American flag sort).
    """
    has_distance = distance.size > 0
    ends = np.zeros(1 << _DIGIT_BITS, np.int64)
    for i in range(begin, end):
        ends[(np.int64(right[i]) - least) >> shift] += 1
    following = np.empty(ends.size, np.int64)
    place = begin
    for part in range(ends.size):
        following[part] = place
        place += ends[part]
        ends[part] = place
    for part in range(ends.size):
        at = following[part]
        while at < ends[part]:
            of = (np.int64(right[at]) - least) >> shift
            if of == part:
                at += 1
                continue
            to = following[of]
            following[of] += 1
            right[at], right[to] = right[to], right[at]
            if has_distance:
                distance[at], distance[to] = distance[to], distance[at]
        following[part] = at
    return ends


@njit
def _bit_length(number: int) -> int:
    bits = 0
    while number >> bits:
        bits += 1
    return bits


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


@njit
def sort_by_rows(n_left: int, block: Block, into: Block) -> None:
    """Sort few pairs by both rows, all steps in one call.

    Parameters
    ----------
    n_left : number of left rows.
    block : the pairs; not modified.
    into : as many; the sorted pairs. Modified.
    """
    places = np.zeros(n_left, np.int64)
    count(block.left, places)
    begin = 0
    for row in range(n_left):
        size = places[row]
        places[row] = begin
        begin += size
    group_by_left(block, places, into.right, into.distance)
    sort_groups(places, into.right, into.distance)
    fill_left(places, into.left)
