"""Make trees of cuts of their nodes, for plans and kernels."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Floats
from epsjoin.kernels.plan.cuts import HASH_AXIS, HASH_BIT, MAX_AXES, CutTree


class Nodes:
    """The nodes of a tree that grows: node 0 is the root, and every node is a leaf until it is cut."""

    def __init__(self) -> None:
        self.axis, self.position = [HASH_AXIS], [0.0]
        self.left, self.right = [-1], [-1]

    def cut(self, node: int, axis: int, position: float) -> tuple[int, int]:
        """Cut a leaf and return its children, the left one first."""
        children = len(self.axis), len(self.axis) + 1
        self.axis[node], self.position[node] = axis, position
        self.left[node], self.right[node] = children
        self.axis += [HASH_AXIS, HASH_AXIS]
        self.position += [0.0, 0.0]
        self.left += [-1, -1]
        self.right += [-1, -1]
        return children

    def to_tree(self, basis: Floats | None = None) -> CutTree:
        """Make the tree; see :func:`make_tree`."""
        return make_tree(self.axis, self.position, self.left, self.right, basis)


def prune_tree(tree: CutTree, n_cuts: int) -> CutTree:
    """Keep the first cuts of a tree from :func:`epsjoin.local.plan.tree.box_tree.grow_box_tree`."""
    n_nodes = 2 * n_cuts + 1
    children = [np.where(child[:n_nodes] < n_nodes, child[:n_nodes], -1) for child in (tree.left, tree.right)]
    return make_tree(
        tree.axis[:n_nodes].tolist(),
        tree.position[:n_nodes].tolist(),
        children[0].tolist(),
        children[1].tolist(),
    )


def make_tree(
    axis: list[int], position: list[float], left: list[int], right: list[int], basis: Floats | None = None
) -> CutTree:
    """Make a tree of its nodes: number the leaves from left to right and assign each axis its mask bit.

    Parameters
    ----------
    axis, position, left, right : one entry per node, node 0 the root; a node without children
        (``left == -1``) is a leaf.
    basis : directions that are cut, see :class:`CutTree`; None: none.

    Raises
    ------
    ValueError
        The cuts use more than 62 axes.
    """
    axes = sorted({a for a, child in zip(axis, left, strict=True) if child >= 0 and a != HASH_AXIS})
    if len(axes) > MAX_AXES:
        raise ValueError(f"a tree may cut {MAX_AXES} axes, not {len(axes)}")
    bits = {HASH_AXIS: HASH_BIT, **{a: number for number, a in enumerate(axes, 1)}}
    part = [-1] * len(axis)
    pending, n_parts = [0], 0
    while pending:
        node = pending.pop()
        if left[node] < 0:
            part[node] = n_parts
            n_parts += 1
        else:
            pending += [right[node], left[node]]
    return CutTree(
        np.array(axis, np.int64),
        np.array(position, np.float64),
        np.array(left, np.int64),
        np.array(right, np.int64),
        np.array(part, np.int64),
        np.array([bits[a] if child >= 0 else 0 for a, child in zip(axis, left, strict=True)], np.int64),
        np.empty((0, 0)) if basis is None or len(basis) == 0 else basis,
    )
