"""Similarity joins of trees: every pair within k edits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from epsjoin.errors import BudgetError
from epsjoin.local.arguments import check_count
from epsjoin.local.groups import expand
from epsjoin.local.join.arrays import iter_join, iter_self_join
from epsjoin.local.sweep.pairs import Pairs, collect
from epsjoin.local.sweep.sweeping import Counters, add_counts, check_counters, check_n_jobs
from epsjoin.local.trees.groups import TreeGroups, count_equal, equal_pairs, group_trees
from epsjoin.local.trees.prepared import BINS, MAX_NODES, Order, TreeOptions, check_options
from epsjoin.local.trees.refine import refine_all
from epsjoin.local.trees.trees import Trees

MAX_PAIRS = 10**8
"""Default maximum number of pairs."""


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
    trees : the trees; the left ones where there are others.
    k : maximum cost of the edits that turn one tree into the other, a whole number of at least 0.
    other : the right trees; without them, the trees are joined with themselves.
    ordered : False (the default): the children of a node are a set. True: they are a list, and only what
        keeps their order is an edit. "arrays": those of JSON arrays are a list, those of other nodes a set;
        where a list meets another node, both are sets.
    relabel, insert : what an edit costs, in whole units: a node gets another label; a node with at most two
        edges is inserted or deleted. ``relabel`` is at most twice ``insert``. Costs of 0.5 and 1 are given as
        1 and 2, with twice the k.
    bins : number of bins of the histograms of heights and of labels. The result does not depend on them; more
        bins let fewer candidates through, and make these slower to find.
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
        A tree has more than ``max_nodes`` nodes, or there are more than ``max_pairs`` pairs; where sizes and
        equal trees alone show that, before anything is compared.

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
    check_count("k", k, 0)
    check_count("max_pairs", max_pairs, 0)
    options, counted = check_options(ordered, relabel, insert, bins), check_counters(counters)
    n_threads = check_n_jobs(n_jobs)
    left = group_trees("trees", trees, options, max_nodes)
    right = None if other is None else group_trees("other", other, options, max_nodes)
    for side in (left,) if right is None else (left, right):
        n_equal = int(np.count_nonzero(side.groups.sizes > 1))
        add_counts(counted, trees=len(side.trees), nodes=len(side.trees.size), equal_groups=n_equal)
    sure = max(count_equal(left, right), _count_tiny(left, right, k, options))
    if sure > max_pairs:
        raise _too_many(f"at least {sure:,}", max_pairs)
    batches = _batches(left, right, k, options, n_threads, counted, max_pairs)
    return collect(batches, (len(trees), len(trees if other is None else other)))


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


def _batches(
    left: TreeGroups,
    right: TreeGroups | None,
    k: int,
    options: TreeOptions,
    n_threads: int,
    counters: Counters,
    max_pairs: int,
) -> Iterator[Pairs]:
    """Yield all pairs, those of equal trees first."""
    equal = equal_pairs(left, right)
    n_pairs = len(equal.left)
    yield equal
    if k > 0:
        points, costs = left.firsts.points(options.costs), options.costs
        if right is None:
            candidates = iter_self_join(points, 2.0 * k, "manhattan", n_jobs=n_threads)
        else:
            others = right.firsts.points(costs)
            candidates = iter_join(points, others, 2.0 * k, "manhattan", n_jobs=n_threads)
        firsts = (right or left).firsts
        sizes, other_sizes = left.groups.sizes, (right or left).groups.sizes
        for found in refine_all(left.firsts, firsts, candidates, k, options, n_threads, counters):
            n_pairs += int((sizes[found.left] * other_sizes[found.right]).sum())
            if n_pairs > max_pairs:
                raise _too_many("more", max_pairs)
            yield expand(left.groups, None if right is None else right.groups, found)
    add_counts(counters, candidates=0, refinements=0, subtree_pairs=0, pairs=n_pairs)


def _too_many(how_many: str, max_pairs: int) -> BudgetError:
    return BudgetError(
        f"there are {how_many} pairs, and max_pairs = {max_pairs:,}; a smaller k gives fewer, and so does "
        "leaving out all but one of trees that are equal"
    )
