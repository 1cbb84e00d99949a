"""The table ``cluster_flows``: how many records went from each cluster of the run before to each one now."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.kernels.ids import index_ids, rows_of
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.local.compare.flows import Flows, add_flows, count_flows
from epsjoin.spark.compare.records import DIGESTED, digest_batches, identify, read_both
from epsjoin.spark.job.job import Job
from epsjoin.spark.points import buckets
from epsjoin.spark.points.buckets import Bucket
from epsjoin.spark.rows import scan
from epsjoin.vocabulary import NOISE

_LABELS = ["id", "cluster_id", "role"]
_NONE = np.empty(0, np.int64)


def find_flows(job: Job, now: Fingerprints) -> Flows:
    """Count the flows from the run before; for the first run all records are new.

    If there are few records, the driver reads the clusters of both runs; otherwise Spark joins and counts
    them.
    """
    runs = [run for run in (now.before, now) if run is not None]
    if sum(slices.count_rows(job.lake, run.slice("clusters")) for run in runs) > buckets.MAX_ROWS:
        return _count_by_spark(job, now)
    before = now.before
    ids, labels, is_core = _read_labels(job, now)
    if before is None:
        return count_flows(index_ids(_NONE), _NONE, ids, labels, is_core)
    ids_before, labels_before, _ = _read_labels(job, before)
    if not job.lake.source.key:
        old, new = read_both(job, before, now, Bucket(0, 1))
        numbers = identify(old, new)
        ids_before = _renumber(ids_before, old.ids, numbers[0])
        ids = _renumber(ids, new.ids, numbers[1])
    return count_flows(index_ids(ids_before), labels_before, ids, labels, is_core)


def _renumber(ids: Ints, known: Ints, numbers: Ints) -> Ints:
    return numbers[rows_of(index_ids(np.ascontiguousarray(known)), ids)]


def _read_labels(job: Job, run: Fingerprints) -> tuple[Ints, Ints, Bools]:
    rows = slices.read_slice(job.lake, run.slice("clusters"), _LABELS)
    is_core = pc.equal(rows["role"], "core").to_numpy()
    return np.ascontiguousarray(rows["id"].to_numpy()), rows["cluster_id"].to_numpy(), np.asarray(is_core)


def _count_by_spark(job: Job, now: Fingerprints) -> Flows:
    new = _label_records(job, now)
    if now.before is None:
        flows = new.withColumn("before", F.lit(None).cast("long"))
    else:
        old = _label_records(job, now.before).drop("is_core").withColumnRenamed("now", "before")
        flows = old.join(new, [name for name in old.columns if name != "before"], how="full")
    counted = flows.groupBy("before", "now").agg(
        F.count("*").alias("members"), F.coalesce(F.sum("is_core"), F.lit(0)).alias("cores")
    )
    rows = counted.toArrow()
    before, after = (rows[name].fill_null(NOISE).to_numpy() for name in ("before", "now"))
    is_new, is_gone = (np.asarray(rows[name].is_null().to_numpy()) for name in ("before", "now"))
    members, cores = (rows[name].to_numpy() for name in ("members", "cores"))
    return add_flows([Flows(before, after, is_new, is_gone, members, cores)])


def _label_records(job: Job, run: Fingerprints) -> DataFrame:
    """The cluster ``now`` and ``is_core`` (0 or 1) of each record, and what identifies it."""
    is_core = (F.col("role") == "core").cast("long").alias("is_core")
    labels = scan.read(job.spark, job.lake, run.slice("clusters"))
    labels = labels.select("id", F.col("cluster_id").alias("now"), is_core)
    if job.lake.source.key:
        return labels
    names = [column.name for column in job.lake.source.columns]
    points = scan.read(job.spark, job.lake, run.slice("points")).select("id", *names)
    digested = points.mapInArrow(digest_batches(names, Bucket(0, 1), is_keyed=False), DIGESTED)
    nth = F.row_number().over(Window.partitionBy("record").orderBy("id")).alias("nth")
    return digested.select("id", "record", nth).join(labels, "id", how="inner").drop("id")


def to_rows(flows: Flows, against: str | None) -> pa.Table:
    """The flows as rows of the table (without run)."""
    return pa.table(
        {
            "against": pa.array([against] * flows.members.size, pa.string()),
            "cluster_before": pa.array(flows.before, mask=flows.is_new),
            "cluster_id": pa.array(flows.now, mask=flows.is_gone),
            "members": flows.members,
            "cores": flows.cores,
        }
    )


def from_rows(rows: pa.Table) -> Flows:
    """The flows of rows of the table."""
    ends = [rows["cluster_before"], rows["cluster_id"]]
    before, now = (column.fill_null(NOISE).to_numpy() for column in ends)
    is_new, is_gone = (np.asarray(column.is_null().to_numpy(), np.bool_) for column in ends)
    counts = [rows[name].to_numpy() for name in ("members", "cores")]
    return add_flows([Flows(before, now, is_new, is_gone, *counts)])
