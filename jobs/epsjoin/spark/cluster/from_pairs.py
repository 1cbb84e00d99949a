"""DBSCAN from pairs, distributed over tasks; ``local/cluster/from_pairs.py`` explains the steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.core.broadcast import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.errors import ArgumentError
from epsjoin.kernels.ids import index_ids
from epsjoin.lake.arrow import pair_columns
from epsjoin.local.cluster.from_pairs import (
    NOISE,
    ROLES,
    Degrees,
    core_pairs,
    extend_labels,
    nearest_core,
    partial_degrees,
    spanning_forest,
    sum_degrees,
)
from epsjoin.local.cluster.from_pairs import label as label_arrays
from epsjoin.spark.arrow import Task
from epsjoin.spark.cluster.components import MAX_IN_ONE_TASK, join_forests
from epsjoin.spark.persist import persist_until
from epsjoin.spark.points import Points
from epsjoin.spark.rows import (
    FrameRows,
    MappedRows,
    Rows,
    collect_table,
    combine_partials,
    select_columns,
    to_frame,
)
from epsjoin.spark.splits import names_of

EDGE, BORDER = 0, 1
"""Kinds of rows that remain of the pairs once the core points are known."""
MAX_ON_DRIVER = 4_000_000
"""Maximum number of points that are labelled on the driver: at most some 300 bytes each (estimated)."""
MAX_SHARED_CORES = 20_000_000
"""Maximum number of core ids that every task holds, 8 bytes each; Spark joins the pairs with more."""

CLUSTERS = "id long, cluster_id long, role string, degree long"


def refuse_noise_id(points: Points) -> None:
    """Refuse points if one of them has the id that stands for noise.

    Raises
    ------
    ArgumentError
        A point has this id.
    """
    if points.frame.where(F.col("id") == NOISE).limit(1).count():
        raise ArgumentError(f"the id {NOISE} is kept for noise; give that row another")


def cluster_pairs(
    ids: Rows,
    n_points: int,
    pairs: Rows,
    min_pts: int,
    done: ExitStack,
    max_on_driver: int = MAX_ON_DRIVER,
    max_shared_cores: int = MAX_SHARED_CORES,
    max_in_one_task: int = MAX_IN_ONE_TASK,
) -> Rows:
    """Find the cluster and the role of every point.

    The pairs are read twice: for the degrees, then for the edges between core points. Each task contracts the
    edges of its split to a forest. For few points the driver merges the results of the splits and broadcasts
    the labels, so no row goes through Spark. For more points Spark merges them, and
    :func:`epsjoin.spark.cluster.components.join_forests` joins the forests. The labels are the same.

    Parameters
    ----------
    ids : the id of every point, in the column ``id``.
    n_points : number of points.
    pairs : columns ``PAIRS``, every pair within eps once.
    min_pts : number of points within eps, the point itself included, that make a point core.
    done : to be closed once the clusters are computed; then the intermediate frames are unpersisted.
    max_on_driver : maximum number of points that are labelled on the driver.
    max_shared_cores : maximum number of core ids that every task may hold.
    max_in_one_task : maximum number of edges between core points that a task may hold.

    Returns
    -------
    Columns ``CLUSTERS``, a row for every point; not computed yet.
    """
    if n_points <= max_on_driver:
        return _cluster_on_driver(ids, pairs, min_pts, done)
    degrees = persist_until(degrees_of(pairs), done)
    cores = degrees.where(F.col("degree") >= min_pts).select("id")
    if n_points <= max_shared_cores or cores.count() <= max_shared_cores:
        shared = _share_cores(pairs, cores.toArrow()["id"].to_numpy())
        done.callback(shared.unpersist)  # not destroyed: partitions that are lost later are computed again
        connected = to_frame(_connect(pairs, shared))
    else:
        connected = _connect_by_join(pairs, cores)
    persist_until(connected, done)
    edges = connected.where(F.col("kind") == EDGE)
    trees = join_forests(edges.select(F.col("a").alias("node"), F.col("b").alias("root")), max_in_one_task)
    done.callback(trees.unpersist)
    nearest = (
        connected.where(F.col("kind") == BORDER)
        .groupBy(F.col("a").alias("id"))
        .agg(F.min(F.struct("distance", "b")).getField("b").alias("nearest_core_id"))
    )
    return FrameRows(label(to_frame(ids), degrees, trees, nearest, min_pts))


def _cluster_on_driver(ids: Rows, pairs: Rows, min_pts: int, done: ExitStack) -> Rows:
    found = collect_table(MappedRows(select_columns(pairs, _ENDS), _count_neighbours, _DEGREES))
    degrees = sum_degrees(found["id"].to_numpy(), found["neighbours"].to_numpy())
    degree = degrees.counts + 1
    shared = _share_cores(pairs, degrees.ids[degree >= min_pts])
    try:
        connected = collect_table(_connect(pairs, shared))
    finally:
        shared.destroy()
    is_edge = connected["kind"].to_numpy() == EDGE
    a, b, distance = (connected[name].to_numpy() for name in ("a", "b", "distance"))
    trees = spanning_forest(a[is_edge], b[is_edge])
    nearest = nearest_core(a[~is_edge], b[~is_edge], distance[~is_edge])
    known = pairs.spark.sparkContext.broadcast(label_arrays(degrees.ids, degree, trees, nearest, min_pts))
    done.callback(known.unpersist)

    def look_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = index_ids(known.value.ids)
        for batch in batches:
            found = extend_labels(batch.column("id").to_numpy(), known.value, index, min_pts)
            role = pa.array(ROLES).take(pa.array(found.role))
            yield pa.record_batch(
                {"id": found.ids, "cluster_id": found.cluster_id, "role": role, "degree": found.degree}
            )

    return MappedRows(ids, look_up, CLUSTERS)


_ENDS = "left_id long, right_id long"
_DEGREES = "id long, neighbours long"


def _count_neighbours(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = (partial_degrees(*(batch.column(end).to_numpy() for end in names_of(_ENDS))) for batch in batches)
    for degrees in combine_partials(found, _sum_partials):
        yield pa.record_batch({"id": degrees.ids, "neighbours": degrees.counts})


def _sum_partials(partials: Sequence[Degrees]) -> Degrees:
    ids, counts = (np.concatenate(column) for column in zip(*partials, strict=True))
    return sum_degrees(ids, counts)


def degrees_of(pairs: Rows) -> DataFrame:
    """Degrees of the points that are in a pair, each point itself included: (id, degree)."""
    partial = select_columns(pairs, _ENDS).map(_count_neighbours, _DEGREES)
    return partial.groupBy("id").agg((F.sum("neighbours") + 1).alias("degree"))


def _share_cores(pairs: Rows, ids: NDArray[np.int64]) -> Broadcast[NDArray[np.int64]]:
    return pairs.spark.sparkContext.broadcast(np.sort(ids))


def _connect(pairs: Rows, shared: Broadcast[NDArray[np.int64]]) -> Rows:
    return MappedRows(pairs, _make_connector(lambda _: shared.value), _CONNECTED)


_CONNECTED = "kind int, a long, b long, distance double"
"""Columns of what remains of a split of the pairs.

EDGE: ``a`` and ``b`` are core points of one cluster (distance 0, unused); the edges of a split are a forest.
BORDER: ``a`` is not core, ``b`` is its nearest core point in this split.
"""


def _connect_by_join(pairs: Rows, cores: DataFrame) -> DataFrame:
    """Connect the core points with two shuffles of the pairs, so that no task holds all core points."""
    left = cores.select(F.col("id").alias("left_id"), F.lit(True).alias("is_left"))
    right = cores.select(F.col("id").alias("right_id"), F.lit(True).alias("is_right"))
    known = to_frame(pairs).join(left, "left_id", "left").join(right, "right_id", "left")
    some = known.where(F.col("is_left") | F.col("is_right"))
    return some.mapInArrow(_make_connector(_find_cores), _CONNECTED)


def _find_cores(batch: pa.RecordBatch) -> NDArray[np.int64]:
    ends = [batch.column(f"{side}_id").filter(batch.column(f"is_{side}")) for side in ("left", "right")]
    return np.unique(np.concatenate([each.to_numpy() for each in ends]))


def _make_connector(cores_of: Callable[[pa.RecordBatch], NDArray[np.int64]]) -> Task:
    def connect(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = Connected.empty()
        for batch in batches:
            held = held.with_batch(batch, cores_of(batch))
        yield _to_batch(EDGE, held.node, held.root, np.zeros(len(held.node)))
        yield _to_batch(BORDER, held.border_id, held.core_id, held.distance)

    return connect


class Connected(NamedTuple):
    """The forest and the nearest core points that a task has found so far."""

    node: NDArray[np.int64]
    root: NDArray[np.int64]
    border_id: NDArray[np.int64]
    core_id: NDArray[np.int64]
    distance: NDArray[np.float64]

    @classmethod
    def empty(cls) -> Connected:
        """The state of a task before its first batch."""
        nothing = np.empty(0, np.int64)
        return cls(nothing, nothing, nothing, nothing, np.empty(0))

    def with_batch(self, batch: pa.RecordBatch, cores: NDArray[np.int64]) -> Connected:
        """The state after one more batch of pairs; ``cores`` are all core ids among them, sorted."""
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


def _to_batch(
    kind: int, a: NDArray[np.int64], b: NDArray[np.int64], distance: NDArray[np.float64]
) -> pa.RecordBatch:
    return pa.record_batch({"kind": np.full(len(a), kind, np.int32), "a": a, "b": b, "distance": distance})


def label(
    ids: DataFrame, degrees: DataFrame, trees: DataFrame, nearest: DataFrame, min_pts: int
) -> DataFrame:
    """Join the intermediate frames to the columns of ``clusters``.

    Parameters
    ----------
    ids : (id), every point.
    degrees : (id, degree), every point that is in a pair.
    trees : (node, root), every core point except the smallest of each cluster.
    nearest : (id, nearest_core_id), every point that is not core but has a core point within eps.
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


def count_roles(clusters: pa.RecordBatch) -> dict[str, float]:
    """Count the points of each role, their neighbours, and the clusters (by the core point that names it)."""
    counters = {role: float(pc.sum(pc.equal(clusters["role"], role)).as_py() or 0) for role in ROLES}
    is_name = pc.and_(pc.equal(clusters["role"], "core"), pc.equal(clusters["id"], clusters["cluster_id"]))
    counters["neighbours"] = float(pc.sum(pc.subtract(clusters["degree"], 1)).as_py() or 0)
    return {**counters, "clusters": float(pc.sum(is_name).as_py() or 0)}
