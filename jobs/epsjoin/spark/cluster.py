"""Cluster: DBSCAN from the pairs; the steps and their words are those of ``local/cluster.py``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.core.broadcast import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from epsjoin.local.cluster import NOISE, core_pairs, nearest_core, partial_degrees, spanning_forest
from epsjoin.spark import tables, tasks
from epsjoin.spark.arrow import pair_columns
from epsjoin.spark.job import Job, say
from epsjoin.spark.lineage import stamp_of_join

BATCH_PAIRS = 1 << 20
EDGE, BORDER = 0, 1
"""Kinds of rows that are left of the pairs once the core points are known."""


def find_clusters(job: Job) -> dict[str, float]:
    """Replace the run's slice of ``clusters``.

    The tasks read the pair files themselves, twice: for the degrees, then for what connects the core
    points. Each contracts its pairs to a forest; one last task joins the forests, fewer edges than there
    are core points. The core ids are broadcast (8 bytes each).

    Raises
    ------
    TableError
        ``points`` or ``pairs`` has no slice of this run.
    """
    min_pts = job.params.min_pts
    ids = tables.read(job.spark, job.lake, "points", job.run).select("id")
    files = tables.files_of(job.lake, "pairs", job.run, stamp_of_join(job.lake, job.run))
    location = job.lake.location("pairs")

    degrees = degrees_of(job.spark, location, files).persist()
    cores = np.sort(degrees.where(F.col("degree") >= min_pts).select("id").toArrow()["id"].to_numpy())
    say(f"cluster: {len(cores):,} core points in pairs")

    connected = connected_pairs(job.spark, location, files, cores).persist()
    trees = connected.where(F.col("kind") == EDGE).select("a", "b").coalesce(1)
    trees = trees.mapInArrow(_contract, "node long, root long")
    nearest = (
        connected.where(F.col("kind") == BORDER)
        .groupBy(F.col("a").alias("id"))
        .agg(F.min(F.struct("distance", "b")).getField("b").alias("nearest_core_id"))
    )
    clusters = label(ids, degrees, trees, nearest, min_pts).persist()
    tasks.write_frame(job.lake, "clusters", job.run, clusters)
    found = (
        clusters.groupBy("role")
        .agg(F.count("*").alias("n"), F.countDistinct("cluster_id").alias("c"))
        .collect()
    )
    counters = dict.fromkeys(("core", "border", "noise"), 0.0) | {
        row["role"]: float(row["n"]) for row in found
    }
    counters["clusters"] = float(sum(row["c"] for row in found if row["role"] == "core"))
    for frame in (degrees, connected, clusters):
        frame.unpersist()
    say(
        f"cluster: {counters['clusters']:,.0f} clusters, {counters['core']:,.0f} core, "
        f"{counters['border']:,.0f} border, {counters['noise']:,.0f} noise"
    )
    return counters


def degrees_of(spark: SparkSession, pairs: str, files: Sequence[tables.File]) -> DataFrame:
    """Points within eps, the point itself included, of every point that is in a pair: (id, degree)."""

    def degrees(file: tables.File) -> Iterator[pa.RecordBatch]:
        for batch in tables.stream_file(pairs, file, ["left_id", "right_id"], BATCH_PAIRS):
            found = partial_degrees(batch.column("left_id").to_numpy(), batch.column("right_id").to_numpy())
            yield pa.record_batch({"id": found.ids, "neighbours": found.counts})

    partial = tasks.run_tasks(spark, files, degrees, "id long, neighbours long")
    return partial.groupBy("id").agg((F.sum("neighbours") + 1).alias("degree"))


def connected_pairs(
    spark: SparkSession, pairs: str, files: Sequence[tables.File], cores: NDArray[np.int64]
) -> DataFrame:
    """What connects the core points: (kind, a, b, distance).

    EDGE: a is a core point, b a core point of the same cluster (distance 0, unused); one forest per file.
    BORDER: a is no core point, b its nearest core point in this file.
    """
    shared = spark.sparkContext.broadcast(cores)

    def connect(file: tables.File) -> Iterator[pa.RecordBatch]:
        held = _Connected.of_nothing()
        for batch in tables.stream_file(pairs, file, ["left_id", "right_id", "distance"], BATCH_PAIRS):
            held = held.with_batch(batch, shared)
        yield _rows(EDGE, held.node, held.root, np.zeros(len(held.node)))
        yield _rows(BORDER, held.border_id, held.core_id, held.distance)

    return tasks.run_tasks(spark, files, connect, "kind int, a long, b long, distance double")


class _Connected(NamedTuple):
    """A task's forest and nearest core points so far."""

    node: NDArray[np.int64]
    root: NDArray[np.int64]
    border_id: NDArray[np.int64]
    core_id: NDArray[np.int64]
    distance: NDArray[np.float64]

    @classmethod
    def of_nothing(cls) -> _Connected:
        nothing = np.empty(0, np.int64)
        return cls(nothing, nothing, nothing, nothing, np.empty(0))

    def with_batch(self, batch: pa.RecordBatch, cores: Broadcast[NDArray[np.int64]]) -> _Connected:
        found = core_pairs(*pair_columns(batch), cores.value)
        trees = spanning_forest(
            np.concatenate([self.node, found.core_left]), np.concatenate([self.root, found.core_right])
        )
        nearest = nearest_core(
            np.concatenate([self.border_id, found.border_id]),
            np.concatenate([self.core_id, found.core_id]),
            np.concatenate([self.distance, found.distance]),
        )
        return _Connected(trees.node, trees.root, nearest.border_id, nearest.core_id, nearest.distance)


def _rows(
    kind: int, a: NDArray[np.int64], b: NDArray[np.int64], distance: NDArray[np.float64]
) -> pa.RecordBatch:
    return pa.record_batch({"kind": np.full(len(a), kind, np.int32), "a": a, "b": b, "distance": distance})


def _contract(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    node, root = np.empty(0, np.int64), np.empty(0, np.int64)
    for batch in batches:
        more = (
            np.concatenate([node, batch.column(0).to_numpy()]),
            np.concatenate([root, batch.column(1).to_numpy()]),
        )
        node, root = spanning_forest(*more)
    yield pa.record_batch({"node": node, "root": root})


def label(
    ids: DataFrame, degrees: DataFrame, trees: DataFrame, nearest: DataFrame, min_pts: int
) -> DataFrame:
    """Cluster and role of every point: the columns of ``clusters``.

    Parameters
    ----------
    ids : (id), every point.
    degrees : (id, degree), the points that are in a pair.
    trees : (node, root), the core points that are not the smallest of their cluster.
    nearest : (id, nearest_core_id), the points that are not core and have a core point within eps.
    """
    is_core = F.col("degree") >= min_pts
    is_border = F.col("nearest_core_id").isNotNull()
    at_core = F.when(is_core, F.col("id")).when(is_border, F.col("nearest_core_id"))
    return (
        ids.join(degrees, "id", how="left")
        .join(nearest, "id", how="left")
        .withColumn("degree", F.coalesce("degree", F.lit(1)))
        .withColumn("role", F.when(is_core, "core").when(is_border, "border").otherwise("noise"))
        .withColumn("at_core", at_core)
        .join(trees.withColumnRenamed("node", "at_core"), "at_core", how="left")
        .withColumn("cluster_id", F.coalesce("root", "at_core", F.lit(NOISE)))
        .select("id", F.col("cluster_id").cast("long"), "role", F.col("degree").cast("long"))
    )
