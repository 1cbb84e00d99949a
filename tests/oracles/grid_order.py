"""The ε-grid order: rows by their cells, dimension by dimension, upwards.

Sources: Böhm, Braunmüller, Krebs, Kriegel: Epsilon grid order, SIGMOD 2001; Kemper, Stegmaier: Evaluating
Bestmatch-Joins on Streaming Data, MIP-0204, 2002, section 3.3.1, where it is printed the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Point = Sequence[float]


def cell(point: Point, eps: Point) -> tuple[float, ...]:
    """The cell of a point; of a side of 0 each value is a cell of its own, of an infinite one all are one."""
    return tuple(math.floor(x / side) if side else x for x, side in zip(point, eps, strict=True))


def in_grid_order(points: np.ndarray, eps: Point) -> np.ndarray:
    """The rows by their cells; those of one cell stay as they are."""
    return np.array(sorted(points.tolist(), key=lambda point: cell(point, eps))).reshape(points.shape)
