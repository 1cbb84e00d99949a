"""Rank, k-distance and LOF of every point by its k nearest neighbours, however far away these are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.lake.arrow import pair_columns
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.from_pairs import (
    CERTAIN,
    Neighbours,
    merge_nearest,
    nearest_within,
)
from epsjoin.local.neighbours.rank import robust_spread
from epsjoin.spark import tasks
from epsjoin.spark.arrow import Task
from epsjoin.spark.neighbours.on_driver import (
    MAX_ON_DRIVER_BYTES,
    DriverInputs,
    rank_on_driver,
    room_on_driver,
)
from epsjoin.spark.neighbours.ranked import MAX_EXPLAINED, OUTLIERS, Usual, check_near
from epsjoin.spark.neighbours.search import CELL_BYTES, NEAR, search_nearest
from epsjoin.spark.persist import persist_until
from epsjoin.spark.points import Points
from epsjoin.spark.rows import (
    FrameRows,
    Rows,
    combine_partials,
    to_frame,
)
from epsjoin.spark.splits import names_of


def rank_points(
    points: Points,
    sample: NDArray[np.float64],
    clusters: Rows,
    pairs: Rows,
    eps: float,
    metric: Metric,
    k: int,
    names: Sequence[str],
    done: ExitStack,
    max_on_driver: int = MAX_ON_DRIVER_BYTES,
    cell_bytes: int = CELL_BYTES,
    are_candidates: bool = False,
) -> Rows:
    """Compute the rank, k-distance and LOF of every point.

    A point with k pairs has its k nearest from these. The others are searched among all points: on the
    driver, or by tasks if there are more points than it should hold. The rows are the same.

    Parameters
    ----------
    points : every point.
    sample : (m, d) float64, a sample of the points; it shows which values are usual in each dimension.
    clusters : columns ``CLUSTERS``, a row for every point.
    pairs : columns ``PAIRS``, every pair within eps once.
    eps : threshold of the pairs.
    metric : metric of the pairs.
    k : number of neighbours that the local outlier factor uses.
    names : names of the dimensions.
    done : to be closed once the rows are computed; then the intermediate frames are unpersisted.
    max_on_driver : maximum number of bytes that the driver may hold, see :func:`room_on_driver`.
    cell_bytes : see :func:`epsjoin.spark.neighbours.search.search_nearest`.
    are_candidates : whether the pairs are candidates, of which the degrees of ``clusters`` count only some.

    Returns
    -------
    Columns ``OUTLIERS``, a row for every point. LOF and k-distance are those of :func:`epsjoin.lof` for the
    points in the order of their ids, bit for bit; null where there are no k other points. ``dimensions`` is
    null beyond the first ``MAX_EXPLAINED`` ranks.

    Raises
    ------
    TableError
        Points, pairs and clusters do not belong together.
    EpsjoinError
        The disk has too little room for the driver's files.
    """
    make = room_on_driver(points.n, sample.shape[1], k, max_on_driver)
    if make is None:
        usual = Usual(*robust_spread(sample), tuple(names))
        settled = _find_by_spark(
            points, sample, clusters, pairs, eps, metric, k, done, cell_bytes, are_candidates
        )
        return _rank_by_spark(points, clusters, settled, k, usual, done)
    of_pairs = pairs.run(iter)  # the driver reads them in another thread, which asks no session
    inputs = DriverInputs(_collect(points.rows), _collect(clusters), of_pairs)
    how = eps, metric, k, names
    return rank_on_driver(
        inputs, points.reading, lambda *_: sample, *how, lambda: pairs.spark, make, are_candidates
    )


def _collect(rows: Rows) -> Iterator[pa.RecordBatch]:
    """Collect rows only when the first is needed."""
    yield from rows.run(iter)


def _find_by_spark(
    points: Points,
    sample: NDArray[np.float64],
    clusters: Rows,
    pairs: Rows,
    eps: float,
    metric: Metric,
    k: int,
    done: ExitStack,
    cell_bytes: int,
    are_candidates: bool,
) -> DataFrame:
    """Find the k nearest of every point: (id, near), see :func:`nearest_in_pairs`; none if there are no k."""
    in_pairs = persist_until(nearest_in_pairs(pairs, k), done)
    of_pairs, of_clusters = F.sum(F.size("near")), F.sum(F.least(F.col("degree") - 1, F.lit(k)))
    sums = in_pairs.agg(of_pairs.alias("n")).union(to_frame(clusters).agg(of_clusters.alias("n"))).collect()
    found, expected = (row["n"] or 0 for row in sums)
    check_near(found, expected, are_candidates)
    if k >= points.n:
        return in_pairs.where("false")
    has_k = F.size("near") == k
    settled = in_pairs.where(has_k & (F.element_at("near", -1)["distance"] <= eps * CERTAIN))
    of_others = points.frame.join(settled.select("id"), "id", "left_anti")
    queries = replace(points, make_frame=lambda: of_others, files=None)
    found = search_nearest(queries, points, sample, k, metric, done, is_self=True, cell_bytes=cell_bytes)
    return persist_until(settled.union(found), done)


def _rank_by_spark(
    points: Points, clusters: Rows, nearest: DataFrame, k: int, usual: Usual, done: ExitStack
) -> Rows:
    known = to_frame(clusters).select("id", "degree", (F.col("role") == "noise").alias("is_noise"))
    scored = points.frame.join(known, "id", how="left").join(
        local_outlier_factors(nearest, k), "id", how="left"
    )
    unknown = F.lit(float("inf"))
    outlyingness = [F.coalesce(name, unknown).desc() for name in ("lof", "k_distance")]
    ordered = persist_until(scored.orderBy(*outlyingness, "id"), done)
    ranker = _make_ranker(_count_rows_before(ordered), points, usual)
    return FrameRows(FrameRows(ordered).map(ranker, OUTLIERS))


def _make_nearest(k: int) -> Task:
    def nearest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = (nearest_within(*pair_columns(batch), k) for batch in batches)
        for near in combine_partials(found, merge):
            yield pa.record_batch({"id": near.id, "neighbour": near.neighbour, "distance": near.distance})

    def merge(partials: Sequence[Neighbours]) -> Neighbours:
        ids, neighbour, distance = (np.concatenate(column) for column in zip(*partials, strict=True))
        return merge_nearest(ids, neighbour, distance, k)

    return nearest


def nearest_in_pairs(pairs: Rows, k: int) -> DataFrame:
    """Find the k nearest within eps of every point that is in a pair: (id, near).

    ``near`` is an array of at most k structs (distance, neighbour), nearest first, ties by the smaller id.
    """
    partial = pairs.map(_make_nearest(k), NEAR)
    by_distance = F.sort_array(F.collect_list(F.struct("distance", "neighbour")))
    return partial.groupBy("id").agg(F.slice(by_distance, 1, k).alias("near"))


def local_outlier_factors(neighbours: DataFrame, k: int) -> DataFrame:
    """Compute k-distance and LOF of points whose k nearest are known: (id, k_distance, lof).

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


def _count_rows_before(ordered: DataFrame) -> dict[int, int]:
    """Count the rows before each partition of a sorted frame."""
    counts = ordered.groupBy(F.spark_partition_id().alias("partition")).count().collect()
    offsets, before = {}, 0
    for row in sorted(counts, key=lambda row: row["partition"]):
        offsets[row["partition"]] = before
        before += row["count"]
    return offsets


def _make_ranker(offsets: dict[int, int], points: Points, usual: Usual) -> Task:
    reading, columns = points.reading, points.frame.columns

    def rank(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        before = offsets.get(tasks.task_number(), 0)
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            n_explained = min(len(rows), max(0, MAX_EXPLAINED - before))
            _, coordinates = reading.arrays(rows.select(columns).slice(0, n_explained))
            words = usual.describe(coordinates).take(pa.array(_places(n_explained, len(rows))))
            ranks = pa.array(np.arange(before + 1, before + 1 + len(rows)))
            rows = rows.append_column("rank", ranks).append_column("dimensions", words)
            before += len(rows)
            yield from rows.select(names_of(OUTLIERS)).to_batches()

    return rank


def _places(n_explained: int, n: int) -> pa.Array:
    """The first places, then nulls."""
    places = np.arange(n)
    return pa.array(places, mask=places >= n_explained)
