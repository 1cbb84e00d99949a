"""Batches of values: what one push to a window holds, checked and counted."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.kernels.windows import count_runs, sum_squares

Values = npt.NDArray[Any]
"""Values of one kind: int64, float64, bool, or texts as objects."""

TEXT = np.dtype(object)
"""NumPy's own type of texts, ``StringDType``, does not find long ones: ``searchsorted`` and ``insert`` of two
arrays read the texts of one in the memory of the other (NumPy 2.4)."""

_DTYPES: dict[str, np.dtype[Any]] = {
    "integers": np.dtype(np.int64),
    "floats": np.dtype(np.float64),
    "booleans": np.dtype(np.bool_),
    "texts": TEXT,
}
"""What values can be."""

_NULLS = (("is_null", "drop_nulls"), ("is_null", "drop_null"), ("isna", "dropna"))
"""Which rows of a column are null, and the others: methods of polars, of Arrow, and of pandas."""

_FEW = 1 << 13
"""Up to this number of values are sorted to count them: NumPy's hash table takes longer."""


class Counts(NamedTuple):
    """Distinct values and how often each comes.

    Parameters
    ----------
    values : (m,) the distinct values, ascending: integers, floats, booleans, or texts by code point. NaN is
        one value, the last; -0.0 is 0.0.
    rows : (m,) int64, how many rows have each value, at least 1.
    missing : number of rows without a value (``None``); not among ``values``.

    Examples
    --------
    >>> from epsjoin import ValueWindow
    >>> values, rows, missing = ValueWindow.count(["b", "a", None, "b"])
    >>> values.tolist(), rows.tolist(), missing
    (['a', 'b'], [1, 2], 1)
    """

    values: Values
    rows: Ints
    missing: int


NO_COUNTS = Counts(np.empty(0), np.empty(0, np.int64), 0)
"""The counts of a batch without rows, of no kind."""


def split_missing(name: str, values: npt.ArrayLike) -> tuple[Values, Bools]:
    """Return the values that are there as one type, and which rows have none.

    Parameters
    ----------
    name : the argument's name, for the error.
    values : (n,) integers, floats, booleans or texts, not several of these; None is a missing value, and so
        are masked ones and nulls of Arrow, of polars and of pandas' own types.

    Returns
    -------
    tuple
        The values of the other rows, in order; (n,) bool, True where a row has none.

    Raises
    ------
    ArgumentError
        The values are not one-dimensional, of several kinds, or of none that a window holds; an integer is
        beyond int64.
    """
    there, is_null = _without_nulls(values)
    array, is_none = _split_nones(name, there)
    if is_null is None:
        return array, is_none
    is_missing = is_null.copy()
    is_missing[~is_null] = is_none
    return array, is_missing


def _without_nulls(values: Any) -> tuple[Any, Bools | None]:
    """Return the rows of a column that are not null, and which ones are, if it has nulls and knows them.

    Converted to an array, nulls would become numbers, and integers beside them floats.
    """
    for ask, leave_out in _NULLS:
        if isinstance(getattr(values, "dtype", None), np.dtype):
            break  # pandas' columns of NumPy's types have none: NaN is a number
        if hasattr(values, ask) and hasattr(values, leave_out):
            is_null = np.asarray(getattr(values, ask)(), np.bool_)
            if is_null.ndim == 1 and is_null.any():
                try:
                    return getattr(values, leave_out)(), is_null
                except NotImplementedError:  # Arrow does not leave out nulls of views of texts
                    return [value for value in values.to_pylist() if value is not None], is_null
    return values, None


def _split_nones(name: str, values: npt.ArrayLike) -> tuple[Values, Bools]:
    """Do what :func:`split_missing` does where no row is null."""
    if isinstance(values, np.ma.MaskedArray):
        is_masked, values = np.ma.getmaskarray(values), values.data.astype(object)
        values[is_masked] = None
    array = np.asarray(values, dtype=object if _is_list(values) else None)
    if array.ndim != 1:
        raise ArgumentError(f"{name} must be one-dimensional, not {array.ndim}-dimensional")
    is_missing = np.zeros(len(array), np.bool_)
    if array.dtype.kind in "UT":
        has_missing, array = hasattr(array.dtype, "na_object"), array.astype(TEXT)
        if has_missing:
            is_missing = np.fromiter((not isinstance(text, str) for text in array), np.bool_, len(array))
        return array[~is_missing], is_missing
    if array.dtype == object:
        is_missing = np.fromiter((value is None for value in array), np.bool_, len(array))
        array = _as_one_type(name, array[~is_missing])
    if array.dtype.kind in "ui" and (array.dtype != np.uint64 or not (array > np.iinfo(np.int64).max).any()):
        return array.astype(np.int64), is_missing
    if array.dtype.kind == "f":
        return array.astype(np.float64) + 0.0, is_missing  # -0.0 becomes 0.0
    if array.dtype.kind == "b" or array.dtype == TEXT:
        return array, is_missing
    raise ArgumentError(
        f"{name} must be integers that int64 holds, floats, booleans or texts, not {array.dtype}; "
        "values of another kind can be counted as texts"
    )


def _is_list(values: npt.ArrayLike) -> bool:
    """Tell whether NumPy would choose the type: it makes a text of 1 beside "a", a float of 1 beside 1.5."""
    return isinstance(values, list | tuple)


def _as_one_type(name: str, values: Values) -> Values:
    """Return objects as an array of the one type that all of them have."""
    types = {_kind_of(value) for value in values}
    if len(types) > 1:
        words = " and ".join(sorted(types))
        raise ArgumentError(f"{name} must be of one kind, not {words}; make all of them texts, or all floats")
    if types - set(_DTYPES):
        raise ArgumentError(f"{name} must be integers, floats, booleans, texts or None, not {types.pop()}")
    if not types:
        return np.empty(0)
    try:
        return np.array(values.tolist(), dtype=_DTYPES[types.pop()])
    except OverflowError:
        raise ArgumentError(f"{name} must be integers that int64 holds; others can be texts") from None


def _kind_of(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if isinstance(value, int | np.integer):
        return "integers"
    if isinstance(value, float | np.floating):
        return "floats"
    return "texts" if isinstance(value, str) else type(value).__name__


def check_kind(name: str, values: Values, kind: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """Check that a batch is of the kind of those before; return the kind of the window from now on.

    Raises
    ------
    ArgumentError
        The window holds values of another kind.
    """
    if not len(values):
        return kind
    if kind is None or values.dtype == kind:  # in this order: NumPy takes None for float64
        return values.dtype
    raise ArgumentError(
        f"{name} must be {_word_of(kind)} as in the batches before, not {_word_of(values.dtype)}; "
        "a window holds values of one kind"
    )


def _word_of(dtype: np.dtype[Any]) -> str:
    return next(word for word, its in _DTYPES.items() if its == dtype)


def count_values(values: Values, n_missing: int = 0) -> Counts:
    """Count the rows of each distinct value, in O(n log n): one batch as the paper's store AGGR."""
    if values.dtype == TEXT:
        counted = Counter(values.tolist())
        texts = sorted(counted)
        return Counts(np.array(texts, TEXT), np.array([counted[text] for text in texts], np.int64), n_missing)
    if values.dtype.kind in "if" and len(values) <= _FEW:
        distinct, rows = np.empty_like(values), np.empty(len(values), np.int64)
        size = count_runs(np.sort(values), distinct, rows)
        return Counts(distinct[:size], rows[:size], n_missing)
    distinct, rows = np.unique(values, return_counts=True)
    return Counts(distinct, rows.astype(np.int64, copy=False), n_missing)


class Moments(NamedTuple):
    """Number of values, their mean, and the sum of squared distances from it.

    The paper calls variance an operator that needs the whole window (3.2); merged, not subtracted, these
    three are enough: a batch that leaves is left out of the merge, so nothing cancels.
    """

    n: int
    mean: float | Fraction
    squares: float | Fraction


def moments_of(counts: Counts) -> Moments:
    """Summarise one batch of numbers or booleans; by NaN, if one is not finite.

    If float64 does not hold all of the integers, they are summed exactly, in Python.
    """
    if counts.values.dtype.kind == "i" and ((counts.values > 2**53) | (counts.values < -(2**53))).any():
        each = list(zip(counts.values.tolist(), counts.rows.tolist(), strict=True))
        n = sum(rows for _, rows in each)
        mean = Fraction(sum(value * rows for value, rows in each), n)
        return Moments(n, mean, sum(value * value * rows for value, rows in each) - n * mean * mean)
    return Moments(*sum_squares(counts.values.astype(np.float64, copy=False), counts.rows))


def merge_moments(one: Moments, other: Moments) -> Moments:
    """Summarise two batches together (Chan, Golub and LeVeque, 1979)."""
    if not one.n:
        return other
    if not other.n:
        return one
    if isinstance(one.mean, Fraction) != isinstance(other.mean, Fraction):  # a float would round the other
        one, other = (Moments(each.n, Fraction(each.mean), Fraction(each.squares)) for each in (one, other))
    n = one.n + other.n
    difference = other.mean - one.mean
    mean = one.mean + difference * other.n / n
    if math.isinf(mean):  # the difference, or its multiple, is beyond float64
        mean = one.mean * (one.n / n) + other.mean * (other.n / n)
    squares = difference * (one.n * other.n / n) * difference
    return Moments(n, mean, one.squares + other.squares + squares)
