"""Rank, k-distance and LOF of points by their nearest neighbours within eps, distributed over tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from epsjoin.errors import TableError
from epsjoin.kernels.ids import index_ids, rows_of
from epsjoin.lake.arrow import pair_columns
from epsjoin.local.neighbours.from_pairs import Neighbours, lof_from_neighbours, merge_nearest, nearest_within
from epsjoin.local.neighbours.rank import deviating_dimensions, rank, robust_spread
from epsjoin.spark import tasks
from epsjoin.spark.arrow import Task
from epsjoin.spark.neighbours.nearest import NEAR
from epsjoin.spark.persist import persist_until
from epsjoin.spark.points import Points
from epsjoin.spark.rows import FrameRows, MappedRows, Rows, collect_table, combine_partials, to_frame
from epsjoin.spark.splits import names_of

MAX_ON_DRIVER = 8_000_000
"""Maximum number of neighbours, k of each point, that the driver merges: some 150 bytes each (estimated)."""

OUTLIERS = (
    "id long, rank long, lof double, k_distance double, k_distance_above double, degree long, "
    "is_noise boolean, dimensions string"
)


def rank_points(
    points: Points,
    sample: NDArray[np.float64],
    clusters: Rows,
    pairs: Rows,
    eps: float,
    k: int,
    names: Sequence[str],
    done: ExitStack,
    max_on_driver: int = MAX_ON_DRIVER,
) -> Rows:
    """Compute the rank, k-distance and LOF of every point.

    Parameters
    ----------
    points : every point.
    sample : (m, d) float64, a sample of the points; it shows which values are usual in each dimension.
    clusters : columns ``CLUSTERS``, a row for every point.
    pairs : columns ``PAIRS``, every pair within eps once.
    eps : threshold of the pairs.
    k : number of neighbours that the local outlier factor uses.
    names : names of the dimensions.
    done : to be closed once the rows are computed; then the intermediate frames are unpersisted.
    max_on_driver : maximum number of neighbours, k of each point, that the driver merges; if there are more,
        Spark merges them. The rows are the same.

    Returns
    -------
    Columns ``OUTLIERS``, a row for every point; not computed yet.
    """
    usual = _Usual(*robust_spread(sample), tuple(names))
    if points.n * k <= max_on_driver:
        return _rank_on_driver(points, usual, clusters, pairs, eps, k, done)
    neighbours = persist_until(nearest_neighbours(pairs, k), done)
    of_pairs, of_clusters = F.sum(F.size("near")), F.sum(F.least(F.col("degree") - 1, F.lit(k)))
    sums = neighbours.agg(of_pairs.alias("n")).union(to_frame(clusters).agg(of_clusters.alias("n"))).collect()
    _check_near(*(row["n"] or 0 for row in sums))
    known = to_frame(clusters).select("id", "degree", (F.col("role") == "noise").alias("is_noise"))
    scored = (
        points.frame.join(known, "id", how="left")
        .join(local_outlier_factors(neighbours, k), "id", how="left")
        .withColumn("k_distance_above", F.when(F.col("k_distance").isNull(), F.lit(eps)))
    )
    ordered = persist_until(scored.orderBy(*outlyingness()), done)
    ranker = _make_ranker(_count_rows_before(ordered), points, usual)
    return FrameRows(ordered.mapInArrow(ranker, OUTLIERS))


class _Known(NamedTuple):
    """The columns in which every task looks up its points, by id."""

    ids: NDArray[np.int64]
    rank: NDArray[np.int64]
    lof: NDArray[np.float64]
    k_distance: NDArray[np.float64]
    degree: NDArray[np.int64]
    is_noise: NDArray[np.bool_]


def _rank_on_driver(
    points: Points, usual: _Usual, clusters: Rows, pairs: Rows, eps: float, k: int, done: ExitStack
) -> Rows:
    near = collect_table(MappedRows(pairs, _make_nearest(k), NEAR))
    neighbours = merge_nearest(
        near["id"].to_numpy(), near["neighbour"].to_numpy(), near["distance"].to_numpy(), k
    )
    labels = collect_table(MappedRows(clusters, _select_labels, "id long, degree long, is_noise boolean"))
    ids, degree, is_noise = (labels[name].to_numpy() for name in ("id", "degree", "is_noise"))
    _check_near(len(neighbours.id), int(np.minimum(degree - 1, k).sum()))
    scores = lof_from_neighbours(ids, neighbours, k, eps)
    ranks = rank(ids, scores.k_distance, scores.lof, degree)
    known = pairs.spark.sparkContext.broadcast(
        _Known(ids, ranks, scores.lof, scores.k_distance, degree, is_noise)
    )
    done.callback(known.unpersist)
    reading = points.reading

    def look_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = index_ids(known.value.ids)
        for batch in batches:
            ids, coordinates = reading.arrays(batch)
            at = rows_of(index, ids)
            if at.size and at.min() < 0:
                raise TableError(f"clusters has no row of point {ids[at.argmin()]}; run cluster again")
            _, ranks, lof, k_distance, degree, is_noise = (column[at] for column in known.value)
            is_far = np.isnan(k_distance)
            yield pa.record_batch(
                {
                    "id": ids,
                    "rank": ranks,
                    "lof": pa.array(lof, mask=np.isnan(lof)),
                    "k_distance": pa.array(k_distance, mask=is_far),
                    "k_distance_above": pa.array(np.full(len(ids), eps), mask=~is_far),
                    "degree": degree,
                    "is_noise": is_noise,
                    "dimensions": usual.describe(coordinates),
                }
            )

    return MappedRows(points.rows, look_up, OUTLIERS)


def _check_near(found: int, expected: int) -> None:
    """Refuse pairs that do not have the nearest neighbours which the degrees of ``clusters`` imply."""
    if found != expected:
        raise TableError(
            f"{found:,} nearest neighbours were found in the pairs, {expected:,} by the degrees of clusters; "
            "run cluster again, then outliers"
        )


def _select_labels(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        is_noise = pc.equal(batch["role"], "noise")
        yield pa.record_batch({"id": batch["id"], "degree": batch["degree"], "is_noise": is_noise})


def _make_nearest(k: int) -> Task:
    def nearest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = (nearest_within(*pair_columns(batch), k) for batch in batches)
        for near in combine_partials(found, merge):
            yield pa.record_batch({"id": near.id, "neighbour": near.neighbour, "distance": near.distance})

    def merge(partials: Sequence[Neighbours]) -> Neighbours:
        ids, neighbour, distance = (np.concatenate(column) for column in zip(*partials, strict=True))
        return merge_nearest(ids, neighbour, distance, k)

    return nearest


def nearest_neighbours(pairs: Rows, k: int) -> DataFrame:
    """Find the k nearest neighbours within eps of every point that is in a pair: (id, near).

    ``near`` is an array of at most k structs (distance, neighbour), nearest first, ties by the smaller id.
    """
    partial = pairs.map(_make_nearest(k), NEAR)
    by_distance = F.sort_array(F.collect_list(F.struct("distance", "neighbour")))
    return partial.groupBy("id").agg(F.slice(by_distance, 1, k).alias("near"))


def local_outlier_factors(neighbours: DataFrame, k: int) -> DataFrame:
    """Compute k-distance and LOF from the k nearest neighbours within eps: (id, k_distance, lof).

    A value is null if it depends on a neighbour beyond eps.

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
    """Sum ``value`` over the rows of each id that has k of them, in the order of ``place``: (id, total)."""
    in_order = F.sort_array(F.collect_list(F.struct("place", value)))
    total = F.aggregate("values", F.lit(0.0), lambda total, row: total + row[value])
    found = rows.groupBy("id").agg(in_order.alias("values"))
    return found.where(F.size("values") == k).select("id", total.alias("total"))


def outlyingness() -> list[Column]:
    """The sort order of ranks, furthest out first; the same as in ``local.neighbours.rank``."""
    is_known = F.col("k_distance").isNotNull()
    return [
        is_known.asc(),
        F.when(~is_known, F.col("degree")).asc(),
        F.col("lof").isNotNull().asc(),
        F.when(F.col("lof").isNull(), F.col("k_distance")).desc(),
        F.col("lof").desc(),
        F.col("id").asc(),
    ]


def _count_rows_before(ordered: DataFrame) -> dict[int, int]:
    """Count the rows before each partition of a sorted frame."""
    counts = ordered.groupBy(F.spark_partition_id().alias("partition")).count().collect()
    offsets, before = {}, 0
    for row in sorted(counts, key=lambda row: row["partition"]):
        offsets[row["partition"]] = before
        before += row["count"]
    return offsets


def _make_ranker(offsets: dict[int, int], points: Points, usual: _Usual) -> Task:
    reading, columns = points.reading, points.frame.columns

    def rank(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        before = offsets.get(tasks.task_number(), 0)
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            _, coordinates = reading.arrays(rows.select(columns))
            rows = rows.append_column("rank", pa.array(np.arange(before + 1, before + 1 + len(rows))))
            rows = rows.append_column("dimensions", usual.describe(coordinates))
            before += len(rows)
            yield from rows.select(names_of(OUTLIERS)).to_batches()

    return rank


class _Usual(NamedTuple):
    """The usual values in each dimension and its name; they explain why a point is far out."""

    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    names: tuple[str, ...]

    def describe(self, points: NDArray[np.float64]) -> pa.Array:
        """Say in words in which dimensions each point deviates most: a column of strings."""
        found = deviating_dimensions(points, self.centre, self.spread)
        names = pa.array(self.names, pa.string())
        words = [
            pc.binary_join_element_wise(names.take(pa.array(axis)), _format_tenths(z), " ")
            for axis, z in zip(found.dimension.T, found.z.T, strict=True)
        ]
        return pc.binary_join_element_wise(*words, ", ")


def _format_tenths(values: NDArray[np.float64]) -> pa.Array:
    """Format numbers with sign and one decimal; each distinct one once, because formatting is slow."""
    rounded, at = np.unique(np.round(values, 1) + 0.0, return_inverse=True)  # + 0.0: never -0.0
    return pa.array([f"{value:+.1f}" for value in rounded.tolist()], pa.string()).take(pa.array(at))
