"""What follows from the sizes and labels of trees in postorder: parents, heights, digests of subtrees.

A node comes after all nodes below it, so the sizes of the subtrees alone say what hangs where: the last child
of node v is v - 1, and the child before child u is u - size[u].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bools, Ints

Labels = NDArray[np.uint64]

UNORDERED, ORDERED, ARRAYS = 0, 1, 2
"""Whose children have an order: nobody's, everybody's, those of lists."""

_SHIFT, _FIRST, _SECOND = np.uint64(32), np.uint64(0xD6E8FEB86659FD93), np.uint64(0x9E3779B97F4A7C15)


class Subtrees(NamedTuple):
    """The different subtrees of each tree, each once, smaller ones before those that contain them.

    Parameters
    ----------
    starts : (n + 1,) int64, where the subtrees of each tree begin; the last one of a tree is the whole tree.
    label : (s,) uint64, the label of the subtree's root.
    size : (s,) int64, its number of nodes.
    digest : (s,) uint64, equal for equal subtrees.
    is_ordered : (s,) bool, whether the order of the root's children counts.
    child_starts : (s + 1,) int64, where the children of each subtree begin in ``child``.
    child : the children, by their places among the subtrees of the same tree: from left to right where the
        order counts, by digest elsewhere.
    """

    starts: Ints
    label: Labels
    size: Ints
    digest: Labels
    is_ordered: Bools
    child_starts: Ints
    child: Ints


@njit
def first_misfit(starts: Ints, size: Ints) -> int:
    """Find the first node whose size cannot be that of a subtree in postorder; -1 if there is none.

    Parameters
    ----------
    starts : (n + 1,) int64, where the nodes of each tree begin, ascending.
    size : (nodes,) int64.
    """
    for tree in range(starts.size - 1):
        begin, end = starts[tree], starts[tree + 1]
        for node in range(begin, end):
            first = node - size[node] + 1
            if size[node] < 1 or first < begin:
                return int(node)
            child = node - 1
            while child >= first:
                child -= size[child]
            if child != first - 1:
                return int(node)
        if size[end - 1] != end - begin:
            return int(end - 1)
    return -1


@njit
def fill_shape(starts: Ints, size: Ints, parent: Ints, height: Ints, degree: Ints) -> None:
    """Fill the parent, the height and the number of children of every node.

    Parameters
    ----------
    starts, size : see :func:`first_misfit`.
    parent : (nodes,) int64, filled: the parent's place among the nodes of its tree, -1 for a root.
    height : (nodes,) int64, filled: the number of edges of the longest path down to a leaf, 0 for a leaf.
    degree : (nodes,) int64, filled: the number of children.
    """
    for tree in range(starts.size - 1):
        begin = starts[tree]
        for node in range(begin, starts[tree + 1]):
            parent[node], height[node], degree[node] = -1, 0, 0
            child = node - 1
            while child > node - size[node]:
                parent[child] = node - begin
                height[node] = max(height[node], height[child] + 1)
                degree[node] += 1
                child -= size[child]


@njit
def _mix(word: np.uint64) -> np.uint64:
    """Spread every bit over the whole word, one to one."""
    word = (word ^ (word >> _SHIFT)) * _FIRST
    word = (word ^ (word >> _SHIFT)) * _FIRST
    return word ^ (word >> _SHIFT)


@njit
def fill_digests(label: Labels, size: Ints, is_ordered: Bools, digest: Labels) -> None:
    """Fill a digest of every node's subtree; equal subtrees have equal ones.

    Parameters
    ----------
    label : (nodes,) uint64.
    size : (nodes,) int64.
    is_ordered : (nodes,) bool; where it is False, children in another order make an equal subtree.
    digest : (nodes,) uint64, filled. Two different subtrees have equal ones with a chance of about 2^-64.
    """
    for node in range(size.size):
        found = _mix(label[node] ^ _SECOND)
        below = np.uint64(0)
        child = node - 1
        while child > node - size[node]:
            if is_ordered[node]:
                below = _mix(below * _SECOND + digest[child])
            else:
                below += _mix(digest[child] ^ _FIRST)
            child -= size[child]
        if is_ordered[node]:
            found ^= _SECOND
        digest[node] = _mix(found * _SECOND + below + np.uint64(size[node]))


@njit
def fill_children(size: Ints, digest: Labels, place: Ints, node_of: Ints, found: Subtrees) -> None:
    """Fill the children of every different subtree.

    Parameters
    ----------
    size, digest : (nodes,), see :func:`fill_digests`.
    place : (nodes,) int64, the place of each node's subtree among the different ones of its tree.
    node_of : (s,) int64, the first node of each different subtree.
    found : the different subtrees, whose ``child`` is filled.
    """
    for subtree in range(node_of.size):
        node = node_of[subtree]
        begin, at = found.child_starts[subtree], found.child_starts[subtree + 1]
        child = node - 1
        while child > node - size[node]:
            at -= 1
            found.child[at] = child
            child -= size[child]
        children = found.child[begin : found.child_starts[subtree + 1]]
        if not found.is_ordered[subtree] and children.size > 1:
            children[:] = children[np.argsort(digest[children])]
        for at in range(children.size):
            children[at] = place[children[at]]
