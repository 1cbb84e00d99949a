"""Similarity joins of trees: every pair within k edits."""

from __future__ import annotations

from functools import partial

import numpy as np

from epsjoin.local.edit_join import MAX_PAIRS, EditJoin
from epsjoin.local.groups import count_equal
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import Counters, add_counts
from epsjoin.local.trees.groups import TreeGroups, group_trees
from epsjoin.local.trees.prepared import (
    BINS,
    MAX_NODES,
    Order,
    TreeOptions,
    check_options,
    has_lists_and_sets,
)
from epsjoin.local.trees.refine import refine_all
from epsjoin.local.trees.trees import Trees


def tree_join(
    trees: Trees,
    k: int,
    other: Trees | None = None,
    *,
    ordered: Order = False,
    relabel: int = 1,
    insert: int = 1,
    bins: tuple[int, int] = BINS,
    max_nodes: int = MAX_NODES,
    max_pairs: int = MAX_PAIRS,
    n_jobs: int | None = 1,
    counters: Counters | None = None,
) -> Pairs:
    """Find every pair of trees within k edits, sorted by (left, right).

    Parameters
    ----------
    trees : the trees; the left ones if ``other`` is given.
    k : maximum cost of the edits that turn one tree into the other, a whole number of at least 0.
    other : the right trees; without them, the trees are joined with themselves.
    ordered : False (the default): the children of a node are a set. True: they are a list, and only what
        keeps their order is an edit. "arrays": those of JSON arrays are a list, those of other nodes a set;
        where a list meets another node, both are sets.
    relabel, insert : what an edit costs, in whole units: a node gets another label; a node with at most two
        edges is inserted or deleted. ``relabel`` is at most twice ``insert``. Pass costs of 0.5 and 1 as 1
        and 2, with twice the k.
    bins : number of bins of the histograms of heights and of labels, 65,536 at most. The result does not
        depend on them; more bins let fewer candidates through, and make these slower to find.
    max_nodes : maximum number of nodes of a tree.
    max_pairs : maximum number of pairs in the result.
    n_jobs : number of threads, 1 by default; -1 is one per processor. The result is the same for any number.
    counters : dictionary to whose entries the work is added: ``trees``, ``nodes``, ``equal_groups`` (groups
        of several equal trees), ``candidates`` (pairs of different trees that the histograms let through),
        ``refinements`` (those of them whose distance was computed), ``subtree_pairs`` (distances of subtrees
        on the way), ``pairs``.

    Returns
    -------
    Pairs
        The numbers of both trees and the cost of the edits; ``left < right`` where trees are joined with
        themselves.

    Raises
    ------
    ArgumentError
        An argument has a wrong type or value.
    BudgetError
        A tree has more than ``max_nodes`` nodes, or there are more than ``max_pairs`` pairs; if sizes and
        equal trees alone show this, it is raised before anything is compared.

    See Also
    --------
    tree_knn : the nearest trees of each query, without a k.
    tree_edits : the edits between two trees.

    Notes
    -----
    Equal trees are grouped, and each group is compared once. The histograms of heights and labels, one after
    the other, are points whose Manhattan distance is at most 2 k for trees within k edits:
    :func:`epsjoin.self_join` finds the candidates. Those that the other bounds leave are compared by a
    recurrence over pairs of subtrees: O(a b) for trees with a and b different subtrees, of which those whose
    sizes differ by more than k are skipped; where children are sets, an assignment for each pair. 8 a b bytes
    per thread.

    References
    ----------
    Kailing, Kriegel, Schönauer, Seidl, *Efficient Similarity Search for Hierarchical Data in Large
    Databases*, EDBT 2004, section 4: the histograms. Zhang, Wang, Shasha 1996: the distance.

    Examples
    --------
    >>> trees = Trees.from_json(['{"mark": "bar", "size": 3}', '{"size": 3, "mark": "line"}', "[]"])
    >>> tree_join(trees, k=1)
    Pairs(left=array([0]), right=array([1]), distance=array([1.]))
    """
    join = EditJoin.check("trees", k, max_pairs, n_jobs, counters)
    options = check_options(ordered, relabel, insert, bins)
    left = group_trees("trees", trees, options, max_nodes)
    right = None if other is None else group_trees("other", other, options, max_nodes)
    for side in (left,) if right is None else (left, right):
        n_equal = int(np.count_nonzero(side.groups.sizes > 1))
        add_counts(join.counters, trees=len(side.trees), nodes=len(side.trees.size), equal_groups=n_equal)
    nodes = sum(int(side.trees.n_nodes.max(initial=1)) for side in (left, right or left))
    k = min(k, options.costs.relabel + options.costs.insert * nodes)  # no two trees are farther apart
    join = join._replace(k=k)
    right_groups = None if right is None else right.groups
    join.refuse_more(max(count_equal(left.groups, right_groups), _count_tiny(left, right, k, options)))
    add_counts(join.counters, candidates=0, refinements=0, subtree_pairs=0)
    firsts = left.firsts, (right or left).firsts
    compare = partial(
        refine_all, *firsts, limit=k, options=options, n_threads=join.n_threads, counters=join.counters
    )
    points = left.firsts.points(options.costs), firsts[1].points(options.costs)
    has_more_at_0 = k == 0 and has_lists_and_sets(options, left.trees, (right or left).trees)
    return join.find(left.groups, right_groups, points, 2, compare, has_more_at_0=has_more_at_0)


def _count_tiny(left: TreeGroups, right: TreeGroups | None, k: int, options: TreeOptions) -> int:
    """Count pairs so small that k edits delete all but the root, relabel it and insert the rest."""
    relabel, insert = options.costs
    if k < relabel:
        return 0
    most = (k - relabel) // insert + 2  # nodes of both together
    sizes = np.sort(left.trees.n_nodes)
    others = sizes if right is None else np.sort(right.trees.n_nodes)
    pairs = int(np.searchsorted(others, most - sizes, "right").sum())
    if right is None:
        pairs = (pairs - int(np.count_nonzero(2 * sizes <= most))) // 2
    return pairs
