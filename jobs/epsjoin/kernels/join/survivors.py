"""Candidates that have passed the filter of a window sweep wait, and are decided many at a time.

A distance that is computed where the filter finds its pair waits for the memory: long rows are read where
they are. Of survivors that wait together, a number of each cache line is read before any is needed, so that
the memory serves many reads at once; and what is within eps is written without a branch.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.distances import EUCLIDEAN, Decision, decide, squared_euclidean
from epsjoin.kernels.join.stack_sweep import PairBatch

WAITING = 512
"""Maximum number of survivors that wait: with the rows they name they stay in the nearest cache."""
_SUMMED_DIMENSIONS = 64
"""Maximum number of dimensions of which all squares are added before the sum is compared: sooner done than
stopping early."""
_LINE = 8
"""Number of float64 in a cache line."""


class Survivors(NamedTuple):
    """Room for survivors of one sweep.

    Parameters
    ----------
    place, other : (``WAITING``,) int64, the two places of each.
    unused : (1,) float64, written so that reads ahead are not left out as useless.
    """

    place: Ints
    other: Ints
    unused: Floats


class DecidedRows(NamedTuple):
    """What deciding needs of the rows of a sweep, see :class:`epsjoin.kernels.join.window.WindowRows`.

    Parameters
    ----------
    points, row, ids, mask, is_self : those of the sweep.
    """

    points: Floats
    row: Ints
    ids: Ints
    mask: Ints
    is_self: bool


@njit
def _read_ahead(points: Floats, row: Ints, survivors: Survivors, count: int) -> None:
    """Read a number of each cache line of the rows that survivors are compared with."""
    total = 0.0
    for i in range(count):
        source = row[survivors.other[i]]
        for j in range(0, points.shape[1], _LINE):
            total += points[source, j]
    survivors.unused[0] = total


@njit
def new_survivors() -> Survivors:
    """Make room for the survivors of one sweep."""
    return Survivors(np.empty(WAITING, np.int64), np.empty(WAITING, np.int64), np.empty(1))


@njit
def _sum_squares(rows: DecidedRows, bound: float, survivors: Survivors, count: int, batch: PairBatch) -> int:
    """Write the survivors whose sum of squared differences is at most ``bound``; returns how many."""
    points, row, ids, is_self = rows.points, rows.row, rows.ids, rows.is_self
    place, other = survivors.place, survivors.other
    to_left, to_right, to_distance = batch.left, batch.right, batch.distance
    n_dimensions = points.shape[1]
    written = 0
    for i in range(count):
        source, target = row[place[i]], row[other[i]]
        if n_dimensions <= _SUMMED_DIMENSIONS:
            square = 0.0
            for j in range(n_dimensions):
                gap = points[source, j] - points[target, j]
                square += gap * gap
        else:
            square = squared_euclidean(points, source, points, target, bound)
        left, right = ids[place[i]], ids[other[i]]
        to_left[written] = min(left, right) if is_self else left
        to_right[written] = max(left, right) if is_self else right
        to_distance[written] = math.sqrt(square)
        written += int(square <= bound)  # no branch: whether a pair is within eps, none could foresee
    return written


@njit
def _decide_each(
    rows: DecidedRows, decision: Decision, survivors: Survivors, count: int, batch: PairBatch
) -> int:
    """Write the survivors that are within eps by any metric; returns how many."""
    points, row, ids, is_self = rows.points, rows.row, rows.ids, rows.is_self
    place, other = survivors.place, survivors.other
    written = 0
    for i in range(count):
        distance = decide(decision, points, row[place[i]], points, row[other[i]])
        left, right = ids[place[i]], ids[other[i]]
        batch.left[written] = min(left, right) if is_self else left
        batch.right[written] = max(left, right) if is_self else right
        batch.distance[written] = distance
        written += int(distance >= 0.0)
    return written


@njit
def _leave_disjoint(mask: Ints, survivors: Survivors, count: int) -> int:
    """Leave the survivors whose masks have no bit in common, in their order; returns how many they are."""
    place, other = survivors.place, survivors.other
    kept = 0
    for i in range(count):
        a, b = place[i], other[i]
        place[kept] = a
        other[kept] = b
        kept += int((mask[a] & mask[b]) == 0)
    return kept


@njit
def decide_survivors(
    rows: DecidedRows, decision: Decision, survivors: Survivors, count: int, batch: PairBatch
) -> tuple[int, int]:
    """Decide survivors by mask and distance, and write those within eps.

    Parameters
    ----------
    rows, decision : of the sweep.
    survivors : the first ``count`` are decided; modified.
    batch : filled from its beginning; has room for ``count`` pairs.

    Returns
    -------
    written, distances : pairs in the batch, in the order of the survivors; distances that were computed.

    Notes
    -----
    O(count x d), no allocation.
    """
    count = _leave_disjoint(rows.mask, survivors, count)
    n_dimensions = rows.points.shape[1]
    if n_dimensions > _LINE:
        _read_ahead(rows.points, rows.row, survivors, count)
    if decision.metric == EUCLIDEAN:
        return _sum_squares(rows, decision.bound, survivors, count, batch), count
    return _decide_each(rows, decision, survivors, count, batch), count
