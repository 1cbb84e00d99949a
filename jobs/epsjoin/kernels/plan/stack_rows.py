"""The rows of a part under regular cuts, as the planner simulates their sweep and the sweep takes them."""

from __future__ import annotations

from typing import NamedTuple

from epsjoin.kernels.arrays import Bools, Bytes, Floats, Ints

CARRIED, LEFT, RIGHT, FIRST_FREE = 1, 2, 4, 8
"""Groups of rows: those that another part owns, those of either table, and the first bit for others."""


class StackRows(NamedTuple):
    """Rows of one part, sorted by code.

    Parameters
    ----------
    points : (n, d) float64, coordinates as they came.
    embedded : (n, e) float64, embedded coordinates; axes in the order in which they tell rows apart best.
    codes : (n, w) uint8, ascending.
    lower : (n, a) int64, lower corners of the whole cubes in fixed point, axes in code order.
    is_replica : (n,) bool, whether the row's point has other rows.
    groups : (n,) uint8, bits: rows that share one are not compared. ``CARRIED``: another part owns the row;
        ``LEFT`` or ``RIGHT``: its table, where two are joined; and any others.
    """

    points: Floats
    embedded: Floats
    codes: Bytes
    lower: Ints
    is_replica: Bools
    groups: Bytes
