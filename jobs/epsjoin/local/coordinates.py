"""Checks of coordinates: points from callers or from Arrow become float64, and no number may be rounded."""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Floats, Points
from epsjoin.kernels.finite import are_finite
from epsjoin.kernels.ranges import Ranges, in_one_range
from epsjoin.local.arguments import as_array

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
"""Types of the objects that are points' coordinates."""
_LOOKED_AT = 1 << 16
"""Number of coordinates that are looked at in one call of NumPy."""


def check_points(name: str, points: npt.ArrayLike, ranges: Ranges = in_one_range) -> Floats:
    """Return ``points`` as an (n, d) float64 array in C order; without a copy where that is possible.

    Parameters
    ----------
    name : name of the argument, for the messages.
    points : (n, d) array of floats of at most 64 bits, of integers or of booleans (0 and 1), or of objects
        that are such numbers, in any memory order; n may be 0, d is at least 1. Not modified.
    ranges : how ranges of rows are looked at.

    Raises
    ------
    ArgumentError
        The array has another shape or type, is sparse, or has masked values; a value is NaN or infinite, or
        an integer that float64 cannot hold. The message names the first such row and column.

    Notes
    -----
    O(n d). Float64 holds every whole number up to 2**53. Two different larger ones that are rounded to the
    same number would become a pair at distance 0.
    """
    return _as_float64(name, _as_numbers(name, points), ranges)


def check_coordinates(name: str, points: npt.ArrayLike) -> Points:
    """Return ``points`` as :func:`check_points` does, but float32 as float32; O(n d), and no copy of that."""
    array = _as_numbers(name, points)
    if array.dtype != np.float32:
        return _as_float64(name, array)
    values = np.ascontiguousarray(array, dtype=np.float32)
    if not are_finite(values):
        _refuse_first(name, "must be finite", array, ~np.isfinite(array))
    return values


def check_dimensions(**tables: int) -> None:
    """Check that all tables have one number of dimensions.

    Parameters
    ----------
    tables : number of dimensions of each, by the names of the arguments.

    Raises
    ------
    ArgumentError
        They have different ones; the message names every table and its number.
    """
    if len(set(tables.values())) > 1:
        raise ArgumentError(
            f"{' and '.join(tables)} must have the same dimensions, not "
            f"{' and '.join(map(str, tables.values()))}"
        )


def _as_numbers(name: str, points: npt.ArrayLike) -> npt.NDArray[Any]:
    """Points as an array of numbers of at most 64 bits; objects become float64."""
    if hasattr(points, "tocsr"):
        raise ArgumentError(
            f"{name} must be a dense array, not a sparse one; {name}.toarray() is dense, if memory allows it"
        )
    array = as_array(name, points)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ArgumentError(f"{name} must have the shape (n, d) with d at least 1, not {array.shape}")
    if array.dtype == np.float64 and array is points:
        return array
    array = unrounded(points, array)
    if array.dtype.kind == "O":
        array = _numbers_of(name, array)
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise ArgumentError(f"{name} must be floats of at most 64 bits or integers, not {array.dtype}")
    return array


def unrounded(values: npt.ArrayLike, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array of some values; of objects where integers beside floats may have been rounded."""
    if array.dtype != np.float64 or isinstance(values, np.ndarray):
        return array
    types = getattr(values, "dtypes", None)  # of a frame's columns
    if types is not None and not any("int" in str(each).lower() for each in types):
        return array
    if not (array.ndim in (1, 2) and array.size and _are_large(array.reshape(len(array), -1))):
        return array
    given: Any = values  # frames round the integers themselves: pandas' and polars' first become objects
    if hasattr(given, "astype"):
        given = given.astype(object)
    elif hasattr(given, "rows"):
        given = given.rows()
    return np.asarray(given, object)


def _are_large(values: Floats) -> bool:
    """Whether a finite value is as large as integers that float64 rounds."""
    step = max(1, _LOOKED_AT // values.shape[1])
    blocks = (np.abs(values[at : at + step]) for at in range(0, len(values), step))
    return any(((block >= 2.0**53) & (block < math.inf)).any() for block in blocks)


def _as_float64(name: str, array: npt.NDArray[Any], ranges: Ranges = in_one_range) -> Floats:
    """Numbers as float64 in C order, all finite and none rounded."""
    values = np.ascontiguousarray(array, dtype=np.float64)
    if array.dtype.kind == "f":
        is_finite = are_finite(values) if ranges is in_one_range else _are_finite_in(ranges, values)
        if not is_finite:
            _refuse_first(name, "must be finite", array, ~np.isfinite(values))
    elif array.dtype.itemsize == 8:
        _refuse_first(name, "must be integers that float64 can hold", array, is_rounded(array, values))
    return values


def _are_finite_in(ranges: Ranges, values: Floats) -> bool:
    return all(ranges(len(values), lambda _, begin, end: are_finite(values[begin:end])))


def _numbers_of(name: str, array: npt.NDArray[Any]) -> Floats:
    """Objects as float64, if all are numbers; frames of several types give such objects."""
    is_other = np.array([not isinstance(value, _NUMBERS) for value in array.flat], np.bool_)
    is_exact = any(isinstance(value, (Decimal, numbers.Rational)) for value in array.reshape(-1)[is_other])
    wanted = "must be floats or integers (cast decimals to float64)" if is_exact else "must be numbers"
    _refuse_first(name, wanted, array, is_other.reshape(array.shape))
    try:
        values = array.astype(np.float64)
    except OverflowError as error:
        raise ArgumentError(f"{name} must be integers that float64 can hold: {error}") from error
    is_changed = np.isfinite(values) & (values != array).astype(np.bool_)
    _refuse_first(name, "must be integers that float64 can hold", array, is_changed)
    return values


def is_rounded(array: npt.NDArray[Any], values: Floats) -> Bools:
    """Where the conversion to float64 changed an int64 or uint64."""
    end = 2.0 ** (63 if array.dtype.kind == "i" else 64)  # what is rounded up to it does not fit back
    is_beyond = values >= end
    return np.asarray(is_beyond | (np.where(is_beyond, 0.0, values).astype(array.dtype) != array))


def _refuse_first(name: str, rule: str, array: npt.NDArray[Any], is_bad: Bools) -> None:
    if is_bad.any():
        row, column = divmod(int(is_bad.argmax()), is_bad.shape[1])
        value = array[row, column]
        shown = repr(value) if isinstance(value, str) else value  # or '51.0' would look like a number
        raise ArgumentError(f"{name} {rule}; row {row}, column {column} is {shown}")
