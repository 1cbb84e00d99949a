"""The best matches of two tables, in this process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels.arrays import Bools, Bytes, Floats, Ints
from epsjoin.kernels.sorting import lexsort
from epsjoin.local.arguments import as_array, check_choice, check_count
from epsjoin.local.bestmatch.best import best_of
from epsjoin.local.bestmatch.candidates import Candidates, join_blocks, within_blocks
from epsjoin.local.bestmatch.nearest import nearest_rows
from epsjoin.local.bestmatch.orders import Closest, Order, Own, Subset, masks_of, orders_of
from epsjoin.local.bestmatch.rows import are_durations, check_kinds, check_rows, kind_of
from epsjoin.local.bestmatch.take import first_of_equal, one_of
from epsjoin.local.coordinates import check_dimensions
from epsjoin.local.join.arrays import NO_ROW
from epsjoin.local.sweep.sweeping import Counters, add_counts, check_counters, check_n_jobs
from epsjoin.params import MATCH_HOW, MATCH_TAKE

FOR_LEFT, FOR_RIGHT = 1, 2
"""Bits of ``best_for``."""

MAX_KEPT = 1 << 26
"""Maximum number of candidates that are held because they are best for their rows: some gigabytes."""


class BestPairs(NamedTuple):
    """Best matches, and rows that have none.

    Parameters
    ----------
    left, right : (k,) int64, row numbers of the two tables, sorted; -1 where a row has no partner. Rows
        without a partner come last, those of the left table before those of the right one.
    values : (k, c) float64, one column per criterion: the distance of ``Closest``, the value of ``Own``, the
        number of common marks of ``Subset``; NaN for ``OwnOrder``, which has no number, and where there is no
        partner.
    best_for : (k,) uint8: 1 where the pair is best for its left row, 2 for its right row, 3 for both, 0 where
        there is no partner. Only sides that were asked for are told: with ``how="left"`` it is 1 and never 3.
    """

    left: Ints
    right: Ints
    values: Floats
    best_for: Bytes


def bestmatch_join(
    left: ArrayLike,
    right: ArrayLike,
    eps: float | ArrayLike | None = None,
    how: Literal["inner", "left", "right", "outer"] = "left",
    *,
    orders: Sequence[Order] | None = None,
    take: Literal["all", "one"] = "all",
    max_candidates: int = 10**9,
    n_jobs: int | None = 1,
    counters: Counters | None = None,
) -> BestPairs:
    """Find for each row the rows of another table that no other row dominates, by several criteria at once.

    Candidates are the pairs within the eps of every criterion. One candidate dominates another if it is at
    least as good in every criterion, and better in one. The best matches of a row are those of its candidates
    that no other of its candidates dominates: seconds need not be weighed against kilometres.

    Parameters
    ----------
    left, right : (n, d) and (m, d) arrays of finite floats or integers, as for :func:`epsjoin.join`, or of
        datetime64 or timedelta64, both of one kind, which are seconds then; not modified.
    eps : with one criterion per column, the largest ``|l - r|`` that is allowed: one number for all columns,
        or (d,), one for each; of times, seconds or timedelta64. 0 asks for equal values, infinity for any.
        None where ``orders`` are given.
    how : "left", the default: the best matches of each left row, and the left rows without a candidate.
        "right": the same for the right rows. "outer": the candidates that are best for their left row or for
        their right row, and all rows without a candidate. "inner": the candidates that no candidate of any
        row dominates; mostly few.
    orders : the criteria, where they are not one per column: any of :class:`Closest`, :class:`Own`,
        :class:`Subset` and :class:`OwnOrder`, in any number.
    take : "all", the default, returns all best matches. "one" returns one for each row, of either side with
        "outer", of the left rows with "inner": the one with the least sum of ``value / eps`` of the
        ``Closest`` with a finite eps above 0, of several the first partner.
    max_candidates : maximum number of candidates, 10**9 by default; also the maximum number of comparisons
        by an :class:`OwnOrder`.
    n_jobs : number of threads, 1 by default; -1 is one per processor. The result is the same for any number.
    counters : dictionary to whose entries the work is added: ``candidates`` (pairs that passed the filter),
        ``within`` (those within every eps), ``comparisons`` (of two of them), ``best``, ``unmatched_left``
        and ``unmatched_right`` (rows without a partner in the result, where they are asked for).

    Returns
    -------
    BestPairs
        Row numbers, the value of each criterion, and for whom a pair is best.

    Raises
    ------
    ArgumentError
        An argument has a wrong type, shape or value; a coordinate is NaN or infinite; a function of the
        caller's returned something else than it should.
    BudgetError
        There are more than ``max_candidates`` candidates, or more than 67 million are best for their rows.

    See Also
    --------
    join : all pairs within one eps.
    knn_join : the k nearest by one distance.

    Notes
    -----
    Two candidates with the same values are both kept. One criterion of one column needs no join and takes
    O(n log n + m log m); the nearest candidates are all that is looked at and counted then, with
    ``take="one"`` one for each row. Several criteria: the join of two tables with one eps per column finds
    the candidates, one block of left rows after the other, so that memory holds some four million of them,
    and the best ones; with ``take="one"``, one of those that are equally good in every criterion.

    Examples
    --------
    >>> left = [[0.0, 20.0], [100.0, 20.0]]
    >>> right = [[3.0, 20.5], [1.0, 21.0], [2.0, 22.0]]
    >>> best = bestmatch_join(left, right, eps=[5.0, 3.0])
    >>> best.left.tolist(), best.right.tolist()
    ([0, 0, 1], [0, 1, -1])
    >>> best.values.tolist()
    [[3.0, 0.5], [1.0, 1.0], [nan, nan]]

    The columns may be seconds and degrees. The right row 1 is nearer than row 2 in both; row 0 is nearer in
    degrees, row 1 in seconds. The left row 1 has no partner within 5 seconds.
    """
    check_choice("how", how, MATCH_HOW)
    check_choice("take", take, MATCH_TAKE)
    max_candidates, threads = check_count("max_candidates", max_candidates, 0), check_n_jobs(n_jobs)
    counted = check_counters(counters)
    left, right = as_array("left", left), as_array("right", right)
    x, y = check_rows("left", left), check_rows("right", right)
    kind = kind_of(left) or kind_of(right)
    check_kinds("right", kind_of(right), "left", kind)
    if kind == "numbers" and are_durations(eps):
        raise ArgumentError("eps must be numbers as the rows, not durations")
    check_dimensions(left=x.shape[1], right=y.shape[1])
    criteria = orders_of(eps, orders, x.shape[1])
    for order in criteria:
        if isinstance(order, Subset):
            masks_of(order, len(x), len(y))
    search = _Search(x, y, criteria, how, take == "one", max_candidates, threads, counted)
    first, *others = criteria
    if not others and isinstance(first, Closest) and first.measure is None:
        found, for_left, for_right = search.nearest(first)
    else:
        found, for_left, for_right = search.best()
    if take == "one":
        for_left = one_of(found, for_left, "left", criteria)
        for_right = one_of(found, for_right, "right", criteria) if how != "inner" else for_left
    best_for = (FOR_LEFT * for_left + FOR_RIGHT * for_right).astype(np.uint8)
    if not best_for.all():
        found, best_for = found.take(best_for > 0), best_for[best_for > 0]
    return _result(found, best_for, search)


class _Search(NamedTuple):
    left: Floats
    right: Floats
    orders: tuple[Order, ...]
    how: str
    is_one: bool
    max_candidates: int
    n_jobs: int
    counters: Counters

    def best(self) -> tuple[Candidates, Bools, Bools]:
        """Return the candidates that may be best, and which are for their left and for their right row."""
        left, right, orders, how = self.left, self.right, self.orders, self.how
        kept, left_marks, n_kept = [], [], 0
        found = within_blocks(
            left,
            right,
            orders,
            max_candidates=self.max_candidates,
            n_jobs=self.n_jobs,
            counters=self.counters,
        )
        for block in found:
            for_left = self._mark(block, "left") if how != "right" else np.zeros(len(block), np.bool_)
            if self.is_one and how == "inner":
                for_left = first_of_equal(block, for_left, "left")
            elif self.is_one:  # all candidates of a left row are in one block
                for_left = one_of(block, for_left, "left", orders)
            stays = for_left
            if how in ("right", "outer"):
                for_right = self._mark(block, "right")
                stays = for_left | (first_of_equal(block, for_right, "right") if self.is_one else for_right)
            kept.append(block if stays.all() else block.take(stays))
            n_kept += len(kept[-1])
            if n_kept > MAX_KEPT:
                remedy = "" if self.is_one else 'ask for take="one", '
                raise BudgetError(
                    f"more than {MAX_KEPT:,} candidates are best for their rows, as where many rows are "
                    f"equal; {remedy}leave out equal rows, or take a smaller eps"
                )
            left_marks.append(for_left[stays])
        candidates = join_blocks(left, right, orders, kept)
        for_left = np.ones(len(candidates), np.bool_)
        if how in ("right", "outer"):
            for_left = self._in_order(kept, left_marks)
        if how == "left":
            return candidates, for_left, np.zeros(len(candidates), np.bool_)
        if how == "inner":
            for_all = self._mark(candidates, "all")
            return candidates, for_all, for_all
        return candidates, for_left, self._mark(candidates, "right")

    @staticmethod
    def _in_order(blocks: Sequence[Candidates], marks: Sequence[Bools]) -> Bools:
        """Put marks of blocks in the order of all candidates."""
        if len(blocks) == 1:
            return marks[0]
        left = np.concatenate([np.empty(0, np.int64), *(block.left for block in blocks)])
        right = np.concatenate([np.empty(0, np.int64), *(block.right for block in blocks)])
        return np.concatenate([np.empty(0, np.bool_), *marks])[lexsort((right, left))]

    def _mark(self, candidates: Candidates, by: Literal["left", "right", "all"]) -> Bools:
        return best_of(
            candidates,
            by,
            max_comparisons=self.max_candidates,
            n_jobs=self.n_jobs,
            counters=self.counters,
        )

    def nearest(self, order: Closest) -> tuple[Candidates, Bools, Bools]:
        """As :meth:`best`, for one criterion of one column."""
        (column,) = order.numbers
        x, y, of = self.left[:, column], self.right[:, column], (order.eps, self.max_candidates)
        found = nearest_rows(x, y, *of, is_one=self.is_one) if self.how != "right" else None
        for_left, for_right = _marks(found, True), _marks(found, False)
        if found is None or self.how == "outer":
            mirrored = nearest_rows(y, x, *of, is_one=self.is_one)
            at = lexsort((mirrored.left, mirrored.right))
            of_right = replace(mirrored.take(at), left=mirrored.right[at], right=mirrored.left[at])
            if found is None:
                found, for_left, for_right = of_right, _marks(of_right, False), _marks(of_right, True)
            else:
                found, for_left, for_right = _unite(found, of_right)
        if self.how == "inner":
            for_left = for_right = found.values[:, 0] == np.min(found.values, initial=math.inf)
        add_counts(self.counters, candidates=len(found), within=len(found), comparisons=0)
        return found, for_left, for_right


def _marks(candidates: Candidates | None, value: bool) -> Bools:
    return np.full(0 if candidates is None else len(candidates), value)


def _unite(of_left: Candidates, of_right: Candidates) -> tuple[Candidates, Bools, Bools]:
    """Unite what is best for left rows and what is best for right rows, and mark for whom each is best."""
    left = np.concatenate((of_left.left, of_right.left))
    right = np.concatenate((of_left.right, of_right.right))
    is_of_left = np.arange(len(left)) < len(of_left)
    at = lexsort((right, left))
    is_new = (np.diff(left[at], prepend=-1) != 0) | (np.diff(right[at], prepend=-1) != 0)
    first = np.flatnonzero(is_new)
    for_left, for_right = (
        np.logical_or.reduceat(side[at], first) if len(at) else side for side in (is_of_left, ~is_of_left)
    )
    at = at[first]
    values = np.concatenate((of_left.values, of_right.values))[at]
    return Candidates(left[at], right[at], values, np.empty((len(at), 0), np.uint64)), for_left, for_right


def _result(best: Candidates, best_for: Bytes, search: _Search) -> BestPairs:
    """Put the columns of the result together, with the rows that have no partner."""
    no_rows = np.empty(0, np.int64)
    lonely_left = lonely_right = no_rows
    if search.how in ("left", "outer"):
        lonely_left = _rows_without(best.left, len(search.left))
    if search.how in ("right", "outer"):
        lonely_right = _rows_without(best.right, len(search.right))
    add_counts(
        search.counters,
        best=len(best),
        unmatched_left=len(lonely_left),
        unmatched_right=len(lonely_right),
    )
    values = np.full((len(best), len(search.orders)), math.nan)
    number = word = 0
    for place, order in enumerate(search.orders):
        if isinstance(order, (Closest, Own)):
            values[:, place] = best.values[:, number]
            number += 1
        elif isinstance(order, Subset):
            words = masks_of(order, len(search.left), len(search.right))[0].shape[1]
            common = best.masks[:, word : word + words]
            values[:, place] = np.bitwise_count(common).sum(axis=1)
            word += words
    return with_lonely(BestPairs(best.left, best.right, values, best_for), lonely_left, lonely_right)


def with_lonely(pairs: BestPairs, left: Ints, right: Ints) -> BestPairs:
    """Put rows without a partner after pairs, left rows first."""
    n = len(left) + len(right)
    return BestPairs(
        np.concatenate((pairs.left, left, np.full(len(right), NO_ROW))),
        np.concatenate((pairs.right, np.full(len(left), NO_ROW), right)),
        np.concatenate((pairs.values, np.full((n, pairs.values.shape[1]), math.nan))),
        np.concatenate((pairs.best_for, np.zeros(n, np.uint8))),
    )


def _rows_without(rows: Ints, n: int) -> Ints:
    is_lonely = np.ones(n, np.bool_)
    is_lonely[rows] = False
    return np.flatnonzero(is_lonely)
