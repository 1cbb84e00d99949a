"""Columns as they come from a caller or from Arrow, checked and brought to one type."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError

IntColumn = npt.NDArray[np.int64]
FloatColumn = npt.NDArray[np.float64]


def int_column(name: str, values: npt.ArrayLike) -> IntColumn:
    """Return ``values`` as a contiguous one-dimensional int64 array, if possible without a copy.

    Raises
    ------
    ArgumentError
        Not one-dimensional, or not whole numbers of at most 64 bits with a sign.
    """
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.can_cast(array.dtype, np.int64, "safe")):
        raise ArgumentError(
            f"{name} must be a one-dimensional array of int64, not {array.ndim}-dimensional {array.dtype}"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def distance_column(name: str, values: npt.ArrayLike) -> FloatColumn:
    """Return ``values`` as a contiguous one-dimensional float64 array, if possible without a copy.

    Raises
    ------
    ArgumentError
        Not one-dimensional, not numbers, or one of them is negative or NaN.
    """
    array = np.asarray(values)
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
        They do not; the message has every name and length.
    """
    if len({column.shape[0] for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {column.shape[0]}" for name, column in columns.items())
        raise ArgumentError(f"columns of one table must be equally long, not {lengths}")


def check_count(name: str, value: object, least: int = 1) -> int:
    """Return ``value`` as an int.

    Raises
    ------
    ArgumentError
        Not a whole number, or below ``least``.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ArgumentError(f"{name} must be a whole number, at least {least}, not {value!r}")
    return int(value)
