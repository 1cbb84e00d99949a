"""Checks of arguments: columns of ids, flags and distances, counts, names and words."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.ids import IdIndex, index_ids

_NO_NUMBERS = (bool, np.timedelta64)
"""Types that Python or NumPy takes for integers; a duration would lose its unit."""
_INTEGERS = (int, np.integer)
MAX_COLUMNS = 1 << 32
"""Largest number of columns that a caller may ask for; with 2**60, NumPy cannot make even an empty array."""
MAX_BINS = 1 << 16
"""Largest number of bins of a histogram, which each record has; more would tell no more records apart."""
_MAX_COUNT = 2**63 - 1
"""Largest count: what int64 can hold, since kernels take no other integers."""


def as_array(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return ``values`` as an array; without a copy where that is possible.

    Raises
    ------
    ArgumentError
        Some values are masked, or rows have different lengths.
    """
    if type(values) is np.ndarray:
        return values
    if isinstance(values, np.ma.MaskedArray) and np.any(values.mask):
        raise ArgumentError(
            f"{name} must have no masked values, not {np.count_nonzero(values.mask)}; "
            "leave such rows out, or fill the values"
        )
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ArgumentError(f"{name} must have rows of one length: {error}") from error


def int_column(name: str, values: npt.ArrayLike) -> Ints:
    """Return ``values`` as a contiguous one-dimensional int64 array; without a copy where that is possible.

    Raises
    ------
    ArgumentError
        The values are not one-dimensional, or not of a type of whole numbers that int64 can hold; bools are
        not numbers.
    """
    array = as_array(name, values)
    is_safe = array.dtype.kind != "b" and np.can_cast(array.dtype, np.int64, "safe")
    if array.ndim != 1 or (array.size and not is_safe):
        remedy = ""
        if name == "ids" and array.ndim == 1:
            remedy = "; for ids of another type leave them out: names[pairs.left] are those of the rows found"
        raise ArgumentError(
            f"{name} must be a one-dimensional array of int64, not {array.ndim}-dimensional {array.dtype}"
            f"{remedy}"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def bool_column(name: str, values: npt.ArrayLike) -> Bools:
    """Return ``values`` as a one-dimensional array of bool; without a copy where that is possible.

    Raises
    ------
    ArgumentError
        The values are not one-dimensional, or not bool: the integers 0 and 1 could be meant as row numbers.
    """
    array = as_array(name, values)
    if array.ndim != 1 or (array.size and array.dtype != np.bool_):
        raise ArgumentError(
            f"{name} must be a one-dimensional array of bool, not {array.ndim}-dimensional {array.dtype}"
        )
    return np.asarray(array, np.bool_)


def distance_column(name: str, values: npt.ArrayLike) -> Floats:
    """Return ``values`` as a contiguous one-dimensional float64 array; without a copy where possible.

    Raises
    ------
    ArgumentError
        The values are not one-dimensional or not numbers, or one of them is negative or NaN.
    """
    array = as_array(name, values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "fiu"):
        raise ArgumentError(
            f"{name} must be a one-dimensional array of numbers, not {array.ndim}-dimensional {array.dtype}"
        )
    column = np.ascontiguousarray(array, dtype=np.float64)
    if column.size and not column.min() >= 0:  # NaN fails every comparison
        raise ArgumentError(
            f"{name} must be distances, at least 0 and never NaN; the least is {column.min()}"
        )
    return column


def check_lengths(**columns: npt.NDArray[np.generic]) -> None:
    """Check that all columns have one length.

    Raises
    ------
    ArgumentError
        They have different lengths; the message names every column and its length.
    """
    if len({column.shape[0] for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {column.shape[0]}" for name, column in columns.items())
        raise ArgumentError(f"columns of one table must be equally long, not {lengths}")


def check_count(name: str, value: object, least: int = 1, most: float = _MAX_COUNT) -> int:
    """Return ``value`` as an int, if it is a whole number from ``least`` to ``most``.

    Raises
    ------
    ArgumentError
        The value is not a whole number, or not in this range.
    """
    if isinstance(value, _NO_NUMBERS) or not isinstance(value, _INTEGERS) or value < least:
        raise ArgumentError(f"{name} must be a whole number, at least {least}, not {value!r}")
    if value > most:  # which may have more digits than Python prints
        raise ArgumentError(f"{name} must be a whole number of at most {most:,}, not a larger one")
    return int(value)


def check_table_sizes(
    left: Collection[object], right: Collection[object] | None, n_rows: object, right_rows: object
) -> tuple[int, int]:
    """Return the numbers of rows of one table or two, of which the given points are all or a sample.

    Raises
    ------
    ArgumentError
        A number is not a whole number, or less than that of its points; or it is that of a table which is not
        given.
    """
    n = len(left) if n_rows is None else check_count("n_rows", n_rows, len(left))
    if right is not None:
        return n, len(right) if right_rows is None else check_count("right_rows", right_rows, len(right))
    if right_rows is not None:
        raise ArgumentError("right_rows are those of right, which is not given")
    return n, 0


def check_seed(name: str, value: object) -> int:
    """Return ``value`` as an int, if it is a whole number of at least 0, however large.

    Raises
    ------
    ArgumentError
        The value is not a whole number, or negative.
    """
    return check_count(name, value, 0, math.inf)


def are_several(values: object) -> bool:
    """Whether several values are given: no text or bytes, and no array without a dimension."""
    is_one = isinstance(values, str | bytes) or (isinstance(values, np.ndarray) and not values.ndim)
    return isinstance(values, Iterable) and not is_one


def list_names(argument: str, given: str | Iterable[str], least: int = 1) -> list[str]:
    """Return the names of columns that an argument gives: one name, or a list with a least number of names.

    Raises
    ------
    ArgumentError
        The argument is neither.
    """
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"{argument} must be a column's name or a list of names, not {given!r}")
    if len(names) < least:
        raise ArgumentError(f"{argument} must name at least one column")
    return [str(name) for name in names]


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Check that a value is one of some words.

    Raises
    ------
    ArgumentError
        It is not; the message names all of them.
    """
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def as_number(value: object) -> float:
    """Return a real number as a float, and NaN for everything else: NaN fails every comparison with a limit.

    A bool is not a number, nor is a duration; an array without dimensions counts as what it holds; an integer
    beyond float64 is infinite.
    """
    if type(value) is float:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, _NO_NUMBERS) or not isinstance(value, (numbers.Real, Decimal)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]  # every real number is
    except ValueError:  # of a signalling NaN
        return math.nan


def is_one_number(value: npt.ArrayLike) -> bool:
    """Whether there is one threshold for all dimensions, by its shape alone; its value is checked elsewhere.

    Raises
    ------
    ArgumentError
        See :func:`as_array`.
    """
    return isinstance(value, float) or as_array("eps", value).ndim == 0


def index_distinct(ids: Ints, name: str = "ids") -> IdIndex:
    """Make an index of distinct ids, which an error calls by this name.

    Raises
    ------
    ArgumentError
        Two ids are equal.
    """
    try:
        return index_ids(ids)
    except ValueError as error:
        raise ArgumentError(f"{name} must be distinct: {error}") from error
