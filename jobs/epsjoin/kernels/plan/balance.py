"""Where a cut of an axis divides the weight of rows, and what lies on either side."""

from __future__ import annotations

import math

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints


@njit
def balanced_position(order: Ints, values: Floats, weights: Floats, fraction: float) -> float:
    """Find the value with ``fraction`` of the weight below it, and at least one value on either side.

    Parameters
    ----------
    order : (k,) int64, rows by rising value; rows that are not asked about may be among them.
    values : (m,) float64, by row.
    weights : (m,) float64, by row; below 0: the row is not asked about.
    fraction : of the sum of the weights, which are added up in the order of the values.

    Returns
    -------
    float
        A value of one of the rows; NaN where all of them have one value, or there is none.
    """
    total, first = 0.0, -1
    for row in order:
        total += max(weights[row], 0.0)
        first = row if first < 0 and weights[row] >= 0.0 else first
    goal, below, highest = total * fraction, 0.0, math.nan
    for row in order:
        if weights[row] < 0.0:
            continue
        below += weights[row]
        highest = float(values[row])
        if below >= goal and highest > values[first]:
            return highest
    return highest if first >= 0 and highest > values[first] else math.nan


@njit
def divide_weights(
    lower: Floats, upper: Floats, weights: Floats, position: float, left: Floats, right: Floats
) -> tuple[int, int]:
    """Copy the weights of the rows on either side of a cut; a row that it crosses is on both.

    Parameters
    ----------
    lower, upper : (k,) float64, where the cube of each row begins and ends.
    weights : (k,) float64.
    position : where the cut lies.
    left, right : room for k float64; filled from the beginning, in the order of the rows.

    Returns
    -------
    Number of rows on the left, and on the right.
    """
    n_left, n_right = 0, 0
    for row in range(weights.shape[0]):
        left[n_left] = weights[row]
        n_left += int(lower[row] < position)
        right[n_right] = weights[row]
        n_right += int(upper[row] >= position)
    return n_left, n_right
