"""What two streams are matched by, and how long a row of one may wait for the other's."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import as_array
from epsjoin.local.bestmatch.orders import Closest, Order, Subset, orders_of
from epsjoin.local.bestmatch.rows import are_durations, seconds_of
from epsjoin.local.bestmatch.waiting import AXIS


class Criteria:
    """The criteria of a stream as they were given: before the first row, the number of columns is unknown.

    Parameters
    ----------
    eps, orders, max_age : see :class:`epsjoin.BestmatchStream`.

    Raises
    ------
    ArgumentError
        ``max_age`` is negative or not finite.
    """

    def __init__(
        self,
        eps: float | ArrayLike | None,
        orders: Sequence[Order] | None,
        max_age: float | np.timedelta64 | None,
    ) -> None:
        if max_age is not None and not 0.0 <= seconds_of(max_age) < math.inf:
            raise ArgumentError(f"max_age must be a finite number of at least 0, not {max_age!r}")
        self.max_age = max_age
        self._eps, self._orders = eps, orders

    def least_columns(self) -> int:
        """The least number of columns that the criteria need."""
        if self._orders is not None:
            closest = [order for order in self._orders if isinstance(order, Closest)]
            return 1 + max((max(order.numbers) for order in closest), default=0)
        n = 1 if self._eps is None else as_array("eps", self._eps).size
        return n + (self.max_age is not None)

    def check_kind(self, kind: str | None) -> None:
        """Refuse durations for rows that are numbers.

        Raises
        ------
        ArgumentError
            The rows are numbers, and eps or ``max_age`` is a duration.
        """
        if kind == "numbers" and (are_durations(self._eps) or are_durations(self.max_age)):
            raise ArgumentError("eps and max_age must be numbers as the rows, not durations")

    def of_columns(self, d: int) -> tuple[tuple[Order, ...], float]:
        """Return the criteria of rows of d columns, and how far apart in column 0 two rows may be.

        Raises
        ------
        ArgumentError
            They do not suit so many columns, or a stream.
        """
        is_time_apart = self.max_age is not None and self._orders is None
        orders = self._beside_time(d) if is_time_apart else orders_of(self._eps, self._orders, d)
        if any(isinstance(order, Subset) for order in orders):
            raise ArgumentError(
                "Subset holds the marks of two whole tables, not those of a stream; "
                "an OwnOrder may compare marks that are columns"
            )
        return orders, _reach_of(orders) if self.max_age is None else seconds_of(self.max_age)

    def _beside_time(self, d: int) -> tuple[Order, ...]:
        """One criterion for each column but that of the time."""
        if d < 2:
            raise ArgumentError(f"with max_age, column {AXIS} is no criterion: rows need another column")
        each = orders_of(self._eps, None, d - 1)
        return tuple(Closest(order.numbers[0] + 1, order.eps) for order in each if isinstance(order, Closest))


def _reach_of(orders: Sequence[Order]) -> float:
    """The eps of column 0."""
    of_axis = [order for order in orders if isinstance(order, Closest) and order.numbers == (AXIS,)]
    reach = min((order.eps for order in of_axis if order.measure is None), default=math.inf)
    if reach == math.inf:
        raise ArgumentError(
            f"a criterion must bound column {AXIS}, by which the streams are ordered: "
            f"a finite eps of it, or Closest({AXIS}, eps=...) among the orders"
        )
    return reach
