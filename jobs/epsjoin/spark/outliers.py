"""Outliers: how far out every point is; definitions and departures as in ``local/outliers.py``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from epsjoin.errors import TableError
from epsjoin.local.columns import check_count
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.outliers import deviating_dimensions, nearest_within, robust_spread
from epsjoin.local.plan import Cuts
from epsjoin.spark import tables, tasks
from epsjoin.spark.arrow import Task, pair_columns
from epsjoin.spark.cluster import cluster_pairs
from epsjoin.spark.job import Job, say
from epsjoin.spark.join import MAX_PAIRS, join_points
from epsjoin.spark.lineage import read_join, stamp_of_clusters
from epsjoin.spark.pairs import PacketPairs, Pairs, StoredPairs
from epsjoin.spark.points import Points, points_of, stored_points


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
    join = read_join(lake, run)
    stamp = stamp_of_clusters(lake, run, join)
    eps, pairs = float(join.plan["eps"]), StoredPairs.of(job, join)
    points = stored_points(job.spark, lake, run)
    clusters = tables.read(job.spark, lake, "clusters", run, join.stamp)
    _, sample = points.sample(job.params.sample_rows, job.params.seed)
    found = rank_points(points, sample, clusters, pairs, eps, k, lake.source.coordinates)
    written = tasks.write_frame(lake, "outliers", run, found.rows, stamp)
    if written != points.n:
        raise TableError(f"{written:,} points were scored, the log of points says {points.n:,}")
    known = found.rows.agg(
        F.count("lof").alias("with_lof"),
        F.count("k_distance").alias("with_k_distance"),
        F.sum(F.col("is_noise").cast("long")).alias("noise"),
    ).first()
    found.forget()
    counted = {} if known is None else known.asDict()
    say(f"outliers: {counted['noise']:,} noise; LOF of {counted['with_lof']:,} points, k = {k}")
    return {
        "rows": written,
        "k": k,
        "with_lof": counted["with_lof"],
        "with_k_distance": counted["with_k_distance"],
    }


def outliers(
    frame: DataFrame,
    *,
    eps: float,
    min_pts: int,
    columns: str | Sequence[str],
    k: int | None = None,
    id: str = "id",  # noqa: A002 - what people call it
    metric: str | Metric = "euclidean",
    cuts: Cuts | None = None,
    max_pairs: int = MAX_PAIRS,
) -> DataFrame:
    """How far out every row of a frame is.

    Parameters
    ----------
    frame, eps, columns, id, metric, cuts, max_pairs : see :func:`epsjoin.spark.join.similarity_join`.
    min_pts : points within eps, the point itself included, that make a point core.
    k : neighbours that the local outlier factor looks at; by default ``min_pts - 1``, at least 1.

    Returns
    -------
    DataFrame
        A row for every row, furthest out first: ``id``, ``rank`` (from 1), ``lof``, ``k_distance`` (each null
        where it needs neighbours beyond eps), ``k_distance_above`` (eps, where ``k_distance`` is null),
        ``degree``, ``is_noise``, ``dimensions`` (the coordinates that deviate most, with their robust
        z-score).
        Persisted: call ``unpersist()`` on it when it is done with.

    Raises
    ------
    ArgumentError, BudgetError, DataRefusedError
        See :func:`epsjoin.spark.cluster.dbscan`; k is below 1.

    Notes
    -----
    All is computed at the call, as by :func:`epsjoin.spark.cluster.dbscan`, whose clusters it needs.
    """
    check_count("min_pts", min_pts)
    n_neighbours = max(1, min_pts - 1) if k is None else check_count("k", k)
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    points = points_of(frame, columns, id)
    packets = join_points(points, eps, chosen, None, cuts, max_pairs, as_packets=True).persist()
    pairs = PacketPairs(packets)
    clusters = cluster_pairs(points.frame.select("id"), points.n, pairs, min_pts)
    _, sample = points.sample(Cuts().sample_rows, Cuts().seed)
    names = points.reading.names
    if len(names) != points.reading.dimensions:
        names = tuple(f"{names[0]}[{i}]" for i in range(points.reading.dimensions))
    found = rank_points(points, sample, clusters.clusters, pairs, chosen.check_eps(eps), n_neighbours, names)
    found.rows.count()
    found.forget()
    clusters.forget()
    clusters.clusters.unpersist()
    packets.unpersist()
    return found.rows


class Ranked(NamedTuple):
    """Outliers, and the frames that Spark keeps as long as they are not computed.

    Parameters
    ----------
    rows : the columns of ``outliers`` without run, persisted, lazy, ordered by rank.
    kept : what they are made from.
    """

    rows: DataFrame
    kept: tuple[DataFrame, ...]

    def forget(self) -> None:
        """Let Spark drop what the rows were made from."""
        for frame in self.kept:
            frame.unpersist()


def rank_points(
    points: Points,
    sample: NDArray[np.float64],
    clusters: DataFrame,
    pairs: Pairs,
    eps: float,
    k: int,
    names: Sequence[str],
) -> Ranked:
    """Rank, k-distance and LOF of every point.

    Parameters
    ----------
    points : every point.
    sample : (m, d) float64, of the points: what is usual in every dimension.
    clusters : (id, role, degree), of every point.
    pairs : every pair within eps once.
    eps : their threshold.
    k : neighbours that the local outlier factor looks at.
    names : of the dimensions.
    """
    neighbours = nearest_neighbours(pairs, k).persist()
    scores = local_outlier_factors(neighbours, k)
    scored = (
        points.frame.join(
            clusters.select("id", "degree", (F.col("role") == "noise").alias("is_noise")), "id", how="left"
        )
        .join(scores, "id", how="left")
        .withColumn("k_distance_above", F.when(F.col("k_distance").isNull(), F.lit(eps)))
    )
    ordered = scored.orderBy(*outlyingness()).persist()
    ranker = _ranker(_offsets(ordered), points, sample, names)
    return Ranked(ordered.mapInArrow(ranker, _SCHEMA).persist(), (neighbours, ordered))


_SCHEMA = (
    "id long, rank long, lof double, k_distance double, k_distance_above double, degree long, "
    "is_noise boolean, dimensions string"
)


def nearest_neighbours(pairs: Pairs, k: int) -> DataFrame:
    """The k nearest neighbours within eps of every point in a pair: (id, near), nearest first.

    ``near`` is an array of (distance, neighbour), at most k long; ties go to the smaller id.
    """

    def nearest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = nearest_within(*pair_columns(batch), k)
            yield pa.record_batch({"id": found.id, "neighbour": found.neighbour, "distance": found.distance})

    partial = pairs.map(nearest, "id long, neighbour long, distance double")
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


def _ranker(
    offsets: dict[int, int], points: Points, sample: NDArray[np.float64], names: Sequence[str]
) -> Task:
    centre, spread = robust_spread(sample)
    reading, columns = points.reading, points.frame.columns

    def rank(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        before = offsets.get(context.partitionId(), 0) if context else 0
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            _, coordinates = reading.arrays(rows.select(columns))
            rows = rows.append_column("rank", pa.array(np.arange(before + 1, before + 1 + len(rows))))
            rows = rows.append_column("dimensions", pa.array(_worded(coordinates, centre, spread, names)))
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
