"""The best matches of one part, when a join is split into parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from epsjoin.errors import BudgetError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.local.bestmatch.batch import FOR_LEFT, FOR_RIGHT, bestmatch_join
from epsjoin.local.bestmatch.best import How, best_of
from epsjoin.local.bestmatch.candidates import Candidates, decide, join_blocks
from epsjoin.local.bestmatch.orders import Order, is_of_one_column

MAX_HELD = 1 << 22
"""Number of candidates at which those that are no longer the best are dropped."""


class LocalBest(NamedTuple):
    """The best of the candidates of a part.

    Parameters
    ----------
    found : candidates that are best for one of their rows, sorted by (left, right).
    for_left, for_right : (k,) bool: whether each is best for its left row, and for its right row; with
        "inner" both say whether it is best of all.
    """

    found: Candidates
    for_left: Bools
    for_right: Bools


def best_of_part(
    left: Floats,
    right: Floats,
    orders: Sequence[Order],
    how: How,
    pairs: Iterable[tuple[Ints, Ints]],
    max_candidates: int,
) -> LocalBest:
    """Find the best matches of a part by the pairs that its join has found.

    A candidate that is best among all candidates is also best among those of each part that has it. So the
    best of all are the best of what the parts return.

    Parameters
    ----------
    left, right : (n, d) and (m, d) float64, the rows of the part; not modified.
    orders : checked criteria of these rows.
    how : see :func:`epsjoin.bestmatch_join`.
    pairs : left and right row of pairs, batch by batch; each pair within the eps of all criteria once; there
        may be other pairs. Not read for one criterion of one column: the nearest rows of the part need no
        join.
    max_candidates : maximum number of pairs.

    Raises
    ------
    BudgetError
        There are more than ``max_candidates`` pairs.
    """
    if is_of_one_column(orders):
        return _nearest(left, right, orders, how, max_candidates)
    held: list[Candidates] = []
    n_held, room, n_pairs = 0, MAX_HELD, 0
    for first, second in pairs:
        n_pairs += len(first)
        if n_pairs > max_candidates:
            raise BudgetError(
                f"one part has more than {max_candidates:,} candidates (max_candidates); take a smaller eps, "
                "or give one more criterion an eps"
            )
        held.append(decide(left, right, orders, first, second))
        n_held += len(held[-1])
        if n_held > room:
            best = _best_of(join_blocks(left, right, orders, held), how, max_candidates).found
            held, n_held = [best], len(best)
            room = max(MAX_HELD, 2 * n_held)
    return _best_of(join_blocks(left, right, orders, held), how, max_candidates)


def _nearest(
    left: Floats, right: Floats, orders: Sequence[Order], how: How, max_candidates: int
) -> LocalBest:
    best = bestmatch_join(left, right, how=how, orders=orders, max_candidates=max_candidates)
    pairs = best.best_for > 0
    no_masks = np.empty((int(pairs.sum()), 0), np.uint64)
    found = Candidates(best.left[pairs], best.right[pairs], best.values[pairs], no_masks)
    best_for = best.best_for[pairs]
    return LocalBest(found, best_for & FOR_LEFT > 0, best_for & FOR_RIGHT > 0)


def _best_of(candidates: Candidates, how: How, max_comparisons: int) -> LocalBest:
    nobody = np.zeros(len(candidates), np.bool_)
    for_left = for_right = nobody
    if how in ("left", "outer"):
        for_left = best_of(candidates, "left", max_comparisons=max_comparisons)
    if how in ("right", "outer"):
        for_right = best_of(candidates, "right", max_comparisons=max_comparisons)
    if how == "inner":
        for_left = for_right = best_of_all(candidates, max_comparisons)
    stays = np.flatnonzero(for_left | for_right)
    stays = stays[np.lexsort((candidates.right[stays], candidates.left[stays]))]
    return LocalBest(candidates.take(stays), for_left[stays], for_right[stays])


def best_of_all(candidates: Candidates, max_comparisons: int) -> Bools:
    """Mark the candidates that none of any row dominates; first within left rows, where few are compared."""
    for_left = np.flatnonzero(best_of(candidates, "left", max_comparisons=max_comparisons))
    best = np.zeros(len(candidates), np.bool_)
    best[for_left[best_of(candidates.take(for_left), "all", max_comparisons=max_comparisons)]] = True
    return best
