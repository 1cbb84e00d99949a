"""Checks of the two ends of every pair: the distance, and what their labels and scores say of each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.console import counted, say
from epsjoin.lake.arrow import pair_columns, to_matrix
from epsjoin.lake.lake import Slice
from epsjoin.local.verify.brute_force import Ids
from epsjoin.local.verify.chains import Chains, NearestCores, nearest_cores, torn_clusters
from epsjoin.local.verify.compare import compare_distances
from epsjoin.spark.checks.faults import FAULT, MAX_SHOWN, to_batch
from epsjoin.spark.job.job import Job
from epsjoin.spark.rows import scan
from epsjoin.spark.rows.partials import combine_partials
from epsjoin.spark.rows.persist import persist_until
from epsjoin.spark.rows.rows import FrameRows
from epsjoin.spark.tasks.arrow import Task

MAX_CHAINED_CORES = 4_000_000
"""Maximum number of core points of a cluster whose chains are followed, by one task."""

_MIN_NEW_CHAINS = 1 << 18

NEAREST, CHAINED, NEAR = "nearest", "chained", "near"
"""Kinds of rows that tasks return.

NEAREST: the point ``a`` has the core point ``b``, of the cluster ``c``, as its nearest. CHAINED: a chain
connects the core points ``a`` and ``b`` of the cluster ``c``. NEAR: of the pairs of the point ``a``, ``b``
are nearer than its stored k-distance, and ``c`` are at most as far.
"""
_KINDS = NEAREST, CHAINED, NEAR
_SEEN = "kind string, a long, b long, distance double, c long, fault string"


def find_end_faults(job: Job, has_clusters: bool, has_outliers: bool) -> Iterator[str]:
    """Faults that the ends of all pairs show, from one pass over the pairs.

    Every stored distance is computed again. Two core points of a pair must be in one cluster, all core points
    of a cluster must be connected by chains of them, a border point must be in the cluster of its nearest
    core point (of several as near, the one with the smallest id); a noise point must have no core point
    within eps, a border point one, and a core point without one its own cluster. The k-distance of a point
    with k pairs or more must be the distance of its k-th.

    Parameters
    ----------
    has_clusters, has_outliers : whether there are labels and scores to check.
    """
    read = {name: scan.read(job.spark, job.lake, Slice(name, job.run)) for name in ("points", "pairs")}
    ends = read["points"].select("id", "point")
    unknown = F.lit(None)
    if has_clusters:
        labels = scan.read(job.spark, job.lake, Slice("clusters", job.run)).drop("run", "degree")
        ends = ends.join(labels, "id", "left")
    else:
        ends = ends.select(
            "*", unknown.cast("long").alias("cluster_id"), unknown.cast("string").alias("role")
        )
    if has_outliers:
        scores = scan.read(job.spark, job.lake, Slice("outliers", job.run)).select(
            "id", "k_distance", "degree"
        )
        ends = ends.join(scores.drop("degree"), "id", "left")
    else:
        ends = ends.withColumn("k_distance", unknown.cast("double"))
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
            yield from _find_torn_clusters(labels, seen.where(F.col("kind") == CHAINED))
        if has_outliers:
            of_points = seen.where(F.col("kind") == NEAR)
            yield from _find_distance_faults(scores, of_points, job.params.n_neighbours)


class _Seen(NamedTuple):
    """What some pairs show; all columns have the same length. ``kind``: places in ``_KINDS``."""

    kind: NDArray[np.int8]
    a: Ids
    b: Ids
    distance: NDArray[np.float64]
    c: Ids

    @classmethod
    def of(cls, cores: NearestCores, chains: Chains, near: tuple[Ids, Ids, Ids]) -> _Seen:
        lengths = len(cores.ids), len(chains.ids), len(near[0])
        kind = np.repeat(np.arange(len(_KINDS), dtype=np.int8), lengths)
        a, b, c = (
            np.concatenate(column)
            for column in zip((cores.ids, cores.cores, cores.clusters), chains, near, strict=True)
        )
        return cls(kind, a, b, np.concatenate([cores.distance, np.zeros(len(a) - lengths[0])]), c)

    @classmethod
    def merge(cls, parts: Sequence[_Seen]) -> _Seen:
        whole = cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        of_kind = [cls(*(column[whole.kind == kind] for column in whole)) for kind in range(len(_KINDS))]
        cores, chains, near = of_kind
        return cls.of(
            nearest_cores(cores.a, cores.b, cores.distance, cores.c),
            Chains.merge([Chains(chains.a, chains.b, chains.c)]),
            _add_up(near.a, near.b, near.c),
        )


def _add_up(ids: Ids, *counts: NDArray[np.generic]) -> tuple[Ids, Ids, Ids]:
    every, place = np.unique(ids, return_inverse=True)
    nearer, not_farther = (np.bincount(place, each, len(every)).astype(np.int64) for each in counts)
    return every, nearer, not_farther


def _make_check(metric: str, dimensions: int) -> Task:
    def check(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        faults: list[str] = []

        def look_at(batch: pa.RecordBatch) -> _Seen:
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
            cores = nearest_cores(
                np.concatenate([left[other_is_core], right[is_core]]),
                np.concatenate([right[other_is_core], left[is_core]]),
                np.concatenate([distance[other_is_core], distance[is_core]]),
                np.concatenate([other_cluster[other_is_core], cluster[is_core]]),
            )
            is_link = is_core & other_is_core & ~is_torn
            chains = Chains.merge([Chains(left[is_link], right[is_link], cluster[is_link])])
            ids, both = np.concatenate([left, right]), np.concatenate([distance, distance])
            k_distance = np.concatenate([_k_distances(batch, side) for side in ("left", "right")])
            return _Seen.of(cores, chains, _add_up(ids, both < k_distance, both <= k_distance))

        for found in combine_partials(map(look_at, batches), _Seen.merge):
            for number, kind in enumerate(_KINDS):
                is_kind = found.kind == number
                columns = {name: getattr(found, name)[is_kind] for name in ("a", "b", "distance", "c")}
                yield to_batch(_SEEN, kind, **columns)
        yield to_batch(_SEEN, FAULT, fault=faults[:MAX_SHOWN])

    return check


def _are_cores(batch: pa.RecordBatch, side: str) -> NDArray[np.bool_]:
    is_core = pc.equal(batch[f"{side}_role"], "core").fill_null(False)
    return np.asarray(is_core.to_numpy(zero_copy_only=False))


def _clusters(batch: pa.RecordBatch, side: str) -> NDArray[np.int64]:
    return np.asarray(batch[f"{side}_cluster_id"].fill_null(0).to_numpy(zero_copy_only=False))


def _k_distances(batch: pa.RecordBatch, side: str) -> NDArray[np.float64]:
    return np.asarray(batch[f"{side}_k_distance"].fill_null(np.nan).to_numpy(zero_copy_only=False))


def _find_label_faults(labels: DataFrame, found: DataFrame) -> Iterator[str]:
    nearest = found.groupBy(F.col("a").alias("id")).agg(F.min(F.struct("distance", "b", "c")).alias("near"))
    core, cluster = F.col("near.b"), F.col("near.c")
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


def _find_torn_clusters(labels: DataFrame, chained: DataFrame) -> Iterator[str]:
    """Faults of clusters whose core points no chain connects, each cluster as a whole in one task."""
    sizes = labels.where(F.col("role") == "core").groupBy(F.col("cluster_id").alias("c")).count()
    large = sizes.where(F.col("count") > MAX_CHAINED_CORES).select("c")
    n_large = large.count()
    if n_large:
        say(
            f"verify: {counted(n_large, 'cluster')} of more than {MAX_CHAINED_CORES:,} core points: whether "
            "chains connect all of them was not checked"
        )
        chained = chained.join(large, "c", "left_anti")
    rows = chained.select("a", "b", "c").repartition("c").sortWithinPartitions("c")
    for row in FrameRows(rows).map(find_torn, "fault string").limit(MAX_SHOWN).collect():
        yield row["fault"]


def find_torn(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Describe torn clusters: a task, which holds no more than one cluster and some of the next ones.

    Parameters
    ----------
    batches : columns ``a``, ``b`` and ``c`` of rows CHAINED, in the order of ``c``.
    """
    held = Chains(*(np.empty(0, np.int64) for _ in Chains._fields))
    new: list[Chains] = []
    n_new = 0
    for batch in batches:
        new.append(Chains(*(batch[name].to_numpy() for name in ("a", "b", "c"))))
        n_new += len(batch)
        if n_new > max(_MIN_NEW_CHAINS, len(held.ids)):  # merged seldom, and never many more than there are
            merged = Chains.merge([held, *new])
            is_last = merged.clusters == merged.clusters.max()  # the next batch may have more of it
            yield _torn(merged, ~is_last)
            held, new, n_new = Chains(*(column[is_last] for column in merged)), [], 0
    merged = Chains.merge([held, *new])
    yield _torn(merged, np.ones(len(merged.ids), np.bool_))


def _torn(chains: Chains, of: NDArray[np.bool_]) -> pa.RecordBatch:
    return to_batch("fault string", fault=list(torn_clusters(Chains(*(column[of] for column in chains)))))


def _find_distance_faults(scores: DataFrame, near: DataFrame, k: int) -> Iterator[str]:
    """Faults of k-distances that the pairs within eps contradict."""
    counts = near.groupBy(F.col("a").alias("id")).agg(
        F.sum("b").alias("nearer"), F.sum("c").alias("not_farther")
    )
    of_pairs = scores.join(counts, "id").where((F.col("degree") > k) & F.col("k_distance").isNotNull())
    wrong = of_pairs.where((F.col("nearer") >= k) | (F.col("not_farther") < k))
    for row in wrong.limit(MAX_SHOWN).collect():
        yield (
            f"point {row['id']}: k_distance {row['k_distance']!r} is stored, of its pairs {row['nearer']} "
            f"are nearer and {row['not_farther']} not farther, k is {k}"
        )
