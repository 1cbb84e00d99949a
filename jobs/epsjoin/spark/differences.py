"""What differs between two DataFrames: a full outer join of keys and digests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from epsjoin.digests import UNKEYED, check_types, digest_table
from epsjoin.errors import ArgumentError
from epsjoin.lake.schemas import quoted
from epsjoin.local.arguments import list_names
from epsjoin.spark.points.column_names import folding
from epsjoin.spark.points.columns import refuse_stream
from epsjoin.spark.tasks.arrow import Task

_RESULT = ("kind", "columns", "before", "now")
"""Columns of the result besides the key."""

_COLLATION = re.compile(r" collate \w+")
"""The part of a text type's name that says how texts are ordered."""


def snapshot_diff(
    old: DataFrame, new: DataFrame, *, key: str | Sequence[str], columns: Sequence[str] | None = None
) -> DataFrame:
    """Find the rows that were inserted, updated or deleted between two frames.

    Parameters
    ----------
    old, new : frames whose key and compared columns have the same types.
    key : name of the key column, or names.
    columns : the other columns that are compared; by default all that both frames have.

    Returns
    -------
    DataFrame
        The key columns, ``kind`` (inserted, updated, deleted), ``columns`` (of an updated row the names of
        those that differ, otherwise null), ``before`` and ``now`` (structs of the compared columns, null
        where there is no such row). Lazy.

    Raises
    ------
    ArgumentError
        A frame is not one of Spark's, or is a stream; it lacks a column, has several with its name, or has
        one of another type or of values that cannot be compared, such as structures; no key is named, or one
        with the name of a column of the result. A key that is null or comes twice in a frame ends the action
        that computes the result, with the key in the message.

    Notes
    -----
    Only keys and digests of 128 bits go through the join; whole rows are fetched only if they differ. See
    :func:`epsjoin.snapshot_diff` for files, for rows with another key, and for what a digest may miss. Texts
    are compared, and returned, by their bytes, whatever their collation.
    """
    for label, frame in (("old", old), ("new", new)):
        if not isinstance(frame, DataFrame):
            raise ArgumentError(f"{label} must be a DataFrame of Spark, not {type(frame).__name__}")
        refuse_stream(frame)
    fold = folding(old.sparkSession)
    keys = list_names("key", key)
    folded = _check_keys(keys, fold)
    there = set(map(fold, old.columns))
    both = [name for name in new.columns if fold(name) in there]
    # a name that comes twice counts once; without names, only keys are compared
    chosen = both if columns is None else list_names("columns", columns, least=0)
    rest = list({fold(name): name for name in chosen if fold(name) not in folded}.values())
    one, other = (_select(frame, label, keys, rest, fold) for frame, label in ((old, "old"), (new, "new")))
    _check_types(one, other, keys, rest)
    return _with_names(_find_differing(one, other, keys, len(rest)), keys, rest)


def _check_keys(keys: list[str], fold: Callable[[str], str]) -> list[str]:
    """Return the names of the key columns without what Spark ignores in names, such as case."""
    folded = [fold(name) for name in keys]
    for name in folded:
        if name in _RESULT:
            raise ArgumentError(
                f"a key column must not be called {name}, as a column of the result; rename it"
            )
        if folded.count(name) > 1:
            raise ArgumentError(f"key names the column {name} more than once")
    return folded


def _find_differing(one: DataFrame, other: DataFrame, keys: list[str], n_rest: int) -> DataFrame:
    """The rows of two frames that differ: kind and key, ``before`` and ``now``, columns by their numbers."""
    numbered = _numbers("k", len(keys))
    digests = [_digests(frame, keys, label) for frame, label in ((one, "old"), (other, "new"))]
    differing = digests[0].join(digests[1], numbered, "full_outer")
    differing = differing.where(~F.col("_old").eqNullSafe(F.col("_new")))
    is_alone = [F.col(name).isNull() for name in ("_old", "_new")]
    kind = F.when(is_alone[0], "inserted").when(is_alone[1], "deleted").otherwise("updated")
    found = differing.select(*numbered, kind.alias("kind"))
    for frame, side in ((one, "before"), (other, "now")):
        row = F.struct(*numbered, *_numbers("c", n_rest)).alias(side)
        found = found.join(frame.select(*numbered, row), numbered, "left")
    return found


def _with_names(found: DataFrame, keys: list[str], rest: list[str]) -> DataFrame:
    """The result: columns by their names, and of an updated row the names of those that differ."""
    numbers, names = [*_numbers("k", len(keys)), *_numbers("c", len(rest))], [*keys, *rest]
    differs = [
        F.when(~F.col(f"before.c{i}").eqNullSafe(F.col(f"now.c{i}")), F.lit(name))
        for i, name in enumerate(rest)
    ]
    changed = F.array_compact(F.array(*differs)) if differs else F.array().cast("array<string>")

    def named(side: str) -> Column:
        inner = (F.col(f"{side}.{given}").alias(name) for given, name in zip(numbers, names, strict=True))
        return F.when(F.col(side).isNotNull(), F.struct(*inner)).alias(side)

    return found.select(
        *(F.col(given).alias(name) for given, name in zip(numbers, keys, strict=False)),
        "kind",
        F.when(F.col("kind") == "updated", changed).alias("columns"),
        named("before"),
        named("now"),
    )


def _numbers(letter: str, n: int) -> list[str]:
    """Names of columns that no name of the frames can be confused with: k0, k1, ..."""
    return [f"{letter}{i}" for i in range(n)]


def _kind(field: StructField) -> str:
    return field.dataType.simpleString()


def _select(
    frame: DataFrame, label: str, keys: list[str], rest: list[str], fold: Callable[[str], str]
) -> DataFrame:
    """The columns of a frame by numbers: k0, k1, ... those of the key, c0, c1, ... the others."""
    numbers = [*_numbers("k", len(keys)), *_numbers("c", len(rest))]
    selected = []
    for name, number in zip((*keys, *rest), numbers, strict=True):
        named = [column for column in frame.columns if fold(column) == fold(name)]
        if len(named) != 1:
            what = "several columns" if named else "no column"
            raise ArgumentError(f"{label} has {what} {name!r}; it has {', '.join(frame.columns)}")
        column, kind = F.col(quoted(named[0])), frame.schema[named[0]].dataType
        plain = _COLLATION.sub("", kind.simpleString())
        if plain != kind.simpleString() and isinstance(kind, StringType):
            column = column.cast(plain)
        selected.append(column.alias(number))
    return frame.select(*selected)


def _check_types(one: DataFrame, other: DataFrame, keys: list[str], rest: list[str]) -> None:
    """Check that both frames have the same types, whose values can be compared."""
    for name, field in zip(keys, other.schema, strict=False):
        if isinstance(field.dataType, MapType | VariantType) or _to_arrow(field) is None:
            raise ArgumentError(f"the key column {name!r} is {_kind(field)}, which cannot be compared")
    for name, mine, theirs in zip((*keys, *rest), one.schema, other.schema, strict=True):
        kinds = [_kind(field) for field in (mine, theirs)]
        if kinds[0] != kinds[1]:
            raise ArgumentError(
                f"column {name!r} is {kinds[0]} in old and {kinds[1]} in new; cast one of them"
            )
    for name, field in zip(rest, list(other.schema)[len(keys) :], strict=True):
        kind = _to_arrow(field)
        if kind is None:
            raise ArgumentError(
                f"column {name!r} has the type {_kind(field)}, whose values cannot be compared; leave it out "
                "or make it text"
            )
        try:
            check_types(pa.schema([(name, kind)]))
        except TypeError as error:
            raise ArgumentError(str(error)) from error


def _to_arrow(field: StructField) -> pa.DataType | None:
    """The type in which a task gets the values of a column; None if Spark does not give them to tasks."""
    try:
        return to_arrow_schema(
            StructType([field]), error_on_duplicated_field_names_in_struct=True, timezone="UTC"
        ).types[0]
    except PySparkException:
        return None


def _digests(frame: DataFrame, keys: list[str], label: str) -> DataFrame:
    """Each key once, by numbers, with the digest of its row in the column ``_old`` or ``_new``."""
    numbered = _numbers("k", len(keys))
    schema = StructType([*list(frame.schema)[: len(keys)], StructField("_digest", BinaryType())])
    rows = frame.mapInArrow(_digester(len(keys)), schema)
    # the join needs the rows by key, too, so this adds no shuffle
    counted = rows.groupBy(*numbered).agg(F.first("_digest").alias("_digest"), F.count(F.lit(1)).alias("_n"))
    is_null: Column = reduce(lambda a, b: a | b, (F.col(name).isNull() for name in numbered))
    named = F.concat_ws(", ", *(F.col(name).cast("string") for name in numbered))
    checked = (
        F.when(
            is_null, F.raise_error(F.lit(f"epsjoin: a row of {label} has no {' or '.join(keys)}, its key"))
        )
        .when(
            F.col("_n") > 1,
            F.raise_error(
                F.concat(F.lit(f"epsjoin: rows of {label} have one key, {', '.join(keys)} "), named)
            ),
        )
        .otherwise(F.col("_digest"))
    )
    return counted.select(*numbered, checked.alias(f"_{label}"))


def _digester(n_keys: int) -> Task:
    def digest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            names = batch.schema.names
            digests = digest_table(batch.select(names[n_keys:]), UNKEYED)
            column = pa.array([row.tobytes() for row in digests], pa.binary())
            yield batch.select(names[:n_keys]).append_column("_digest", column)

    return digest
