"""From candidates to pairs: bounds first, then distances, in threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Ints
from epsjoin.kernels.trees.bounds import fill_bounds
from epsjoin.kernels.trees.distance import fill_distances
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import Counters, add_counts
from epsjoin.local.sweep.threads import in_order
from epsjoin.local.trees.prepared import PreparedTrees, TreeOptions

_BATCH_ROWS = 1 << 13
"""Number of candidates that one thread compares at a time."""


class Refined(NamedTuple):
    """The result for some candidates.

    Parameters
    ----------
    pairs : those within the limit.
    rows : (m,) int64, which of the candidates these are.
    candidates, refinements, subtree_pairs : see :func:`epsjoin.tree_join`.
    """

    pairs: Pairs
    rows: Ints
    candidates: int
    refinements: int
    subtree_pairs: int


def bounds_of(left: PreparedTrees, i: Ints, right: PreparedTrees, j: Ints, options: TreeOptions) -> Ints:
    """Return the largest of all lower bounds of the distance of each pair of trees."""
    bounds = np.empty((len(i), 5), np.int64)
    fill_bounds(left.histograms, i, right.histograms, j, options.costs, bounds)
    return np.asarray(bounds.max(axis=1))


def refine(
    left: PreparedTrees,
    i: Ints,
    right: PreparedTrees,
    j: Ints,
    limit: int,
    options: TreeOptions,
    with_equal: bool = False,
) -> Refined:
    """Compute the distances of the pairs whose bounds allow it.

    Parameters
    ----------
    left, right : the trees.
    i, j : (m,) int64, the trees of each candidate.
    limit : maximum distance, at least 0.
    options : how to compare.
    with_equal : whether pairs of equal trees are kept, which need no refinement.
    """
    is_equal = left.digest[i] == right.digest[j]
    is_near = (bounds_of(left, i, right, j, options) <= limit) & (with_equal | ~is_equal)
    rows = np.flatnonzero(is_near)
    near_i, near_j = i[rows], j[rows]
    distances = np.empty(len(near_i), np.int64)
    computed = fill_distances(
        left.subtrees,
        near_i,
        right.subtrees,
        near_j,
        options.costs,
        limit,
        options.may_cancel,
        distances,
    )
    is_within = distances <= limit
    pairs = Pairs(near_i[is_within], near_j[is_within], distances[is_within].astype(np.float64))
    return Refined(pairs, rows[is_within], len(i), int(np.count_nonzero(is_near & ~is_equal)), computed)


def refine_all(
    left: PreparedTrees,
    right: PreparedTrees,
    candidates: Iterator[Pairs],
    limit: int,
    options: TreeOptions,
    n_threads: int,
    counters: Counters,
) -> Iterator[Pairs]:
    """Refine batches of candidates, in their order, several at a time.

    Parameters
    ----------
    left, right, limit, options : see :func:`refine`.
    candidates : batches of pairs of trees; their distances are not used.
    n_threads : number of threads.
    counters : to which the work is added.
    """

    def work() -> Iterator[Iterator[Refined]]:
        for batch in candidates:
            for begin in range(0, len(batch.left), _BATCH_ROWS):
                rows = slice(begin, begin + _BATCH_ROWS)
                yield _later(left, batch.left[rows], right, batch.right[rows], limit, options)

    for done in in_order(work(), n_threads):
        add_counts(
            counters,
            candidates=done.candidates,
            refinements=done.refinements,
            subtree_pairs=done.subtree_pairs,
        )
        yield done.pairs


def _later(
    left: PreparedTrees, i: Ints, right: PreparedTrees, j: Ints, limit: int, options: TreeOptions
) -> Iterator[Refined]:
    """Refine when it is asked for: by the thread that asks."""
    yield refine(left, i, right, j, limit, options)
