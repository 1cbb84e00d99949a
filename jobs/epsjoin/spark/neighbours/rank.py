"""Rank, k-distance and LOF of every point by its k nearest neighbours, however far away these are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.console import counted
from epsjoin.errors import TableError
from epsjoin.kernels.ids import index_ids, rows_of
from epsjoin.local.metric import Metric
from epsjoin.spark.neighbours.cell import CELL_BYTES
from epsjoin.spark.neighbours.on_driver import (
    MAX_ON_DRIVER_BYTES,
    DriverInputs,
    rank_on_driver,
    room_on_driver,
)
from epsjoin.spark.neighbours.ranked import MAX_EXPLAINED, OUTLIERS, Scoring, Usual, check_near
from epsjoin.spark.neighbours.scores import score_points
from epsjoin.spark.points.points import Points
from epsjoin.spark.rows.persist import persist_until
from epsjoin.spark.rows.rows import FrameRows, Rows, count_rows, to_frame
from epsjoin.spark.rows.splits import names_of
from epsjoin.spark.tasks.arrow import Task
from epsjoin.spark.tasks.reports import task_number
from epsjoin.spark.tasks.shared import has_one_machine

_PAIR_BYTES = 24
"""Bytes of a pair that is collected."""


def rank_points(
    points: Points,
    sample: NDArray[np.float64],
    clusters: Rows,
    pairs: Rows,
    scoring: Scoring,
    done: ExitStack,
    max_on_driver: int = MAX_ON_DRIVER_BYTES,
    cell_bytes: int = CELL_BYTES,
) -> Rows:
    """Compute the rank, k-distance and LOF of every point.

    On the driver, a point with k pairs takes its k nearest from these, and for the others they are searched
    among all points. If there are more points, or on a cluster more pairs, than the driver should hold, tasks
    search among all points for all of them; the pairs are then only counted, since their numbers must fit the
    degrees. The rows are the same.

    Parameters
    ----------
    points : every point.
    sample : (m, d) float64, a sample of the points; it shows which values are usual in each dimension.
    clusters : columns ``CLUSTERS``, a row for every point.
    pairs : columns ``PAIRS``, every pair within eps once.
    scoring : how they are scored.
    done : to be closed once the rows are computed; then the intermediate frames are unpersisted.
    max_on_driver : maximum number of bytes that the driver may hold, see :func:`room_on_driver`.
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
    EpsjoinError
        The disk has too little room for the driver's files.
    """
    make = room_on_driver(points.n, sample.shape[1], scoring.k, max_on_driver)
    if make is None or not _may_collect(points.n, sample.shape[1], pairs, max_on_driver):
        _check_inputs(points, clusters, pairs, scoring.are_candidates)
        usual = Usual.of(sample, scoring.names, scoring.metric)
        scores = _score(points, sample, scoring.k, scoring.metric, cell_bytes)
        return _rank_by_spark(points, clusters, scores, usual, done)
    of_pairs = pairs.run(iter)  # the driver reads them in another thread, which must not use the session
    inputs = DriverInputs(_collect(points.rows), _collect(clusters), of_pairs)
    return rank_on_driver(inputs, points.reading, lambda *_: sample, scoring, lambda: pairs.spark, make)


def _may_collect(n: int, dimensions: int, pairs: Rows, most: int) -> bool:
    """Whether the driver may hold what tasks send it; on one machine they leave it files instead."""
    if has_one_machine(pairs.spark):
        return True
    return (8 * dimensions + 8) * n + _PAIR_BYTES * count_rows(pairs) <= most


def _collect(rows: Rows) -> Iterator[pa.RecordBatch]:
    """Collect rows only when the first is needed."""
    yield from rows.run(iter)


def _check_inputs(points: Points, clusters: Rows, pairs: Rows, are_candidates: bool) -> None:
    """Refuse clusters of other points, and pairs that do not belong to the degrees."""
    known = (
        to_frame(clusters).agg(F.count("*").alias("n"), F.sum(F.col("degree") - 1).alias("ends")).collect()[0]
    )
    if known["n"] != points.n:
        raise TableError(f"clusters has {known['n']:,} points, there are {points.n:,}; run cluster again")
    check_near(2 * count_rows(pairs), known["ends"] or 0, are_candidates)


def _score(points: Points, sample: NDArray[np.float64], k: int, metric: Metric, cell_bytes: int) -> DataFrame:
    """The scores of all points, ``SCORES``; nulls where there are no k other points."""
    if k < points.n:
        return score_points(points, sample, k, metric, cell_bytes)
    unknown = F.lit(None).cast("double")
    return points.frame.select("id", unknown.alias("lof"), unknown.alias("k_distance"))


def _rank_by_spark(points: Points, clusters: Rows, scores: DataFrame, usual: Usual, done: ExitStack) -> Rows:
    known = to_frame(clusters).select("id", "degree", (F.col("role") == "noise").alias("is_noise"))
    unknown = F.lit(float("inf"))
    outlyingness = [F.coalesce(name, unknown).desc() for name in ("lof", "k_distance")]
    ordered = persist_until(scores.join(known, "id").orderBy(*outlyingness, "id"), done)
    offsets, n = _count_rows_before(ordered)
    if n != points.n:
        raise TableError(f"clusters has no row of {counted(points.n - n, 'point')}; run cluster again")
    ids = np.array([row["id"] for row in ordered.select("id").take(MAX_EXPLAINED)], np.int64)
    return FrameRows(FrameRows(ordered).map(_make_ranker(offsets, _describe(points, ids, usual)), OUTLIERS))


def _count_rows_before(ordered: DataFrame) -> tuple[dict[int, int], int]:
    """Count the rows before each partition of a sorted frame, and all of them."""
    counts = ordered.groupBy(F.spark_partition_id().alias("partition")).count().collect()
    offsets, before = {}, 0
    for row in sorted(counts, key=lambda row: row["partition"]):
        offsets[row["partition"]] = before
        before += row["count"]
    return offsets, before


def _describe(points: Points, ids: NDArray[np.int64], usual: Usual) -> pa.Array:
    """Describe in which dimensions points deviate most, in the order of these ids."""

    def select(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.filter(pa.array(np.isin(batch["id"].to_numpy(), ids)))

    read = [points.reading.arrays(batch) for batch in points.rows.run(select) if len(batch)]
    found, places = (np.concatenate(each) for each in zip(*read, strict=True))
    return usual.describe(places).take(pa.array(rows_of(index_ids(found), ids)))


def _make_ranker(offsets: dict[int, int], words: pa.Array) -> Task:
    def rank(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        before = offsets.get(task_number(), 0)
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            ranks = np.arange(before + 1, before + 1 + len(rows))
            said = words.take(pa.array(ranks - 1, mask=ranks > len(words)))
            rows = rows.append_column("rank", pa.array(ranks)).append_column("dimensions", said)
            before += len(rows)
            yield from rows.select(names_of(OUTLIERS)).to_batches()

    return rank
