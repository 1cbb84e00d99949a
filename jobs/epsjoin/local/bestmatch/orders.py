"""The criteria of a best match: each orders the pairs of a left and a right row, the better ones first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats
from epsjoin.kernels.bestmatch.dominance import Masks
from epsjoin.local.arguments import as_array, as_number
from epsjoin.local.bestmatch.rows import seconds_of
from epsjoin.local.metric import Metric, get_metric

PairRows = tuple[Floats, Floats]
"""The left and the right rows of k pairs, (k, d) each, as an own order gets them."""


@dataclass(frozen=True)
class Closest:
    """Smaller distances are better; pairs farther apart than eps are no matches at all.

    Parameters
    ----------
    columns : the column that is compared, or several, counted from 0.
    eps : threshold of the distance in its own unit: above 0; 0, where the columns must be equal; or infinite,
        the default, where every distance is allowed. Of times, seconds or a timedelta64.
    metric : metric of the distance, see :func:`epsjoin.get_metric`; by default ``|l - r|`` of one column, and
        "euclidean" of several.

    Raises
    ------
    ArgumentError
        Columns or eps of a wrong type or value; an unknown metric, or one that is not for so many columns.

    Examples
    --------
    >>> Closest((1, 2), eps=200.0, metric="haversine").columns
    (1, 2)
    """

    columns: int | Sequence[int]
    eps: float = math.inf
    metric: str | Metric | None = None

    def __post_init__(self) -> None:
        columns = tuple(self.columns) if np.iterable(self.columns) else (self.columns,)
        is_number = [isinstance(each, (int, np.integer)) and each >= 0 for each in columns]
        if not columns or not all(is_number) or any(isinstance(each, bool) for each in columns):
            raise ArgumentError(
                f"columns must be numbers of columns, counted from 0, one at least, not {self.columns!r}"
            )
        object.__setattr__(self, "columns", tuple(int(column) for column in columns))
        metric = self.metric
        if metric is None and len(columns) > 1:
            metric = "euclidean"
        if metric is not None and not isinstance(metric, Metric):
            metric = get_metric(metric)
        object.__setattr__(self, "metric", metric)
        object.__setattr__(self, "eps", _check_eps(self.eps, metric))
        if metric is not None:
            metric.dimensions(len(columns))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The columns, always as a tuple."""
        return cast("tuple[int, ...]", self.columns)

    @property
    def measure(self) -> Metric | None:
        """The metric; None for ``|l - r|`` of one column."""
        return cast("Metric | None", self.metric)


def _check_eps(eps: object, metric: Metric | None) -> float:
    number = as_number(eps) if metric is not None else seconds_of(eps)
    if not number >= 0:
        raise ArgumentError(f"eps must be a number of at least 0, which may be infinite, not {eps!r}")
    if metric is not None and 0 < number < math.inf:
        return metric.check_eps(number)
    if number == 0 and metric is not None and metric.is_on_sphere:  # distance 0 does not mean equal columns
        raise ArgumentError(
            f"eps = 0 has no exact meaning for {metric.name}; Closest(column, eps=0) of each column "
            "asks for equal values"
        )
    return number


@dataclass(frozen=True)
class Own:
    """A criterion of your own: smaller values of a function are better.

    Parameters
    ----------
    value : function of the left and the right rows of k pairs, (k, d) float64 each, not to be modified;
        returns (k,) numbers that float64 can hold, none of which is NaN. It must give a pair the same value
        whatever other pairs are passed with it.

    Raises
    ------
    ArgumentError
        ``value`` is not a function.

    Examples
    --------
    >>> from epsjoin import bestmatch_join
    >>> by_size = Own(lambda left, right: -right[:, 1])  # the largest first
    >>> table = [[1.0, 500.0], [2.0, 900.0]]
    >>> bestmatch_join([[0.0, 0.0]], table, orders=[Closest(0, eps=5.0), by_size]).right
    array([0, 1])
    """

    value: Callable[[Floats, Floats], ArrayLike]

    def __post_init__(self) -> None:
        _check_function("value of Own", self.value)


@dataclass(frozen=True)
class Subset:
    """More common marks are better: a pair is at least as good as another if it has all its common marks.

    Parameters
    ----------
    left_masks, right_masks : (n, w) and (m, w) uint64, or (n,) and (m,): the marks of each row, as bits. The
        common marks of a pair are the bits that both rows have.

    Examples
    --------
    >>> from epsjoin import bestmatch_join
    >>> speaks = Subset(np.array([0b11], np.uint64), np.array([0b01, 0b11], np.uint64))
    >>> bestmatch_join([[0.0]], [[1.0], [1.0]], orders=[Closest(0, eps=5.0), speaks]).right
    array([1])

    Of two partners at one distance, it is the one with both marks.
    """

    left_masks: ArrayLike = field(repr=False)
    right_masks: ArrayLike = field(repr=False)


@dataclass(frozen=True)
class OwnOrder:
    """A criterion of your own without values: a function says which of two pairs is at least as good.

    Parameters
    ----------
    at_least_as_good : function of k pairs and of k other pairs, each a tuple of their left and right rows,
        (k, d) float64 each, not to be modified; returns (k,) bool: whether each pair is at least as good as
        the other one. If neither is, the two pairs are incomparable. The order must be transitive.

    Raises
    ------
    ArgumentError
        ``at_least_as_good`` is not a function.

    Notes
    -----
    Any two pairs of a row are compared, so this suits rows with few candidates.

    Examples
    --------
    >>> from epsjoin import bestmatch_join
    >>> def nearer_on_one_side(pairs, others):
    ...     (left, right), (other_left, other_right) = pairs, others
    ...     gap, other_gap = (right - left)[:, 0], (other_right - other_left)[:, 0]
    ...     return (gap * other_gap > 0) & (abs(gap) <= abs(other_gap))
    >>> table = [[-3.0], [-1.0], [2.0], [4.0]]
    >>> orders = [OwnOrder(nearer_on_one_side)]
    >>> bestmatch_join([[0.0]], table, orders=orders).right
    array([1, 2])

    Right rows below the left one cannot be compared with those above it: the nearest of either side is best.
    """

    at_least_as_good: Callable[[PairRows, PairRows], npt.ArrayLike]

    def __post_init__(self) -> None:
        _check_function("at_least_as_good of OwnOrder", self.at_least_as_good)


def _check_function(name: str, given: object) -> None:
    if not callable(given):
        raise ArgumentError(f"{name} must be a function of pairs, not {given!r}")


Order = Closest | Own | Subset | OwnOrder
"""One criterion."""


def orders_of(eps: float | ArrayLike | None, orders: Sequence[Order] | None, d: int) -> tuple[Order, ...]:
    """Return the criteria of a call: those given, or one per column.

    Parameters
    ----------
    eps : one threshold for all columns, or one for each; None with orders.
    orders : the criteria, or None.
    d : number of columns.

    Raises
    ------
    ArgumentError
        Both are given, or neither; eps of a wrong shape or value; something that is not an order, or one of
        columns that do not exist.
    """
    if (eps is None) == (orders is None):
        raise ArgumentError(
            "pass either eps, one criterion per column, or orders, whose Closest have an eps of their own"
        )
    if orders is None:
        given = as_array("eps", eps)  # type: ignore[arg-type]  # not None, as was asked above
        each = np.broadcast_to(given, (d,)) if given.ndim == 0 else given
        if each.shape != (d,) or each.dtype.kind not in "fium":
            raise ArgumentError(f"eps must be one number, or one per column ({d}), not {eps!r}")
        return tuple(Closest(column, eps=each[column]) for column in range(d))
    if not isinstance(orders, Iterable):
        raise ArgumentError(f"orders must be a list of orders, the first one counts first, not {orders!r}")
    checked = tuple(orders)
    if not checked:
        raise ArgumentError("orders must have at least one order")
    for order in checked:
        if not isinstance(order, (Closest, Own, Subset, OwnOrder)):
            raise ArgumentError(f"orders must be Closest, Own, Subset or OwnOrder, not {order!r}")
        if isinstance(order, Closest) and max(order.numbers) >= d:
            raise ArgumentError(f"{order!r} needs column {max(order.numbers)}, the last one is {d - 1}")
    return checked


def is_of_one_column(orders: Sequence[Order]) -> bool:
    """Whether the only criterion is ``|l - r|`` of a column: then only the nearest numbers are wanted."""
    (first, *others) = orders
    return not others and isinstance(first, Closest) and first.measure is None


def masks_of(order: Subset, n_left: int, n_right: int) -> tuple[Masks, Masks]:
    """Return both tables' masks as (n, w) and (m, w) uint64.

    Raises
    ------
    ArgumentError
        They are of another type, not one per row, or of different widths.
    """
    left = _mask_rows("left_masks", order.left_masks, n_left)
    right = _mask_rows("right_masks", order.right_masks, n_right)
    if left.shape[1] != right.shape[1]:
        raise ArgumentError(
            f"left_masks and right_masks must have as many words, not {left.shape[1]} and {right.shape[1]}"
        )
    return left, right


def _mask_rows(name: str, masks: ArrayLike, n: int) -> Masks:
    array = as_array(name, masks)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != n or array.dtype.kind not in "ub":
        raise ArgumentError(
            f"{name} must be unsigned integers, one row of words per row ({n}), "
            f"not {array.dtype} of the shape {array.shape}"
        )
    return np.ascontiguousarray(array, np.uint64)
