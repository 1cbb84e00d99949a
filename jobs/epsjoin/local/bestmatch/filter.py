"""The filter of best matches: a join that finds the pairs which may be within the eps of all criteria.

It compares columns, on the sphere where a metric is there, with slack for rounding; it decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from epsjoin.errors import BudgetError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.sorting import argsort
from epsjoin.local.bestmatch.orders import Closest, Order
from epsjoin.local.join.array_join import ArrayJoin
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.sweep.pairs import Pairs, collect

_FIRST_ROWS = 1 << 16
"""Number of left rows of the first block; its candidates tell how many rows the others should have."""
_SURELY = 10.0
"""A join is refused before it begins if this many times the allowed candidates are expected: an estimate may
be several times too high if few rows have most of them."""
_SLACK = 1.0 + 1e-12
"""More than the rounding of the distance of a few columns, relative to eps."""
_MIN_REACH, _MAX_REACH = 1e-300, 1e300
"""Range of the eps of a column by which a join finds candidates: below it a column is searched with more, and
beyond it not at all."""


def filter_columns(name: str, points: Floats, orders: Sequence[Order]) -> tuple[Floats, Floats]:
    """Compute the columns in which a filter searches for the candidates of points of one table.

    Parameters
    ----------
    name : of the points, for messages.
    points : (n, d) float64, checked; not modified.
    orders : checked criteria.

    Returns
    -------
    columns : (n, e) float64, those of all criteria with a finite eps, on the sphere where their metric is;
        none for an eps so large that a join cannot search with it.
    eps : (e,) float64: two points within all criteria differ in each column by at most this, rounding
        included; 0 where they are equal.

    Raises
    ------
    ArgumentError
        A metric is not defined for a point.
    """
    columns, eps = [np.empty((len(points), 0))], list[float]()
    for order in orders:
        if isinstance(order, Closest) and order.measure is not None:
            order.measure.check(points[:, list(order.numbers)], name)
        if not isinstance(order, Closest) or order.eps == math.inf:
            continue
        own, reach = np.ascontiguousarray(points[:, list(order.numbers)]), order.eps
        if order.measure is not None and order.eps > 0:
            own, reach = order.measure.embed(own), order.measure.embedded_eps(reach) * _SLACK
        if reach > _MAX_REACH:
            continue
        if reach > 0:
            reach = max(reach, _MIN_REACH)
        columns.append(own)
        eps += [reach] * own.shape[1]
    return np.concatenate(columns, axis=1), np.array(eps)


@dataclass(frozen=True)
class Filter:
    """The columns in which the join of two tables searches for candidates.

    Parameters
    ----------
    left, right : (n, e) and (m, e) float64; e is 0 where no criterion has a finite eps.
    eps : (e,) float64; pairs within all criteria differ in each column by at most this.
    """

    left: Floats
    right: Floats
    eps: Floats

    @classmethod
    def of(cls, left: Floats, right: Floats, orders: Sequence[Order]) -> Filter:
        """Take the columns of all criteria with a finite eps, on the sphere where their metric is there."""
        x, eps = filter_columns("left", left, orders)
        y, _ = filter_columns("right", right, orders)
        for column in np.flatnonzero(eps == 0):
            x[:, column], y[:, column] = _twice_the_ranks(x[:, column], y[:, column])
        return cls(x, y, np.where(eps == 0, 1.0, eps))

    def pairs(
        self, n_left: int, n_right: int, max_candidates: int, n_jobs: int, block_pairs: int
    ) -> Iterator[Pairs]:
        """Find the pairs that pass the filter, of one block of left rows after the other; no distances."""
        if not len(self.eps):
            yield from _all_pairs(n_left, n_right, max_candidates, block_pairs)
            return
        if not n_left or not n_right:
            return
        if n_left * n_right > max_candidates and self._expected() > _SURELY * max_candidates:
            raise self._refusal(max_candidates)
        block_rows = min(n_left, _FIRST_ROWS)
        begin, found = 0, 0
        while begin < n_left:
            n_rows = min(block_rows, n_left - begin)
            room = max_candidates - found
            limit = min(room, 4 * block_pairs) if n_rows > 1 else room
            pairs = self._join(*self._block(begin, n_rows), limit, n_jobs)
            if pairs is None:
                if limit == room:
                    raise self._refusal(max_candidates)
                block_rows = max(1, n_rows // 4)
                continue
            found += len(pairs.left)
            begin += n_rows
            block_rows = max(1, n_rows * block_pairs // max(1, len(pairs.left)))
            yield pairs

    def _block(self, begin: int, n_rows: int) -> tuple[Ints | None, Ints | None]:
        """Return the rows of a block of left rows, and the right rows that they may meet; None: all rows."""
        if n_rows == len(self.left):
            return None, None
        axis, left_order, right_order, sorted_right = self._narrowest
        rows = left_order[begin : begin + n_rows]
        low, high = self.left[rows[[0, -1]], axis]
        reach = self.eps[axis] * _SLACK + 2.0**-50 * max(abs(low), abs(high))
        first = np.searchsorted(sorted_right, low - reach)
        last = np.searchsorted(sorted_right, high + reach, side="right")
        return np.sort(rows), np.sort(right_order[first:last])

    @cached_property
    def _narrowest(self) -> tuple[int, Ints, Ints, Floats]:
        """The column with the smallest eps for its spread, both tables' rows in its order, right values."""
        spread = np.ptp(self.right, axis=0)
        with np.errstate(over="ignore"):
            axis = int(np.argmax(spread / self.eps))
        left, right = (argsort(side[:, axis]) for side in (self.left, self.right))
        return axis, left, right, self.right[right, axis]

    def _refusal(self, max_candidates: int) -> BudgetError:
        return BudgetError(
            f"more than max_candidates = {max_candidates} candidates; about {self._expected():.3g} are "
            "expected: a smaller eps, or one more criterion with an eps, gives fewer"
        )

    def _expected(self) -> float:
        options = JoinOptions.of("chebyshev", 1, None, False, None)
        return ArrayJoin.of_two(self.left, self.right, self.eps, None, None, options).expected_pairs()

    def _join(self, left_rows: Ints | None, right_rows: Ints | None, limit: int, n_jobs: int) -> Pairs | None:
        """Find the pairs of some rows, sorted by (left, right); None where they are more than the limit."""
        options = JoinOptions.of("chebyshev", n_jobs, limit, False, None)
        x = self.left if left_rows is None else self.left[left_rows]
        y = self.right if right_rows is None else self.right[right_rows]
        try:
            joined = ArrayJoin.of_two(x, y, self.eps, None, None, options)
            pairs = collect(joined.batches("bestmatch_join"), (len(x), len(y)), with_distance=False)
        except BudgetError:
            return None
        if left_rows is None or right_rows is None:
            return pairs
        return pairs._replace(left=left_rows[pairs.left], right=right_rows[pairs.right])


def _twice_the_ranks(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Give equal values the same number and others numbers 2 apart, so that only equal ones are within 1."""
    _, rank = np.unique(np.concatenate((left, right)), return_inverse=True)
    twice = 2.0 * rank.astype(np.float64)
    return twice[: len(left)], twice[len(left) :]


def _all_pairs(n_left: int, n_right: int, max_candidates: int, block_pairs: int) -> Iterator[Pairs]:
    if n_left * n_right > max_candidates:
        raise BudgetError(
            f"no criterion has a finite eps, so all {n_left:,} x {n_right:,} = {n_left * n_right:,} pairs "
            f"are candidates, more than max_candidates = {max_candidates}; give one of them an eps"
        )
    if not n_left or not n_right:
        return
    rows = max(1, block_pairs // n_right)
    for begin in range(0, n_left, rows):
        block = np.arange(begin, min(n_left, begin + rows))
        left, right = np.repeat(block, n_right), np.tile(np.arange(n_right), len(block))
        yield Pairs(left, right, np.empty(0))
