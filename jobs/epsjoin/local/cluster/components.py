"""Connected components of more edges than one task can hold, in rounds over parts of the edges.

The edges are in *parts*, each of which is contracted to a forest that one task can hold. A round has two
steps:

1. :class:`Meeting`: the rows of all parts are sorted by node. The smallest root m that any part knows for a
   node becomes its root. Every other root r of the node is *hooked* onto m, in the part that knew r. Every
   part in which the node itself is a root gets m as an *answer*.
2. :func:`settle`: each part contracts its rows and the answers. So a tree gets the answer to its root as its
   new root, which doubles the paths from node to root.

When a round has no hook and no answer, each node has one row, and no root has a smaller root: the rows are
the components, each named by its smallest node.

Notes
-----
*Exact.* Each round keeps what is connected, and connects nothing else. Let m(x) be the smallest root of x.
The row (x, m(x)) stays in one part, and a repeat of it may go. A hook (r, m(x)) replaces (x, r): x stays tied
to m(x), and r is tied to it. An answered node leaves the part that asked: it stays tied to its answer where
its own row lies, and its answer is smaller, so that the chain of answers ends at a node that stays.

*It ends.* No round makes more edges, and each hook or answer makes the sum of the ends' ranks smaller.

*Bounded.* A node has at most one row per part, however many edges it has. The edges of a part never become
more, and a part gets at most as many answers as it has trees. Rows are never collected by root, so that a
component of a billion nodes is no more work for any task than a billion small ones.

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

from epsjoin.kernels.arrays import Ints, Ints32
from epsjoin.kernels.cluster.components import ANSWER, NOTHING, meet
from epsjoin.kernels.ids import index_ids, rows_of
from epsjoin.local.arguments import check_count
from epsjoin.local.cluster.from_pairs import Forest, spanning_forest

_MIN_CONTRACTED_EDGES = 1 << 20
"""Minimum number of waiting edges for a contraction, since each contraction reads the whole forest again."""


class Met(NamedTuple):
    """Rows to send back to the parts they came from.

    Parameters
    ----------
    place : (n,) int64, index of the row in the rows that were passed.
    node, root : (n,) int64, ``root < node``.
    kind : (n,) int32, ``EDGE``, ``HOOK`` or ``ANSWER``.
    """

    place: Ints
    node: Ints
    root: Ints
    kind: Ints32


class Meeting:
    """Step 1 on rows that come in batches, in order; it keeps four numbers from one batch to the next."""

    def __init__(self) -> None:
        self._carry = np.zeros(4, dtype=np.int64)

    def of(self, node: Ints, root: Ints) -> Met:
        """Compare the rows of each node with its smallest root.

        Parameters
        ----------
        node, root : (n,) int64, the next batch of the rows in the order of (node, root), ``root <= node``. In
            a row with ``root == node`` a part asks for the root of its root. Not modified.

        Notes
        -----
        O(n).
        """
        node, root, kind = node.copy(), root.copy(), np.empty(node.size, dtype=np.int32)
        meet(node, root, self._carry, kind)
        place = np.flatnonzero(kind != NOTHING)
        return Met(place, node[place], root[place], kind[place])


def settle(node: Ints, root: Ints, kind: Ints32) -> Forest:
    """Step 2: contract the rows of a part; nodes that got an answer leave it, as they have a row elsewhere.

    Parameters
    ----------
    node, root, kind : (n,) int64, int64, int32: all rows of the part, in any order.

    Returns
    -------
    The rows of the part for the next round: its edges, which are not more than the rows that are no answers;
    then each root once as ``(root, root)``, which asks for its root. Empty only if the input is.

    Notes
    -----
    The cost is that of :func:`epsjoin.local.cluster.from_pairs.spanning_forest`. The result does not depend
    on the order of the rows.
    """
    trees = spanning_forest(node, root)
    roots = np.unique(trees.root)
    stays = rows_of(index_ids(np.unique(node[kind == ANSWER])), trees.node) < 0
    return Forest(np.concatenate((trees.node[stays], roots)), np.concatenate((trees.root[stays], roots)))


def contract(batches: Iterable[tuple[Ints, Ints]], most: int) -> Iterator[Forest]:
    """Contract edges that come in batches, and never hold more than ``most`` of them.

    Parameters
    ----------
    batches : (left, right), (n,) int64 each, in any number and of any length.
    most : maximum number of edges in memory, including those of the forest so far; at least 1.

    Yields
    ------
    Forests of at least one and at most ``most`` edges. There is only one if the whole forest has at most half
    of ``most`` edges, or if there are at most ``most`` edges; then it does not depend on the order of the
    edges. Otherwise the division into forests does.

    Raises
    ------
    ArgumentError
        ``most`` is below 1; as :func:`epsjoin.local.cluster.from_pairs.spanning_forest`, when it is reached.

    Notes
    -----
    Edges wait until there are as many as in the forest so far, so that each edge is read about twice, not
    once per batch.
    """
    most = check_count("most", most)
    nothing = np.empty(0, dtype=np.int64)
    held, waiting, n_waiting = Forest(nothing, nothing), [(nothing, nothing)], 0
    for left, right in batches:
        first = 0
        while first < left.size:
            if held.node.size + n_waiting >= most:
                held, waiting, n_waiting = _contract_waiting(held, waiting), [], 0
                if 2 * held.node.size > most:
                    yield held
                    held = Forest(nothing, nothing)
            last = min(left.size, first + most - held.node.size - n_waiting)
            waiting.append((left[first:last], right[first:last]))
            n_waiting += last - first
            first = last
        if n_waiting >= max(_MIN_CONTRACTED_EDGES, held.node.size):
            held, waiting, n_waiting = _contract_waiting(held, waiting), [], 0
    held = _contract_waiting(held, waiting)
    if held.node.size:
        yield held


def _contract_waiting(held: Forest, waiting: list[tuple[Ints, Ints]]) -> Forest:
    return spanning_forest(
        np.concatenate((held.node, *(left for left, _ in waiting))),
        np.concatenate((held.root, *(right for _, right in waiting))),
    )
