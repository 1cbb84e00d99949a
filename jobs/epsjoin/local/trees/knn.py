"""The nearest trees of each query, in several steps: bounds first, distances only if they are needed."""

from __future__ import annotations

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.trees.distance import fill_distances
from epsjoin.local.arguments import MAX_COLUMNS, check_count
from epsjoin.local.neighbours.nearest import KNearest
from epsjoin.local.sweep.sweeping import Counters, add_counts, check_counters
from epsjoin.local.trees.prepared import (
    BINS,
    MAX_NODES,
    Order,
    PreparedTrees,
    TreeOptions,
    check_options,
    check_sizes,
    prepare,
)
from epsjoin.local.trees.refine import bounds_of
from epsjoin.local.trees.trees import Trees


def tree_knn(
    queries: Trees,
    trees: Trees,
    n: int,
    *,
    ordered: Order = False,
    relabel: int = 1,
    insert: int = 1,
    bins: tuple[int, int] = BINS,
    max_nodes: int = MAX_NODES,
    counters: Counters | None = None,
) -> KNearest:
    """Find the n nearest trees of every query.

    Parameters
    ----------
    queries, trees : the trees; a query that is one of the trees finds itself, too.
    n : number of neighbours, 1 to the number of trees.
    ordered, relabel, insert, bins, max_nodes : see :func:`tree_join`.
    counters : dictionary to whose entries the work is added: ``queries``, ``refinements`` (pairs whose
        distance was computed), ``subtree_pairs`` (distances of subtrees on the way).

    Returns
    -------
    KNearest
        The numbers of the trees and their distances, the nearest first; of trees at the same distance the
        smallest number first.

    Raises
    ------
    ArgumentError
        An argument has a wrong type or value.
    BudgetError
        A tree has more than ``max_nodes`` nodes.

    See Also
    --------
    tree_join : all pairs within k.

    Notes
    -----
    The lower bounds of all trees are computed, and distances in their order, until the next bound is above
    the distance of the n-th nearest tree so far. No other tree can be left out by these bounds: this is
    optimal. A query takes O(trees x bins) for the bounds.

    References
    ----------
    Seidl, Kriegel, *Optimal Multi-Step k-Nearest Neighbor Search*, SIGMOD 1998.

    Examples
    --------
    >>> trees = Trees.from_brackets(["{a{b}}", "{a{b}{c}}", "{x}"])
    >>> tree_knn(Trees.from_brackets(["{a{b}{d}}"]), trees, n=2).neighbour.tolist()
    [[0, 1]]
    """
    for name, given in (("queries", queries), ("trees", trees)):
        if not isinstance(given, Trees):
            raise ArgumentError(
                f"{name} must be epsjoin.Trees, not {type(given).__name__}; see Trees.from_json"
            )
        check_sizes(given, max_nodes)
    if check_count("n", n, most=MAX_COLUMNS) > len(trees) and len(queries):
        raise ArgumentError(f"n must be at most the number of trees, {len(trees)}, not {n}")
    options, counted = check_options(ordered, relabel, insert, bins), check_counters(counters)
    asked, others = prepare(queries, options), prepare(trees, options)
    neighbour, distance = np.empty((len(queries), n), np.int64), np.empty((len(queries), n))
    add_counts(counted, queries=len(queries), refinements=0, subtree_pairs=0)
    for query in range(len(queries)):
        neighbour[query], distance[query] = _nearest(asked, query, others, n, options, counted)
    return KNearest(neighbour, distance)


def _nearest(
    asked: PreparedTrees, query: int, others: PreparedTrees, n: int, options: TreeOptions, counters: Counters
) -> tuple[Ints, Floats]:
    """Return the numbers and the distances of the nearest trees of one query."""
    everyone = np.arange(len(others.digest))
    bounds = bounds_of(asked, np.full(len(everyone), query), others, everyone, options)
    order = np.argsort(bounds, kind="stable")
    rows, distances = np.empty(0, np.int64), np.empty(0, np.int64)
    far = int(asked.histograms.size[query] + others.histograms.size.max()) * (options.costs.insert * 2)
    done, batch = 0, n
    while done < len(order):
        limit = int(distances[n - 1]) if len(distances) >= n else far
        if bounds[order[done]] > limit:
            break
        tried = order[done : done + batch]
        found = np.empty(len(tried), np.int64)
        computed = fill_distances(
            asked.subtrees,
            np.full(len(tried), query),
            others.subtrees,
            tried,
            options.costs,
            limit,
            options.may_cancel,
            found,
        )
        add_counts(counters, refinements=len(tried), subtree_pairs=computed)
        rows, distances = np.concatenate((rows, tried)), np.concatenate((distances, found))
        nearest = np.lexsort((rows, distances))[:n]
        rows, distances = rows[nearest], distances[nearest]
        done, batch = done + len(tried), 1
    return rows, distances.astype(np.float64)
