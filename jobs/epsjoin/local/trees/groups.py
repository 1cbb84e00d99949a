"""Groups of equal trees, of which only one is compared with others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Ints
from epsjoin.local.groups import Groups, expand, group_equal, pairs_within
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.trees.prepared import PreparedTrees, TreeOptions, check_sizes, prepare, root_digests
from epsjoin.local.trees.trees import Trees


class TreeGroups(NamedTuple):
    """Trees in groups of equal ones.

    Parameters
    ----------
    trees : all trees.
    groups : which of them are equal.
    firsts : the first tree of each group, prepared.
    """

    trees: Trees
    groups: Groups
    firsts: PreparedTrees


def group_trees(name: str, trees: Trees, options: TreeOptions, max_nodes: int) -> TreeGroups:
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
    groups = group_equal(root_digests(trees, options))
    return TreeGroups(trees, groups, prepare(trees.take(groups.firsts), options))


def count_equal(left: TreeGroups, right: TreeGroups | None) -> int:
    """Count the pairs of :func:`equal_pairs`."""
    if right is None:
        return left.groups.n_within
    i, j = _same(left, right)
    return int((left.groups.sizes[i] * right.groups.sizes[j]).sum())


def equal_pairs(left: TreeGroups, right: TreeGroups | None) -> Pairs:
    """Return all pairs of equal trees, of one side with itself or of two."""
    if right is None:
        return pairs_within(left.groups)
    i, j = _same(left, right)
    return expand(left.groups, right.groups, Pairs(i, j, np.zeros(len(i))))


def _same(left: TreeGroups, right: TreeGroups) -> tuple[Ints, Ints]:
    """Return the groups of both sides that hold the same tree."""
    _, i, j = np.intersect1d(left.firsts.digest, right.firsts.digest, assume_unique=True, return_indices=True)
    return i.astype(np.int64), j.astype(np.int64)
