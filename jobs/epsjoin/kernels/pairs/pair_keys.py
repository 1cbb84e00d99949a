"""Pairs of row numbers as keys, ``left << right_bits | right``, and their distances once these are sorted."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.simd.read_ahead import read_ahead

_AHEAD = 24
"""Number of pairs before one is split that the memory is asked for its right row."""


@njit
def split_keys(
    low: NDArray[np.uint32 | np.int64],
    ends: Ints,
    shift: int,
    first: int,
    last: int,
    right_bits: int,
    points: Floats,
    first_right: int,
    left: Ints,
    right: Ints,
    distance: Floats,
) -> None:
    """Split the sorted keys of some buckets into row numbers, and compute Euclid's distances.

    Parameters
    ----------
    low : the part of each key that its bucket leaves open, at least the last ``shift`` bits. May be ``left``
        itself.
    ends : (buckets,) int64, where the keys of each bucket end; they begin where those before end.
    shift : number of last bits in which the keys of one bucket may differ.
    first, last : the buckets from ``first`` to before ``last`` are split.
    right_bits : number of bits of a right row.
    points : (n, d) float64, not modified; the right rows are those from ``first_right`` on.
    left, right, distance : written.

    Notes
    -----
    The right points lie anywhere in memory, so they are asked for ahead; the left ones come in order.
    """
    numbers, d = points.reshape(-1), points.shape[1]
    right_mask = (1 << right_bits) - 1
    begin = int(ends[first - 1]) if first > 0 else 0
    end = int(ends[last - 1]) if last > 0 else 0
    for bucket in range(first, last):
        for pair in range(begin, ends[bucket]):
            ahead = np.int64(low[min(pair + _AHEAD, end - 1)]) & right_mask
            read_ahead(numbers, (ahead + first_right) * d)
            key = (bucket << shift) | np.int64(low[pair])
            left_row, right_row = key >> right_bits, key & right_mask
            square = 0.0
            for j in range(d):
                gap = points[left_row, j] - points[right_row + first_right, j]
                square += gap * gap
            left[pair] = left_row
            right[pair] = right_row
            distance[pair] = math.sqrt(square)
        begin = ends[bucket]
