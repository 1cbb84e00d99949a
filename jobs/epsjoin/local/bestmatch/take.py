"""One of several best candidates of a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats
from epsjoin.local.bestmatch.candidates import Candidates
from epsjoin.local.bestmatch.orders import Closest, Order, Own


def one_of(candidates: Candidates, keep: Bools, by: str, orders: Sequence[Order]) -> Bools:
    """Mark one of the marked candidates of each row: the nearest in units of eps, then the first partner.

    Parameters
    ----------
    candidates, keep : the candidates, sorted by (left, right), and which of them are best.
    by : "left" or "right": the side that each has one candidate of.
    orders : the criteria; those without a finite eps above 0 do not count in the sum of ``value / eps``.
    """
    at = np.flatnonzero(keep)
    rows = candidates.left[at] if by == "left" else candidates.right[at]
    if by != "left":  # partners stay ascending
        order = np.argsort(rows, kind="stable")
        at, rows = at[order], rows[order]
    one = np.zeros(len(keep), np.bool_)
    if len(at):
        sums = _sums(candidates.values[at], orders)
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        least = np.minimum.reduceat(sums, begins)
        is_least = np.flatnonzero(sums == np.repeat(least, np.diff(begins, append=len(at))))
        one[at[is_least[np.diff(rows[is_least], prepend=-1) != 0]]] = True
    return one


def first_of_equal(candidates: Candidates, keep: Bools, by: str) -> Bools:
    """Mark one of the marked candidates of each row that are equal in every criterion: the first partner.

    What :func:`one_of` chooses is among them, also if candidates are added later: equal candidates are
    dominated by the same ones, and have the same sum. With an own order, no two are equal.

    Parameters
    ----------
    candidates, keep, by : see :func:`one_of`.
    """
    if candidates.prefer:
        return keep
    at = np.flatnonzero(keep)
    some = candidates.take(at)
    rows, partners = (some.left, some.right) if by == "left" else (some.right, some.left)
    columns = [*some.values.T, *some.masks.T, rows]
    order = np.lexsort((partners, *columns))
    is_first = np.zeros(len(at), np.bool_)
    is_first[:1] = True
    for column in columns:
        is_first[1:] |= column[order[1:]] != column[order[:-1]]
    first = np.zeros(len(keep), np.bool_)
    first[at[order[is_first]]] = True
    return first


def _sums(values: Floats, orders: Sequence[Order]) -> Floats:
    total = np.zeros(len(values))
    numbered = [order for order in orders if isinstance(order, (Closest, Own))]
    for place, order in enumerate(numbered):
        if isinstance(order, Closest) and 0 < order.eps < np.inf:
            total += values[:, place] / order.eps
    return total
