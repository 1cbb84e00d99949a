"""The difference between the points of a run and those of the run before it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark import scan
from epsjoin.spark.job import Job

MAX_EXAMPLES = 4
"""Maximum number of rows that are shown of each kind of difference."""


def find_difference(job: Job, label: str | None) -> dict[str, Any]:
    """Compare the run's points with those of the run before, the latest earlier one with points in the lake.

    Rows with the same id are compared by a 64-bit hash of the source's columns. If the source has no key, an
    id is only a place in a file: rows are then compared by the hash alone, and equal ones are counted.

    Parameters
    ----------
    label : the column that names a point to a person.

    Returns
    -------
    The dictionary that ``findings`` describes; empty if there is no run before.
    """
    before = slices.list_runs_before(job.lake, job.run)[-1:]
    if not before:
        return {}
    is_keyed = bool(job.lake.source.key)
    old = scan.read(job.spark, job.lake, Slice("points", before[0]))
    new = scan.read(job.spark, job.lake, Slice("points", job.run))
    compare = _compare_by_id if is_keyed else _compare_by_hash
    compared = compare(_hash_rows(job, new), _hash_rows(job, old)).persist()
    counts = {"added": 0, "removed": 0, "changed": 0, "same": 0}
    counts |= {row[0]: row[1] for row in compared.groupBy("what").agg(F.sum("n")).collect()}
    chosen = _choose_examples(compared) if is_keyed else []
    compared.unpersist()
    return {
        "run": before[0],
        "is_keyed": is_keyed,
        **counts,
        **({} if is_keyed else {"changed": None}),
        "examples": _describe_examples(job, new, old, chosen, label),
    }


def _hash_rows(job: Job, points: DataFrame) -> DataFrame:
    """Reduce each point to (id, hash).

    Whether a column is null goes into the hash: xxhash64 skips nulls, so a value that moved from one column
    to another would otherwise go unnoticed.
    """
    columns = [F.col(column.name) for column in job.lake.source.columns]
    with_nulls = [part for column in columns for part in (column.isNull(), column)]
    return points.select("id", F.xxhash64(*with_nulls).alias("hash"))


def _compare_by_id(new: DataFrame, old: DataFrame) -> DataFrame:
    """Return (id, what, n) for every id of the two runs; n is 1."""
    both = new.join(old.withColumnRenamed("hash", "old_hash"), "id", how="full")
    what = _classify(F.col("hash"), F.col("old_hash"))
    return both.select("id", what.alias("what"), F.lit(1).alias("n"))


def _classify(new_hash: Column, old_hash: Column) -> Column:
    return (
        F.when(old_hash.isNull(), "added")
        .when(new_hash.isNull(), "removed")
        .when(new_hash != old_hash, "changed")
        .otherwise("same")
    )


def _compare_by_hash(new: DataFrame, old: DataFrame) -> DataFrame:
    """Return (what, n) for every hash of the two runs: how many of its rows were added, removed or stayed."""
    counted = [
        rows.groupBy("hash").agg(F.count("*").alias(name)) for rows, name in ((new, "new"), (old, "old"))
    ]
    both = counted[0].join(counted[1], "hash", how="full").fillna(0, ["new", "old"])
    kinds = {
        "added": F.greatest(F.col("new") - F.col("old"), F.lit(0)),
        "removed": F.greatest(F.col("old") - F.col("new"), F.lit(0)),
        "same": F.least("new", "old"),
    }
    return reduce(
        DataFrame.unionByName,
        [both.select(F.lit(what).alias("what"), n.alias("n")) for what, n in kinds.items()],
    )


def _choose_examples(compared: DataFrame) -> list[tuple[str, int]]:
    """Choose a few rows of every kind of difference, those with the smallest ids, as (kind, id)."""
    by_id = Window.partitionBy("what").orderBy("id")
    numbered = compared.where(F.col("what") != "same").withColumn("number", F.row_number().over(by_id))
    rows = numbered.where(F.col("number") <= MAX_EXAMPLES).orderBy("what", "id").collect()
    return [(row["what"], row["id"]) for row in rows]


def _describe_examples(
    job: Job, new: DataFrame, old: DataFrame, chosen: Sequence[tuple[str, int]], label: str | None
) -> list[dict[str, Any]]:
    if not chosen:
        return []
    names = [column.name for column in job.lake.source.columns]
    ids = [id_ for _, id_ in chosen]
    new_rows, old_rows = (
        {row["_id"]: row for row in _collect_rows(points, ids, names)} for points in (new, old)
    )
    return [
        {
            "what": what,
            "id": id_,
            "key": [(new_rows.get(id_) or old_rows[id_])[name] for name in job.lake.source.key],
            "label": (new_rows.get(id_) or old_rows[id_])[label] if label else None,
            "columns": [
                (name, old_rows[id_][name], new_rows[id_][name])
                for name in (names if what == "changed" else ())
                if old_rows[id_][name] != new_rows[id_][name]
            ],
        }
        for what, id_ in chosen
    ]


def _collect_rows(points: DataFrame, ids: Sequence[int], names: Sequence[str]) -> list[Row]:
    return points.where(F.col("id").isin(list(ids))).select(F.col("id").alias("_id"), *names).collect()
