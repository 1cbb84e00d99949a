"""One of several best candidates of a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.local.bestmatch.candidates import Candidates
from epsjoin.local.bestmatch.orders import Closest, Order, Own


def one_of(candidates: Candidates, keep: Bools, by: str, orders: Sequence[Order]) -> Bools:
    """Mark one of the marked candidates of each row: the nearest in units of eps, then the first partner.

    Parameters
    ----------
    candidates, keep : the candidates and which of them are best.
    by : "left" or "right": the side that each has one candidate of.
    orders : the criteria; those without a finite eps above 0 do not count in the sum of ``value / eps``.
    """
    at = np.flatnonzero(keep)
    rows, partners = candidates.left[at], candidates.right[at]
    if by == "right":
        rows, partners = partners, rows
    chosen = at[_first_of_each(rows, _sums(candidates.values[at], orders), partners)]
    one = np.zeros(len(keep), np.bool_)
    one[chosen] = True
    return one


def _first_of_each(rows: Ints, sums: Floats, partners: Ints) -> Ints:
    order = np.lexsort((partners, sums, rows))
    return order[np.flatnonzero(np.diff(rows[order], prepend=-1))]


def _sums(values: Floats, orders: Sequence[Order]) -> Floats:
    total = np.zeros(len(values))
    numbered = [order for order in orders if isinstance(order, (Closest, Own))]
    for place, order in enumerate(numbered):
        if isinstance(order, Closest) and 0 < order.eps < np.inf:
            total += values[:, place] / order.eps
    return total
