"""Candidates: the pairs of two tables that are within the eps of all criteria, with the values of each.

The join of two tables only filters: it finds the pairs whose columns, in units of eps, differ by at most 1,
with slack for rounding. What decides is ``|l - r| <= eps`` on values as they came, or the criterion's metric.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.bestmatch.criteria import fill_differences, fill_distances
from epsjoin.kernels.bestmatch.dominance import Masks
from epsjoin.kernels.sorting import lexsort
from epsjoin.local.arguments import as_array
from epsjoin.local.bestmatch.filter import Filter
from epsjoin.local.bestmatch.orders import Closest, Order, Own, OwnOrder, Subset, masks_of
from epsjoin.local.coordinates import is_rounded
from epsjoin.local.sweep.sweeping import Counters, add_counts

_FLOAT64_BYTES = 8

BLOCK_PAIRS = 1 << 22
"""Number of candidates that a block of left rows should have at most."""


@dataclass(frozen=True)
class Candidates:
    """Pairs within the eps of all criteria, and how good they are.

    Parameters
    ----------
    left, right : (k,) int64, row numbers; sorted by (left, right).
    values : (k, c) float64, of the criteria that have numbers (``Closest``, ``Own``), in their order; smaller
        is better.
    masks : (k, w) uint64, the common bits of all ``Subset``, side by side; (k, 0) without.
    prefer : functions of two arrays of positions in these columns, one per ``OwnOrder``: whether each pair of
        the first is at least as good as that of the second.
    """

    left: Ints
    right: Ints
    values: Floats
    masks: Masks
    prefer: tuple[Callable[[Ints, Ints], Bools], ...] = ()

    def __len__(self) -> int:
        return len(self.left)

    def take(self, rows: Bools | Ints) -> Candidates:
        """Return some of the candidates: those that are marked, or those at these positions."""
        at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64, copy=False)
        prefer = tuple(_among(function, at) for function in self.prefer)
        return replace(
            self,
            left=self.left[at],
            right=self.right[at],
            values=self.values[at],
            masks=self.masks[at],
            prefer=prefer,
        )


def _among(prefer: Callable[[Ints, Ints], Bools], at: Ints) -> Callable[[Ints, Ints], Bools]:
    return lambda x, y: prefer(at[x], at[y])


def within(
    left: Floats,
    right: Floats,
    orders: Sequence[Order],
    *,
    max_candidates: int = 10**9,
    n_jobs: int = 1,
    counters: Counters | None = None,
) -> Candidates:
    """Find all pairs within the eps of all criteria, at once.

    Parameters
    ----------
    left, right : (n, d) and (m, d) float64, checked; not modified.
    orders : checked criteria, see :func:`epsjoin.local.bestmatch.orders.orders_of`.
    max_candidates, n_jobs, counters : see :func:`within_blocks`.
    """
    found = list(
        within_blocks(left, right, orders, max_candidates=max_candidates, n_jobs=n_jobs, counters=counters)
    )
    return join_blocks(left, right, orders, found)


def join_blocks(
    left: Floats, right: Floats, orders: Sequence[Order], blocks: Sequence[Candidates]
) -> Candidates:
    """Put candidates of several blocks together, sorted by (left, right).

    Parameters
    ----------
    left, right, orders : the tables and criteria of the blocks; own orders read the rows again.
    blocks : candidates, none of which is in two blocks.
    """
    if len(blocks) == 1:
        return blocks[0]
    n_values, n_words = _shape(left, right, orders)
    nothing = Candidates(
        np.empty(0, np.int64),
        np.empty(0, np.int64),
        np.empty((0, n_values)),
        np.empty((0, n_words), np.uint64),
    )
    blocks = [nothing, *blocks]
    first = np.concatenate([block.left for block in blocks])
    second = np.concatenate([block.right for block in blocks])
    at = lexsort((second, first))
    first, second = first[at], second[at]
    values = np.concatenate([block.values for block in blocks])[at]
    masks = np.concatenate([block.masks for block in blocks])[at]
    return Candidates(first, second, values, masks, preferences_of(left, right, orders, first, second))


def within_blocks(
    left: Floats,
    right: Floats,
    orders: Sequence[Order],
    *,
    max_candidates: int = 10**9,
    n_jobs: int = 1,
    counters: Counters | None = None,
    block_pairs: int | None = None,
) -> Iterator[Candidates]:
    """Find all pairs within the eps of all criteria, one block of left rows after the other.

    Parameters
    ----------
    left, right : (n, d) and (m, d) float64, checked; not modified.
    orders : checked criteria.
    max_candidates : maximum number of pairs that the filter may find.
    n_jobs : number of threads, at least 1.
    counters : dictionary to whose entries the work is added: ``candidates``, the pairs that the filter found;
        ``within``, those that are within all eps.
    block_pairs : number of candidates that a block should have at most, by default ``BLOCK_PAIRS``; it has no
        more than four times as many, unless a single left row has.

    Yields
    ------
    Candidates
        All candidates of some left rows.

    Raises
    ------
    BudgetError
        There are more than ``max_candidates`` candidates; or no criterion has a finite eps, and there are
        more pairs than that.
    ArgumentError
        A metric is not defined for a point; an own function returned something else than it should.
    """
    counted = {} if counters is None else counters
    space = Filter.of(left, right, orders)
    found = 0
    for pairs in space.pairs(len(left), len(right), max_candidates, n_jobs, block_pairs or BLOCK_PAIRS):
        found += len(pairs.left)
        block = decide(left, right, orders, pairs.left, pairs.right)
        add_counts(counted, candidates=len(pairs.left), within=len(block))
        yield block


def _shape(left: Floats, right: Floats, orders: Sequence[Order]) -> tuple[int, int]:
    """Numbers of columns of values and of masks."""
    words = [
        masks_of(order, len(left), len(right))[0].shape[1] for order in orders if isinstance(order, Subset)
    ]
    return sum(isinstance(order, (Closest, Own)) for order in orders), sum(words)


def decide(left: Floats, right: Floats, orders: Sequence[Order], first: Ints, second: Ints) -> Candidates:
    """Compute the values of pairs, and keep those within all eps.

    Parameters
    ----------
    left, right, orders : see :func:`within`.
    first, second : (k,) int64, left and right row of each pair.
    """
    n_values, _ = _shape(left, right, orders)
    values, is_within = np.empty((len(first), n_values)), np.ones(len(first), np.bool_)
    numbered = [order for order in orders if isinstance(order, (Closest, Own))]
    for place, order in enumerate(numbered):
        if isinstance(order, Closest):
            _fill(left, right, order, first, second, place, values, is_within)
    if not is_within.all():
        first, second, values = first[is_within], second[is_within], values[is_within]
    for place, each in enumerate(numbered):
        if isinstance(each, Own):
            values[:, place] = _own_values(each, left[first], right[second])
    common = [np.empty((len(first), 0), np.uint64)]
    for marks in orders:
        if isinstance(marks, Subset):
            of_left, of_right = masks_of(marks, len(left), len(right))
            common.append(of_left[first] & of_right[second])
    masks = np.concatenate(common, axis=1)
    return Candidates(first, second, values, masks, preferences_of(left, right, orders, first, second))


def _fill(
    left: Floats,
    right: Floats,
    order: Closest,
    first: Ints,
    second: Ints,
    place: int,
    values: Floats,
    is_within: Bools,
) -> None:
    if order.measure is None:
        (column,) = order.numbers
        fill_differences(left, right, column, order.eps, first, second, place, values, is_within)
        return
    columns = list(order.numbers)
    x, y = np.ascontiguousarray(left[:, columns]), np.ascontiguousarray(right[:, columns])
    eps = order.eps if order.eps > 0 else math.inf
    fill_distances(x, y, order.measure.decision(eps), first, second, place, values, is_within)
    if order.eps == 0:
        is_within &= (x[first] == y[second]).all(axis=1)


def _own_values(order: Own, left: Floats, right: Floats) -> Floats:
    values = as_array(f"what the function of {order!r} returned", order.value(left, right))
    is_number = values.dtype.kind in "fiub" and values.dtype.itemsize <= _FLOAT64_BYTES
    if values.shape != (len(left),) or not is_number:
        raise ArgumentError(
            f"the function of {order!r} must return {len(left)} numbers, one per pair, "
            f"not {values.dtype} of the shape {values.shape}"
        )
    numbers = values.astype(np.float64)
    if values.dtype.kind in "iu" and is_rounded(values, numbers).any():
        at = int(is_rounded(values, numbers).argmax())
        raise ArgumentError(
            f"the function of {order!r} must return numbers that float64 can hold, not {values[at]}"
        )
    if np.isnan(numbers).any():
        raise ArgumentError(f"the function of {order!r} returned NaN for {np.isnan(numbers).sum()} pairs")
    return numbers


def preferences_of(
    left: Floats, right: Floats, orders: Sequence[Order], first: Ints, second: Ints
) -> tuple[Callable[[Ints, Ints], Bools], ...]:
    """Make the functions of ``Candidates.prefer`` from the rows of pairs; see :func:`decide`."""

    def of_one(order: OwnOrder) -> Callable[[Ints, Ints], Bools]:
        def prefer(x: Ints, y: Ints) -> Bools:
            pairs, others = (left[first[x]], right[second[x]]), (left[first[y]], right[second[y]])
            answer = as_array(
                f"what the function of {order!r} returned", order.at_least_as_good(pairs, others)
            )
            if answer.shape != (len(x),) or answer.dtype.kind != "b":
                raise ArgumentError(
                    f"the function of {order!r} must return {len(x)} booleans, "
                    f"not {answer.dtype} of the shape {answer.shape}"
                )
            return answer

        return prefer

    return tuple(of_one(order) for order in orders if isinstance(order, OwnOrder))
