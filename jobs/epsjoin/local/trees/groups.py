"""Groups of equal trees, of which only one is compared with others."""

from __future__ import annotations

from typing import NamedTuple

from epsjoin.errors import ArgumentError
from epsjoin.local.groups import Groups, group_equal
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
