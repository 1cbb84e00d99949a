"""One criterion of one column: the nearest numbers of two sorted columns, without a join."""

from __future__ import annotations

import numpy as np

from epsjoin.errors import BudgetError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.bestmatch.criteria import fill_runs, first_of_runs, nearest_begins
from epsjoin.kernels.sorting import argsort, lexsort
from epsjoin.local.bestmatch.candidates import Candidates


def nearest_rows(
    left: Floats, right: Floats, eps: float, max_candidates: int, *, is_one: bool = False
) -> Candidates:
    """Find for each left number the nearest right numbers within eps, all of them if several are as near.

    Parameters
    ----------
    left, right : (n,) and (m,) float64, finite; not modified.
    eps : threshold of ``|l - r|``, at least 0, or infinite.
    max_candidates : maximum number of pairs.
    is_one : whether to find the first of several right rows alone.

    Raises
    ------
    BudgetError
        There are more pairs, where many right numbers are equal.

    Notes
    -----
    O(n log n + m log m), without the sort where a column is sorted.
    """
    left_rows, right_rows = _ascending(left), _ascending(right)
    x = left if left_rows is None else left[left_rows]
    y = right if right_rows is None else right[right_rows]
    begins, ends = np.empty(len(x), np.int64), np.empty(len(x), np.int64)
    pairs = nearest_begins(np.ascontiguousarray(x), np.ascontiguousarray(y), eps, begins, ends)
    numbers = np.arange(len(right)) if right_rows is None else right_rows
    if is_one:
        firsts = np.empty(len(x), np.int64)
        first_of_runs(begins, ends, numbers, firsts)
        begins, ends = firsts, np.where(firsts < 0, firsts, firsts + 1)
        numbers, right_rows = np.arange(len(right)), None  # each run is a row in the order of the table
        pairs = int((ends > begins).sum())
    if pairs > max_candidates:
        remedy = "allow more" if is_one else 'leave out equal rows, ask for take="one", or allow more'
        raise BudgetError(
            f"{pairs:,} pairs are nearest, more than max_candidates = {max_candidates}"
            f"{'' if is_one else ', as where many rows are equal'}; {remedy}"
        )
    first, second = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    if left_rows is not None:  # in the order of the left rows
        place = np.empty(len(x), np.int64)
        place[left_rows] = np.arange(len(x))
        begins, ends = begins[place], ends[place]
    fill_runs(begins, ends, np.arange(len(left)), numbers, first, second)
    with np.errstate(over="ignore"):
        values = np.abs(left[first] - right[second])[:, None]
    found = Candidates(first, second, values, np.empty((pairs, 0), np.uint64))
    if right_rows is None or not (np.diff(first) == 0).any():
        return found
    return found.take(lexsort((second, first)))


def _ascending(column: Floats) -> Ints | None:
    """Return the rows in ascending order of their values; None if they are in this order."""
    if (column[1:] >= column[:-1]).all():
        return None
    return argsort(column)
