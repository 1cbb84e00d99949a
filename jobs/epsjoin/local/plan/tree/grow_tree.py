"""Grow the planned tree on a sample.

Any tree is exact (:mod:`epsjoin.kernels.plan.cuts`); this one has leaves of equal work, and few rows in
several leaves.
"""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Floats
from epsjoin.kernels.plan.cuts import HASH_AXIS, CutTree, all_turned_sides
from epsjoin.kernels.projection import SQUARES
from epsjoin.kernels.ranges import Ranges, in_each, in_one_range
from epsjoin.local.plan.expectation.decided_pairs import DecidedPairs
from epsjoin.local.plan.projection import choose_projection, principal_axes, row_candidates, simple_projection
from epsjoin.local.plan.tree.cut_leaf import Costs, Cut, Leaf, TreeSample, allot_parts, best_cut, make_leaf
from epsjoin.local.plan.tree.cut_tree import Nodes

_MAX_TRIED_DIRECTIONS = 8
"""Maximum number of principal axes that are tried, by falling variance of the sample."""
_DIRECTION_STEPS = 1e6
"""Steps in 1 to which the coordinates of a direction are cut off."""
_MAX_COUNTED_LEAVES = 64
"""Maximum number of leaves whose candidates are counted to estimate all of them."""
_LARGEST_PART_WEIGHTS = (0.3, 0.5, 0.7)
"""Weights of the largest part in rating a cut: the time if all parts took as long as it, as a fraction of all
work. If the tree is uneven with the first weight, the others are tried, too."""
_MAX_TREE_IMBALANCE = 1.35
"""Ratio of the largest part to the mean part, above which a tree is grown again with the next weight."""
_MAX_PART_IMBALANCE = 1.2
"""Ratio of the largest part to the mean part, above which a cut is undone to cut the largest part."""
_STUCK_FRACTION = 0.75
"""Other leaves are not cut below this fraction of the work of a leaf that cannot be cut: cuts add rows, and
the join waits for that leaf anyway."""

_MAX_SIDE_OF_LARGE = 0.75
"""Fraction of a leaf's rows on one side, above which a cut for their number alone does not pay: leaves would
multiply and hardly become smaller."""


class GrownTree(NamedTuple):
    """A tree fitted to a sample, and what the sample becomes under it.

    Parameters
    ----------
    tree : the cuts.
    n_parts : leaves; parts are numbered from left to right.
    work : (n_parts,) float64, estimated work of each part, in the unit of the costs.
    rows : rows of the sample in all parts.
    candidates : pairs of them that the window sweeps would filter.
    """

    tree: CutTree
    n_parts: int
    work: Floats
    rows: int
    candidates: float


def grow_tree(
    embedded: Floats,
    hashes: Floats,
    eps: float,
    n_parts: int,
    *,
    norm: int,
    decided: DecidedPairs,
    rows_per_row: float,
    costs: Costs,
    max_rows: float,
    max_leaf_rows: float,
    ranges: Ranges = in_one_range,
) -> GrownTree:
    """Fit a tree of cuts to a sample, its leaves of equal work.

    Parameters
    ----------
    embedded : (m, e) float64; not modified.
    hashes : (m,) float64, :func:`hash_to_unit`.
    eps : side of a cube in embedded coordinates.
    n_parts : leaves to aim at. There are fewer when no cut helps: a leaf that cannot be cut stays a leaf.
    norm : see :class:`epsjoin.kernels.projection.Projection`.
    decided : pairs of the sample that pass the filter; not modified.
    rows_per_row : rows that each row of the sample stands for.
    costs : of all rows and pairs, not of the sample's.
    max_rows : rows that the sample must not exceed in all leaves; may be infinite.
    max_leaf_rows : rows of the sample above which a leaf is cut even if that makes more than ``n_parts``
        leaves; may be infinite. A leaf keeps more where no cut helps, or leaves would exceed ``max_rows``.
    ranges : how ranges of axes, and of leaves, are worked on.

    Returns
    -------
    GrownTree
        The same for the same arguments; ties go to the smaller axis and the older leaf.

    Notes
    -----
    O(m log m) per level of the tree and axis tried. A leaf is allotted parts, and its children divide them as
    their work is divided; the leaf with the most work per part is cut first. To make the result more even,
    the cut that divides the least work is then undone, and the largest leaf cut instead. A tree that stays
    uneven is grown again with more weight on the largest part; of all, that whose largest part is smallest.
    """
    m = len(embedded)
    n_grid = choose_projection(embedded, round(m * rows_per_row), eps, norm, ranges=ranges).projection.n_grid
    basis = _directions(embedded) if norm == SQUARES else np.empty((0, embedded.shape[1]))
    lower, upper = all_turned_sides(embedded, basis, eps / 2.0)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is on both sides of every cut
        middles = (lower + upper) / 2.0
    sample = TreeSample(
        embedded,
        lower,
        upper,
        hashes,
        decided,
        eps,
        simple_projection(embedded, norm, n_grid),
        costs.of_sample(rows_per_row),
        _LARGEST_PART_WEIGHTS[0],
        np.concatenate((embedded.T, middles)),
        {},
        ranges,
    )
    all_pairs = np.arange(len(decided.left))
    root = make_leaf(sample, np.arange(m), np.zeros(m, np.bool_), all_pairs)
    trees: list[_Tree] = []
    for weight in _LARGEST_PART_WEIGHTS:
        trees.append(_Tree(root))
        weighted = sample._replace(largest_weight=weight)
        _grow(weighted, trees[-1], n_parts, max_rows)
        _exchange(weighted, trees[-1], n_parts, max_rows)
        _cut_large(weighted, trees[-1], max_leaf_rows, max_rows)
        works = trees[-1].works
        if max(works) * len(works) <= _MAX_TREE_IMBALANCE * math.fsum(works):
            break
    best = min(trees, key=lambda tree: max(tree.works))
    return best.to_grown(sample, basis, rows_per_row)


def _directions(embedded: Floats) -> Floats:
    """First principal axes of the sample, the largest coordinate of each above 0; (b, e) float64.

    Digits are cut off, towards 0, since a plan is written as text: no direction becomes longer than 1, and
    differences in the last bits on another machine do not show.
    """
    found = principal_axes(embedded)[:_MAX_TRIED_DIRECTIONS]
    largest = np.take_along_axis(found, np.argmax(np.abs(found), axis=1)[:, None], axis=1)
    return np.ascontiguousarray(np.trunc(found * np.sign(largest) * _DIRECTION_STEPS) / _DIRECTION_STEPS)


class _Tree:
    """A tree that grows: its nodes, what lies at its leaves, and what lay at its inner nodes."""

    def __init__(self, root: Leaf) -> None:
        self.cuts: dict[int, tuple[int, float, int]] = {}
        """By inner node: axis, position, the left child; the right one is the next node."""
        self.leaves = {0: root}
        self.inner: dict[int, Leaf] = {}
        self.n_nodes = 1
        self.rows = len(root.row)

    @property
    def works(self) -> list[float]:
        """Work of each leaf."""
        return [leaf.work for leaf in self.leaves.values()]

    @property
    def axes(self) -> set[int]:
        """Axes and directions that are cut."""
        return {axis for axis, _, _ in self.cuts.values()} - {HASH_AXIS}

    def cut(self, node: int, cut: Cut) -> tuple[int, int]:
        """Cut a leaf and return its children."""
        left, right = self.n_nodes, self.n_nodes + 1
        self.n_nodes += 2
        self.cuts[node] = cut.axis, cut.position, left
        leaf = self.inner[node] = self.leaves.pop(node)
        self.leaves[left], self.leaves[right] = cut.left, cut.right
        self.rows += _added_rows(leaf, cut)
        return left, right

    def undo(self, node: int) -> None:
        """Make an inner node whose children are leaves a leaf again."""
        _, _, left = self.cuts.pop(node)
        leaf = self.leaves[node] = self.inner.pop(node)
        self.rows += len(leaf.row) - len(self.leaves.pop(left).row) - len(self.leaves.pop(left + 1).row)

    def last_cuts(self) -> list[int]:
        """Inner nodes whose children are leaves."""
        return [n for n, (_, _, left) in self.cuts.items() if {left, left + 1} <= self.leaves.keys()]

    def to_grown(self, sample: TreeSample, basis: Floats, rows_per_row: float) -> GrownTree:
        """Number nodes, parts and directions anew, without those that are not in use."""
        n_embedded = basis.shape[1]
        directions = sorted(axis - n_embedded for axis in self.axes if axis >= n_embedded)
        renamed = {n_embedded + old: n_embedded + new for new, old in enumerate(directions)}
        nodes = Nodes()
        leaves = []
        pending = [(0, 0)]
        while pending:
            node, place = pending.pop()
            if node in self.leaves:
                leaves.append(self.leaves[node])
                continue
            axis, position, child = self.cuts[node]
            left, right = nodes.cut(place, renamed.get(axis, axis), position)
            pending += [(child + 1, right), (child, left)]
        return GrownTree(
            nodes.to_tree(basis[directions]),
            len(leaves),
            np.array([leaf.work for leaf in leaves]),
            self.rows,
            _candidates(sample, leaves, rows_per_row),
        )


def _added_rows(leaf: Leaf, cut: Cut) -> int:
    return len(cut.left.row) + len(cut.right.row) - len(leaf.row)


def _grow(sample: TreeSample, tree: _Tree, n_parts: int, max_rows: float) -> None:
    """Cut until there are ``n_parts`` parts; a leaf divides its parts between its children by their work."""
    growing = [(-tree.leaves[0].work, 0, n_parts)]  # work of each part that it becomes, node, parts
    whole: list[tuple[float, int, int]] = []
    spare = 0  # parts of leaves that cannot be cut
    stuck = 0.0  # work of the largest of them
    while growing:
        priority, node, parts = heapq.heappop(growing)
        leaf = tree.leaves[node]
        if leaf.work < _STUCK_FRACTION * stuck:
            continue
        if parts == 1 and not spare:
            whole.append((priority, node, parts))
            continue
        if parts == 1:
            parts, spare = 2, spare - 1
        cut = best_cut(sample, leaf, tree.axes, max_rows - tree.rows, parts)
        if cut is None:
            stuck = max(stuck, leaf.work)
            spare += parts - 1
            growing += whole
            whole = []
            heapq.heapify(growing)
            continue
        of_left = allot_parts((cut.left.work, cut.right.work), parts)
        for child, of_child in zip(tree.cut(node, cut), (of_left, parts - of_left), strict=True):
            heapq.heappush(growing, (-tree.leaves[child].work / of_child, child, of_child))


def _exchange(sample: TreeSample, tree: _Tree, n_parts: int, max_rows: float) -> None:
    """While one leaf has much more work than the others: cut it, and undo the cut that divides the least.

    The more cubes a cut crosses, the more work it adds; so some leaves were allotted too few parts.
    """
    for _ in range(n_parts):
        works = {node: leaf.work for node, leaf in tree.leaves.items()}
        largest = max(works, key=lambda node: works[node])
        last = tree.last_cuts()
        if not last or works[largest] * len(works) <= _MAX_PART_IMBALANCE * math.fsum(works.values()):
            return
        least = min(last, key=lambda node: tree.inner[node].work)
        _, _, left = tree.cuts[least]
        freed = len(tree.leaves[left].row) + len(tree.leaves[left + 1].row) - len(tree.inner[least].row)
        if tree.inner[least].work >= works[largest]:
            return
        leaf = tree.leaves[largest]
        cut = best_cut(sample, leaf, tree.axes, max_rows - tree.rows + freed, 2)
        if cut is None:
            return
        tree.undo(least)
        tree.cut(largest, cut)


def _cut_large(sample: TreeSample, tree: _Tree, max_leaf_rows: float, max_rows: float) -> None:
    """Cut leaves of too many rows into sides of like many rows, whatever their work.

    Of very many rows a sample is so thin that one of its pairs stands for more work than all rows of a leaf:
    growing stops at the leaves of those pairs, and others keep more rows than a task may hold.
    """
    by_rows = sample._replace(costs=sample.costs._replace(candidate=0.0, decision=0.0))
    large = [node for node, leaf in tree.leaves.items() if len(leaf.row) > max_leaf_rows]
    while large:
        node = large.pop()
        leaf = tree.leaves[node]
        cut = best_cut(by_rows, _made_anew(by_rows, leaf), tree.axes, max_rows - tree.rows, 2)
        if cut is None or max(len(cut.left.row), len(cut.right.row)) > _MAX_SIDE_OF_LARGE * len(leaf.row):
            continue
        cut = cut._replace(left=_made_anew(sample, cut.left), right=_made_anew(sample, cut.right))
        large += [child for child in tree.cut(node, cut) if len(tree.leaves[child].row) > max_leaf_rows]


def _made_anew(sample: TreeSample, leaf: Leaf) -> Leaf:
    """The same leaf at the costs of another sample."""
    return make_leaf(sample, leaf.row, leaf.is_carried, leaf.pair)


def _candidates(sample: TreeSample, leaves: list[Leaf], rows_per_row: float) -> float:
    """Estimate the candidates of all leaves, each with its own coordinates; of many, some are counted."""
    counted = leaves[:: -(-len(leaves) // _MAX_COUNTED_LEAVES)]

    def count(leaf: Leaf) -> float:
        values = sample.embedded[leaf.row]
        chosen = choose_projection(values, round(len(values) * rows_per_row), sample.eps, sample.simple.norm)
        return float(row_candidates(values, leaf.is_carried, sample.eps, chosen.projection).sum())

    return sum(in_each(sample.ranges, counted, count)) * len(leaves) / len(counted)
