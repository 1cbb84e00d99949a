"""Criteria of given pairs of a left and a right row: their values, and whether they are within eps."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.distances import Decision, decide


@njit
def fill_differences(
    left_points: Floats,
    right_points: Floats,
    column: int,
    eps: float,
    left: Ints,
    right: Ints,
    place: int,
    values: Floats,
    is_within: Bools,
) -> None:
    """Fill one criterion's values with ``|l - r|``, and unmark pairs beyond eps.

    Parameters
    ----------
    left_points, right_points : (n, d) and (m, d) float64, as they came; not modified.
    column : the column of both that is compared.
    eps : at least 0, or infinite.
    left, right : (k,) int64, the rows of each pair.
    place : the column of ``values`` that is filled.
    values : (k, c) float64.
    is_within : (k,) bool.
    """
    for i in range(left.size):
        difference = abs(left_points[left[i], column] - right_points[right[i], column])
        values[i, place] = difference
        is_within[i] = is_within[i] and difference <= eps


@njit
def fill_distances(
    left_points: Floats,
    right_points: Floats,
    decision: Decision,
    left: Ints,
    right: Ints,
    place: int,
    values: Floats,
    is_within: Bools,
) -> None:
    """Fill one criterion's values with the distances of a metric, and unmark pairs that it decides against.

    Parameters
    ----------
    left_points, right_points : (n, d) and (m, d) float64, the columns of the criterion; not modified.
    decision : the metric's, with its eps.
    left, right, place, values, is_within : see :func:`fill_differences`.
    """
    for i in range(left.size):
        distance = decide(decision, left_points, left[i], right_points, right[i])
        values[i, place] = distance
        is_within[i] = is_within[i] and distance >= 0.0


@njit
def nearest_begins(left: Floats, right: Floats, eps: float, begins: Ints, ends: Ints) -> int:
    """Find for each number of the left side the numbers of the right side that are nearest to it.

    Parameters
    ----------
    left, right : (n,) and (m,) float64, both ascending; not modified.
    eps : numbers that are farther are left out; at least 0, or infinite.
    begins, ends : (n,) int64, filled: the nearest ones are ``right[begins[i]]`` until before
        ``right[ends[i]]``, all at the same distance as float64 computes it.

    Returns
    -------
    int
        The number of pairs.

    Notes
    -----
    O(n log m + m). Rounded differences never fall as the distance grows, so the nearest ones are neighbours.
    """
    pairs = 0
    place = 0
    for i in range(left.size):
        while place < right.size and right[place] < left[i]:
            place += 1
        nearest = np.inf
        if place < right.size:
            nearest = abs(left[i] - right[place])
        if place > 0:
            nearest = min(nearest, abs(left[i] - right[place - 1]))
        begin = end = place
        if nearest <= eps:
            step = 1  # doubled while it stays in the run: many numbers may be equally near
            while step:
                if step <= begin and abs(left[i] - right[begin - step]) == nearest:
                    begin -= step
                    step *= 2
                else:
                    step //= 2
            step = 1
            while step:
                if end + step <= right.size and abs(left[i] - right[end + step - 1]) == nearest:
                    end += step
                    step *= 2
                else:
                    step //= 2
        begins[i] = begin
        ends[i] = end
        pairs += end - begin
    return pairs


@njit
def fill_runs(begins: Ints, ends: Ints, left_rows: Ints, right_rows: Ints, left: Ints, right: Ints) -> None:
    """Fill the pairs of each left row with its run of right rows; see :func:`nearest_begins`."""
    place = 0
    for i in range(begins.size):
        for j in range(begins[i], ends[i]):
            left[place] = left_rows[i]
            right[place] = right_rows[j]
            place += 1


@njit
def first_of_runs(begins: Ints, ends: Ints, right_rows: Ints, first: Ints) -> int:
    """Find the smallest row of the run of right rows of each left row; see :func:`nearest_begins`.

    Parameters
    ----------
    begins, ends : (n,) int64, of left rows by ascending numbers.
    right_rows : (m,) int64, the right rows by ascending numbers.
    first : (n,) int64, filled; -1 where a run is empty.

    Returns
    -------
    int
        The number of right rows that were looked at; a run that successive left rows share counts once.
    """
    looked_at = 0
    for i in range(begins.size):
        if i > 0 and begins[i] == begins[i - 1] and ends[i] == ends[i - 1]:
            first[i] = first[i - 1]
            continue
        first[i] = -1
        for j in range(begins[i], ends[i]):
            if first[i] < 0 or right_rows[j] < first[i]:
                first[i] = right_rows[j]
        looked_at += ends[i] - begins[i]
    return looked_at
