"""Connected components of edges that no single task could hold, in steps on shares of them.

The edges lie in *parts*, each contracted to a forest that one task can hold. A round is two steps:

1. :class:`Meeting`: the rows of all parts are brought together by node. The smallest root m that any part
   knows for a node is its root now; every other root r of the node is hooked onto m, in the part that knew
   r; every part in which the node itself is a root is answered m.
2. :func:`settle`: each part contracts its rows and the answers. So a tree is hung under the answer to its
   root, which doubles the paths from node to root.

When a round hooks and answers nothing, each node has one row, and no root has a smaller one: the rows are
the components, each named by its smallest node.

Notes
-----
*Exact.* Each round keeps what is connected and connects nothing else. Write m(x) for the smallest root of x.
The row (x, m(x)) stays in one part, and a repeat of it may go. A hook (r, m(x)) replaces (x, r): x stays tied
to m(x), and r is tied to it. An answered node leaves the part that asked: it stays tied to its answer where
its own row lies, and its answer is smaller, so that the chain of answers ends at a node that stays.

*It ends.* No round makes more edges, a hook or an answer makes the sum of the ends' ranks smaller.

*Bounded.* A node meets at most one row per part, hub or not. Each part's edges never become more; to these
come at most as many answers as it has trees. What is spread is never gathered by root, so that a component
of a billion nodes burdens no task more than a billion small ones would.

*Rounds.* A path of n nodes with one edge per part takes at most about log2(n) + 2 rounds, in whatever order
the nodes are named (measured, see the tests; where neighbouring edges lie in one part, the parts count, not
the nodes). As for the papers' algorithms, no bound below O(log(n)^2) is proved.

References
----------
Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii: Connected components in MapReduce and beyond, SoCC 2014:
a hook is what small-star does at a node, an answer what large-star does. Departures: both act
in one round on the same rows; large-star gathers all larger neighbours of a node in one place, here the
parts that hold them ask for each root once, and the neighbours stay where they are; parts are contracted.
Liu, Tarjan: Simple concurrent connected components algorithms, ACM TOPC 9 (2022): the family of these steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.kernels.cluster.components import ANSWER, NOTHING, meet
from epsjoin.kernels.ids import index_ids, rows_of
from epsjoin.local.arguments import IntColumn, check_count
from epsjoin.local.cluster.from_pairs import Forest, spanning_forest

_AT_ONCE = 1 << 20
"""Edges worth a contraction: fewer are not, because each one goes over the whole forest held."""


class Met(NamedTuple):
    """Rows to send back to the parts they came from.

    Parameters
    ----------
    place : (n,) int64, place of the row in the share given.
    node, root : (n,) int64, ``root < node``.
    kind : (n,) int32, ``EDGE``, ``HOOK`` or ``ANSWER``.
    """

    place: IntColumn
    node: IntColumn
    root: IntColumn
    kind: npt.NDArray[np.int32]


class Meeting:
    """Step 1 on rows that come in shares, in order; it keeps four numbers between them."""

    def __init__(self) -> None:
        self._carry = np.zeros(4, dtype=np.int64)

    def of(self, node: IntColumn, root: IntColumn) -> Met:
        """Compare the rows of each node with its smallest root.

        Parameters
        ----------
        node, root : (n,) int64, the next share of the rows in the order of (node, root), ``root <= node``;
            ``root == node`` where a part asks for the root of its root. Not modified.

        Notes
        -----
        O(n).
        """
        node, root, kind = node.copy(), root.copy(), np.empty(node.size, dtype=np.int32)
        meet(node, root, self._carry, kind)
        place = np.flatnonzero(kind != NOTHING)
        return Met(place, node[place], root[place], kind[place])


def settle(node: IntColumn, root: IntColumn, kind: npt.NDArray[np.int32]) -> Forest:
    """Step 2: contract a part's rows; nodes that were answered leave, for they have a row elsewhere.

    Parameters
    ----------
    node, root, kind : (n,) int64, int64, int32: all rows of the part, in any order.

    Returns
    -------
    The part's rows for the next round: its edges, no more than the rows given that are no answers; then each
    root once as ``(root, root)``, which asks. Not empty unless the input is.

    Notes
    -----
    As :func:`epsjoin.local.cluster.from_pairs.spanning_forest`; the result does not depend on the order of
    the rows.
    """
    trees = spanning_forest(node, root)
    roots = np.unique(trees.root)
    stays = rows_of(index_ids(np.unique(node[kind == ANSWER])), trees.node) < 0
    return Forest(np.concatenate((trees.node[stays], roots)), np.concatenate((trees.root[stays], roots)))


def contract(shares: Iterable[tuple[IntColumn, IntColumn]], most: int) -> Iterator[Forest]:
    """Contract edges that come in shares, never holding more than ``most`` of them.

    Parameters
    ----------
    shares : (left, right), (n,) int64 each, in any number and of any length.
    most : edges held at a time, the forest so far counted; at least 1.

    Yields
    ------
    Forests of at least one and at most ``most`` edges. One, if the whole forest has at most half of ``most``
    edges or all edges are at most ``most``: then it does not depend on the order of the edges, otherwise
    the division does.

    Raises
    ------
    ArgumentError
        ``most`` is below 1; as :func:`epsjoin.local.cluster.from_pairs.spanning_forest`, when it is reached.

    Notes
    -----
    Edges wait until they are as many as those of the forest held, so that an edge is gone over about twice,
    not once per share.
    """
    most = check_count("most", most)
    nothing = np.empty(0, dtype=np.int64)
    held, waiting, n_waiting = Forest(nothing, nothing), [(nothing, nothing)], 0
    for left, right in shares:
        first = 0
        while first < left.size:
            if held.node.size + n_waiting >= most:
                held, waiting, n_waiting = _with(held, waiting), [], 0
                if 2 * held.node.size > most:
                    yield held
                    held = Forest(nothing, nothing)
            last = min(left.size, first + most - held.node.size - n_waiting)
            waiting.append((left[first:last], right[first:last]))
            n_waiting += last - first
            first = last
        if n_waiting >= max(_AT_ONCE, held.node.size):
            held, waiting, n_waiting = _with(held, waiting), [], 0
    held = _with(held, waiting)
    if held.node.size:
        yield held


def _with(held: Forest, waiting: list[tuple[IntColumn, IntColumn]]) -> Forest:
    return spanning_forest(
        np.concatenate((held.node, *(left for left, _ in waiting))),
        np.concatenate((held.root, *(right for _, right in waiting))),
    )
