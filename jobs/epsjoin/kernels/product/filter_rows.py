"""The first step of a filter row: coordinates counted from a centre and drawn in to a ball, in one pass.

Any order of a sum will do: the proof of :mod:`epsjoin.local.product.rows` has slack for it.
"""

from __future__ import annotations

import math

import numpy as np

from epsjoin.kernels.accelerate import njit_any_order
from epsjoin.kernels.arrays import Floats, Floats32, Points

_WIDEST = 1e100
"""Half the side of the cube to which rows are drawn in first, in units of the radius."""


@njit_any_order
def place_rows(
    points: Points,
    is_direction: bool,
    centre: Floats,
    per_radius: float,
    placed: Points,
    inverse_norm: Floats,
) -> None:
    """Scale to length 1 if directions are meant, count from the centre, divide by the radius, draw in to 1.

    Parameters
    ----------
    points : (n, d) float64 or float32, finite; no row of directions may have the length 0. Not modified.
    is_direction : whether rows are scaled to length 1 first.
    centre : (d,) float64.
    per_radius : 1 over the radius, a power of two.
    placed : (n, d) float64 or float32, filled; rounded once, at the end.
    inverse_norm : (n,) float64, filled with ``1 / |x|`` of directions.
    """
    d = points.shape[1]
    for row in range(points.shape[0]):
        factor = 1.0
        if is_direction:
            square = 0.0
            for i in range(d):
                square += np.float64(points[row, i]) * np.float64(points[row, i])
            factor = 1.0 / math.sqrt(square)
            inverse_norm[row] = factor
        square = 0.0
        for i in range(d):
            value = (np.float64(points[row, i]) * factor - centre[i]) * per_radius
            value = min(max(value, -_WIDEST), _WIDEST)
            square += value * value
        within = 1.0 / math.sqrt(square) if square > 1.0 else 1.0
        for i in range(d):
            value = (np.float64(points[row, i]) * factor - centre[i]) * per_radius
            placed[row, i] = min(max(value, -_WIDEST), _WIDEST) * within


@njit_any_order
def square_rows(rows: Floats32) -> Floats:
    """The squares of the lengths of rows, (n,) float64; rows (n, k) float32."""
    squares = np.zeros(rows.shape[0])
    for row in range(rows.shape[0]):
        square = 0.0
        for i in range(rows.shape[1]):
            square += np.float64(rows[row, i]) * np.float64(rows[row, i])
        squares[row] = square
    return squares
