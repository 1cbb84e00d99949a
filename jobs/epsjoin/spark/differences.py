"""What differs between two DataFrames: a full outer join of keys and digests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructField, StructType

from epsjoin.digests import UNKEYED, check_types, digest_table
from epsjoin.errors import ArgumentError
from epsjoin.spark.arrow import Task


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
        those that differ, else null), ``before`` and ``now`` (structs of the compared columns, null where
        there is no such row). Lazy.

    Raises
    ------
    ArgumentError
        A frame lacks a column, has one of another type or of values that cannot be compared, such as
        structures; or no key is named. A key that is null or comes twice
        in a frame ends the action that computes the result, with the key in the message.

    Notes
    -----
    Only keys and digests of 128 bits go through the join; rows are fetched for what differs alone. See
    :func:`epsjoin.snapshot_diff` for files, for rows with another key, and for what a digest may miss.
    """
    keys = [key] if isinstance(key, str) else list(key)
    if not keys:
        raise ArgumentError("key must name at least one column")
    both = [name for name in new.columns if name in old.columns]
    rest = [name for name in (both if columns is None else columns) if name not in keys]
    for name in (*keys, *rest):
        for frame, label in ((old, "old"), (new, "new")):
            if name not in frame.columns:
                raise ArgumentError(f"{label} has no column {name!r}; it has {', '.join(frame.columns)}")
        kinds = [frame.schema[name].dataType.simpleString() for frame in (old, new)]
        if kinds[0] != kinds[1]:
            raise ArgumentError(
                f"column {name!r} is {kinds[0]} in old and {kinds[1]} in new; cast one of them"
            )
    _check_types(new, rest)
    one, other = (_digests(frame, keys, rest, label) for frame, label in ((old, "old"), (new, "new")))
    differing = one.join(other, keys, "full_outer").where(~F.col("_old").eqNullSafe(F.col("_new")))
    is_alone = [F.col(name).isNull() for name in ("_old", "_new")]
    kind = F.when(is_alone[0], "inserted").when(is_alone[1], "deleted").otherwise("updated")
    found = differing.select(*keys, kind.alias("kind"))
    for frame, name in ((old, "before"), (new, "now")):
        found = found.join(frame.select(*keys, F.struct(*keys, *rest).alias(name)), keys, "left")
    names = [
        F.when(~F.col(f"before.`{name}`").eqNullSafe(F.col(f"now.`{name}`")), F.lit(name)) for name in rest
    ]
    changed = F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")
    return found.select(
        *keys, "kind", F.when(F.col("kind") == "updated", changed).alias("columns"), "before", "now"
    )


def _check_types(frame: DataFrame, names: list[str]) -> None:
    try:
        check_types(to_arrow_schema(frame.select(*names).schema))
    except TypeError as error:
        raise ArgumentError(str(error)) from error


def _digests(frame: DataFrame, keys: list[str], rest: list[str], label: str) -> DataFrame:
    """Each key once, with the digest of its row in the column ``_old`` or ``_new``."""
    schema = StructType([*(frame.schema[name] for name in keys), StructField("_digest", BinaryType())])
    rows = frame.select(*keys, *rest).mapInArrow(_digester(len(keys)), schema)
    # the join needs the rows by key, too, so this adds no shuffle
    counted = rows.groupBy(*keys).agg(F.first("_digest").alias("_digest"), F.count(F.lit(1)).alias("_n"))
    is_null: Column = reduce(lambda a, b: a | b, (F.col(name).isNull() for name in keys))
    named = F.concat_ws(", ", *(F.col(name).cast("string") for name in keys))
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
    return counted.select(*keys, checked.alias(f"_{label}"))


def _digester(n_keys: int) -> Task:
    def digest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            names = batch.schema.names
            digests = digest_table(batch.select(names[n_keys:]), UNKEYED)
            column = pa.array([row.tobytes() for row in digests], pa.binary())
            yield batch.select(names[:n_keys]).append_column("_digest", column)

    return digest
