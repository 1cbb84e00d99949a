"""The tree of cuts for boxes, grown on a sample as long as a cut saves work."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.plan.cubes import CUT_AXES, Cubes, overlaps
from epsjoin.kernels.plan.cuts import CutTree
from epsjoin.local.plan.tree.cut_tree import Nodes

_MAX_TRIED_AXES = 3
"""Maximum number of axes that are tried; the sweep's own axis among them never helps."""
_MIN_ROWS = 32
"""Minimum number of sampled rows in a leaf that is cut: with fewer, its estimates are noise."""


class _Leaf(NamedTuple):
    """A leaf: its rows of the sample, its lower bounds by axis, its candidates, and its work.

    The planned tree's leaf (:class:`epsjoin.local.plan.tree.cut_leaf.Leaf`) has other columns: it divides
    decided pairs and carried rows, which boxes do not have.
    """

    row: Ints
    low: Floats
    candidates: int
    work: float


class _BoxSample(NamedTuple):
    """The sample, and the cost of a row and of a candidate of it."""

    cubes: Cubes
    is_right: Bools
    is_self: bool
    row_cost: float
    candidate_cost: float


def _make_leaf(sample: _BoxSample, row: Ints, low: Floats) -> _Leaf:
    met = overlaps(sample.cubes.lower, sample.cubes.upper, sample.is_right, sample.is_self, row, low.shape[0])
    candidates = int(met.min())
    return _Leaf(row, low, candidates, sample.row_cost * len(row) + sample.candidate_cost * candidates)


def _best_cut(sample: _BoxSample, leaf: _Leaf, room: float) -> tuple[int, float, _Leaf, _Leaf] | None:
    """Find the cut (axis, position, left, right) with the least work, or None when no cut saves work.

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
    for _, axis, position in tried[:_MAX_TRIED_AXES]:
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
    tree, n_parts, rows, candidates : see :class:`epsjoin.local.plan.tree.grow_tree.GrownTree`.
    """

    tree: CutTree
    n_parts: int
    rows: int
    candidates: float


def grow_box_tree(
    cubes: Cubes,
    is_right: Bools,
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
    Unlike in :func:`epsjoin.local.plan.tree.grow_tree.grow_tree` there are no parts to balance but work to
    save: a cut is made when both sides together cost less than the leaf. Where large cubes cross every cut,
    none saves anything and the leaf stays whole. O(m log m) per level of the tree and axis.
    """
    m, e = cubes.lower.shape
    sample = _BoxSample(cubes, is_right, is_self, row_cost * rows_per_row, candidate_cost * rows_per_row**2)
    root = _make_leaf(sample, np.arange(m, dtype=np.int64), np.full(min(e, CUT_AXES), -np.inf))
    nodes = Nodes()
    open_leaves = [(-root.work, 0, root)]
    rows, n_cuts, candidates = m, 0, root.candidates
    while open_leaves:
        _, node, leaf = heapq.heappop(open_leaves)
        if len(leaf.row) < _MIN_ROWS:
            continue
        cut = _best_cut(sample, leaf, max_rows - rows)
        if cut is None:
            continue
        n_cuts += 1
        axis, position, *halves = cut
        candidates -= leaf.candidates
        rows -= len(leaf.row)
        for child, half in zip(nodes.cut(node, axis, position), halves, strict=True):
            heapq.heappush(open_leaves, (-half.work, child, half))
            rows += len(half.row)
            candidates += half.candidates
    return GrownBoxTree(nodes.to_tree(), n_cuts + 1, rows, candidates)
