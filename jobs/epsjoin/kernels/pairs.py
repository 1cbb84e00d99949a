"""Pairs of row numbers in one order: counted and scattered by the left row, then sorted row by row.

Batch by batch, so that a result of gigabytes needs room twice, not three times:

1. :func:`count_left` counts the pairs of each left row in every batch;
2. :func:`scatter` puts every batch's pairs to their left rows;
3. :func:`sort_rows` sorts the few of each left row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit

_SHORT = 32  # rows with fewer pairs are sorted by insertion


@njit
def count_left(left: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Add the pairs of each left row to ``counts``, (n_left,) int64."""
    for i in range(left.size):
        counts[left[i]] += 1


@njit
def scatter(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    distance: NDArray[np.float64],
    places: NDArray[np.int64],
    to_right: NDArray[np.int64],
    to_distance: NDArray[np.float64],
) -> None:
    """Put each pair to the next place of its left row.

    Parameters
    ----------
    left, right, distance : (m,) int64, int64, float64, a batch; not modified.
    places : (n_left,) int64, the next place of each left row; modified.
    to_right, to_distance : the whole result; modified.
    """
    for i in range(left.size):
        place = places[left[i]]
        places[left[i]] = place + 1
        to_right[place] = right[i]
        to_distance[place] = distance[i]


@njit
def sort_rows(
    starts: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    distance: NDArray[np.float64],
) -> None:
    """Sort the pairs of each left row i, at ``starts[i]`` to ``starts[i + 1]``, by ``right``; fill ``left``.

    O(m) for rows with few pairs each, O(m log m) expected.
    """
    for row in range(starts.size - 1):
        begin = starts[row]
        end = starts[row + 1]
        left[begin:end] = row
        if end - begin > _SHORT:
            order = np.argsort(right[begin:end])
            right[begin:end] = right[begin:end][order]
            distance[begin:end] = distance[begin:end][order]
            continue
        for i in range(begin + 1, end):
            value = right[i]
            carried = distance[i]
            j = i
            while j > begin and right[j - 1] > value:
                right[j] = right[j - 1]
                distance[j] = distance[j - 1]
                j -= 1
            right[j] = value
            distance[j] = carried
