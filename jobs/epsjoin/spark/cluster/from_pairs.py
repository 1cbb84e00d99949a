"""DBSCAN from pairs, distributed over tasks; ``local/cluster/from_pairs.py`` explains the steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from epsjoin.kernels.sorting import sort_numbers
from epsjoin.lake.arrow import pair_columns
from epsjoin.local.cluster.from_pairs import (
    Connected,
    Degrees,
    Forest,
    NearestCore,
    Part,
    connect,
    number_points,
    partial_degrees,
    sum_degrees,
)
from epsjoin.local.cluster.from_pairs import label as label_arrays
from epsjoin.local.cluster.positions import AllPoints, id_of_noise, id_twice, point_missing, positions_of
from epsjoin.spark.cluster.components import MAX_IN_ONE_TASK, join_forests
from epsjoin.spark.points.points import Points
from epsjoin.spark.rows.partials import combine_partials
from epsjoin.spark.rows.persist import persist_until
from epsjoin.spark.rows.rows import (
    BATCH_ROWS,
    FrameRows,
    MappedRows,
    Rows,
    select_columns,
    to_frame,
)
from epsjoin.spark.rows.splits import names_of
from epsjoin.spark.tasks import tasks
from epsjoin.spark.tasks.arrow import Task
from epsjoin.spark.tasks.shared import Shared, check_files, has_one_machine, share
from epsjoin.vocabulary import NOISE, ROLES

EDGE, BORDER = 0, 1
"""Kinds of rows that remain of the pairs once the core points are known."""
MAX_ON_DRIVER = 50_000_000
"""Maximum number of points that the driver labels, 25 bytes for each (``positions.POINT_BYTES``): 1.25 GB."""
FILE_BYTES = 40
"""Bytes of shared files for each point: ids, what remains of the pairs, labels."""
HEAP_BYTES = 64
"""Bytes of the driver's JVM for each point where results of tasks come through it: twice their size."""
_MAX_DEGREES = 1 << 20
"""Minimum number of points whose neighbours a task counts at a time."""
POINTS_OF_A_TASK = 1 << 22
"""Maximum number of points whose labels one task writes."""

CLUSTERS = "id long, cluster_id long, role string, degree long"


def refuse_noise_id(points: Points) -> None:
    """Refuse points if one of them has the id that stands for noise.

    Raises
    ------
    ArgumentError
        A point has this id.
    """
    if points.frame.where(F.col("id") == NOISE).limit(1).count():
        raise id_of_noise()


def cluster_pairs(
    ids: Rows,
    n_points: int,
    pairs: Rows,
    min_pts: int,
    done: ExitStack,
    max_on_driver: int = MAX_ON_DRIVER,
    max_in_one_task: int = MAX_IN_ONE_TASK,
) -> Rows:
    """Find the cluster and the role of every point.

    The pairs are read twice: for the degrees, then for the edges between core points. Each task contracts the
    edges of its split to a forest. Up to ``max_on_driver`` points the driver merges the results of the splits
    by position (:mod:`epsjoin.local.cluster.positions`). It shares ids and labels with the tasks by files, so
    no row goes through Spark. More points are merged by Spark's joins, and
    :func:`epsjoin.spark.cluster.components.join_forests` joins the forests. The labels are the same.

    Parameters
    ----------
    ids : the id of every point, in the column ``id``.
    n_points : number of points.
    pairs : columns ``PAIRS``, every pair within eps once.
    min_pts : number of points within eps, the point itself included, that make a point core.
    done : to be closed once the clusters are computed; then the intermediate frames are unpersisted.
    max_on_driver : maximum number of points that the driver labels. On a cluster, where results come through
        the driver's JVM, the heap's room is a limit, too.
    max_in_one_task : maximum number of edges between core points that a task may hold.

    Returns
    -------
    Columns ``CLUSTERS``, a row for every point; not computed yet.

    Raises
    ------
    ArgumentError
        An id comes twice, or is that of noise.
    EpsjoinError
        The disk has no room for the files that driver and tasks share.
    TableError
        The pairs name a point that is not among the points.
    """
    if n_points <= min(max_on_driver, heap_points(pairs.spark)):
        return _cluster_on_driver(ids, n_points, pairs, min_pts)
    degrees = persist_until(degrees_of(pairs), done)
    _check_ids(to_frame(ids), degrees)
    cores = degrees.where(F.col("degree") >= min_pts).select("id")
    connected = persist_until(_connect_by_join(pairs, cores), done)
    edges = connected.where(F.col("kind") == EDGE)
    trees = join_forests(edges.select(F.col("a").alias("node"), F.col("b").alias("root")), max_in_one_task)
    done.callback(trees.unpersist)
    nearest = (
        connected.where(F.col("kind") == BORDER)
        .groupBy(F.col("a").alias("id"))
        .agg(F.min(F.struct("distance", "b")).getField("b").alias("nearest_core_id"))
    )
    return FrameRows(label(to_frame(ids), degrees, trees, nearest, min_pts))


def _check_ids(ids: DataFrame, degrees: DataFrame) -> None:
    """Refuse ids that come twice or are that of noise, and pairs of a point that is not among the points."""
    counted = ids.groupBy("id").agg(F.count("*").alias("n"))
    for row in counted.where((F.col("n") > 1) | (F.col("id") == NOISE)).limit(1).collect():
        if row["id"] == NOISE:
            raise id_of_noise()
        raise id_twice(row["id"])
    for row in degrees.join(counted, "id", "left_anti").limit(1).collect():
        raise point_missing(row["id"])


def heap_points(spark: SparkSession) -> int:
    """Number of points whose results may come through the driver's JVM; on one machine they come by files."""
    if has_one_machine(spark):
        return MAX_ON_DRIVER
    jvm: Any = spark.sparkContext._jvm
    return int(jvm.Runtime.getRuntime().maxMemory()) // HEAP_BYTES


def _cluster_on_driver(ids: Rows, n_points: int, pairs: Rows, min_pts: int) -> Rows:
    spark = pairs.spark
    check_files(FILE_BYTES * n_points)
    points = AllPoints(_sorted_ids(ids))
    for batch in MappedRows(select_columns(pairs, _ENDS), _count_neighbours, _DEGREES).run(iter):
        points.count(batch["id"].to_numpy(), batch["neighbours"].to_numpy())
    with ExitStack() as failed:
        known = share(spark, ids=points.ids)
        failed.callback(known.remove)
        points.ids = known["ids"]  # pages of the file, which the system may drop, instead of our own memory
        cores = share(spark, is_core=points.find_cores(min_pts))
        try:
            for batch in pairs.run(_make_connector(known, cores)):
                for row in range(batch.num_rows):
                    points.connect(_from_row(batch, row))
        finally:
            cores.remove()
        labels = share(spark, home=points.find_homes(), degree=points.degree)
        failed.pop_all()
    return LabelRows(spark, known, labels, len(points.ids), min_pts)


def _sorted_ids(ids: Rows) -> NDArray[np.int64]:
    batches = ids.run(lambda batches: (batch.select(["id"]) for batch in batches))
    found = np.concatenate([np.empty(0, np.int64), *(batch["id"].to_numpy() for batch in batches)])
    sort_numbers(found)
    return found


@dataclass(frozen=True)
class LabelRows:
    """The labels of all points, in the order of their ids; each task reads a range of the driver's arrays."""

    spark: SparkSession
    known: Shared
    labels: Shared
    n: int
    min_pts: int
    schema: str = CLUSTERS

    def map(self, work: Task, schema: str) -> DataFrame:
        """See :class:`epsjoin.spark.rows.rows.Rows`."""
        return tasks.lazy_tasks(self.spark, self._ranges(), self._reading(work), schema)

    def run(self, work: Task) -> list[pa.RecordBatch]:
        """See :class:`epsjoin.spark.rows.rows.Rows`."""
        return tasks.run_tasks(self.spark, self._ranges(), self._reading(work))

    def _ranges(self) -> list[range]:
        n_cores = self.spark.sparkContext.defaultParallelism
        n_tasks = max(min(n_cores, self.n >> 16), -(-self.n // POINTS_OF_A_TASK), 1)
        bounds = [self.n * task // n_tasks for task in range(n_tasks + 1)]
        return [range(*both) for both in itertools.pairwise(bounds)]

    def _reading(self, work: Task) -> Callable[[range], Iterator[pa.RecordBatch]]:
        known, labels, min_pts = self.known, self.labels, self.min_pts

        def read(mine: range) -> Iterator[pa.RecordBatch]:
            return work(
                _labels_between(known, labels, min_pts, first, min(first + BATCH_ROWS, mine.stop))
                for first in range(mine.start, mine.stop, BATCH_ROWS)
            )

        return read


def _labels_between(known: Shared, labels: Shared, min_pts: int, first: int, last: int) -> pa.RecordBatch:
    ids, home = known["ids"], labels["home"][first:last]
    name = np.where(home == NOISE, NOISE, ids[np.maximum(home, 0)])
    return to_rows(ids[first:last], labels["degree"][first:last], name, min_pts)


def to_rows(
    ids: NDArray[np.int64],
    degree: NDArray[np.int64] | NDArray[np.int32],
    name: NDArray[np.int64],
    min_pts: int,
) -> pa.RecordBatch:
    """Labels of some points as rows with the columns ``CLUSTERS``.

    Parameters
    ----------
    degree : (n,) the points themselves counted.
    name : (n,) the id that names each point's cluster, or ``NOISE``.
    """
    found = label_arrays(ids, degree, name, min_pts)
    role = pa.array(ROLES).take(pa.array(found.role))
    return pa.record_batch(
        {"id": found.ids, "cluster_id": found.cluster_id, "role": role, "degree": found.degree}
    )


_ENDS = "left_id long, right_id long"
_DEGREES = "id long, neighbours long"


def _count_neighbours(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = (partial_degrees(*(batch.column(end).to_numpy() for end in names_of(_ENDS))) for batch in batches)
    for degrees in combine_partials(found, _sum_partials, _MAX_DEGREES):
        yield pa.record_batch({"id": degrees.ids, "neighbours": degrees.counts})


def _sum_partials(partials: Sequence[Degrees]) -> Degrees:
    ids, counts = (np.concatenate(column) for column in zip(*partials, strict=True))
    return sum_degrees(ids, counts)


def degrees_of(pairs: Rows) -> DataFrame:
    """Degrees of the points that are in a pair, each point itself included: (id, degree)."""
    partial = select_columns(pairs, _ENDS).map(_count_neighbours, _DEGREES)
    return partial.groupBy("id").agg((F.sum("neighbours") + 1).alias("degree"))


def _make_connector(known: Shared, cores: Shared) -> Task:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            left, right, distance = pair_columns(batch)
            part = number_points(left, right)
            at = positions_of(known["ids"], part.ids)
            yield _to_row(connect(part, distance, cores["is_core"][at]), at.astype(np.int32))

    return work


def _to_row(found: Connected, names: NDArray[np.int32]) -> pa.RecordBatch:
    """What remains of a batch of pairs, as one row of lists, since the columns differ in length."""
    (node, root), (border, core, distance) = found
    columns = (names[node], names[root], names[border], names[core], distance)
    lists = [pa.ListArray.from_arrays([0, len(values)], values) for values in columns]
    return pa.record_batch(lists, list(_LISTS))


_LISTS = ("node", "root", "border", "core", "distance")


def _from_row(batch: pa.RecordBatch, row: int) -> Connected:
    node, root, border, core, distance = (batch.column(name)[row].values.to_numpy() for name in _LISTS)
    return Connected(Forest(node, root), NearestCore(border, core, distance))


_CONNECTED = "kind int, a long, b long, distance double"
"""Columns of what remains of a split of the pairs.

EDGE: ``a`` and ``b`` are core points of one cluster (distance 0, unused); the edges of a batch are a forest.
BORDER: ``a`` is not core, ``b`` is its nearest core point in this batch.
"""


def _connect_by_join(pairs: Rows, cores: DataFrame) -> DataFrame:
    """Connect the core points with two shuffles of the pairs, so that no task holds all core points."""
    left = cores.select(F.col("id").alias("left_id"), F.lit(True).alias("is_left"))
    right = cores.select(F.col("id").alias("right_id"), F.lit(True).alias("is_right"))
    known = to_frame(pairs).join(left, "left_id", "left").join(right, "right_id", "left")
    some = known.where(F.col("is_left") | F.col("is_right"))
    some = some.sortWithinPartitions("left_id", "right_id")  # computed again, it has the same forests
    return FrameRows(some).map(connect_flagged, _CONNECTED)


def connect_flagged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Connect the core points of pairs that say which of their ends are core: rows of ``_CONNECTED``."""
    for batch in _in_large_batches(batches):
        part = number_points(*pair_columns(batch)[:2])
        found = connect(part, batch["distance"].to_numpy(), _flagged(batch, part))
        for kind, (a, b, distance) in (
            (EDGE, (*found.trees, np.zeros(len(found.trees.node)))),
            (BORDER, found.nearest),
        ):
            columns = {"a": part.ids[a], "b": part.ids[b], "distance": distance}
            yield pa.record_batch({"kind": np.full(len(a), kind, np.int32), **columns})


def _flagged(batch: pa.RecordBatch, part: Part) -> NDArray[np.bool_]:
    is_core = np.zeros(len(part.ids), np.bool_)
    for side, rows in (("left", part.left), ("right", part.right)):
        is_end = batch[f"is_{side}"].fill_null(False).to_numpy(zero_copy_only=False)
        is_core[rows[is_end]] = True
    return is_core


def _in_large_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine the small batches of Spark's rows: the more pairs are seen at once, the fewer rows remain."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= BATCH_ROWS:
            yield pa.concat_batches(held)
            held = []
    if held:
        yield pa.concat_batches(held)


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
