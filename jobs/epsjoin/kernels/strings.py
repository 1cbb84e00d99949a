"""Strings as arrays of code points: counts of q-grams, and the edit distance within a limit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints

Codes = NDArray[np.uint32]


@njit
def fill_qgrams(starts: Ints, codes: Codes, q: int, counts: Floats) -> None:
    """Add every q-gram of each string, q characters in a row, to one of the string's bins.

    Parameters
    ----------
    starts : (n + 1,) int64, where each string begins in ``codes``.
    codes : the code points of all strings.
    q : length of the q-grams, at least 1.
    counts : (n, bins) float64, added to.

    Notes
    -----
    One edit takes away at most q of the q-grams and brings at most as many, so it changes the counts by 2 q
    at most, whatever the bins are.
    """
    bins = counts.shape[1]
    for row in range(starts.size - 1):
        for begin in range(starts[row], starts[row + 1] - q + 1):
            word = np.int64(0)
            for at in range(begin, begin + q):
                word = (word * 31 + np.int64(codes[at])) % 1_000_003
            counts[row, word % bins] += 1.0


@njit
def fill_edits(
    left_starts: Ints,
    left_codes: Codes,
    left_rows: Ints,
    right_starts: Ints,
    right_codes: Codes,
    right_rows: Ints,
    limit: int,
    distances: Ints,
) -> None:
    """Fill the edit distances of pairs of strings.

    Parameters
    ----------
    left_starts, left_codes, right_starts, right_codes : the strings, see :func:`fill_qgrams`.
    left_rows, right_rows : (m,) int64, the strings of each pair.
    limit : distances beyond it are not told apart.
    distances : (m,) int64, filled: the least number of characters to insert, delete or replace, or
        ``limit + 1`` where it is beyond the limit.

    Notes
    -----
    A common beginning and a common end are left out; for the rest, only cells within ``limit`` of the
    diagonal are computed, until all cells of a row are beyond it.

    References
    ----------
    Ukkonen, *Algorithms for approximate string matching*, Information and Control 64, 1985.
    """
    band = 2 * limit + 1
    before, now = np.empty(band + 2, np.int64), np.empty(band + 2, np.int64)
    for i in range(left_rows.size):
        begin, end = left_starts[left_rows[i]], left_starts[left_rows[i] + 1]
        other, other_end = right_starts[right_rows[i]], right_starts[right_rows[i] + 1]
        while begin < end and other < other_end and left_codes[begin] == right_codes[other]:
            begin += 1
            other += 1
        while begin < end and other < other_end and left_codes[end - 1] == right_codes[other_end - 1]:
            end -= 1
            other_end -= 1
        n, m = end - begin, other_end - other
        distances[i] = limit + 1
        if abs(n - m) > limit:
            continue
        # place d + 1 of a row holds column row + d - limit; the first and the last place are beyond
        for place in range(band + 2):
            column = place - 1 - limit
            before[place] = column if 0 <= column <= limit else limit + 1
        now[0] = now[band + 1] = limit + 1
        for row in range(1, n + 1):
            least = limit + 1
            for place in range(1, band + 1):
                column = row + place - 1 - limit
                best = limit + 1
                if column == 0:
                    best = row
                elif 0 < column <= m:
                    replaced = left_codes[begin + row - 1] != right_codes[other + column - 1]
                    best = min(before[place] + replaced, before[place + 1] + 1, now[place - 1] + 1)
                now[place] = min(best, limit + 1)
                least = min(least, now[place])
            before, now = now, before
            if least > limit:
                break
        else:
            distances[i] = before[m - n + limit + 1]
