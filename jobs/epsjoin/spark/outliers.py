"""Outliers: how far out every point is; definitions and departures as in ``local/outliers.py``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from epsjoin.errors import TableError
from epsjoin.local.outliers import deviating_dimensions, nearest_within, robust_spread
from epsjoin.spark import tables, tasks
from epsjoin.spark.arrow import Task, pair_columns, to_matrix
from epsjoin.spark.job import Job, say
from epsjoin.spark.lineage import stamp_of_join
from epsjoin.spark.sample import sample_points

BATCH_PAIRS = 1 << 20


def score_outliers(job: Job) -> dict[str, float]:
    """Replace the run's slice of ``outliers``: every point with its rank, k-distance and LOF.

    Degree and noise are those of ``clusters``. Sums run over neighbours in their order, so that a score
    does not depend on the partitioning, not even in its last bit.

    Raises
    ------
    TableError
        ``points``, ``pairs`` or ``clusters`` has no slice of this run.
    """
    lake, run, k = job.lake, job.run, job.params.n_neighbours
    eps = float(tables.read_row(lake, "join_plan", run)["eps"])
    points = tables.read(job.spark, lake, "points", run).select("id", "point")
    clusters = tables.read(job.spark, lake, "clusters", run)
    neighbours = nearest_neighbours(
        job.spark, lake.location("pairs"), tables.files_of(lake, "pairs", run, stamp_of_join(lake, run)), k
    ).persist()
    scores = local_outlier_factors(neighbours, k)
    dimensions = len(lake.source.coordinates)
    n_points = tables.count(lake, "points", run)
    _, sample = sample_points(points, n_points, job.params.sample_rows, job.params.seed, dimensions)
    outliers = (
        points.join(
            clusters.select("id", "degree", (F.col("role") == "noise").alias("is_noise")), "id", how="left"
        )
        .join(scores, "id", how="left")
        .withColumn("k_distance_above", F.when(F.col("k_distance").isNull(), F.lit(eps)))
    )
    ordered = outliers.orderBy(*outlyingness()).persist()
    offsets = _offsets(ordered)
    rows = ordered.mapInArrow(_ranker(offsets, sample, lake.source.coordinates), _SCHEMA)
    written = tasks.write_frame(lake, "outliers", run, rows)
    found = ordered.agg(
        F.count("lof").alias("with_lof"),
        F.count("k_distance").alias("with_k_distance"),
        F.sum(F.col("is_noise").cast("long")).alias("noise"),
    ).first()
    ordered.unpersist()
    neighbours.unpersist()
    if found is None or written != n_points:
        raise TableError(f"{written:,} points were scored, the log of points says {n_points:,}")
    say(f"outliers: {found['noise']:,} noise; LOF of {found['with_lof']:,} points, k = {k}")
    return {
        "rows": written,
        "k": k,
        "with_lof": found["with_lof"],
        "with_k_distance": found["with_k_distance"],
    }


_SCHEMA = (
    "id long, rank long, lof double, k_distance double, k_distance_above double, degree long, "
    "is_noise boolean, dimensions string"
)


def nearest_neighbours(spark: SparkSession, pairs: str, files: Sequence[tables.File], k: int) -> DataFrame:
    """The k nearest neighbours within eps of every point in a pair: (id, near), nearest first.

    ``near`` is an array of (distance, neighbour), at most k long; ties go to the smaller id.
    """

    def nearest(file: tables.File) -> Iterator[pa.RecordBatch]:
        for batch in tables.stream_file(pairs, file, ["left_id", "right_id", "distance"], BATCH_PAIRS):
            found = nearest_within(*pair_columns(batch), k)
            yield pa.record_batch({"id": found.id, "neighbour": found.neighbour, "distance": found.distance})

    partial = tasks.run_tasks(spark, files, nearest, "id long, neighbour long, distance double")
    by_distance = F.sort_array(F.collect_list(F.struct("distance", "neighbour")))
    return partial.groupBy("id").agg(F.slice(by_distance, 1, k).alias("near"))


def local_outlier_factors(neighbours: DataFrame, k: int) -> DataFrame:
    """k-distance and LOF from the k nearest neighbours within eps: (id, k_distance, lof).

    Each is null where something it needs lies beyond eps.

    References
    ----------
    Breunig, Kriegel, Ng, Sander: LOF, SIGMOD 2000, definitions 3 to 7.
    """
    has_k = F.size("near") == k
    k_distances = neighbours.where(has_k).select(
        "id", F.element_at("near", k)["distance"].alias("k_distance")
    )
    near = (
        neighbours.where(has_k)
        .select("id", F.posexplode("near").alias("place", "at"))
        .select(
            "id", "place", F.col("at.neighbour").alias("neighbour"), F.col("at.distance").alias("distance")
        )
    )

    of_neighbour = k_distances.select(
        F.col("id").alias("neighbour"), F.col("k_distance").alias("of_neighbour")
    )
    reach = near.join(of_neighbour, "neighbour", how="inner").withColumn(
        "reach", F.greatest("distance", "of_neighbour")
    )
    total = F.col("total")
    densities = _sum_in_order(reach, "reach", k).select(
        "id", F.when(total == 0, float("inf")).otherwise(k / total).alias("lrd")
    )

    of_neighbour = densities.select(F.col("id").alias("neighbour"), F.col("lrd").alias("neighbour_lrd"))
    lofs = (
        _sum_in_order(near.join(of_neighbour, "neighbour", how="inner"), "neighbour_lrd", k)
        .join(densities, "id", how="inner")
        .select(
            "id", F.when(F.col("lrd") == float("inf"), 1.0).otherwise(total / k / F.col("lrd")).alias("lof")
        )
    )
    return k_distances.join(lofs, "id", how="left")


def _sum_in_order(rows: DataFrame, value: str, k: int) -> DataFrame:
    """(id, total) of the ids that have k rows, added in the order of ``place``."""
    in_order = F.sort_array(F.collect_list(F.struct("place", value)))
    total = F.aggregate("values", F.lit(0.0), lambda total, row: total + row[value])
    found = rows.groupBy("id").agg(in_order.alias("values"))
    return found.where(F.size("values") == k).select("id", total.alias("total"))


def outlyingness() -> list[Column]:
    """The order of ranks, furthest out first; as ``local.outliers.rank``."""
    is_known = F.col("k_distance").isNotNull()
    return [
        is_known.asc(),
        F.when(~is_known, F.col("degree")).asc(),
        F.col("lof").isNotNull().asc(),
        F.when(F.col("lof").isNull(), F.col("k_distance")).desc(),
        F.col("lof").desc(),
        F.col("id").asc(),
    ]


def _offsets(ordered: DataFrame) -> dict[int, int]:
    """Rows before each partition of a sorted frame."""
    counts = ordered.groupBy(F.spark_partition_id().alias("partition")).count().collect()
    offsets, before = {}, 0
    for row in sorted(counts, key=lambda row: row["partition"]):
        offsets[row["partition"]] = before
        before += row["count"]
    return offsets


def _ranker(offsets: dict[int, int], sample: NDArray[np.float64], names: Sequence[str]) -> Task:
    centre, spread = robust_spread(sample)

    def rank(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        before = offsets.get(context.partitionId(), 0) if context else 0
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            points = to_matrix(rows["point"], len(names))
            rows = rows.append_column("rank", pa.array(np.arange(before + 1, before + 1 + len(rows))))
            rows = rows.append_column("dimensions", pa.array(_worded(points, centre, spread, names)))
            before += len(rows)
            yield from rows.select([column.split()[0] for column in _SCHEMA.split(", ")]).to_batches()

    return rank


def _worded(
    points: NDArray[np.float64],
    centre: NDArray[np.float64],
    spread: NDArray[np.float64],
    names: Sequence[str],
) -> list[str]:
    found = deviating_dimensions(points, centre, spread)
    return [
        ", ".join(f"{names[j]} {z:+.1f}" for j, z in zip(axes, scores, strict=True))
        for axes, scores in zip(found.dimension.tolist(), found.z.tolist(), strict=True)
    ]
