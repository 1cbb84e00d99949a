"""Which rows of each group no other row of the group dominates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.accelerate import njit
from epsjoin.kernels.arrays import Bools, Floats, Ints

Masks = NDArray[np.uint64]


@njit
def undominated(starts: Ints, values: Floats, masks: Masks | None, keep: Bools) -> int:
    """Mark the rows that no row of their group dominates.

    A row dominates another if it is at least as good in every criterion, and not the other way round: rows
    that are equal everywhere keep each other.

    Parameters
    ----------
    starts : (groups + 1,) int64, ascending; the rows of a group are ``starts[g]`` until before
        ``starts[g + 1]``.
    values : (n, c) float64, never NaN; smaller is better, in each column. c may be 0 where there are masks.
    masks : (n, w) uint64; a row is at least as good as another if it has all bits of the other. None where no
        criterion has bits; a kernel of its own is compiled for that.
    keep : (n,) bool, filled: whether a row is dominated by no other one.

    Returns
    -------
    int
        Number of comparisons of two rows.

    Notes
    -----
    With one column, the rows that have the minimum are kept. With two, one sweep over the rows in
    lexicographic order remembers the least second value so far. Otherwise each row is compared with the row
    of the least sum, since that dominates most others, and if it survives with the survivors before it. A sum
    decides nothing: two may be equal where one row dominates the other.
    """
    comparisons = 0
    columns = values.shape[1]
    largest = 0
    for group in range(starts.size - 1):
        largest = max(largest, starts[group + 1] - starts[group])
    order, spare = np.empty(largest, np.int64), np.empty(largest, np.int64)
    for group in range(starts.size - 1):
        begin, end = starts[group], starts[group + 1]
        if end - begin == 1:
            keep[begin] = True
        elif end > begin:
            if masks is None and columns == 1:
                comparisons += _keep_least(begin, end, values, keep)
            elif masks is None and columns == 2:
                _sort_rows(begin, end, values, order, spare)
                comparisons += _sweep(order[: end - begin], values, keep)
            else:
                comparisons += _compare_with_survivors(begin, end, values, masks, keep, spare, order)
    return comparisons


@njit
def _keep_least(begin: int, end: int, values: Floats, keep: Bools) -> int:
    least = values[begin, 0]
    for row in range(begin + 1, end):
        least = min(least, values[row, 0])
    for row in range(begin, end):
        keep[row] = values[row, 0] == least
    return end - begin - 1


@njit
def _sweep(order: Ints, values: Floats, keep: Bools) -> int:
    """Keep the rows whose second value is below all those of rows with a smaller first value."""
    least_before = np.inf  # among smaller first values
    has_before = False
    least = values[order[0], 1]  # among equal first values: that of the first in order
    for i in range(order.size):
        row = order[i]
        if i > 0 and values[row, 0] != values[order[i - 1], 0]:
            least_before = min(least_before, least)
            has_before = True
            least = values[row, 1]
        keep[row] = values[row, 1] == least and not (has_before and least_before <= least)
    return order.size - 1


@njit
def _compare_with_survivors(
    begin: int, end: int, values: Floats, masks: Masks | None, keep: Bools, alive: Ints, twin: Ints
) -> int:
    """Compare all rows with the one of the least sum, and the rows that this leaves with the survivors.

    The first pass takes no branch that depends on the data, since no processor could foresee it; most rows
    need no other comparison. One of several equal rows is compared, and the others share its fate: ``twin``
    has the row that each follows, by its place in the group.
    """
    first = _least_sum(begin, end, values)
    keep[first] = True
    twin[first - begin] = first
    n_left = 0
    for row in range(begin, end):
        if row == first:
            continue
        first_is_as_good, row_is_as_good = _compare(first, row, values, masks)
        if row_is_as_good and not first_is_as_good:
            keep[first] = False
        keep[row] = row_is_as_good or not first_is_as_good
        twin[row - begin] = first if row_is_as_good and first_is_as_good else row
        alive[n_left] = row
        n_left += not first_is_as_good
    comparisons = end - begin - 1
    n_alive = 0
    for place in range(n_left):
        row = alive[place]
        is_alive = True
        kept = 0
        for j in range(n_alive):
            other = alive[j]
            comparisons += 1
            other_is_as_good, row_is_as_good = _compare(other, row, values, masks)
            if other_is_as_good:
                is_alive = False
                if row_is_as_good:
                    twin[row - begin] = other
                for k in range(j, n_alive):
                    alive[kept] = alive[k]
                    kept += 1
                break
            if row_is_as_good:
                keep[other] = False
            else:
                alive[kept] = other
                kept += 1
        n_alive = kept
        keep[row] = is_alive
        if is_alive:
            alive[n_alive] = row
            n_alive += 1
    for row in range(begin, end):
        keep[row] = keep[twin[row - begin]]
    return comparisons


@njit
def _least_sum(begin: int, end: int, values: Floats) -> int:
    """Find the row with the least sum of its values; any row where sums are not finite."""
    first = begin
    least = np.inf
    for row in range(begin, end):
        total = 0.0
        for i in range(values.shape[1]):
            total += values[row, i]
        if total < least:
            least = total
            first = row
    return first


@njit
def _compare(x: int, y: int, values: Floats, masks: Masks | None) -> tuple[bool, bool]:
    """Whether x is at least as good as y, and y as x."""
    x_is_as_good = y_is_as_good = True
    for i in range(values.shape[1]):
        x_is_as_good &= values[x, i] <= values[y, i]
        y_is_as_good &= values[y, i] <= values[x, i]
    if masks is not None:
        for i in range(masks.shape[1]):
            common = masks[x, i] & masks[y, i]
            x_is_as_good &= common == masks[y, i]
            y_is_as_good &= common == masks[x, i]
    return x_is_as_good, y_is_as_good


@njit
def _sort_rows(begin: int, end: int, values: Floats, order: Ints, spare: Ints) -> None:
    """Fill ``order`` with the rows of a group in lexicographic order of their values, by merging; stable."""
    n = end - begin
    for i in range(n):
        order[i] = begin + i
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            left, right = low, middle
            for place in range(low, high):
                if right >= high or (left < middle and not _is_before(order[right], order[left], values)):
                    spare[place] = order[left]
                    left += 1
                else:
                    spare[place] = order[right]
                    right += 1
        order[:n] = spare[:n]
        width *= 2


@njit
def _is_before(x: int, y: int, values: Floats) -> bool:
    for i in range(values.shape[1]):
        if values[x, i] != values[y, i]:
            return bool(values[x, i] < values[y, i])
    return False
