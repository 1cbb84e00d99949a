"""Checks of ``outliers``: all ranks by the scores, and the scores of random points by brute force."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from epsjoin.console import say
from epsjoin.lake.arrow import to_binary, to_matrix
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.lake.sample import sample_stored
from epsjoin.local.verify.brute_force import (
    Ids,
    Points,
    QueryPairs,
    Scores,
    keep_nearest,
    nearest_by_brute_force,
    no_pairs,
    outlier_factors,
)
from epsjoin.local.verify.compare import compare_scores
from epsjoin.spark.checks.faults import (
    MAX_SHOWN,
    PAIR,
    PAIR_ROWS,
    Faults,
    files_of,
    read_files,
    to_batch,
)
from epsjoin.spark.checks.some_rows import is_in, read_some, stream_points
from epsjoin.spark.job.job import Job
from epsjoin.spark.rows import scan

MAX_NEAREST = 5_000_000
"""Maximum number of neighbours that tasks send to the driver; if there are more, fewer scores are checked."""

_POINTS = "id long, point binary, fault string"
_MAX_SURE_DISTANCE = 1e290
"""Below that k-distance no sum is infinite, so that a factor is known."""


def compare_random_scores(
    job: Job, n_scores: int, seed: int, n_points: int, faults: Faults
) -> tuple[int, bool]:
    """Compute k-distances and local outlier factors of random points by brute force, and compare them.

    The factor of a point needs the k nearest of the point and of each of its k nearest, which are found among
    all points, and the k-distances of the neighbours of these, which are taken as they are stored.

    Returns
    -------
    The number of points whose factors were compared, and whether all files could be read.
    """
    k, before = job.params.n_neighbours, faults.total
    n_scores = min(n_scores, n_points)
    n_scores = _limit_scores(n_scores, k, len(files_of(job, "points"))) if k < n_points else 0
    ids, points = sample_stored(job.lake, job.run, n_scores, seed)
    near = _find_nearest(job, ids, points, k, faults) if len(ids) else no_pairs()
    more = np.setdiff1d(near.other, ids)
    if len(more):
        near = keep_nearest([near, _find_nearest(job, *_read_points(job, more, faults), k, faults)], k)
    stored, are_whole = _read_scores(job, np.union1d(near.query, near.other), faults)
    if faults.total == before:
        faults.add(compare_scores(outlier_factors(near, k, stored), ids, stored))
    return len(ids), are_whole


def _limit_scores(n_scores: int, k: int, n_files: int) -> int:
    most = max(1, MAX_NEAREST // ((k + 1) * k * max(1, n_files)))
    if n_scores > most:
        say(
            f"verify: the scores of {most:,} points are computed again, not of {n_scores:,}: the driver "
            "can hold the neighbours of no more"
        )
    return min(n_scores, most)


def _find_nearest(job: Job, ids: Ids, points: Points, k: int, faults: Faults) -> QueryPairs:
    source, location = job.lake.source, job.lake.location("points")
    shared = job.spark.sparkContext.broadcast((ids, points))
    dimensions, metric = len(source.coordinates), source.metric

    def find(file: File) -> Iterator[pa.RecordBatch]:
        nearest = no_pairs()
        for others in stream_points(location, file, dimensions):
            found = nearest_by_brute_force(*shared.value, *others, k, metric)
            nearest = keep_nearest([nearest, found], k)
        yield to_batch(PAIR_ROWS, PAIR, a=nearest.query, b=nearest.other, distance=nearest.distance)

    rows = read_files(job, "points", find, PAIR_ROWS)
    faults.add(rows["fault"].drop_null().to_pylist())
    rows = rows.filter(pc.equal(rows["kind"], PAIR))
    return keep_nearest([QueryPairs(*(rows[name].to_numpy() for name in ("a", "b", "distance")))], k)


def _read_points(job: Job, ids: Ids, faults: Faults) -> tuple[Ids, Points]:
    location, dimensions = job.lake.location("points"), len(job.lake.source.coordinates)
    shared = job.spark.sparkContext.broadcast(ids)

    def read(file: File) -> Iterator[pa.RecordBatch]:
        for some, points in stream_points(location, file, dimensions):
            is_wanted = is_in(some, shared.value)
            yield to_batch(_POINTS, id=some[is_wanted], point=to_binary(points[is_wanted]))

    rows = read_files(job, "points", read, _POINTS)
    faults.add(rows["fault"].drop_null().to_pylist())
    rows = rows.filter(pc.is_valid(rows["id"])).sort_by("id")
    found, first = np.unique(rows["id"].to_numpy(), return_index=True)
    return found, to_matrix(rows["point"].combine_chunks(), dimensions)[first]


def _read_scores(job: Job, ids: Ids, faults: Faults) -> tuple[Scores, bool]:
    rows, broken = read_some(job, "outliers", ids, "id long, k_distance double, lof double")
    are_whole = not faults.add(broken)
    return Scores(rows["id"].to_numpy(), *(_floats(rows[name]) for name in ("k_distance", "lof"))), are_whole


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.asarray(pc.fill_null(column, np.nan).to_numpy())


def find_score_faults(job: Job, n_points: int, eps: float, has_clusters: bool) -> Iterator[str]:
    """Faults in ids, ranks and scores of all rows of ``outliers``.

    Every point has one row, with the degree and noise of ``clusters``; ranks are 1 to n in the order of
    factor, k-distance and id; k-distances are known if there are k other points, and within eps if and only
    if the point has k pairs.
    """
    scores = scan.read(job.spark, job.lake, Slice("outliers", job.run)).drop("run", "dimensions")
    every = _points_with_labels(job, has_clusters).join(scores, "id", "full")
    fault = _fault_of_score(job.params.n_neighbours, n_points, eps)
    wrong = every.select("id", fault.alias("fault")).where(F.col("fault").isNotNull())
    for row in wrong.limit(MAX_SHOWN).collect():
        yield f"point {row['id']}: {row['fault']}"
    for column in ("id", "rank"):
        twice = scores.groupBy(column).count().where(F.col("count") > 1)
        for row in twice.limit(MAX_SHOWN).collect():
            yield f"outliers has {row['count']} rows of {column} {row[column]}"
    yield from _find_rank_faults(scores)


def _points_with_labels(job: Job, has_clusters: bool) -> DataFrame:
    """Each id of ``points``, with its degree and noise as ``clusters`` has them; null without labels."""
    ids = scan.read(job.spark, job.lake, Slice("points", job.run)).select("id").distinct()
    ids = ids.withColumn("is_point", F.lit(True))
    if not has_clusters:
        nothing = {"of_clusters": F.lit(None).cast("long"), "noise_of_clusters": F.lit(None).cast("boolean")}
        return ids.withColumns(nothing)
    labels = scan.read(job.spark, job.lake, Slice("clusters", job.run)).select(
        "id", F.col("degree").alias("of_clusters"), (F.col("role") == "noise").alias("noise_of_clusters")
    )
    return ids.join(labels, "id", "left")


def _fault_of_score(k: int, n_points: int, eps: float) -> Column:
    """What is wrong with a point's row, the first fault of it; null where nothing is."""
    lof, k_distance, degree = F.col("lof"), F.col("k_distance"), F.col("degree")
    has_k = F.lit(k < n_points)
    return (
        F.when(F.col("is_point").isNull(), "it is in outliers, but not in points")
        .when(F.col("rank").isNull(), "it has no row in outliers")
        .when(
            (F.col("rank") < 1) | (F.col("rank") > n_points),
            F.format_string(f"rank %d is stored, ranks are 1 to {n_points}", "rank"),
        )
        .when(
            degree != F.col("of_clusters"),
            F.format_string("outliers has degree %d, clusters has %d", "degree", "of_clusters"),
        )
        .when(
            F.col("is_noise") != F.col("noise_of_clusters"),
            F.format_string(
                "outliers says %s to whether it is noise, clusters %s", "is_noise", "noise_of_clusters"
            ),
        )
        .when(F.isnan(lof) | F.isnan(k_distance), "a score is NaN")
        .when((k_distance == 0.0) & k_distance.cast("string").startswith("-"), "k_distance is -0.0")
        .when(
            k_distance.isNotNull() != has_k,
            f"k_distance is {'null' if k < n_points else 'known'}, k is {k} and there are {n_points} points",
        )
        .when(lof.isNotNull() & ~has_k, "lof is known, though k_distance is not")
        .when(lof.isNull() & (k_distance < _MAX_SURE_DISTANCE), "lof is null, though k_distance is known")
        .when(
            (k_distance <= eps) != (degree > k),
            F.format_string(f"k_distance is %s of degree %d, eps is {eps!r} and k {k}", k_distance, "degree"),
        )
    )


def _find_rank_faults(scores: DataFrame) -> Iterator[str]:
    """Faults in the order of ranks: each is compared with the one that follows it."""
    unknown = F.lit(float("inf"))
    one = scores.select(
        "rank", "id", *(F.coalesce(name, unknown).alias(name) for name in ("lof", "k_distance"))
    )
    following = one.select(
        (F.col("rank") - 1).alias("rank"), *(F.col(c).alias(f"next_{c}") for c in one.columns[1:])
    )
    lof, next_lof = F.col("lof"), F.col("next_lof")
    k_distance, next_k_distance = F.col("k_distance"), F.col("next_k_distance")
    is_right = (lof > next_lof) | (
        (lof == next_lof)
        & (
            (k_distance > next_k_distance)
            | ((k_distance == next_k_distance) & (F.col("id") < F.col("next_id")))
        )
    )
    for row in one.join(following, "rank").where(~is_right).limit(MAX_SHOWN).collect():
        ranks = f"the ranks {row['rank']} and {row['rank'] + 1}"
        yield (
            f"points {row['id']} and {row['next_id']} have {ranks}, but by lof, k_distance and id the second "
            "is further out"
        )
