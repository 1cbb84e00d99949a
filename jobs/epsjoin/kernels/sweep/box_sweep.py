"""Boxes, and points with an eps of their own, joined by a tree of cuts and plane sweeps.

Each object has a cube (:mod:`epsjoin.kernels.plan.cubes`), and only cubes are compared until the metric
decides:

* each cube goes to every leaf of a :class:`~epsjoin.kernels.plan.cuts.CutTree` that it touches, with the mask
  that makes exactly one leaf report a pair (the proof in :mod:`epsjoin.kernels.plan.cuts` asks only that each
  row covers an interval per axis and that the cubes of a pair meet);
* in a leaf a plane sweep along one axis brings together the rows whose cubes meet on that axis.

Cubes of very different size are no trouble for the sweep: a pair is found from the row that begins first,
so a large box widens its own window alone, not those of its neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.distances import (
    COSINE,
    HAVERSINE,
    HAVERSINE_RADIANS,
    Decision,
    chebyshev,
    decide,
)
from epsjoin.kernels.pairs.batch import CANDIDATES, DISTANCES, LARGEST_STACK, PAIRS, PairBatch
from epsjoin.kernels.plan.cubes import CUT_AXES, Cubes, overlaps
from epsjoin.kernels.plan.cuts import AssignedRows

_DONE = 7


class Objects(NamedTuple):
    """Boxes and thresholds on which a metric decides.

    Parameters
    ----------
    lower, upper : (n, d) float64, sides of the boxes as they came; one array twice for points.
    eps : (n,) float64, at least 0. Two objects are a pair when their distance is at most half the sum of
        their two eps.
    """

    lower: Floats
    upper: Floats
    eps: Floats


class SweepOrder(NamedTuple):
    """Rows of all leaves in the order in which they are swept.

    Parameters
    ----------
    row : (m,) int64, the object of each row; rows by leaf, within a leaf those of the left table first,
        then by lower side on the leaf's axis.
    mask : (m,) int64, see :mod:`epsjoin.kernels.plan.cuts`.
    axis : (parts,) int64, the axis along which each leaf is swept.
    begin : (parts + 1,) int64, first row of each leaf.
    middle : (parts,) int64, first row of the right table in each leaf; its end in a self join.
    """

    row: Ints
    mask: Ints
    axis: Ints
    begin: Ints
    middle: Ints


class BoxRows(NamedTuple):
    """Rows of some neighbouring leaves, gathered for the sweep.

    Parameters
    ----------
    row : (m,) int64, the object of each row.
    mask : (m,) int64.
    first_lower, first_upper : (m,) float64, the cubes' sides on the axis of their leaf.
    lower, upper : (m, e) float64, the cubes' sides on every axis.
    segments : (s, 5) int64: begin and end of rows, begin and end of the rows they are compared with, axis.
        Where both ranges begin alike, each row is compared with the later ones. Where the rows lie after
        those they are compared with, each is compared only with those that begin above it: the others have
        found it.
    """

    row: Ints
    mask: Ints
    first_lower: Floats
    first_upper: Floats
    lower: Floats
    upper: Floats
    segments: Ints


@njit
def _leaf_axes(lower: Floats, upper: Floats, is_right: Bools, is_self: bool, row: Ints, begin: Ints) -> Ints:
    """Find for each leaf the axis on which the fewest of its cubes meet, ties by number; (parts,) int64."""
    n_parts = begin.shape[0] - 1
    n_axes = min(lower.shape[1], CUT_AXES)
    axes = np.empty(n_parts, np.int64)
    for part in range(n_parts):
        rows = row[begin[part] : begin[part + 1]]
        axes[part] = np.argmin(overlaps(lower, upper, is_right, is_self, rows, n_axes))
    return axes


def sweep_order(rows: AssignedRows, n_parts: int, cubes: Cubes, is_right: Bools, is_self: bool) -> SweepOrder:
    """Choose each leaf's axis and sort its rows by their lower sides on it.

    Parameters
    ----------
    rows : from :func:`~epsjoin.kernels.plan.cubes.assign_cubes`; not modified.
    n_parts : leaves of the tree.
    cubes, is_right, is_self : as for :func:`~epsjoin.local.plan.tree.box_tree.grow_box_tree`, of all rows.

    Notes
    -----
    O(rows log rows) per axis tried. A leaf's axis is chosen on the rows themselves, not on the sample.
    """
    by_part = np.argsort(rows.part, kind="stable")
    row, part = rows.row[by_part], rows.part[by_part]
    begin = np.searchsorted(part, np.arange(n_parts + 1))
    axis = _leaf_axes(cubes.lower, cubes.upper, is_right, is_self, row, begin)
    side = is_right[row]
    order = np.lexsort((cubes.lower[row, axis[part]], side, part))
    n_right = np.bincount(part, side, n_parts).astype(np.int64)
    return SweepOrder(row[order], rows.mask[by_part[order]], axis, begin, begin[1:] - n_right)


def gather_rows(order: SweepOrder, cubes: Cubes, first_part: int, end_part: int, is_self: bool) -> BoxRows:
    """Copy the rows of the leaves from ``first_part`` to ``end_part - 1`` and list what to compare."""
    start, end = order.begin[first_part], order.begin[end_part]
    row = order.row[start:end]
    begin = order.begin[first_part : end_part + 1] - start
    middle = order.middle[first_part:end_part] - start
    axis = order.axis[first_part:end_part]
    axis_of_row = np.repeat(axis, np.diff(begin))
    if is_self:
        segments = np.stack((begin[:-1], begin[1:], begin[:-1], begin[1:], axis), axis=1)
    else:
        forward = np.stack((begin[:-1], middle, middle, begin[1:], axis), axis=1)
        backward = np.stack((middle, begin[1:], begin[:-1], middle, axis), axis=1)
        segments = np.stack((forward, backward), axis=1).reshape(-1, 5)
    lower, upper = cubes.lower[row], cubes.upper[row]
    places = np.arange(len(row))
    return BoxRows(
        row,
        order.mask[start:end],
        lower[places, axis_of_row],
        upper[places, axis_of_row],
        lower,
        upper,
        segments,
    )


@njit
def decide_objects(decision: Decision, objects: Objects, x: int, y: int, gap: Floats) -> float:
    """Compute the distance of two objects when it is at most ``(eps_x + eps_y) / 2``, else return -1.

    Parameters
    ----------
    decision : the metric's, with an infinite bound.
    objects : boxes and their eps.
    x, y : the numbers of two objects, in any order.
    gap : (2, d) float64, its first row is overwritten by the gaps
        ``max(0, lower_y - upper_x, lower_x - upper_y)``; the second is zeros.

    Notes
    -----
    The distance of two boxes is the metric's length of the vector of gaps. For points a gap is
    ``|x_i - y_i|`` bit for bit, so points are decided as in the point join. With a threshold of 0 the gaps
    themselves must be 0: the square of a tiny gap may round to 0, the gap does not. O(d), no allocation.
    """
    eps = (objects.eps[x] + objects.eps[y]) / 2.0
    metric = decision.metric
    if metric in (COSINE, HAVERSINE, HAVERSINE_RADIANS):
        distance = decide(decision, objects.lower, x, objects.lower, y)
        return distance if distance <= eps else -1.0
    for i in range(gap.shape[1]):
        above = objects.lower[y, i] - objects.upper[x, i]
        below = objects.lower[x, i] - objects.upper[y, i]
        gap[0, i] = max(0.0, above, below)
    distance = chebyshev(gap, 0, gap, 1) if eps == 0.0 else decide(decision, gap, 0, gap, 1)
    return distance if distance <= eps else -1.0


@njit
def box_sweep(
    state: Ints, rows: BoxRows, objects: Objects, decision: Decision, batch: PairBatch, counters: Ints
) -> int:
    """Sweep each segment along its axis, until the batch is full.

    Parameters
    ----------
    state : from :func:`~epsjoin.kernels.sweep.stack_sweep.new_state`; modified. Entries 0 to 3: segment,
        its rows that are done, next candidate plus 1 (0: the row's window is not open yet), start of the
        row's window.
    rows : from :func:`gather_rows`.
    objects, decision : see :func:`decide_objects`.
    batch : filled from its beginning with objects, not rows; needs room for one pair at least.
    counters : (4,) int64, added to; see :mod:`epsjoin.kernels.sweep.stack_sweep`.

    Returns
    -------
    int
        Pairs written. The sweep is at its end when :func:`~epsjoin.kernels.sweep.stack_sweep.is_done`.

    Notes
    -----
    A row's window holds the rows whose lower side lies from its lower to its upper side. A comparison is:
    mask, the other axes with early exit, then the metric on the original coordinates.
    O(rows + candidates x e) in the worst case, mostly O(rows + candidates).
    """
    room = batch.left.shape[0]
    n_axes = rows.lower.shape[1]
    d = objects.lower.shape[1]
    gap = np.zeros((2, d), np.float64)
    first_lower = rows.first_lower
    written = 0
    segment = state[0]
    done = state[1]
    candidate = state[2] - 1
    start = state[3]
    while segment < rows.segments.shape[0]:
        begin = rows.segments[segment, 0]
        target = rows.segments[segment, 2]
        target_end = rows.segments[segment, 3]
        axis = rows.segments[segment, 4]
        if done == 0 and candidate < 0:
            start = target
        for row in range(begin + done, rows.segments[segment, 1]):
            value = rows.first_lower[row]
            end_value = rows.first_upper[row]
            if candidate < 0:
                if begin == target:
                    start = row + 1
                elif begin < target:
                    while start < target_end and first_lower[start] < value:
                        start += 1
                else:
                    while start < target_end and first_lower[start] <= value:
                        start += 1
                candidate = start
            first_candidate = candidate
            mask = rows.mask[row]
            while candidate < target_end and first_lower[candidate] <= end_value:
                is_near = (mask & rows.mask[candidate]) == 0
                if is_near:
                    for i in range(n_axes):
                        if i != axis and (
                            rows.lower[candidate, i] > rows.upper[row, i]
                            or rows.lower[row, i] > rows.upper[candidate, i]
                        ):
                            is_near = False
                            break
                if is_near:
                    if written == room:
                        counters[CANDIDATES] += candidate - first_candidate
                        counters[PAIRS] += written
                        state[0] = segment
                        state[1] = row - begin
                        state[2] = candidate + 1
                        state[3] = start
                        return written
                    counters[DISTANCES] += 1
                    x = rows.row[row]
                    y = rows.row[candidate]
                    distance = decide_objects(decision, objects, x, y, gap)
                    if distance >= 0.0:
                        batch.left[written] = min(x, y)
                        batch.right[written] = max(x, y)
                        batch.distance[written] = distance
                        written += 1
                candidate += 1
            counters[CANDIDATES] += candidate - first_candidate
            counters[LARGEST_STACK] = max(counters[LARGEST_STACK], candidate - start + 1)
            candidate = -1
        segment += 1
        done = 0
    state[0] = segment
    state[_DONE] = 1
    counters[PAIRS] += written
    return written
