"""Candidates that have passed the filter of a window sweep wait, and are decided many at a time.

A distance computed as soon as the filter finds its pair would wait for the memory, since long rows are not
copied. For survivors that wait together, the memory is asked ahead for many rows at once; then 8 of
them at a time are decided side by side, and written without a branch
(:mod:`~epsjoin.kernels.sweep.near_pairs`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Floats, Ints, Numbers32
from epsjoin.kernels.distances import EUCLIDEAN, Decision, decide
from epsjoin.kernels.pairs.batch import PairBatch
from epsjoin.kernels.simd.lanes import PLACES
from epsjoin.kernels.simd.read_ahead import read_ahead
from epsjoin.kernels.sweep.near_pairs import write_near_pairs
from epsjoin.kernels.sweep.vectors import BLOCK

WAITING = 512
"""Maximum number of survivors that wait: with the rows they name they stay in the nearest cache."""
_AHEAD = 32
"""Number of survivors before a survivor is decided that its row is asked for."""
_LINE = 8
"""Number of float64 in a cache line."""


class Survivors(NamedTuple):
    """Room for survivors of one sweep.

    Parameters
    ----------
    place, other : (``WAITING`` + ``BLOCK``,) uint32, the two places of each.
    """

    place: Numbers32
    other: Numbers32


class DecidedRows(NamedTuple):
    """The columns that deciding reads, see :class:`epsjoin.kernels.sweep.window.WindowRows`.

    Parameters
    ----------
    points, row, ids, mask, is_self : columns of the sweep.
    """

    points: Floats
    row: Ints
    ids: Ints
    mask: Ints
    is_self: bool


@njit
def new_survivors() -> Survivors:
    """Make room for the survivors of one sweep."""
    return Survivors(np.empty(WAITING + BLOCK, np.uint32), np.empty(WAITING + BLOCK, np.uint32))


@njit
def _decide_squares(
    rows: DecidedRows, bound: float, survivors: Survivors, count: int, batch: PairBatch
) -> int:
    """Write the survivors whose sum of squared differences is at most ``bound``; returns how many."""
    points, row, ids, is_self = rows.points, rows.row, rows.ids, int(rows.is_self)
    place, other = survivors.place, survivors.other
    left, right, distance = batch.left, batch.right, batch.distance
    n_dimensions = points.shape[1]
    is_far = n_dimensions > _LINE  # shorter rows are copied side by side, see window_rows
    written = 0
    for at in range(0, count, PLACES):
        if is_far:
            for ahead in range(at + _AHEAD, min(at + _AHEAD + PLACES, count)):
                begin = row[other[ahead]] * n_dimensions
                for number in range(begin, begin + n_dimensions, _LINE):
                    read_ahead(points, number)
        written += write_near_pairs(
            points,
            n_dimensions,
            row,
            ids,
            place,
            other,
            at,
            count,
            bound,
            is_self,
            left,
            right,
            distance,
            written,
        )
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
    if rows.mask.size > 0:
        count = _leave_disjoint(rows.mask, survivors, count)
    if decision.metric == EUCLIDEAN:
        return _decide_squares(rows, decision.bound, survivors, count, batch), count
    return _decide_each(rows, decision, survivors, count, batch), count
