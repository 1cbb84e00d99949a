"""Checks of the two ends of every pair: the distance, and what the labels of neighbours say of each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.lake.arrow import pair_columns, to_matrix
from epsjoin.lake.lake import Slice
from epsjoin.local.verify import NearestCores, compare_distances, nearest_cores
from epsjoin.spark import scan
from epsjoin.spark.arrow import Task
from epsjoin.spark.checks.faults import FAULT, MAX_SHOWN, to_batch
from epsjoin.spark.job import Job
from epsjoin.spark.persist import persist_until
from epsjoin.spark.rows import FrameRows, combine_partials

NEAREST = "nearest"
"""Kind of rows that tasks return: the point ``a`` has the core point ``b``, of a cluster, as its nearest."""
_SEEN = "kind string, a long, b long, distance double, cluster long, fault string"


def find_end_faults(job: Job, has_clusters: bool) -> Iterator[str]:
    """Faults that the ends of all pairs show, from one pass over the pairs.

    Every stored distance is computed again. Two core points of a pair must be in one cluster, a border point
    in that of its nearest core point (of several as near, the one with the smallest id); a noise point must
    have no core point within eps, a border point one, and a core point without one its own cluster.

    Parameters
    ----------
    has_clusters : whether there are labels to check.
    """
    read = {name: scan.read(job.spark, job.lake, Slice(name, job.run)) for name in ("points", "pairs")}
    ends = read["points"].select("id", "point")
    if has_clusters:
        labels = scan.read(job.spark, job.lake, Slice("clusters", job.run)).drop("run", "degree")
        ends = ends.join(labels, "id", "left")
    else:
        unknown = F.lit(None)
        ends = ends.select(
            "*", unknown.cast("long").alias("cluster_id"), unknown.cast("string").alias("role")
        )
    pairs = read["pairs"].drop("run")
    for side in ("left", "right"):
        of_side = ends.select(*(F.col(name).alias(f"{side}_{name}") for name in ends.columns))
        pairs = pairs.join(of_side, f"{side}_id")
    seen = FrameRows(pairs).map(_make_check(job.lake.source.metric, len(job.lake.source.coordinates)), _SEEN)
    with ExitStack() as done:  # closed even if the reader of the faults has seen enough
        persist_until(seen, done)
        for row in seen.where(F.col("kind") == FAULT).limit(MAX_SHOWN).collect():
            yield row["fault"]
        if has_clusters:
            yield from _find_label_faults(labels, seen.where(F.col("kind") == NEAREST))


def _make_check(metric: str, dimensions: int) -> Task:
    def check(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        faults: list[str] = []

        def look_at(batch: pa.RecordBatch) -> NearestCores:
            left, right, distance = pair_columns(batch)
            if len(faults) < MAX_SHOWN:
                x, y = (to_matrix(batch[f"{side}_point"], dimensions) for side in ("left", "right"))
                faults.extend(compare_distances(left, right, distance, x, y, metric))
            is_core, cluster = _are_cores(batch, "left"), _clusters(batch, "left")
            other_is_core, other_cluster = _are_cores(batch, "right"), _clusters(batch, "right")
            is_torn = is_core & other_is_core & (cluster != other_cluster)
            faults.extend(
                f"pair ({left[at]}, {right[at]}): both are core points, but in the clusters "
                f"{cluster[at]} and {other_cluster[at]}"
                for at in np.flatnonzero(is_torn)[:MAX_SHOWN]
            )
            return nearest_cores(
                np.concatenate([left[other_is_core], right[is_core]]),
                np.concatenate([right[other_is_core], left[is_core]]),
                np.concatenate([distance[other_is_core], distance[is_core]]),
                np.concatenate([other_cluster[other_is_core], cluster[is_core]]),
            )

        for found in combine_partials(map(look_at, batches), NearestCores.merge):
            yield to_batch(
                _SEEN, NEAREST, a=found.ids, b=found.cores, distance=found.distance, cluster=found.clusters
            )
        yield to_batch(_SEEN, FAULT, fault=faults[:MAX_SHOWN])

    return check


def _are_cores(batch: pa.RecordBatch, side: str) -> NDArray[np.bool_]:
    is_core = pc.equal(batch[f"{side}_role"], "core").fill_null(False)
    return np.asarray(is_core.to_numpy(zero_copy_only=False))


def _clusters(batch: pa.RecordBatch, side: str) -> NDArray[np.int64]:
    return np.asarray(batch[f"{side}_cluster_id"].fill_null(0).to_numpy(zero_copy_only=False))


def _find_label_faults(labels: DataFrame, found: DataFrame) -> Iterator[str]:
    nearest = found.groupBy(F.col("a").alias("id")).agg(
        F.min(F.struct("distance", "b", "cluster")).alias("near")
    )
    core, cluster = F.col("near.b"), F.col("near.cluster")
    role, own = F.col("role"), F.col("cluster_id")
    fault = (
        F.when(
            (role == "noise") & core.isNotNull(),
            F.format_string("it is noise, but core point %d is within eps", core),
        )
        .when((role == "border") & core.isNull(), "it is border, but no core point is within eps")
        .when(
            (role == "border") & (own != cluster),
            F.format_string("cluster %d is stored, its nearest core point %d is in %d", own, core, cluster),
        )
        .when(
            (role == "core") & core.isNull() & (own != F.col("id")),
            F.format_string("it is core in cluster %d, but no other core point is within eps", own),
        )
    )
    every = labels.join(nearest, "id", "left").select("id", fault.alias("fault"))
    for row in every.where(F.col("fault").isNotNull()).limit(MAX_SHOWN).collect():
        yield f"point {row['id']}: {row['fault']}"
