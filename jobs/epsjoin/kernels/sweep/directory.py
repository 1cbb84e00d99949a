"""A directory of places: where each bin of places begins among rows that are sorted by place.

Two of its entries tell which rows lie in a window, so no pointer moves by a distance that no processor
could foresee.
"""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Ints, Ints32
from epsjoin.kernels.ranges import Ranges

_BINS_PER_ROW = 4
"""Maximum number of bins for each row."""


def bin_shift(highest: int, n_rows: int) -> int:
    """Choose how wide bins are, ``2**shift`` places, so that they are not too many for so many rows."""
    shift = 0
    while highest >> shift > _BINS_PER_ROW * n_rows:
        shift += 1
    return shift


def make_directory(place: Ints, highest: int, shift: int, ranges: Ranges) -> Ints32:
    """Make the directory of ascending places, (bins,) int32.

    Parameters
    ----------
    place : (n,) int64, ascending, n below 2**31; not modified.
    highest : the highest place that is looked for.
    shift : a bin has ``2**shift`` places.
    ranges : how ranges of bins are worked on.

    Returns
    -------
    (bins,) int32, the first row with a place in each bin, or after it; the last bin has none.

    Notes
    -----
    O(n + bins).
    """
    starts = np.empty((highest >> shift) + 2, np.int32)

    def fill(_: int, begin: int, end: int) -> None:
        first, last = np.searchsorted(place, [begin << shift, end << shift])
        _fill(place, shift, starts, int(first), int(last), begin, end)

    ranges(len(starts), fill)
    return starts


@njit
def _fill(place: Ints, shift: int, starts: Ints32, row: int, last_row: int, begin: int, end: int) -> None:
    """Fill a range of ``starts``, whose places are those of a range of rows.

    Rows are counted, not compared: no processor could foresee whether a bin has rows.
    """
    starts[begin:end] = 0
    for i in range(row, last_row):
        starts[place[i] >> shift] += 1
    first = np.int32(row)
    for i in range(begin, end):
        count = starts[i]
        starts[i] = first
        first += count
