"""Cluster: DBSCAN from the pairs; the steps and their words are those of ``local/cluster.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from pyspark.core.broadcast import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.errors import ArgumentError
from epsjoin.local.cluster import NOISE, core_pairs, nearest_core, partial_degrees, spanning_forest
from epsjoin.local.columns import check_count
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan import Cuts
from epsjoin.spark import tables, tasks
from epsjoin.spark.arrow import Task, pair_columns
from epsjoin.spark.components import MOST_IN_ONE_TASK, join_forests
from epsjoin.spark.job import Job, say
from epsjoin.spark.join import MAX_PAIRS, join_points
from epsjoin.spark.lineage import read_join
from epsjoin.spark.pairs import PacketPairs, Pairs, StoredPairs
from epsjoin.spark.points import points_of

Shared = Broadcast[NDArray[np.int64]]
EDGE, BORDER = 0, 1
"""Kinds of rows that are left of the pairs once the core points are known."""
MOST_SHARED_CORES = 20_000_000
"""So many core ids every task may hold (8 bytes each); of more, the pairs are joined with them by Spark."""


def find_clusters(job: Job) -> dict[str, float]:
    """Replace the run's slice of ``clusters``.

    Raises
    ------
    TableError
        ``points`` or ``pairs`` has no slice of this run.
    """
    join = read_join(job.lake, job.run)
    pairs = StoredPairs.of(job, join)
    points = tables.read(job.spark, job.lake, "points", job.run).select("id")
    n_points = tables.count(job.lake, "points", job.run)
    found = cluster_pairs(points, n_points, pairs, job.params.min_pts)
    tasks.write_frame(job.lake, "clusters", job.run, found.clusters, join.stamp)
    counters = _count(found.clusters)
    found.forget()
    found.clusters.unpersist()
    say(
        f"cluster: {counters['clusters']:,.0f} clusters, {counters['core']:,.0f} core, "
        f"{counters['border']:,.0f} border, {counters['noise']:,.0f} noise"
    )
    return counters


def dbscan(
    frame: DataFrame,
    *,
    eps: float | ArrayLike,
    min_pts: int,
    columns: str | Sequence[str],
    id: str = "id",  # noqa: A002 - what people call it
    metric: str | Metric = "euclidean",
    weights: ArrayLike | None = None,
    cuts: Cuts | None = None,
    max_pairs: int = MAX_PAIRS,
) -> DataFrame:
    """Density clusters of the rows of a frame.

    Parameters
    ----------
    frame, eps, columns, id, metric, weights, cuts, max_pairs : see
        :func:`epsjoin.spark.join.similarity_join`.
    min_pts : points within eps, the point itself included, that make a point core; at least 1.

    Returns
    -------
    DataFrame
        ``id`` (long), ``cluster_id`` (long: the smallest core id of the cluster, -1 for noise), ``role``
        ("core", "border", "noise"), ``degree`` (long: points within eps, the point itself included); a row
        for every row. A border point is in the cluster of its nearest core point, ties: the smallest id. The
        same under every partitioning. Persisted: call ``unpersist()`` on it when it is done with.

    Raises
    ------
    ArgumentError, BudgetError, DataRefusedError
        See :func:`epsjoin.spark.join.similarity_join`; min_pts is below 1; an id is -1, which is noise.

    Notes
    -----
    All is computed at the call: the join once, its pairs kept by Spark in memory and on disk, in few rows of
    many pairs each, until the clusters are there.
    """
    check_count("min_pts", min_pts)
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    points = points_of(frame, columns, id)
    packets = join_points(points, eps, chosen, weights, cuts, max_pairs, as_packets=True).persist()
    found = cluster_pairs(points.frame.select("id"), points.n, PacketPairs(packets), min_pts)
    checked = found.clusters.agg(F.max(F.col("id") == NOISE).alias("has_noise_id")).first()
    found.forget()
    packets.unpersist()
    if checked is not None and checked["has_noise_id"]:
        found.clusters.unpersist()
        raise ArgumentError(f"the id {NOISE} is kept for noise; give that row another")
    return found.clusters


class Found(NamedTuple):
    """Clusters, and the frames that Spark keeps as long as they are not computed.

    Parameters
    ----------
    clusters : (id, cluster_id, role, degree), persisted, lazy.
    kept : what they are made from.
    """

    clusters: DataFrame
    kept: tuple[DataFrame | Shared, ...]

    def forget(self) -> None:
        """Let Spark drop what the clusters were made from."""
        for each in self.kept:
            each.unpersist()


def cluster_pairs(
    ids: DataFrame,
    n_points: int,
    pairs: Pairs,
    min_pts: int,
    most_shared_cores: int = MOST_SHARED_CORES,
    most_in_one_task: int = MOST_IN_ONE_TASK,
) -> Found:
    """Cluster and role of every point.

    The pairs are read twice: for the degrees, then for what connects the core points. Each share of them is
    contracted to a forest; :func:`epsjoin.spark.components.join_forests` joins the forests.

    Parameters
    ----------
    ids : (id), every point.
    n_points : their number.
    pairs : every pair within eps once.
    min_pts : points within eps, the point itself included, that make a point core.
    most_shared_cores : core ids that every task may hold.
    most_in_one_task : edges between core points that a task may hold.
    """
    degrees = degrees_of(pairs).persist()
    cores = degrees.where(F.col("degree") >= min_pts).select("id")
    if n_points <= most_shared_cores or cores.count() <= most_shared_cores:
        core_ids = np.sort(cores.toArrow()["id"].to_numpy())
        shared = pairs.spark.sparkContext.broadcast(core_ids)
        connected = pairs.map(_connector(lambda _: shared.value), _CONNECTED).persist()
        kept: tuple[DataFrame | Shared, ...] = (degrees, connected, shared)
    else:
        connected = _connected_by_join(pairs, cores).persist()
        kept = (degrees, connected)
    edges = connected.where(F.col("kind") == EDGE)
    trees = join_forests(edges.select(F.col("a").alias("node"), F.col("b").alias("root")), most_in_one_task)
    nearest = (
        connected.where(F.col("kind") == BORDER)
        .groupBy(F.col("a").alias("id"))
        .agg(F.min(F.struct("distance", "b")).getField("b").alias("nearest_core_id"))
    )
    clusters = label(ids, degrees, trees, nearest, min_pts).persist()
    return Found(clusters, (*kept, trees))


def degrees_of(pairs: Pairs) -> DataFrame:
    """Points within eps, the point itself included, of every point that is in a pair: (id, degree)."""

    def degrees(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = partial_degrees(batch.column("left_id").to_numpy(), batch.column("right_id").to_numpy())
            yield pa.record_batch({"id": found.ids, "neighbours": found.counts})

    partial = pairs.map(degrees, "id long, neighbours long")
    return partial.groupBy("id").agg((F.sum("neighbours") + 1).alias("degree"))


_CONNECTED = "kind int, a long, b long, distance double"
# EDGE: a is a core point, b a core point of the same cluster (distance 0, unused); one forest per share.
# BORDER: a is no core point, b its nearest core point in this share.


def _connected_by_join(pairs: Pairs, cores: DataFrame) -> DataFrame:
    """What connects the core points, by two shuffles of the pairs; no task holds all core points."""
    left = cores.select(F.col("id").alias("left_id"), F.lit(True).alias("is_left"))
    right = cores.select(F.col("id").alias("right_id"), F.lit(True).alias("is_right"))
    known = pairs.frame().join(left, "left_id", "left").join(right, "right_id", "left")
    some = known.where(F.col("is_left") | F.col("is_right"))
    return some.mapInArrow(_connector(_cores_of), _CONNECTED)


def _cores_of(batch: pa.RecordBatch) -> NDArray[np.int64]:
    ends = [batch.column(f"{side}_id").filter(batch.column(f"is_{side}")) for side in ("left", "right")]
    return np.unique(np.concatenate([each.to_numpy() for each in ends]))


def _connector(cores_of: Callable[[pa.RecordBatch], NDArray[np.int64]]) -> Task:
    def connect(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = Connected.of_nothing()
        for batch in batches:
            held = held.with_batch(batch, cores_of(batch))
        yield _rows(EDGE, held.node, held.root, np.zeros(len(held.node)))
        yield _rows(BORDER, held.border_id, held.core_id, held.distance)

    return connect


class Connected(NamedTuple):
    """A task's forest and nearest core points so far."""

    node: NDArray[np.int64]
    root: NDArray[np.int64]
    border_id: NDArray[np.int64]
    core_id: NDArray[np.int64]
    distance: NDArray[np.float64]

    @classmethod
    def of_nothing(cls) -> Connected:
        """What a task holds before its first batch."""
        nothing = np.empty(0, np.int64)
        return cls(nothing, nothing, nothing, nothing, np.empty(0))

    def with_batch(self, batch: pa.RecordBatch, cores: NDArray[np.int64]) -> Connected:
        """What it holds after one more batch of pairs; ``cores`` are all core ids among them, rising."""
        found = core_pairs(*pair_columns(batch), cores)
        trees = spanning_forest(
            np.concatenate([self.node, found.core_left]), np.concatenate([self.root, found.core_right])
        )
        nearest = nearest_core(
            np.concatenate([self.border_id, found.border_id]),
            np.concatenate([self.core_id, found.core_id]),
            np.concatenate([self.distance, found.distance]),
        )
        return Connected(trees.node, trees.root, nearest.border_id, nearest.core_id, nearest.distance)


def _rows(
    kind: int, a: NDArray[np.int64], b: NDArray[np.int64], distance: NDArray[np.float64]
) -> pa.RecordBatch:
    return pa.record_batch({"kind": np.full(len(a), kind, np.int32), "a": a, "b": b, "distance": distance})


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
    degree = F.coalesce("degree", F.lit(1))
    is_core = F.col("degree") >= min_pts
    is_border = F.col("nearest_core_id").isNotNull()
    at_core = F.when(is_core, F.col("id")).when(is_border, F.col("nearest_core_id"))
    return (
        ids.join(degrees, "id", how="left")
        .join(nearest, "id", how="left")
        .withColumn("degree", degree)
        .withColumn("role", F.when(is_core, "core").when(is_border, "border").otherwise("noise"))
        .withColumn("at_core", at_core)
        .join(trees.withColumnRenamed("node", "at_core"), "at_core", how="left")
        .withColumn("cluster_id", F.coalesce("root", "at_core", F.lit(NOISE)))
        .select("id", F.col("cluster_id").cast("long"), "role", F.col("degree").cast("long"))
    )


def _count(clusters: DataFrame) -> dict[str, float]:
    found = (
        clusters.groupBy("role")
        .agg(F.count("*").alias("n"), F.countDistinct("cluster_id").alias("c"))
        .collect()
    )
    counters = dict.fromkeys(("core", "border", "noise"), 0.0) | {
        row["role"]: float(row["n"]) for row in found
    }
    counters["clusters"] = float(sum(row["c"] for row in found if row["role"] == "core"))
    return counters
