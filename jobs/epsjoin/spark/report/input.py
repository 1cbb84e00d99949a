"""The input of a run: its files, the columns that were not read, and the records that were refused."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.source.values import VALUE
from epsjoin.spark import scan
from epsjoin.spark.job import Job

MAX_REASONS = 20
"""Maximum number of reasons for refusals that are shown, the most frequent first."""

MAX_EXAMPLES = 5
"""Maximum number of refused records that are shown."""


class Input(NamedTuple):
    """The input of a run; the fields are those of ``Findings``."""

    snapshots: list[dict[str, Any]]
    unknown_columns: tuple[str, ...]
    quarantine_reasons: dict[str, int]
    quarantine_examples: list[dict[str, Any]]


def gather_input(job: Job, of_snapshots: Slice, of_quarantine: Slice) -> Input:
    """Gather the input of the run.

    Parameters
    ----------
    of_snapshots, of_quarantine : the slices of ``snapshots`` and ``quarantine``.
    """
    snapshots = slices.read_slice(job.lake, of_snapshots).to_pylist()
    named = {column.name for column in job.lake.source.columns}
    found = {name for row in snapshots for name in json.loads(row["columns"])}
    quarantine = scan.read(job.spark, job.lake, of_quarantine)
    examples = quarantine.orderBy("source", "line").limit(MAX_EXAMPLES).drop("run").collect()
    return Input(
        snapshots,
        tuple(sorted(found - named)),
        count_reasons(quarantine),
        [row.asDict() for row in examples],
    )


def count_reasons(quarantine: DataFrame) -> dict[str, int]:
    """Count the refused records by reason, the most frequent first, at most ``MAX_REASONS`` reasons.

    As in the job ingest, a reason is counted without the value in it.
    """
    kind = F.regexp_replace("reason", VALUE, "").alias("kind")
    of_records = quarantine.where(F.col("line").isNotNull()).groupBy(kind)
    reasons = of_records.count().orderBy(F.col("count").desc(), "kind").limit(MAX_REASONS).collect()
    return {row["kind"]: row["count"] for row in reasons}
