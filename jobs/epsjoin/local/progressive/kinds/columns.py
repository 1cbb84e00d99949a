"""Kinds of joins of numbers, of intervals and of boxes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.local.arguments import as_number, check_count
from epsjoin.local.coordinates import check_points
from epsjoin.local.progressive.kinds.kind import Fitted, JoinKind, Keyed, check_lower
from epsjoin.local.progressive.rows import Keys, Values

_ROUNDING = 2.0**-50
"""Relative slack of a sum and of the difference that it bounds."""

_YEARS_OF_NANOSECONDS = 292
"""Years before and after 1970 whose nanoseconds int64 holds."""


@dataclass(frozen=True)
class Equi(JoinKind):
    """Rows with the same number.

    Rows have one column of integers or of floats, which are compared by their bits; -0.0 is 0.0. NaN joins
    with nothing, like NULL in SQL; nor does a null of a file or of an Arrow batch.

    Examples
    --------
    >>> from epsjoin import progressive_join
    >>> with progressive_join([7, 8, 9], [9, 7, 7], Equi()) as found:
    ...     sorted(pair for pairs, *_ in found for pair in zip(pairs.left.tolist(), pairs.right.tolist()))
    [(0, 1), (0, 2), (2, 0)]
    """

    takes_nulls = True
    joins_equals = True

    def check(self, name: str, values: ArrayLike) -> Values:
        """See :class:`JoinKind`."""
        column = _columns(name, values, (1,), "if")
        return column + 0.0 if column.dtype == np.float64 else column

    def keyed(self, values: Values, ids: Ints) -> Keyed:  # noqa: ARG002  # as of JoinKind
        """See :class:`JoinKind`."""
        rows = np.flatnonzero(~np.isnan(values[:, 0]))
        return Keyed(rows, self.key(values[rows]), np.empty(0, np.int64))

    def key(self, values: Values) -> Keys:
        """See :class:`JoinKind`."""
        return np.ascontiguousarray(values[:, 0]).view(np.int64)

    def expire(self, values: Values, is_right: Bools) -> Keys:  # noqa: ARG002  # as of Band
        """See :class:`JoinKind`."""
        return self.key(values)

    def joins(self, left: Values, right: Values) -> Bools:
        """See :class:`JoinKind`."""
        return np.asarray(self.key(left) == self.key(right))


@dataclass(frozen=True)
class Band(JoinKind):
    """Rows whose numbers are at most eps apart: ``-below <= right - left <= eps``, in float64.

    Parameters
    ----------
    eps : how far the right number may be above the left one, at least 0.
    below : how far it may be below; by default as far.

    Raises
    ------
    ArgumentError
        A limit is negative, infinite or NaN.

    Examples
    --------
    >>> from epsjoin import progressive_join
    >>> import numpy as np
    >>> prices, others = np.array([10.0, 20.0, 30.0]), np.array([10.09, 20.5, 29.8])
    >>> with progressive_join(np.log(prices), np.log(others), Band(np.log(1.01))) as found:  # within 1 %
    ...     sorted(pair for pairs, *_ in found for pair in zip(pairs.left.tolist(), pairs.right.tolist()))
    [(0, 0), (2, 2)]
    """

    eps: float
    below: float | None = None

    def __post_init__(self) -> None:
        for name in ("eps", "below"):
            value = getattr(self, name)
            is_left_out = value is None and name == "below"
            if not is_left_out and not 0.0 <= as_number(value) < math.inf:
                raise ArgumentError(f"{name} must be a finite number of at least 0, not {value!r}")

    def check(self, name: str, values: ArrayLike) -> Values:
        """See :class:`JoinKind`."""
        return check_points(name, _columns(name, values, (1,), "ifub"))

    def check_one_table(self) -> None:
        """See :class:`JoinKind`."""
        if self.below is not None and self.below != self.eps:
            raise ArgumentError(
                f"of one table with itself, Band has one eps, not {self.eps:g} above and {self.below:g} below"
            )

    def key(self, values: Values) -> Keys:
        """See :class:`JoinKind`."""
        return values[:, 0]

    def expire(self, values: Values, is_right: Bools) -> Keys:
        """See :class:`JoinKind`."""
        x = values[:, 0]
        reach = np.where(is_right, self.eps if self.below is None else self.below, self.eps)
        with np.errstate(over="ignore"):
            return np.asarray(x + reach + (np.abs(x) + reach) * _ROUNDING)

    def joins(self, left: Values, right: Values) -> Floats:
        """See :class:`JoinKind`."""
        with np.errstate(over="ignore"):
            apart = right[:, 0] - left[:, 0]
        is_pair = (apart <= self.eps) & (-apart <= (self.eps if self.below is None else self.below))
        return np.where(is_pair, np.abs(apart), np.nan)

    def lowered(self, eps: float) -> Band:
        """See :class:`JoinKind`."""
        if self.below is not None and self.below != self.eps:
            raise ArgumentError("Band with two limits has no eps that could be lowered")
        lower = check_lower(eps, self.eps)
        return replace(self, eps=lower, below=None if self.below is None else lower)


@dataclass(frozen=True)
class Temporal(JoinKind):
    """Intervals of time that meet.

    Parameters
    ----------
    closed : "both" (the default): an interval contains both of its ends, and intervals that touch meet.
        "left": it does not contain its second end, and empty intervals are refused.

    Raises
    ------
    ArgumentError
        ``closed`` is neither of the two.

    Notes
    -----
    Rows have two columns, the first and the last time: floats, integers, or datetime64. Times are not
    compared with numbers, nor those of files and of Arrow batches with times in another unit, also within a
    row.

    Examples
    --------
    >>> from epsjoin import progressive_join
    >>> with progressive_join([[1, 4], [6, 9]], [[4, 5], [8, 12]], Temporal()) as found:  # visits
    ...     sorted(pair for pairs, *_ in found for pair in zip(pairs.left.tolist(), pairs.right.tolist()))
    [(0, 0), (1, 1)]
    """

    closed: Literal["both", "left"] = "both"
    takes_times = True
    has_ends = True

    def __post_init__(self) -> None:
        if self.closed not in ("both", "left"):
            raise ArgumentError(f"closed must be 'both' or 'left', not {self.closed!r}")

    def check(self, name: str, values: ArrayLike) -> Values:
        """See :class:`JoinKind`."""
        times = _columns(name, values, (2,), "ifmM")
        bad = ~(times[:, 0] <= times[:, 1]) if self.closed == "both" else ~(times[:, 0] < times[:, 1])
        if bad.any():
            row = int(bad.argmax())
            rule = "end at or after" if self.closed == "both" else "end after"
            raise ArgumentError(
                f"{name}: an interval must {rule} its beginning; row {row} is {times[row].tolist()}"
            )
        return times

    def key(self, values: Values) -> Keys:
        """See :class:`JoinKind`."""
        return values[:, 0]

    def expire(self, values: Values, is_right: Bools) -> Keys:  # noqa: ARG002  # as of Band
        """See :class:`JoinKind`."""
        end = values[:, 1]
        if self.closed == "both":
            return end
        return end - 1 if end.dtype == np.int64 else np.nextafter(end, -np.inf)

    def joins(self, left: Values, right: Values) -> Bools:
        """See :class:`JoinKind`."""
        if self.closed == "both":
            return np.asarray((left[:, 0] <= right[:, 1]) & (right[:, 0] <= left[:, 1]))
        return np.asarray((left[:, 0] < right[:, 1]) & (right[:, 0] < left[:, 1]))


@dataclass(frozen=True)
class Spatial(JoinKind):
    """Boxes that meet; boxes that touch do.

    Parameters
    ----------
    axis : the axis along which boxes are swept; by default that with the fewest overlaps in the first rows.

    Raises
    ------
    ArgumentError
        The axis is not a whole number of at least 0.

    Notes
    -----
    Rows have an even number of columns: the lower corner, then the upper one.

    Examples
    --------
    >>> from epsjoin import progressive_join
    >>> boxes, others = [[0, 0, 1, 1], [4, 4, 5, 6]], [[1, 1, 2, 2], [4.5, 0, 5, 3]]
    >>> with progressive_join(boxes, others, Spatial()) as found:
    ...     [pair for pairs, *_ in found for pair in zip(pairs.left.tolist(), pairs.right.tolist())]
    [(0, 0)]
    """

    axis: int | None = None
    has_ends = True

    def __post_init__(self) -> None:
        if self.axis is not None:
            check_count("axis", self.axis, 0)

    def check(self, name: str, values: ArrayLike) -> Values:
        """See :class:`JoinKind`."""
        boxes = check_points(name, values)
        d, odd = divmod(boxes.shape[1], 2)
        if odd or (self.axis is not None and not 0 <= self.axis < d):
            raise ArgumentError(
                f"{name} must have a lower and an upper corner, as many columns each, not {boxes.shape[1]}; "
                f"axis must be one of theirs, not {self.axis}"
            )
        bad = (boxes[:, :d] > boxes[:, d:]).any(axis=1)
        if bad.any():
            raise ArgumentError(f"{name}: row {int(bad.argmax())} has a lower corner above its upper one")
        return boxes

    def fit(self, sample: Values, n_rows: int) -> Spatial:  # noqa: ARG002  # as of JoinKind
        """See :class:`JoinKind`."""
        if self.axis is not None or not len(sample):
            return replace(self, axis=self.axis or 0)
        d = sample.shape[1] // 2
        overlaps = [
            int((np.searchsorted(np.sort(sample[:, i]), sample[:, d + i], "right")).sum())
            - int(np.searchsorted(np.sort(sample[:, d + i]), sample[:, i], "left").sum())
            for i in range(d)
        ]
        return replace(self, axis=int(np.argmin(overlaps)))

    def key(self, values: Values) -> Keys:
        """See :class:`JoinKind`."""
        return values[:, self.axis or 0]

    def expire(self, values: Values, is_right: Bools) -> Keys:  # noqa: ARG002  # as of Band
        """See :class:`JoinKind`."""
        return values[:, values.shape[1] // 2 + (self.axis or 0)]

    def joins(self, left: Values, right: Values) -> Bools:
        """See :class:`JoinKind`."""
        d = left.shape[1] // 2
        return np.asarray(((left[:, :d] <= right[:, d:]) & (right[:, :d] <= left[:, d:])).all(axis=1))

    def state(self) -> dict[str, Any]:
        """See :class:`JoinKind`."""
        return {"axis": self.axis}

    def restored(self, state: dict[str, Any]) -> Fitted:
        """See :class:`JoinKind`."""
        return Fitted(replace(self, axis=state["axis"]))


def _columns(name: str, values: ArrayLike, allowed: tuple[int, ...], kinds: str) -> NDArray[Any]:
    """Rows of so many columns, of float64 or int64; a single column may be one-dimensional."""
    array = np.asarray(values)
    if array.ndim == 1 and 1 in allowed:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] not in allowed:
        wanted = " or ".join(map(str, allowed))
        raise ArgumentError(f"{name} must have the shape (n, {wanted}), not {array.shape}")
    if array.dtype.kind in "mM":
        return _nanoseconds(name, array, "M" in kinds)
    if array.dtype.kind not in "ifub":
        raise ArgumentError(f"{name} must be numbers, not {array.dtype}")
    if array.dtype.itemsize > 8:
        raise ArgumentError(f"{name} must be numbers of at most 64 bits, not {array.dtype}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ArgumentError(f"{name} must be numbers that int64 can hold")
    return np.ascontiguousarray(array, np.float64 if array.dtype.kind == "f" else np.int64)


def _nanoseconds(name: str, times: NDArray[Any], allowed: bool) -> Ints:
    """Times, or durations, as whole nanoseconds."""
    if not allowed or np.isnat(times).any():
        raise ArgumentError(f"{name} must be numbers, or times without NaT where times are joined")
    years = times.astype(f"{times.dtype.kind}8[D]").astype(np.int64) / 365.2425
    if times.size and np.abs(years).max() > _YEARS_OF_NANOSECONDS:
        raise ArgumentError(f"{name} has times more than {_YEARS_OF_NANOSECONDS} years from 1970")
    return np.ascontiguousarray(times.astype(f"{times.dtype.kind}8[ns]")).view(np.int64)
