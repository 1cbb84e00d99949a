"""Groups of equal trees, of which only one is compared with others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.trees.prepared import PreparedTrees, TreeOptions, check_sizes, prepare, root_digests
from epsjoin.local.trees.trees import Trees


class Groups(NamedTuple):
    """Trees in groups of equal ones, in the order of their first trees.

    Parameters
    ----------
    trees : all trees.
    firsts : the first tree of each group, prepared.
    starts : (g + 1,) int64, where each group begins in ``rows``.
    rows : (n,) int64, the numbers of the trees, group by group.
    """

    trees: Trees
    firsts: PreparedTrees
    starts: Ints
    rows: Ints

    @property
    def sizes(self) -> Ints:
        """(g,) int64, the number of trees of each group."""
        return np.diff(self.starts)


def group_trees(name: str, trees: Trees, options: TreeOptions, max_nodes: int) -> Groups:
    """Group equal trees.

    Parameters
    ----------
    name : of the argument, for messages.
    trees, options, max_nodes : see :func:`epsjoin.tree_join`.

    Raises
    ------
    ArgumentError
        Not trees.
    BudgetError
        A tree has too many nodes.
    """
    if not isinstance(trees, Trees):
        raise ArgumentError(f"{name} must be epsjoin.Trees, not {type(trees).__name__}; see Trees.from_json")
    check_sizes(trees, max_nodes)
    _, firsts, by_digest = np.unique(root_digests(trees, options), return_index=True, return_inverse=True)
    by_first = np.argsort(firsts)
    group = np.empty(len(firsts), np.int64)
    group[by_first] = np.arange(len(firsts))
    group_of = group[by_digest]
    rows = np.argsort(group_of, kind="stable")
    starts = np.searchsorted(group_of[rows], np.arange(len(firsts) + 1))
    return Groups(trees, prepare(trees.take(firsts[by_first]), options), starts, rows)


def count_equal(left: Groups, right: Groups | None) -> int:
    """Count the pairs of :func:`equal_pairs`."""
    if right is None:
        return int((left.sizes * (left.sizes - 1) // 2).sum())
    i, j = _same(left, right)
    return int((left.sizes[i] * right.sizes[j]).sum())


def equal_pairs(left: Groups, right: Groups | None) -> Pairs:
    """Return all pairs of equal trees, of one side with itself or of two."""
    if right is not None:
        i, j = _same(left, right)
        return expand(left, right, Pairs(i, j, np.zeros(len(i))))
    ends = np.repeat(left.starts[1:], left.sizes)
    places = np.arange(len(left.rows))
    later = ends - places - 1  # trees of the same group that come after
    first = np.repeat(places, later)
    second = first + 1 + _counted(later)
    return Pairs(left.rows[first], left.rows[second], np.zeros(len(first)))


def expand(left: Groups, right: Groups | None, found: Pairs) -> Pairs:
    """Return the pairs of trees that pairs of different groups stand for."""
    other = right or left
    i, j = found.left, found.right
    counts = left.sizes[i] * other.sizes[j]
    each = np.repeat(np.arange(len(i)), counts)
    number = _counted(counts)
    width = other.sizes[j][each]
    rows = left.rows[left.starts[i][each] + number // np.maximum(width, 1)]
    others = other.rows[other.starts[j][each] + number % np.maximum(width, 1)]
    if right is None:
        rows, others = np.minimum(rows, others), np.maximum(rows, others)
    distance: Floats = found.distance[each]
    return Pairs(rows, others, distance)


def _same(left: Groups, right: Groups) -> tuple[Ints, Ints]:
    """Return the groups of both sides that hold the same tree."""
    _, i, j = np.intersect1d(left.firsts.digest, right.firsts.digest, assume_unique=True, return_indices=True)
    return i.astype(np.int64), j.astype(np.int64)


def _counted(counts: Ints) -> Ints:
    """Return 0, 1, ... for each count, one after the other."""
    return np.asarray(np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts))
