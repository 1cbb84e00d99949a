"""Columns of a caller's frame: of which type each is, which one holds ids, and which hold points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from epsjoin.errors import ArgumentError
from epsjoin.local.arguments import list_names
from epsjoin.local.coordinates import check_dimensions
from epsjoin.local.metric import Metric
from epsjoin.spark.points.column_names import folding
from epsjoin.spark.points.points import Points
from epsjoin.spark.points.reading import Reading

_DIGITS = 15
"""Number of digits before the point with which every decimal is below 2**53."""


def points_of(
    frame: DataFrame, columns: str | Sequence[str], id_: str, metric: Metric | None = None
) -> Points:
    """Take the points from a frame of the caller.

    Parameters
    ----------
    frame : any frame of a classic session; it should have the same rows whenever it is read.
    columns : names of the coordinate columns, numbers, in order; or the name of one column that holds a whole
        point: an array of numbers, a vector of Spark ML, or binary (float64, little-endian, one after the
        other).
    id_ : name of a column of whole numbers, distinct for each row; this is not checked.
    metric : must be defined for every point, which is checked when the point is read; None: each column is a
        criterion of its own, and two criteria may name the same column.

    Returns
    -------
    Points
        If one column holds whole points, the number of dimensions is not known before a sample is drawn.

    Raises
    ------
    ArgumentError
        A column does not exist, has another type or is named twice; the frame belongs to Spark Connect.
    """
    read, reading = _read_columns(frame, columns, id_)
    if metric is not None and len(set(map(folding(frame.sparkSession), reading.names))) < len(reading.names):
        raise ArgumentError(f"columns names a column twice: {', '.join(reading.names)}")
    rows = frame.select(*read)
    return Points(lambda: rows, replace(reading, metric=metric), *_count(rows))


def with_rows(frame: DataFrame, columns: str | Sequence[str], id_: str) -> DataFrame:
    """Return the frame of :func:`points_of` with one more column: the whole rows as structures, ``row``."""
    read, _ = _read_columns(frame, columns, id_)
    return frame.select(*read, F.struct("*").alias("row"))


def column_of_ids(frame: DataFrame, name: str) -> Column:
    """Return the column of ids of a frame, as longs and with the name ``id``.

    Raises
    ------
    ArgumentError
        There is no such column, it does not hold whole numbers; the frame belongs to Spark Connect, or is
        a stream.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"id must be the name of a column, not {name!r}")
    kind = type_of(frame, name)
    if not isinstance(kind, (T.LongType, T.IntegerType, T.ShortType, T.ByteType)):
        raise ArgumentError(
            f"the id column {name!r} must hold whole numbers, not {kind.simpleString()}; give rows such "
            "a column, for example F.xxhash64 of the key"
        )
    return F.col(name).cast("long").alias("id")


def _read_columns(frame: DataFrame, columns: str | Sequence[str], id_: str) -> tuple[list[Column], Reading]:
    """The id and the coordinates of a frame as :class:`Points` has them, and how they are read."""
    number = column_of_ids(frame, id_)
    names = list_names("columns", columns)
    types = {name: type_of(frame, name) for name in names}
    whole = _to_whole_point(F.col(names[0]), types[names[0]]) if len(names) == 1 else None
    if whole is None:
        for name in names:
            if not isinstance(types[name], T.NumericType):
                raise ArgumentError(
                    f"the column {name!r} must hold numbers, not {types[name].simpleString()}; one column "
                    "may hold whole points, as arrays, vectors or binary"
                )
        coordinates = [_to_number(name, types[name]).alias(f"x{i}") for i, name in enumerate(names)]
        return [number, *coordinates], Reading(tuple(names), len(names))
    return [number, whole.alias("point")], Reading((names[0],), None)


def points_of_both(
    left: DataFrame,
    right: DataFrame | None,
    columns: str | Sequence[str],
    id_: str,
    right_columns: str | Sequence[str] | None,
    right_id: str | None,
    metric: Metric,
) -> tuple[Points, Points | None]:
    """Take the points from one frame of the caller, or from two.

    Parameters
    ----------
    left, columns, id_, metric : see :func:`points_of`.
    right : another frame; None: there is none.
    right_columns, right_id : names in ``right``; None: the same as in ``left``.

    Returns
    -------
    tuple[Points, Points | None]
        The points of ``left``, and those of ``right``.

    Raises
    ------
    ArgumentError
        See :func:`points_of`; or the points of both have different numbers of columns; or names in ``right``
        are given without the frame.
    """
    if right is None:
        for name, given in (("right_columns", right_columns), ("right_id", right_id)):
            if given is not None:
                raise ArgumentError(f"{name} is for a join of two frames: give right, too")
        return points_of(left, columns, id_, metric), None
    points = points_of(left, columns, id_, metric)
    others = points_of(right, *names_in_right(columns, id_, right_columns, right_id), metric)
    sides = {"left": points.reading.dimensions, "right": others.reading.dimensions}
    check_dimensions(**{side: n for side, n in sides.items() if n is not None})
    return points, others


def names_in_right(
    columns: str | Sequence[str],
    id_: str,
    right_columns: str | Sequence[str] | None,
    right_id: str | None,
) -> tuple[str | Sequence[str], str]:
    """Return the names of coordinates and id in the right frame: as given, or as in the left one."""
    return (
        columns if right_columns is None else right_columns,
        id_ if right_id is None else right_id,
    )


def _count(rows: DataFrame) -> tuple[int, int]:
    """Count the rows of a frame, and its partitions."""
    internal: Any = rows.select()._jdf.queryExecution().toRdd()  # an aggregate would be a second stage
    return internal.count(), max(1, internal.getNumPartitions())


def _refuse_others(frame: DataFrame) -> None:
    if not hasattr(frame, "_jdf"):  # only a classic frame has it
        raise ArgumentError(
            "a frame of a classic Spark session is needed, not of Spark Connect or of another library: core "
            "points are shared through the session's context, which Connect does not have"
        )
    refuse_stream(frame)


def refuse_stream(frame: DataFrame) -> None:
    """Refuse a frame whose rows are not all there yet.

    Raises
    ------
    ArgumentError
        It is a stream.
    """
    if frame.isStreaming:
        raise ArgumentError(
            "a streaming frame has rows to come; take each of its batches, by writeStream.foreachBatch"
        )


def type_of(frame: DataFrame, name: str) -> T.DataType:
    """The type of a column; ArgumentError if there is none of this name, or several."""
    if not isinstance(name, str):
        raise ArgumentError(f"a column must be given by its name, not by {name!r}")
    _refuse_others(frame)
    if name.isidentifier():  # Spark would log thousands of characters for each name that it does not find
        fold = folding(frame.sparkSession)
        named = [field for field in frame.schema if fold(field.name) == fold(name)]
        if len(named) == 1:
            return named[0].dataType
        raise _no_column(frame, name, len(named))
    try:
        selected = frame.select(F.col(name)).schema
    except PySparkException as error:
        raise _no_column(frame, name, frame.columns.count(name)) from error
    if len(selected) != 1:  # "*" stands for all of them
        raise _no_column(frame, name, 0)
    return selected[0].dataType


def _no_column(frame: DataFrame, name: str, n: int) -> ArgumentError:
    known = ", ".join(frame.columns)
    if n > 1:
        return ArgumentError(f"the frame has several columns {name!r}; it has {known}")
    if n:
        quoted, means = name.replace("`", "``"), "dot means a field" if "." in name else "backtick quotes"
        return ArgumentError(
            f"the column {name!r} must be given in backticks, `{quoted}`: to Spark its {means}"
        )
    return ArgumentError(f"the frame has no column {name!r}; it has {known}")


def _is_large(kind: T.DataType) -> bool:
    """Whether numbers may be beyond 2**53: these stay as they are, since the task refuses such numbers."""
    if isinstance(kind, T.DecimalType):
        return kind.precision - kind.scale > _DIGITS
    return isinstance(kind, T.LongType)


def _to_number(name: str, kind: T.DataType) -> Column:
    """The column as doubles, or as large numbers."""
    return F.col(name) if _is_large(kind) else F.col(name).cast("double")


def _to_whole_point(column: Column, kind: T.DataType) -> Column | None:
    """A column of whole points as binary or as arrays of numbers; ``None`` if the column holds neither."""
    if isinstance(kind, T.BinaryType):
        return column
    if isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.NumericType):
        stays = isinstance(kind.elementType, T.FloatType) or _is_large(kind.elementType)
        return column if stays else column.cast("array<double>")
    if isinstance(kind, T.UserDefinedType) and type(kind).__name__ == "VectorUDT":
        from pyspark.ml.functions import vector_to_array  # slow to import, and no step has vectors

        return F.when(column.isNotNull(), vector_to_array(column))  # for null it fails in Java
    return None
