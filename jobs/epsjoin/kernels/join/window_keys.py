"""Sorted keys of a window sweep: which rows may be within eps of which, before any coordinate is compared.

The keys are steps 1 and 2 of the join inside a part, see :mod:`epsjoin.kernels.join.window`.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints, Ints8
from epsjoin.kernels.join.vectors import skip_below

SELF_MEETINGS = ((0, 0), (0, 1))
"""Pairs of groups that are compared in a self join: group 0 has the own rows, group 1 the carried ones."""
TWO_TABLE_MEETINGS = ((0, 2), (0, 3), (1, 2))
"""Pairs of groups that are compared between two tables: own, carried rows of the left, then of the right."""
_TICKS = 64
"""Number of ticks per eps along the sweep coordinate; finer ticks save few candidates."""
_MAX_CELLS = 1 << 20
"""Maximum number of cells along one coordinate; rounding stays far below a cell."""
_KEY_BITS = 62
"""Number of bits of a key: it is a positive int64, and so is a place plus or minus a window."""


class Keys(NamedTuple):
    """Rows in the order of the sweep, without their coordinates.

    Parameters
    ----------
    row : (n,) int64, the row at each place.
    place, window, passes : see :class:`epsjoin.kernels.join.window.WindowRows`.
    """

    row: Ints
    place: Ints
    window: int
    passes: Ints


@njit
def _write_keys(
    coordinates: Floats,
    group: Ints8,
    low: Floats,
    cell: Floats,
    factors: Ints,
    ticks: float,
    window: int,
    tick_bits: int,
    row_bits: int,
    keys: Ints,
) -> None:
    """Write ``group | cell | tick | row`` of each row."""
    for row in range(keys.shape[0]):
        place = np.int64(group[row]) if group.shape[0] else np.int64(0)
        for i in range(factors.shape[0]):
            number = np.int64((coordinates[i + 1, row] - low[i + 1]) / cell[i])
            place = place * factors[i] + number + 1
        tick = np.int64((coordinates[0, row] - low[0]) * ticks) + window
        keys[row] = (((place << tick_bits) | tick) << row_bits) | row


def sort_keys(coordinates: Floats, n_grid: int, group: Ints8, meetings: tuple[tuple[int, int], ...]) -> Keys:
    """Sort rows by (group, cell, tick) and list the passes that bring together what may be within eps.

    Parameters
    ----------
    coordinates : (c, n) float64, in units of the reach (:func:`project`); 0 is swept, 1 to ``n_grid`` make
        the grid. Not modified.
    n_grid : grid coordinates to use; fewer are when a key has no room for them.
    group : (n,) int8 from 0 on, or empty: all rows are of group 0.
    meetings : pairs of groups that are compared; a group with itself: each row with the later ones.

    Notes
    -----
    O(n log n): one sort of 64-bit integers. Two rows within 1 of each other in every coordinate meet in
    exactly one pass, and their ticks differ by less than the window: cells and ticks of coordinates that
    differ by 1 at most differ by 1 and ``ticks + 1`` at most; one tick more covers rounding.
    """
    n = coordinates.shape[1]
    n_groups = 1 + max(max(pair) for pair in meetings)
    row_bits = max(1, (n - 1).bit_length()) if n else 1
    low = coordinates.min(axis=1, initial=np.inf if n else 0.0)
    high = coordinates.max(axis=1, initial=-np.inf if n else 0.0)
    extent = high - low
    room = _KEY_BITS - row_bits
    cell: list[float] = []
    factors: list[int] = []
    n_cells = 1
    for axis in range(1, n_grid + 1):
        side = max(1.0, float(extent[axis]) / _MAX_CELLS)
        factor = int(extent[axis] / side) + 3
        if (n_groups * n_cells * factor).bit_length() + 12 > room:  # some bits are better spent on ticks
            break
        n_cells *= factor
        cell.append(side)
        factors.append(factor)
    room -= (n_cells * n_groups).bit_length()
    ticks = min(float(_TICKS), (2.0**room - 16.0) / (float(extent[0]) + 4.0))
    window = int(ticks) + 2
    tick_bits = (int(float(extent[0]) * ticks) + 2 * window + 2).bit_length()
    keys = np.empty(n, np.int64)
    _write_keys(
        coordinates,
        group,
        low,
        np.array(cell),
        np.array(factors, np.int64),
        ticks,
        window,
        tick_bits,
        row_bits,
        keys,
    )
    keys.sort()
    row = keys & ((1 << row_bits) - 1)
    place = keys >> row_bits
    steps = [0]
    for factor in factors:
        steps = [step * factor + move for step, move in itertools.product(steps, (-1, 0, 1))]
    begins = np.searchsorted(place, np.arange(n_groups + 1) * n_cells << tick_bits).tolist()
    passes = [
        (begins[a], begins[a + 1], begins[b], begins[b + 1], ((b - a) * n_cells + step) << tick_bits)
        for a, b in meetings
        for step in steps
        if (a != b or step >= 0) and begins[a] < begins[a + 1] and begins[b] < begins[b + 1]
    ]
    return Keys(row, place, window, np.array(passes, np.int64).reshape(len(passes), 5))


@njit
def window_candidates(keys: Keys) -> Ints:
    """Count the candidates that a window sweep would filter, by place, without filtering them.

    Parameters
    ----------
    keys : from :func:`sort_keys`.

    Returns
    -------
    (n,) int64. A pair is counted at the row whose window it is in.
    """
    place, passes = keys.place, keys.passes
    counts = np.zeros(place.shape[0], np.int64)
    for step in range(passes.shape[0]):
        difference = passes[step, 4]
        first = passes[step, 2]
        last = first
        for row in range(passes[step, 0], passes[step, 1]):
            goal = place[row] + difference
            if difference == 0:
                first = row + 1
            else:
                first = skip_below(place, first, passes[step, 3], goal - keys.window)
            last = skip_below(place, max(first, last), passes[step, 3], goal + keys.window + 1)
            counts[row] += last - first
    return counts
