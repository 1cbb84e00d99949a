"""The best of candidates: those that no other candidate of the same row dominates."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Literal

import numpy as np

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.kernels.bestmatch.dominance import undominated
from epsjoin.kernels.sorting import argsort
from epsjoin.local.bestmatch.candidates import Candidates
from epsjoin.local.sweep.sweeping import Counters, add_counts

By = Literal["left", "right", "all"]
How = Literal["inner", "left", "right", "outer"]
_MAX_COMPARED = 1 << 20
"""Number of comparisons of two candidates that an own order makes in one call."""
_MIN_GROUPS_OF_A_THREAD = 1000


def best_of(
    candidates: Candidates,
    by: By,
    *,
    max_comparisons: int = 10**9,
    n_jobs: int = 1,
    counters: Counters | None = None,
) -> Bools:
    """Mark the candidates that no other candidate dominates.

    A candidate dominates another if it is at least as good in every criterion, and not the other way round.

    Parameters
    ----------
    candidates : in any order; not modified.
    by : which others count: "left", those of the same left row; "right", those of the same right row; "all".
    max_comparisons : maximum number of comparisons by own orders.
    n_jobs : number of threads, at least 1; own orders run in one.
    counters : dictionary to whose entry ``comparisons`` the number of comparisons is added.

    Returns
    -------
    (k,) bool.

    Raises
    ------
    BudgetError
        Own orders would have to compare more than ``max_comparisons`` times.
    """
    if by not in ("left", "right", "all"):
        raise ArgumentError(f"by must be left, right or all, not {by!r}")
    n = len(candidates)
    key = np.zeros(n, np.int64) if by == "all" else candidates.left if by == "left" else candidates.right
    order = None
    if n and (key[1:] < key[:-1]).any():
        order = argsort(key)
        key = key[order]
    starts = np.concatenate((np.flatnonzero(np.diff(key, prepend=key[:1] - 1)), [n]))
    ordered = candidates if order is None else candidates.take(order)
    keep = np.zeros(n, np.bool_)
    if candidates.prefer:
        comparisons = _compare_all(ordered, starts, keep, max_comparisons)
    else:
        comparisons = _in_threads(ordered, starts, keep, n_jobs)
    if counters is not None:
        add_counts(counters, comparisons=comparisons)
    if order is None:
        return keep
    result = np.empty(n, np.bool_)
    result[order] = keep
    return result


def _in_threads(candidates: Candidates, starts: Ints, keep: Bools, n_jobs: int) -> int:
    """Run the kernel on ranges of groups, which are independent."""
    groups = len(starts) - 1
    n_jobs = max(1, min(n_jobs, groups // _MIN_GROUPS_OF_A_THREAD))
    values, masks = candidates.values, candidates.masks if candidates.masks.shape[1] else None
    if n_jobs == 1:
        return undominated(starts, values, masks, keep)
    borders = np.searchsorted(starts, np.linspace(0, starts[-1], n_jobs + 1).astype(np.int64))
    with ThreadPoolExecutor(n_jobs, "epsjoin") as pool:
        futures = [
            pool.submit(undominated, starts[begin : end + 1], values, masks, keep)
            for begin, end in pairwise(borders)
        ]
        return sum(future.result() for future in futures)


def _compare_all(candidates: Candidates, starts: Ints, keep: Bools, max_comparisons: int) -> int:
    """Compare each two candidates of a group, where an own order must be asked."""
    sizes = np.diff(starts)
    comparisons = int((sizes * sizes).sum())
    if comparisons > max_comparisons:
        raise BudgetError(
            f"an own order would be asked {comparisons} times, more than {max_comparisons}; the largest row "
            f"has {sizes.max()} candidates: a smaller eps gives fewer"
        )
    keep[:] = True
    for begin, end in pairwise(starts.tolist()):
        everyone = np.arange(begin, end)
        rows = max(1, _MAX_COMPARED // max(1, end - begin))
        for first in range(begin, end, rows):
            some = everyone[first - begin : first - begin + rows]
            x, y = np.repeat(everyone, len(some)), np.tile(some, len(everyone))
            is_as_good, is_not_better = _relation(candidates, x, y)
            dominates = (is_as_good & ~is_not_better).reshape(len(everyone), len(some))
            keep[some] &= ~dominates.any(axis=0)
    return comparisons


def _relation(candidates: Candidates, x: Ints, y: Ints) -> tuple[Bools, Bools]:
    """Whether each x is at least as good as its y in every criterion, and y as x."""
    of_x, of_y = candidates.values[x], candidates.values[y]
    bits_of_x, bits_of_y = candidates.masks[x], candidates.masks[y]
    first = (of_x <= of_y).all(axis=1) & ((bits_of_y & ~bits_of_x) == 0).all(axis=1)
    second = (of_y <= of_x).all(axis=1) & ((bits_of_x & ~bits_of_y) == 0).all(axis=1)
    for prefer in candidates.prefer:
        first &= prefer(x, y)
        second &= prefer(y, x)
    return first, second
