"""Columns of a frame of any package: the coordinates that they hold, as an array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError
from epsjoin.local.coordinates import check_coordinates, check_points, unrounded


def list_columns(argument: str, given: str | Iterable[Any]) -> str | list[Any]:
    """List the columns of coordinates, whose names may be no texts; one text names a column of vectors."""
    if isinstance(given, str):
        return given
    if not isinstance(given, Iterable) or (isinstance(given, np.ndarray) and not given.ndim):
        raise ArgumentError(f"{argument} must be the name of a column, or a list of names, not {given!r}")
    if not (names := list(given)):
        raise ArgumentError(f"{argument} must name at least one column")
    return names


def names_in_right(
    name: str,
    frame: Any,
    columns: str | list[Any],
    id_: Any,
    right_columns: str | Iterable[Any] | None,
    right_id: Any,
) -> tuple[str | list[Any], Any]:
    """Return the names of coordinates and id in the right frame: as given, or as in the left one.

    Raises
    ------
    ArgumentError
        Names are given, but not the frame, which is the argument ``name``.
    """
    for argument, given in (("right_columns", right_columns), ("right_id", right_id)):
        if frame is None and given is not None:
            raise ArgumentError(f"{argument} is for two frames: give {name}, too")
    return (
        columns if right_columns is None else list_columns("right_columns", right_columns),
        id_ if right_id is None else right_id,
    )


def coordinates_of(name: str, frame: Any, columns: str | list[Any], width: int) -> NDArray[Any]:
    """Return the coordinates of a frame's rows; ``width`` of them where a column of vectors has no rows."""
    if isinstance(columns, str):
        vectors = _values(name, frame, columns)
        if not len(vectors):
            return np.empty((0, width))
        try:
            given = vectors.tolist() if vectors.dtype.kind == "O" else vectors
            made = unrounded(given, np.array(given))
        except ValueError as error:
            raise ArgumentError(
                f"{name}, column {columns!r}, must have vectors of one length, none of them missing"
            ) from error
        return check_coordinates(
            f"{name}, column {columns!r},", made.reshape(-1, 1) if made.ndim == 1 else made
        )
    values = []
    for place, column in enumerate(columns):
        of_column = _values(name, frame, column)
        if column in columns[:place]:
            raise ArgumentError(f"columns names a column twice: {', '.join(map(str, columns))}")
        if of_column.ndim > 1:
            raise ArgumentError(
                f"{name}, column {column!r}, must be numbers, not vectors; give a column of vectors alone, "
                f"as columns={column!r}"
            )
        values.append(check_points(f"{name}, column {column!r},", of_column.reshape(-1, 1)))
    return np.concatenate(values, axis=1)


def _values(name: str, frame: Any, column: Any) -> NDArray[Any]:
    """A column as an array; of vectors that polars knows to be of one length, it has two dimensions."""
    given = column_of(name, frame, column)
    kind = getattr(given, "dtype", None)
    if str(kind).startswith(("Struct", "Int128", "UInt128")):  # of polars; NumPy has none of them
        raise ArgumentError(f"{name}, column {column!r}, must be numbers or vectors, not {kind}")
    return np.asarray(given)


def of_one_width(one: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Give the coordinates of a frame without rows as many dimensions as the other's have."""
    if not len(one):
        return np.empty((0, *other.shape[1:])), other
    return one, other if len(other) else np.empty((0, *one.shape[1:]))


def column_of(name: str, frame: Any, column: Any) -> Any:
    """Return a column as the frame has it.

    Raises
    ------
    ArgumentError
        The frame has no column of this name, or several; an argument's name begins the message.
    """
    names = getattr(frame, "column_names", None)  # of Arrow; the others' columns are names
    known = Counter(frame.columns if names is None else names)
    try:
        is_one = known[column] == 1
    except (TypeError, ValueError):  # what has no hash, as arrays and columns themselves, names none
        is_one = False
    if not is_one:
        asked = type(column).__name__ if hasattr(column, "__array__") else repr(column)
        listed = ", ".join(map(str, known.elements()))
        raise ArgumentError(f"{name} must have one column {asked}; its columns are {listed}")
    return frame[column]
