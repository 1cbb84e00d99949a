"""Boxes, and points with an eps of their own, joined by a tree of cuts and plane sweeps.

An object is a box and a *reach*: its *cube* is the box made larger by the reach on every side, so that two
objects can be within their threshold only when their cubes meet on every axis. For points of one eps the
reach is eps / 2 and the cube is H(x). From there on nothing but cubes is looked at until the metric decides:

* each cube goes to every leaf of a :class:`~epsjoin.kernels.join.cuts.CutTree` that it touches, with the mask
  that makes exactly one leaf report a pair (the proof in :mod:`epsjoin.kernels.join.cuts` asks only that each
  row covers an interval per axis and that the cubes of a pair meet);
* in a leaf a plane sweep along one axis brings together the rows whose cubes meet on that axis.

Cubes of very different size are no trouble for the sweep: a pair is found from the row that begins first,
so a large box widens its own window alone, not those of its neighbours.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.distances import (
    CHEBYSHEV,
    COSINE,
    EUCLIDEAN,
    HAVERSINE,
    HAVERSINE_RADIANS,
    MINKOWSKI,
    Decision,
    decide,
)
from epsjoin.kernels.join.codes import cube_lower, cube_upper
from epsjoin.kernels.join.cuts import AssignedRows, CutTree, make_tree
from epsjoin.kernels.join.stack_sweep import CANDIDATES, DISTANCES, LARGEST_STACK, PAIRS, PairBatch

CUT_AXES = 16  # a tree cuts, and a leaf sweeps along, the first of the cubes' axes only; see separating_axes
_TRIED_AXES = 3  # of them the sweep's own axis never helps: the sweep has already cut along it
_FEWEST_ROWS = 32  # of a sample in a leaf: with fewer, its estimates are noise
_DONE = 7


class Objects(NamedTuple):
    """What a metric decides on.

    Parameters
    ----------
    lower, upper : (n, d) float64, sides of the boxes as they came; one array twice for points.
    eps : (n,) float64, at least 0. Two objects are within when their distance is at most half the sum of
        their two eps.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    eps: NDArray[np.float64]


class Cubes(NamedTuple):
    """Lower and upper sides of the objects' cubes, (n, e) float64 each, in embedded coordinates."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class SweepOrder(NamedTuple):
    """Rows of all leaves in the order in which they are swept.

    Parameters
    ----------
    row : (m,) int64, the object of each row; rows by leaf, within a leaf those of the left table first,
        then by lower side on the leaf's axis.
    mask : (m,) int64, see :mod:`epsjoin.kernels.join.cuts`.
    axis : (parts,) int64, the axis along which each leaf is swept.
    begin : (parts + 1,) int64, first row of each leaf.
    middle : (parts,) int64, first row of the right table in each leaf; its end in a self join.
    """

    row: NDArray[np.int64]
    mask: NDArray[np.int64]
    axis: NDArray[np.int64]
    begin: NDArray[np.int64]
    middle: NDArray[np.int64]


class BoxRows(NamedTuple):
    """Rows of some neighbouring leaves, gathered for the sweep.

    Parameters
    ----------
    row : (m,) int64, the object of each row.
    mask : (m,) int64.
    first_lower, first_upper : (m,) float64, the cubes' sides on the axis of their leaf.
    lower, upper : (m, e) float64, the cubes' sides on every axis.
    segments : (s, 5) int64: begin and end of rows, begin and end of the rows they are compared with, axis.
        Where both begin alike, each row is compared with the later ones. Where the rows lie after those they
        are compared with, only with those that begin above them: the others have found them already.
    """

    row: NDArray[np.int64]
    mask: NDArray[np.int64]
    first_lower: NDArray[np.float64]
    first_upper: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    segments: NDArray[np.int64]


@njit
def make_cubes(
    lower: NDArray[np.float64], upper: NDArray[np.float64], reach: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the sides of boxes made larger by their reach, a little too far out: no rounding parts a pair.

    Parameters
    ----------
    lower, upper : (n, e) float64, embedded coordinates; not modified.
    reach : (n,) float64, at least 0.

    Returns
    -------
    lower, upper : (n, e) float64. When ``lower(y)_i - upper(x)_i <= reach(x) + reach(y)``, the upper side of
        x is not below the lower side of y.
    """
    n, e = lower.shape
    begin = np.empty((n, e), np.float64)
    end = np.empty((n, e), np.float64)
    for row in range(n):
        for i in range(e):
            begin[row, i] = cube_lower(lower[row, i], reach[row])
            end[row, i] = cube_upper(upper[row, i], reach[row])
    return begin, end


@njit
def _assign_cubes(
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    tree: CutTree,
    row: NDArray[np.int64],
    part: NDArray[np.int64],
    mask: NDArray[np.int64],
    fill: bool,
) -> int:
    """One pass over all cubes: count what they become (``fill`` false) or write it; returns the count."""
    nodes = np.empty(tree.axis.shape[0] + 1, np.int64)
    masks = np.empty(tree.axis.shape[0] + 1, np.int64)
    written = 0
    for cube in range(lower.shape[0]):
        nodes[0] = 0
        masks[0] = 0
        height = 1
        while height > 0:
            height -= 1
            node = nodes[height]
            seen = masks[height]
            if tree.part[node] >= 0:
                if fill:
                    row[written] = cube
                    part[written] = tree.part[node]
                    mask[written] = seen
                written += 1
                continue
            cut = tree.position[node]
            axis = tree.axis[node]
            is_left = lower[cube, axis] < cut
            if upper[cube, axis] >= cut:
                nodes[height] = tree.right[node]
                masks[height] = seen | (np.int64(1) << tree.bit[node]) if is_left else seen
                height += 1
            if is_left:
                nodes[height] = tree.left[node]
                masks[height] = seen
                height += 1
    return written


def count_rows(cubes: Cubes, tree: CutTree) -> int:
    """Count the rows that :func:`assign_cubes` would give; O(rows x depth), nothing is stored."""
    none = np.empty(0, np.int64)
    return _assign_cubes(cubes.lower, cubes.upper, tree, none, none, none, False)


def assign_cubes(cubes: Cubes, tree: CutTree) -> AssignedRows:
    """Send every cube to the leaves that it touches.

    Parameters
    ----------
    cubes : not modified.
    tree : cuts on the cubes' axes; none by hash.

    Returns
    -------
    AssignedRows
        By cube, then in the order of the leaves from left to right.

    Notes
    -----
    :func:`epsjoin.kernels.join.cuts.assign` for cubes of any extent. Two passes (count, fill), O(rows x
    depth).
    """
    total = count_rows(cubes, tree)
    rows = AssignedRows(np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64))
    _assign_cubes(cubes.lower, cubes.upper, tree, rows.row, rows.part, rows.mask, True)
    return rows


@njit
def _count_begun(begin: NDArray[np.float64], end: NDArray[np.float64]) -> int:
    """Pairs ``begin_i <= end_j`` of two ascending columns; O(n)."""
    total = 0
    begun = 0
    for j in range(end.shape[0]):
        while begun < begin.shape[0] and begin[begun] <= end[j]:
            begun += 1
        total += begun
    return total


@njit
def overlaps(
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    is_right: NDArray[np.bool_],
    is_self: bool,
    rows: NDArray[np.int64],
    n_axes: int,
) -> NDArray[np.int64]:
    """Pairs of rows whose cubes meet on an axis, by axis: the candidates of a sweep along it.

    Parameters
    ----------
    lower, upper : (n, e) float64, sides of the cubes; not modified.
    is_right : (n,) bool, whether a row is of the right table; not read in a self join.
    is_self : all pairs of rows count; otherwise those of a left and a right row.
    rows : (m,) int64, the rows in question.
    n_axes : axes 0 to n_axes - 1 are counted.

    Returns
    -------
    (n_axes,) int64.

    Notes
    -----
    ``lower_x <= upper_y`` and ``lower_y <= upper_x`` both hold when two intervals meet, else exactly one of
    them. So the pairs that meet are the times that either holds, less all pairs. O(m log m) per axis.
    """
    m = rows.shape[0]
    counts = np.zeros(n_axes, np.int64)
    n_left = m
    if not is_self:
        n_left = 0
        for i in range(m):
            if not is_right[rows[i]]:
                n_left += 1
    left_lower = np.empty(n_left, np.float64)
    left_upper = np.empty(n_left, np.float64)
    right_lower = np.empty(m - n_left, np.float64)
    right_upper = np.empty(m - n_left, np.float64)
    for axis in range(n_axes):
        left = 0
        right = 0
        for i in range(m):
            if is_self or not is_right[rows[i]]:
                left_lower[left] = lower[rows[i], axis]
                left_upper[left] = upper[rows[i], axis]
                left += 1
            else:
                right_lower[right] = lower[rows[i], axis]
                right_upper[right] = upper[rows[i], axis]
                right += 1
        left_lower.sort()
        left_upper.sort()
        if is_self:
            # less all pairs, and each row with itself
            counts[axis] = _count_begun(left_lower, left_upper) - m * (m + 1) // 2
        else:
            right_lower.sort()
            right_upper.sort()
            counts[axis] = (
                _count_begun(left_lower, right_upper)
                + _count_begun(right_lower, left_upper)
                - n_left * (m - n_left)
            )
    return counts


def separating_axes(cubes: Cubes, is_right: NDArray[np.bool_], is_self: bool) -> NDArray[np.int64]:
    """All axes, the one on which the fewest cubes meet first, ties by number; (e,) int64."""
    n, e = cubes.lower.shape
    met = overlaps(cubes.lower, cubes.upper, is_right, is_self, np.arange(n), e)
    return np.argsort(met, kind="stable").astype(np.int64, copy=False)


class _Leaf(NamedTuple):
    """Rows of the sample at a leaf, the leaf's lower bounds by axis, candidates, and what both cost."""

    row: NDArray[np.int64]
    low: NDArray[np.float64]
    candidates: int
    work: float


class _Sample(NamedTuple):
    """What the planner knows: the sample, and what one row and one candidate of it cost."""

    cubes: Cubes
    is_right: NDArray[np.bool_]
    is_self: bool
    row_cost: float
    candidate_cost: float


def _make_leaf(sample: _Sample, row: NDArray[np.int64], low: NDArray[np.float64]) -> _Leaf:
    met = overlaps(sample.cubes.lower, sample.cubes.upper, sample.is_right, sample.is_self, row, low.shape[0])
    candidates = int(met.min())
    return _Leaf(row, low, candidates, sample.row_cost * len(row) + sample.candidate_cost * candidates)


def _best_cut(sample: _Sample, leaf: _Leaf, room: float) -> tuple[int, float, _Leaf, _Leaf] | None:
    """Give the cut (axis, position, left, right) with the least work, or None when none saves work.

    On each axis the cut halves the rows that begin inside the leaf; the few axes where it crosses the fewest
    cubes are tried. A cut that adds more than ``room`` rows is not made.
    """
    tried: list[tuple[int, int, float]] = []
    for axis in range(leaf.low.shape[0]):
        lower = sample.cubes.lower[leaf.row, axis]
        inside = np.sort(lower[lower >= leaf.low[axis]])
        if len(inside) == 0 or lower.min() == inside[-1]:
            continue
        position = inside[len(inside) // 2]
        if position == lower.min():  # a cut has a row on either side at least
            position = inside[np.searchsorted(inside, position, side="right")]
        crossed = np.count_nonzero((lower < position) & (sample.cubes.upper[leaf.row, axis] >= position))
        if crossed <= room:
            tried.append((int(crossed), axis, float(position)))
    tried.sort()
    best: tuple[int, float, _Leaf, _Leaf] | None = None
    least = leaf.work
    for _, axis, position in tried[:_TRIED_AXES]:
        low = leaf.low.copy()
        low[axis] = position
        left = _make_leaf(sample, leaf.row[sample.cubes.lower[leaf.row, axis] < position], leaf.low)
        right = _make_leaf(sample, leaf.row[sample.cubes.upper[leaf.row, axis] >= position], low)
        if left.work + right.work < least:
            least = left.work + right.work
            best = axis, position, left, right
    return best


class GrownBoxTree(NamedTuple):
    """A tree fitted to a sample of boxes, and what the sample becomes under it.

    Parameters
    ----------
    tree, n_parts, rows, candidates : see :class:`epsjoin.kernels.join.cuts.GrownTree`.
    """

    tree: CutTree
    n_parts: int
    rows: int
    candidates: float


def grow_box_tree(
    cubes: Cubes,
    is_right: NDArray[np.bool_],
    is_self: bool,
    *,
    rows_per_row: float,
    row_cost: float,
    candidate_cost: float,
    max_rows: float,
) -> GrownBoxTree:
    """Fit a tree of cuts to a sample: always cut the leaf with the most work, as long as cuts save work.

    Parameters
    ----------
    cubes : of the sample, m rows; only the first ``CUT_AXES`` axes are cut.
    is_right : (m,) bool, whether a row is of the right table; not read in a self join.
    is_self : whether the rows are joined with each other.
    rows_per_row : rows that each row of the sample stands for.
    row_cost, candidate_cost : cost of a row and of a candidate of a join, in any one unit.
    max_rows : rows that the sample must not exceed in all leaves.

    Returns
    -------
    GrownBoxTree
        The same for the same arguments. Node 0 is the root; the i-th cut, from 0, has the children 2i + 1 and
        2i + 2, so that the first cuts alone are a tree as well: :func:`prune_tree`.

    Notes
    -----
    Unlike in :func:`epsjoin.local.plan.grow_tree.grow_tree` there are no parts to balance but work to save: a
    cut is made when both sides together cost less than the leaf. Where large cubes cross every cut, none
    saves anything and the leaf stays whole. O(m log m) per level of the tree and axis.
    """
    m, e = cubes.lower.shape
    sample = _Sample(cubes, is_right, is_self, row_cost * rows_per_row, candidate_cost * rows_per_row**2)
    root = _make_leaf(sample, np.arange(m, dtype=np.int64), np.full(min(e, CUT_AXES), -np.inf))
    axis, position, left, right = [0], [0.0], [-1], [-1]
    open_leaves = [(-root.work, 0, root)]
    rows, n_cuts, candidates = m, 0, root.candidates
    while open_leaves:
        _, node, leaf = heapq.heappop(open_leaves)
        if len(leaf.row) < _FEWEST_ROWS:
            continue
        cut = _best_cut(sample, leaf, max_rows - rows)
        if cut is None:
            continue
        n_cuts += 1
        axis[node], position[node] = cut[0], cut[1]
        left[node], right[node] = len(axis), len(axis) + 1
        candidates -= leaf.candidates
        rows -= len(leaf.row)
        for child in cut[2:]:
            heapq.heappush(open_leaves, (-child.work, len(axis), child))
            rows += len(child.row)
            candidates += child.candidates
            axis.append(0)
            position.append(0.0)
            left.append(-1)
            right.append(-1)
    return GrownBoxTree(make_tree(axis, position, left, right), n_cuts + 1, rows, candidates)


def prune_tree(tree: CutTree, n_cuts: int) -> CutTree:
    """Give the tree of the first ``n_cuts`` cuts of a tree from :func:`grow_box_tree`."""
    n_nodes = 2 * n_cuts + 1
    children = [np.where(child[:n_nodes] < n_nodes, child[:n_nodes], -1) for child in (tree.left, tree.right)]
    return make_tree(
        tree.axis[:n_nodes].tolist(),
        tree.position[:n_nodes].tolist(),
        children[0].tolist(),
        children[1].tolist(),
    )


@njit
def _leaf_axes(
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    is_right: NDArray[np.bool_],
    is_self: bool,
    row: NDArray[np.int64],
    begin: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The axis of each leaf on which the fewest of its cubes meet, ties by number; (parts,) int64."""
    n_parts = begin.shape[0] - 1
    n_axes = min(lower.shape[1], CUT_AXES)
    axes = np.empty(n_parts, np.int64)
    for part in range(n_parts):
        rows = row[begin[part] : begin[part + 1]]
        axes[part] = np.argmin(overlaps(lower, upper, is_right, is_self, rows, n_axes))
    return axes


def sweep_order(
    rows: AssignedRows, n_parts: int, cubes: Cubes, is_right: NDArray[np.bool_], is_self: bool
) -> SweepOrder:
    """Choose each leaf's axis and sort its rows by their lower sides on it.

    Parameters
    ----------
    rows : from :func:`assign_cubes`; not modified.
    n_parts : leaves of the tree.
    cubes, is_right, is_self : as for :func:`grow_box_tree`, of all rows.

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
def bound_of(metric: int, p: float, eps: float) -> float:
    """Give the number that a metric's formula is compared with, as :func:`~.distances.make_decision` does."""
    if metric == EUCLIDEAN:
        return eps * eps
    if metric == MINKOWSKI:
        power: float = eps**p
        return power
    return eps


@njit
def decide_objects(
    metric: int,
    p: float,
    objects: Objects,
    x: int,
    y: int,
    gap: NDArray[np.float64],
) -> float:
    """Give the distance of two objects when it is at most ``(eps_x + eps_y) / 2``, else -1.

    Parameters
    ----------
    metric, p : see :class:`~epsjoin.kernels.distances.Decision`.
    objects : boxes and their eps.
    x, y : two of them, in any order.
    gap : (2, d) float64, its first row is overwritten by the gaps
        ``max(0, lower_y - upper_x, lower_x - upper_y)``; the second is zeros.

    Notes
    -----
    The distance of two boxes is the metric's length of the vector of gaps. For points a gap is
    ``|x_i - y_i|`` bit for bit, so points are decided as in the point join. With a threshold of 0 the gaps
    themselves must be 0: the square of a tiny gap may round to 0, the gap does not. O(d), no allocation.
    """
    eps = (objects.eps[x] + objects.eps[y]) / 2.0
    if metric in (COSINE, HAVERSINE, HAVERSINE_RADIANS):
        return decide(Decision(metric, p, eps), objects.lower, x, objects.lower, y)
    for i in range(gap.shape[1]):
        above = objects.lower[y, i] - objects.upper[x, i]
        below = objects.lower[x, i] - objects.upper[y, i]
        gap[0, i] = max(0.0, above, below)
    if eps == 0.0:
        return decide(Decision(CHEBYSHEV, p, 0.0), gap, 0, gap, 1)
    return decide(Decision(metric, p, bound_of(metric, p, eps)), gap, 0, gap, 1)


@njit
def box_sweep(
    state: NDArray[np.int64],
    rows: BoxRows,
    objects: Objects,
    metric: int,
    p: float,
    batch: PairBatch,
    counters: NDArray[np.int64],
) -> int:
    """Sweep each segment along its axis, until the batch is full.

    Parameters
    ----------
    state : from :func:`~epsjoin.kernels.join.stack_sweep.new_state`; modified. Entries 0 to 3: segment, rows
        of it that
        are done, next candidate plus 1 (0: the row's window is not open yet), start of the row's window.
    rows : from :func:`gather_rows`.
    objects, metric, p : see :func:`decide_objects`.
    batch : filled from its beginning with objects, not rows; needs room for one pair at least.
    counters : (4,) int64, added to; see :mod:`epsjoin.kernels.join.stack_sweep`.

    Returns
    -------
    int
        Pairs written. The sweep is at its end when :func:`~epsjoin.kernels.join.stack_sweep.is_done`.

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
                    distance = decide_objects(metric, p, objects, x, y, gap)
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
