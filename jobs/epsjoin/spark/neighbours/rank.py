"""Rank, k-distance and LOF of every point by its k nearest neighbours, however far away these are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from epsjoin.errors import TableError
from epsjoin.kernels.ids import IdIndex, index_ids, rows_of
from epsjoin.lake.arrow import pair_columns
from epsjoin.local.metric import Metric
from epsjoin.local.neighbours.from_pairs import (
    CERTAIN,
    NearestOfRows,
    Neighbours,
    complete,
    merge_nearest,
    nearest_within,
)
from epsjoin.local.neighbours.lof import lof_of_nearest
from epsjoin.local.neighbours.rank import deviating_dimensions, order_by_outlyingness, robust_spread
from epsjoin.local.sweep.sweeping import check_n_jobs
from epsjoin.spark import tasks
from epsjoin.spark.arrow import Task
from epsjoin.spark.neighbours.search import CELL_BYTES, NEAR, search_nearest
from epsjoin.spark.persist import persist_until
from epsjoin.spark.points import Points
from epsjoin.spark.reading import Reading
from epsjoin.spark.rows import (
    BATCH_ROWS,
    DriverRows,
    FrameRows,
    Rows,
    combine_partials,
    to_frame,
)
from epsjoin.spark.splits import names_of

MAX_ON_DRIVER_BYTES = 4 << 30
"""Maximum number of bytes of points and neighbours that the driver holds, in addition to its JVM."""

_MIN_SPLIT_ROWS = 1 << 16
"""Number of rows that the driver writes to a file at least, if there are as many."""

MAX_EXPLAINED = 10_000
"""Number of the first ranks whose ``dimensions`` are said in words."""

OUTLIERS = (
    "id long, rank long, lof double, k_distance double, degree long, is_noise boolean, dimensions string"
)


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
    max_on_driver : maximum number of bytes that the driver may hold, see :func:`driver_bytes`.
    cell_bytes : see :func:`epsjoin.spark.neighbours.search.search_nearest`.

    Returns
    -------
    Columns ``OUTLIERS``, a row for every point. LOF and k-distance are those of :func:`epsjoin.lof` for the
    points in the order of their ids, bit for bit; null where there are no k other points. ``dimensions`` is
    null beyond the first ``MAX_EXPLAINED`` ranks.

    Raises
    ------
    TableError
        Points, pairs and clusters do not belong together.
    """
    if driver_bytes(points.n, sample.shape[1], k) > max_on_driver:
        usual = _Usual(*robust_spread(sample), tuple(names))
        settled = _find_by_spark(points, sample, clusters, pairs, eps, metric, k, done, cell_bytes)
        return _rank_by_spark(points, clusters, settled, k, usual, done)
    inputs = DriverInputs(*map(_collect, (points.rows, clusters, pairs)))
    return rank_on_driver(inputs, points.reading, sample, eps, metric, k, names, lambda: pairs.spark)


def _collect(rows: Rows) -> Iterator[pa.RecordBatch]:
    """Collect rows only when the first is needed."""
    yield from rows.run(iter)


def driver_bytes(n: int, dimensions: int, k: int) -> int:
    """Estimate the bytes that the driver needs to rank n points, in addition to those of its JVM."""
    return n * (24 * dimensions + (48 * k if k < n else 0) + 160)


class DriverInputs(NamedTuple):
    """Batches that the driver reads: the columns of the points, ``CLUSTERS`` (some) and ``PAIRS``."""

    points: Iterable[pa.RecordBatch]
    clusters: Iterable[pa.RecordBatch]
    pairs: Iterable[pa.RecordBatch]


def rank_on_driver(
    inputs: DriverInputs,
    reading: Reading,
    sample: NDArray[np.float64],
    eps: float,
    metric: Metric,
    k: int,
    names: Sequence[str],
    session: Callable[[], SparkSession],
) -> Rows:
    """Rank points on the driver, by a thread for each core of its machine, without a session.

    Parameters
    ----------
    inputs : each is read once.
    reading : how the batches of points are read.
    sample, eps, metric, k, names : see :func:`rank_points`.
    session : returns the session; called only if the rows go to Spark.

    Returns
    -------
    See :func:`rank_points`.

    Raises
    ------
    TableError
        See :func:`rank_points`.
    """
    usual = _Usual(*robust_spread(sample), tuple(names))
    known, threads = _read_clusters(inputs.clusters), check_n_jobs(-1)
    n = len(known.ids)
    lof, k_distance = np.full(n, np.nan), np.full(n, np.nan)
    index = index_ids(known.ids)
    coordinates = _read_points(inputs.points, reading, index)
    if k < n:
        near = _read_nearest(inputs.pairs, index, known.degree, k)
        lof, k_distance, *_ = lof_of_nearest(complete(near, coordinates, eps, metric, n_jobs=threads))
    order = order_by_outlyingness(lof, k_distance)
    ranks = np.empty(n, np.int64)
    ranks[order] = np.arange(1, n + 1)
    words = usual.describe(coordinates[order[:MAX_EXPLAINED]])
    step = max(_MIN_SPLIT_ROWS, min(BATCH_ROWS, -(-n // threads)))

    def rows_from(begin: int) -> Iterator[pa.RecordBatch]:
        some = slice(begin, begin + step)
        rank = ranks[some]
        yield pa.record_batch(
            {
                "id": known.ids[some],
                "rank": rank,
                "lof": _with_nulls(lof[some]),
                "k_distance": _with_nulls(k_distance[some]),
                "degree": known.degree[some],
                "is_noise": known.is_noise[some],
                "dimensions": words.take(pa.array(rank - 1, mask=rank > len(words))),
            }
        )

    return DriverRows(session, threads, range(0, n, step), rows_from, OUTLIERS)


class _Known(NamedTuple):
    """What ``clusters`` knows of every point, by ascending id: a point's row is its place here."""

    ids: NDArray[np.int64]
    degree: NDArray[np.int64]
    is_noise: NDArray[np.bool_]


def _read_clusters(clusters: Iterable[pa.RecordBatch]) -> _Known:
    of_batches = [
        (
            batch["id"].to_numpy(),
            batch["degree"].to_numpy(),
            pc.equal(batch["role"], "noise").to_numpy(zero_copy_only=False),
        )
        for batch in clusters
    ]
    empty = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
    columns = [np.concatenate(column) for column in zip(empty, *of_batches, strict=True)]
    order = np.argsort(columns[0])
    return _Known(*(column[order] for column in columns))


def _read_points(points: Iterable[pa.RecordBatch], reading: Reading, index: IdIndex) -> NDArray[np.float64]:
    """Read the coordinates of all points in the order of the index."""
    coordinates = np.empty((len(index.ids), reading.dimensions or 0))
    n = 0
    for batch in points:
        ids, places = reading.arrays(batch)
        coordinates[_rows(index, ids)] = places
        n += len(ids)
    if n != len(index.ids):
        raise TableError(f"clusters has {len(index.ids):,} points, there are {n:,}; run cluster again")
    return coordinates


def _read_nearest(
    pairs: Iterable[pa.RecordBatch], index: IdIndex, degree: NDArray[np.int64], k: int
) -> NearestOfRows:
    """Find the k nearest that the pairs know of; refuse pairs that do not belong to the degrees."""
    near = NearestOfRows(len(index.ids), k)
    for batch in pairs:
        left, right, distance = pair_columns(batch)
        near.add(_rows(index, left), _rows(index, right), distance)
    _check_near(int(near.size.sum()), int(np.minimum(degree - 1, k).sum()))
    return near


def _check_near(found: int, expected: int) -> None:
    """Refuse pairs that do not have the nearest neighbours which the degrees of ``clusters`` imply."""
    if found != expected:
        raise TableError(
            f"{found:,} nearest neighbours were found in the pairs, {expected:,} by the degrees of clusters; "
            "run cluster again, then outliers"
        )


def _rows(index: IdIndex, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    rows = rows_of(index, ids)
    if rows.size and rows.min() < 0:
        raise TableError(f"clusters has no row of point {ids[rows.argmin()]}; run cluster again")
    return rows


def _with_nulls(values: NDArray[np.float64]) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


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
) -> DataFrame:
    """Find the k nearest of every point: (id, near), see :func:`nearest_in_pairs`; none if there are no k."""
    in_pairs = persist_until(nearest_in_pairs(pairs, k), done)
    of_pairs, of_clusters = F.sum(F.size("near")), F.sum(F.least(F.col("degree") - 1, F.lit(k)))
    sums = in_pairs.agg(of_pairs.alias("n")).union(to_frame(clusters).agg(of_clusters.alias("n"))).collect()
    _check_near(*(row["n"] or 0 for row in sums))
    if k >= points.n:
        return in_pairs.where("false")
    has_k = F.size("near") == k
    settled = in_pairs.where(has_k & (F.element_at("near", -1)["distance"] <= eps * CERTAIN))
    queries = replace(points, frame=points.frame.join(settled.select("id"), "id", "left_anti"), files=None)
    found = search_nearest(queries, points, sample, k, metric, done, is_self=True, cell_bytes=cell_bytes)
    return persist_until(settled.union(found), done)


def _rank_by_spark(
    points: Points, clusters: Rows, nearest: DataFrame, k: int, usual: _Usual, done: ExitStack
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


def _make_ranker(offsets: dict[int, int], points: Points, usual: _Usual) -> Task:
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


class _Usual(NamedTuple):
    """The usual values in each dimension and its name; they explain why a point is far out."""

    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    names: tuple[str, ...]

    def describe(self, points: NDArray[np.float64]) -> pa.Array:
        """Say in words in which dimensions each point deviates most: a column of strings."""
        if not len(points):
            return pa.array([], pa.string())
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
