"""The edit distance of two trees."""

from __future__ import annotations

import numpy as np

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels.arrays import Ints
from epsjoin.kernels.trees.distance import fill_distances
from epsjoin.kernels.trees.shape import ORDERED
from epsjoin.local.trees.prepared import Order, PreparedTrees, TreeOptions, check_options, prepare
from epsjoin.local.trees.refine import bounds_of
from epsjoin.local.trees.trees import Trees

MAX_CELLS = 10**8
"""Maximum number of pairs of subtrees, or of children of two nodes, that are kept at a time."""
_FIRST: Ints = np.zeros(1, np.int64)


def tree_distance(a: Trees, b: Trees, *, ordered: Order = False, relabel: int = 1, insert: int = 1) -> int:
    """Compute the edit distance of two trees.

    Parameters
    ----------
    a, b : one tree each.
    ordered, relabel, insert : see :func:`tree_join`.

    Returns
    -------
    int
        The cost of the cheapest edits that turn one tree into the other, the same in both directions.

    Raises
    ------
    ArgumentError
        An argument has a wrong type or value, or there is not one tree each.
    BudgetError
        More than 100 million pairs of different subtrees, or of children of two nodes, would have to be kept.

    See Also
    --------
    tree_edits : the edits themselves.

    Notes
    -----
    The degree-2 edit distance: only leaves and nodes with one child are inserted and deleted, also at the
    root. It is at least the general edit distance, for which no polynomial algorithm is known where children
    have no order. It is computed within a limit, from the lower bound on, which is doubled until it is
    enough.

    Examples
    --------
    >>> a, b = Trees.from_brackets(["{a{b}{c}}"]), Trees.from_brackets(["{a{c}{x{b}}}"])
    >>> tree_distance(a, b), tree_distance(a, b, ordered=True)
    (1, 3)
    """
    options = check_options(ordered, relabel, insert)
    return distance_of(*check_pair(a, b, options), options)


def check_pair(a: Trees, b: Trees, options: TreeOptions) -> tuple[PreparedTrees, PreparedTrees]:
    """Prepare two trees.

    Raises
    ------
    ArgumentError
        Not one tree each.
    """
    for name, given in (("a", a), ("b", b)):
        if not isinstance(given, Trees) or len(given) != 1:
            what = f"{len(given)} trees" if isinstance(given, Trees) else type(given).__name__
            raise ArgumentError(f"{name} must be epsjoin.Trees with one tree, as trees.take([0]), not {what}")
    return prepare(a, options), prepare(b, options)


def distance_of(left: PreparedTrees, right: PreparedTrees, options: TreeOptions) -> int:
    """Return the distance of two trees that are prepared.

    Raises
    ------
    BudgetError
        See :func:`tree_distance`.
    """
    if left.digest[0] == right.digest[0]:
        return 0
    _refuse_many(left, right, int(len(left.subtrees.size) * len(right.subtrees.size)), "pairs of subtrees")
    farthest = options.costs.relabel + options.costs.insert * int(
        left.histograms.size[0] + right.histograms.size[0] - 2
    )
    limit = int(bounds_of(left, _FIRST, right, _FIRST, options)[0])
    distances = np.empty(1, np.int64)
    while True:
        widest = [int(np.diff(side.subtrees.child_starts).max()) for side in (left, right)]
        if options.may_cancel:  # each child that is left costs an edit
            widest = [min(width, limit // min(options.costs)) for width in widest]
        if options.order != ORDERED:
            _refuse_many(left, right, widest[0] * widest[1], "pairs of children")
        fill_distances(
            left.subtrees,
            _FIRST,
            right.subtrees,
            _FIRST,
            options.costs,
            limit,
            options.may_cancel,
            distances,
        )
        if distances[0] <= limit:
            return int(distances[0])
        limit = min(2 * max(limit, 1), farthest)


def _refuse_many(left: PreparedTrees, right: PreparedTrees, cells: int, what: str) -> None:
    if cells > MAX_CELLS:
        raise BudgetError(
            f"trees of {left.histograms.size[0]:,} and {right.histograms.size[0]:,} nodes have {cells:,} "
            f"{what}, more than {MAX_CELLS:,}"
        )
