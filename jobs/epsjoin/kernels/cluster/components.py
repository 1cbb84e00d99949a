"""Rows of many forests that share a node: the smallest root that any of them knows."""

from __future__ import annotations

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Ints, Ints32

NOTHING, EDGE, HOOK, ANSWER = range(4)
"""What becomes of a row: it goes; it stays; its root is tied to a smaller one; its forest learns of one."""


@njit
def meet(node: Ints, root: Ints, carry: Ints, kind: Ints32) -> None:
    """Compare all rows of a node with the first of them, in one pass that remembers three numbers.

    Parameters
    ----------
    node, root : (n,) int64, rising by (node, root), ``root <= node``; a row with ``root == node`` says that
        a forest has the node as a root. Modified: where ``kind`` is not ``NOTHING`` the row to send back.
    carry : (4,) int64, all 0 before the first batch of rows: whether a node is open, that node, its
        smallest root, the last root seen. Modified; the next batch goes on with it.
    kind : (n,) int32, output.

    Notes
    -----
    O(n), no allocation. With m the smallest root of a node, (node, m) stays an ``EDGE`` once; a repeated row
    is ``NOTHING``; (node, r) with another root r becomes the ``HOOK`` (r, m); (node, node) becomes the
    ``ANSWER`` (node, m), ``NOTHING`` where no smaller root is known.
    """
    is_open, at, least, last = carry[0], carry[1], carry[2], carry[3]
    for i in range(node.size):
        if not is_open or node[i] != at:
            is_open, at, least, last = 1, node[i], root[i], root[i]
            kind[i] = EDGE if least < at else NOTHING
        elif root[i] == at:
            kind[i] = ANSWER if least < at else NOTHING
            root[i] = least
        elif root[i] == last:
            kind[i] = NOTHING
        else:
            kind[i] = HOOK
            last = root[i]
            node[i], root[i] = last, least
    carry[0], carry[1], carry[2], carry[3] = is_open, at, least, last
