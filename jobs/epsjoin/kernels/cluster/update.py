"""What differs between the pairs of two sets of points, both sorted by their ends."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bools, Floats, Ints, Ints8

STAYED, OTHER_DISTANCE, NEW = range(3)
"""What a pair of now is: the same as before, one of the same ends at another distance, or new."""


@njit
def compare_pairs(
    left_before: Ints,
    right_before: Ints,
    distance_before: Floats,
    left: Ints,
    right: Ints,
    distance: Floats,
    is_dropped: Bools,
) -> Ints8:
    """Tell for each pair there is now whether it was there before.

    Parameters
    ----------
    left_before, right_before, distance_before : (m,) the pairs before, in the order of their ends, each once.
    left, right, distance : (n,) the pairs now, likewise.
    is_dropped : (m,) bool, all false; modified: set where a pair is there no more.

    Returns
    -------
    (n,) int8, ``STAYED``, ``OTHER_DISTANCE`` or ``NEW``.
    """
    change = np.empty(left.size, np.int8)
    at = 0
    for i in range(left.size):
        while at < left_before.size and (
            left_before[at] < left[i] or (left_before[at] == left[i] and right_before[at] < right[i])
        ):
            is_dropped[at] = True
            at += 1
        if at < left_before.size and left_before[at] == left[i] and right_before[at] == right[i]:
            change[i] = STAYED if distance_before[at] == distance[i] else OTHER_DISTANCE
            at += 1
        else:
            change[i] = NEW
    is_dropped[at:] = True
    return change


@njit
def is_sorted(left: Ints, right: Ints) -> bool:
    """Whether pairs are in the order of their ends, each once, the smaller end at the left."""
    for i in range(left.size):
        if left[i] >= right[i]:
            return False
        if i and (left[i] < left[i - 1] or (left[i] == left[i - 1] and right[i] <= right[i - 1])):
            return False
    return True
