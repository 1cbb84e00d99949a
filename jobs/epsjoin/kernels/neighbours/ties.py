"""Rows in the order of one number, and where they tie in that, of a second one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.ranges import Ranges, in_one_range
from epsjoin.kernels.sorting import sort_numbers

_MAX_SHORT = 64
"""Maximum number of rows of a run of ties that is ordered by insertion."""

_SIGN = np.uint64(1 << 63)

Keys = NDArray[np.uint64]


@njit
def _to_keys(bits: Keys, n_bits: int) -> None:
    """Turn the bits of numbers into keys, in place: they have the order of the numbers, and a row at the end.

    Parameters
    ----------
    bits : (n,) uint64, those of float64; modified.
    n_bits : number of bits of a row.
    """
    rows = (np.uint64(1) << np.uint64(n_bits)) - np.uint64(1)
    for i in range(np.uint64(bits.size)):
        value = ~bits[i] if bits[i] & _SIGN else bits[i] | _SIGN
        bits[i] = (value & ~rows) | i


@njit
def _order_short_ties(
    keys: Keys, n_bits: int, first: Floats, second: Floats, order: Ints, most: int, long: Ints
) -> int:
    """Write the rows of sorted keys, and put each short run of ties in order by both numbers, then by row.

    Parameters
    ----------
    keys : (n,) uint64, ascending: the row in the last bits, before it the leading bits of its first number.
    n_bits : number of bits of a row, at least 1.
    first, second : (n,) float64, the numbers of the rows; no NaN.
    order : (n,) int64; written.
    most : largest number of rows in a short run, at least 1.
    long : (n // (most + 1), 2) int64; written: where each longer run, which stays as it is, begins and ends.

    Returns
    -------
    int
        The number of longer runs.

    Notes
    -----
    O(n most) at worst: by insertion, which is fast for few.
    """
    bits = np.uint64(n_bits)
    rows = (np.uint64(1) << bits) - np.uint64(1)
    begin = 0
    n_long = 0
    while begin < keys.size:
        value = keys[begin] >> bits
        end = begin
        while end < keys.size and keys[end] >> bits == value:
            order[end] = np.int64(keys[end] & rows)
            end += 1
        if end - begin > most:
            long[n_long, 0] = begin
            long[n_long, 1] = end
            n_long += 1
        else:
            for place in range(begin + 1, end):
                row = order[place]
                at = place
                while at > begin and _is_before(first, second, row, order[at - 1]):
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = row
        begin = end
    return n_long


@njit
def _is_before(first: Floats, second: Floats, row: int, other: int) -> bool:
    if first[row] != first[other]:
        return bool(first[row] < first[other])
    return bool(second[row] < second[other] or (second[row] == second[other] and row < other))


def order_by_both(first: Floats, second: Floats, ranges: Ranges = in_one_range) -> Ints:
    """Order rows by the first number, then by the second one, then by row.

    Parameters
    ----------
    first, second : (n,) float64, the numbers of the rows; no NaN.
    ranges : how ties in ranges of the order are worked on.

    Returns
    -------
    (n,) int64, the rows.

    Notes
    -----
    O(n log n); 8 bytes for each row beside the result. A key of 8 bytes has the row and as many bits of the
    first number as fit. Sorting keys takes half as long as ``argsort``, and few rows tie in them that do not
    tie in the number.
    """
    n_bits = max(1, (len(first) - 1).bit_length())
    keys = (first + 0.0).view(np.uint64)  # -0.0 becomes 0.0, its equal
    _to_keys(keys, n_bits)
    sort_numbers(keys, n_bits)  # their last bits count the rows; by two threads it takes a fifth longer
    order = np.empty(len(first), np.int64)

    def order_ties(_: int, begin: int, end: int) -> None:
        begin, end = (_run_start(keys, place, n_bits) for place in (begin, end))
        mine = order[begin:end]
        long = np.empty((len(mine) // (_MAX_SHORT + 1), 2), np.int64)
        n_long = _order_short_ties(keys[begin:end], n_bits, first, second, mine, _MAX_SHORT, long)
        for start, stop in long[:n_long].tolist():
            rows = mine[start:stop]  # ascending
            mine[start:stop] = rows[np.lexsort((second[rows], first[rows]))]

    ranges(len(keys), order_ties)
    return order


def _run_start(keys: Keys, place: int, n_bits: int) -> int:
    """The first place whose key ties with that at ``place``; ``place`` itself behind the last one."""
    if place == len(keys):
        return place
    return int(np.searchsorted(keys, keys[place] >> np.uint64(n_bits) << np.uint64(n_bits)))
