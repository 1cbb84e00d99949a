"""Checks of all rows of a run's tables, which need no brute force."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from epsjoin.console import counted, percent, say
from epsjoin.lake import parquet
from epsjoin.lake.arrow import pair_columns
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.lake.schemas import parse_ddl
from epsjoin.local.verify.brute_force import Ids
from epsjoin.local.verify.compare import NOISE
from epsjoin.spark.checks.faults import (
    BATCH_ROWS,
    DEGREE,
    FAULT,
    MAX_SHOWN,
    PAIR,
    PAIR_ROWS,
    files_of,
    report_broken_files,
    to_batch,
)
from epsjoin.spark.checks.some_rows import is_in
from epsjoin.spark.job.job import Job
from epsjoin.spark.join.pairs import PAIRS
from epsjoin.spark.rows import scan
from epsjoin.spark.tasks import tasks

MAX_COUNTED_PAIRS = 5_000_000
"""Number of pairs that are searched for duplicates, about; of more pairs, those with the smallest hashes."""


def scan_pairs(job: Job, ids: Ids, eps: float) -> DataFrame:
    """Read all files of pairs once, for all checks; lazy.

    Returns
    -------
    Rows ``PAIR_ROWS`` of four kinds. PAIR: a pair of a checked point ``a`` with ``b``, twice if both are
        checked. DEGREE: the id ``a`` is in ``b`` pairs of the file. FAULT: pairs in wrong order, or beyond
        eps. GONE: a file cannot be read.
    """
    location = job.lake.location("pairs")
    shared = job.spark.sparkContext.broadcast(ids)

    def read(file: File) -> Iterator[pa.RecordBatch]:
        wrong = {"left_id is not below right_id": 0, f"the distance is not from 0 to eps {eps!r}": 0}
        example: dict[str, str] = {}
        ends, counts = np.empty(0, np.int64), np.empty(0, np.int64)
        for batch in parquet.stream_file(location, file, parse_ddl(PAIRS), BATCH_ROWS):
            left, right, distance = pair_columns(batch)
            for what, is_wrong in zip(
                wrong, (left >= right, ~((distance >= 0) & (distance <= eps))), strict=True
            ):
                wrong[what] += int(is_wrong.sum())
                for at in np.flatnonzero(is_wrong)[:1]:
                    example.setdefault(what, f"({left[at]}, {right[at]}) at {float(distance[at])!r}")
            for query, other in ((left, right), (right, left)):
                is_checked = is_in(query, shared.value)
                yield to_batch(
                    PAIR_ROWS,
                    PAIR,
                    a=query[is_checked],
                    b=other[is_checked],
                    distance=distance[is_checked],
                )
            more, place = np.unique(np.concatenate([ends, left, right]), return_inverse=True)
            one_each = np.ones(2 * len(left), np.int64)
            counts = np.bincount(place, np.concatenate([counts, one_each]), len(more)).astype(np.int64)
            ends = more
        yield to_batch(PAIR_ROWS, DEGREE, a=ends, b=counts)
        faults = [f"{counted(wrong[what], 'pair')} where {what}, such as {example[what]}" for what in example]
        yield to_batch(PAIR_ROWS, FAULT, fault=[f"{file.path}: {text}" for text in faults])

    return tasks.lazy_tasks(
        job.spark, files_of(job, "pairs"), report_broken_files(PAIR_ROWS, read), PAIR_ROWS
    )


def find_duplicates(job: Job, n_pairs: int) -> Iterator[str]:
    """Faults of pairs that are stored more than once; see ``MAX_COUNTED_PAIRS``."""
    pairs = scan.read(job.spark, job.lake, Slice("pairs", job.run)).select("left_id", "right_id")
    fraction = MAX_COUNTED_PAIRS / max(1, n_pairs)
    if fraction < 1:
        say(f"verify: {percent(fraction)} of the pairs are searched for duplicates")
        pairs = pairs.where(F.xxhash64("left_id", "right_id") < F.lit(int(-(2**63) + fraction * 2**64)))
    duplicates = pairs.groupBy("left_id", "right_id").count().where(F.col("count") > 1)
    for row in _some(duplicates):
        yield f"pair ({row['left_id']}, {row['right_id']}) is stored {row['count']} times"


def find_faults(job: Job, passed: DataFrame, has_clusters: bool) -> Iterator[str]:
    """Faults in the ids, degrees and labels of all points.

    Parameters
    ----------
    passed : the result of :func:`scan_pairs`.
    has_clusters : whether there are labels to check.
    """
    points = scan.read(job.spark, job.lake, Slice("points", job.run))
    ids = points.groupBy("id").agg(F.count("*").alias("n_points"))
    degrees = passed.where(F.col("kind") == DEGREE).groupBy(F.col("a").alias("id"))
    every = ids.join(degrees.agg((F.sum("b") + 1).alias("of_pairs")), "id", how="full")
    fault = F.when(F.col("n_points").isNull(), "it is in pairs or clusters, but not in points")
    fault = fault.when(F.col("n_points") > 1, "points has it more than once")
    if has_clusters:
        every = every.join(_read_labels(job), "id", how="full")
        fault = _add_label_faults(fault, job.params.min_pts)
    for row in _some(every.select("id", fault.alias("fault")).where(F.col("fault").isNotNull())):
        yield f"point {row['id']}: {row['fault']}"


def _read_labels(job: Job) -> DataFrame:
    """For each id one row of ``clusters``, how many it has, and whether a core point names its cluster."""
    clusters = scan.read(job.spark, job.lake, Slice("clusters", job.run)).drop("run")
    names = clusters.where((F.col("role") == "core") & (F.col("id") == F.col("cluster_id")))
    names = names.select("cluster_id", F.lit(True).alias("is_named")).distinct()
    named = clusters.join(names, "cluster_id", how="left")
    return named.groupBy("id").agg(
        F.count("*").alias("n_labels"),
        *(F.first(name).alias(name) for name in ("cluster_id", "role", "degree", "is_named")),
    )


def _add_label_faults(fault: Column, min_pts: int) -> Column:
    """What is wrong with a point, or otherwise with its label."""
    is_core, is_noise = F.col("role") == "core", F.col("role") == "noise"
    degree = F.coalesce("of_pairs", F.lit(1))
    return (
        fault.when(F.col("n_labels").isNull(), "it has no row in clusters")
        .when(F.col("n_labels") > 1, "clusters has it more than once")
        .when(
            degree != F.col("degree"),
            F.format_string("degree %d is stored, its pairs make %d", "degree", degree),
        )
        .when(
            is_core != (F.col("degree") >= min_pts),
            F.format_string(f"role %s is stored, its degree is %d, min_pts {min_pts}", "role", "degree"),
        )
        .when(~F.col("role").isin("core", "border", "noise"), F.concat(F.lit("unknown role "), "role"))
        .when(
            is_noise != (F.col("cluster_id") == NOISE),
            F.format_string("role %s in cluster %d", "role", "cluster_id"),
        )
        .when(
            ~is_noise & F.col("is_named").isNull(),
            F.format_string("cluster %d has no core point of that id", "cluster_id"),
        )
        .when(
            is_core & (F.col("cluster_id") > F.col("id")),
            F.format_string("core point in cluster %d, a larger id", "cluster_id"),
        )
    )


def _some(frame: DataFrame) -> list[Row]:
    return frame.limit(MAX_SHOWN).collect()
