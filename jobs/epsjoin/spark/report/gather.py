"""What a run's report shows, from its tables; bounded, however large the tables are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from epsjoin.lake import slices
from epsjoin.lake.lineage import (
    Join,
    read_join,
    stamp_of_clusters,
    stamp_of_epsilon,
    stamp_of_ingest,
    stamp_of_points,
)
from epsjoin.local.cluster.from_pairs import NOISE
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.sizes import WORKER_BYTES, row_bytes
from epsjoin.source.values import VALUE
from epsjoin.spark import scan
from epsjoin.spark.epsilon.k_distances import k_distances, other_eps, refit
from epsjoin.spark.job import Job
from epsjoin.spark.neighbours.nearest import nearest_of
from epsjoin.spark.points import stored_points
from epsjoin.spark.report import history

MAP_POINTS = {"clustered": 30_000, "noise": 20_000}
"""Points on the map: more would hide one another."""

LARGEST_CLUSTERS = 20
TOP_OUTLIERS = 20
NEAREST = 3
"""Neighbours shown of each of them."""

EXAMPLES = 5


def gather(job: Job) -> dict[str, Any]:
    """Everything that the report of a run shows: the fields of ``report.findings.Findings``.

    Raises
    ------
    TableError
        A table has no slice of this run, or one made from other tables than the rest.
    """
    lake, run, source = job.lake, job.run, job.lake.source
    join, of_points = read_join(lake, run), stamp_of_points(lake, run)
    of_clusters, of_ingest = stamp_of_clusters(lake, run, join), stamp_of_ingest(lake, run)
    of_epsilon = stamp_of_epsilon(lake, run)
    points = scan.read(job.spark, lake, "points", run, of_ingest)
    epsilon = slices.read_row(lake, "epsilon", run, of_points)
    clusters = scan.read(job.spark, lake, "clusters", run, join.stamp).persist()
    roles = {row["role"]: row["count"] for row in clusters.groupBy("role").count().collect()}
    members = clusters.where(F.col("cluster_id") != NOISE)
    sizes = members.groupBy("cluster_id").agg(
        F.count("*").alias("size"),
        F.count(F.when(F.col("role") == "core", 1)).alias("core"),
        F.count(F.when(F.col("role") == "border", 1)).alias("border"),
    )
    histogram = sizes.groupBy("size").count().orderBy("size").collect()
    x, y = _map_axes(job, points)
    shown = _map_points(clusters, points, [name for name in (x, y) if name], job.params.seed)
    snapshots = slices.read_small(lake, "snapshots", run, stamp=of_ingest).to_pylist()
    known = {column.name for column in source.columns}
    found = {name for row in snapshots for name in json.loads(row["columns"])}
    curve = slices.read_small(lake, "epsilon_curve", run, stamp=of_epsilon).sort_by("radius")
    counters = history.counters_of(job, run)
    quality = history.quality_of(job, run)
    eps, k = float(epsilon["eps"]), job.params.n_neighbours
    fit = refit(job, stored_points(job))
    n_points = slices.count(lake, "points", run, of_ingest)
    k_curve = k_distances(job, of_clusters, n_points, eps, fit)
    difference = history.difference(job, _label_column(job))
    gathered = dict(
        dataset=source.name,
        title=source.title,
        run=run,
        metric=source.metric,
        unit=source.unit,
        coordinates=source.coordinates,
        params=asdict(job.params),
        n_points=n_points,
        n_pairs=slices.count(lake, "pairs", run, join.stamp),
        n_clusters=sum(row["count"] for row in histogram),
        n_core=roles.get("core", 0),
        n_border=roles.get("border", 0),
        n_noise=roles.get("noise", 0),
        snapshots=snapshots,
        unknown_columns=tuple(sorted(found - known)),
        **_quarantine(job, of_ingest),
        epsilon=epsilon,
        curve_radius=curve["radius"].to_numpy(),
        curve_pairs=curve["pairs"].to_numpy(),
        curve_in_fit=curve["in_fit"].to_numpy(zero_copy_only=False),
        plan=_plan(job, join),
        n_replicas=slices.count(lake, "replicas", run, join.stamp),
        n_candidates=_whole(counters.get("merge_join", {}).get("candidates")),
        counters=counters,
        map_points=np.column_stack([_column(shown, x), _column(shown, y)]),
        map_cluster_ids=shown["cluster_id"].to_numpy(),
        map_roles=np.array(shown["role"].to_pylist(), dtype=np.str_),
        map_axes=(x, y),
        is_geographic=bool(source.latitude),
        largest_clusters=_largest(sizes, members, points, job),
        cluster_sizes=np.array([row["size"] for row in histogram], np.int64),
        cluster_size_counts=np.array([row["count"] for row in histogram], np.int64),
        outliers=_outliers(job, points, of_clusters),
        label=_label_column(job) or "",
        quality=quality,
        k=k,
        k_distance=k_curve.distance,
        k_share=k_curve.share,
        k_is_counted=k_curve.is_counted,
        other_eps=other_eps(fit, k_curve, eps, k),
        difference=difference,
        seconds_before=history.seconds_of(history.counters_of(job, difference["run"])) if difference else {},
    )
    clusters.unpersist()
    return {**gathered, "trends": [*history.trends_before(job), _trend(gathered)]}


def _trend(gathered: Mapping[str, Any]) -> dict[str, Any]:
    """Make the run's own row of the trends, from what the page itself shows."""
    return {
        "run": gathered["run"],
        **{name: gathered[f"n_{name}"] for name in ("points", "pairs", "clusters", "noise")},
        "eps": gathered["epsilon"]["eps"],
        "refused": sum(row["rows_quarantined"] for row in gathered["snapshots"]),
        "errors": history.errors_of(gathered["quality"]),
        "seconds": sum(history.seconds_of(gathered["counters"]).values()) or None,
    }


def _plan(job: Job, join: Join) -> dict[str, Any]:
    """The row of ``join_plan`` and what it expects beside: of the largest part, a worker, one core."""
    plan = JoinPlan.from_json(join.plan["plan"])
    part_bytes = plan.expected_part_rows * row_bytes(len(job.lake.source.coordinates))
    return {
        **{name: value for name, value in join.plan.items() if name != "plan"},
        "expected_part_rows": plan.expected_part_rows,
        "expected_worker_bytes": WORKER_BYTES + part_bytes,
        "expected_seconds": plan.expected_seconds,
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _column(rows: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return rows[f"_{name}"].to_numpy().astype(np.float64) if name else np.zeros(len(rows))


def _map_axes(job: Job, points: DataFrame) -> tuple[str, str]:
    """The names of x and y: longitude and latitude, or the two widest coordinates."""
    source = job.lake.source
    if source.latitude:
        return source.longitude, source.latitude
    names = source.coordinates
    widths = points.agg(*[(F.max(name) - F.min(name)).alias(name) for name in names]).collect()[0]
    widest = sorted(names, key=lambda name: (-float(widths[name]), names.index(name)))
    return widest[0], widest[1] if len(widest) > 1 else ""


def _map_points(clusters: DataFrame, points: DataFrame, axes: list[str], seed: int) -> pa.Table:
    order = F.xxhash64(F.lit(seed), F.col("id"))
    is_noise = F.col("cluster_id") == NOISE
    clustered = clusters.where(~is_noise).orderBy(order, "id").limit(MAP_POINTS["clustered"])
    noise = clusters.where(is_noise).orderBy(order, "id").limit(MAP_POINTS["noise"])
    chosen = clustered.unionByName(noise)
    places = points.select("id", *(F.col(name).alias(f"_{name}") for name in axes))
    return chosen.join(places, "id", how="inner").orderBy("id").toArrow()


def _largest(sizes: DataFrame, members: DataFrame, points: DataFrame, job: Job) -> list[dict[str, Any]]:
    names = job.lake.source.coordinates
    label = _label_column(job)
    top = sizes.orderBy(F.col("size").desc(), "cluster_id").limit(LARGEST_CLUSTERS).persist()
    centres = (
        members.join(F.broadcast(top.select("cluster_id")), "cluster_id", how="inner")
        .join(points.select("id", *(F.col(name).alias(f"__{name}") for name in names)), "id", how="inner")
        .groupBy("cluster_id")
        .agg(*_mean_place(job))
    )
    # the smallest core point gives the cluster its id; its name tells the cluster to a person
    named = points.select(
        F.col("id").alias("cluster_id"), (F.col(label) if label else F.lit(None)).alias("_label")
    )
    rows = (
        top.join(centres, "cluster_id", how="inner")
        .join(named, "cluster_id", how="inner")
        .orderBy(F.col("size").desc(), "cluster_id")
        .collect()
    )
    top.unpersist()
    return [
        {
            **{key: row[key] for key in ("cluster_id", "size", "core", "border")},
            "centre": [float(row[f"__{name}"]) for name in names],
            "label": row["_label"],
        }
        for row in rows
    ]


def _mean_place(job: Job) -> list[Column]:
    """Means of the coordinates; on a map those of the places on the sphere, so that 179 and -179 make 180.

    With ``__`` before its name, for a coordinate may be called like a column of ``clusters``.
    """
    source = job.lake.source
    latitude, longitude = (
        F.radians(F.col(f"__{source.latitude}" if source.latitude else "id")),
        F.radians(F.col(f"__{source.longitude}" if source.longitude else "id")),
    )
    x, y, z = F.cos(latitude) * F.cos(longitude), F.cos(latitude) * F.sin(longitude), F.sin(latitude)
    on_map = {
        source.latitude: F.degrees(F.atan2(F.avg(z), F.sqrt(F.avg(x) ** 2 + F.avg(y) ** 2))),
        source.longitude: F.degrees(F.atan2(F.avg(y), F.avg(x))),
    }
    return [on_map.get(name, F.avg(f"__{name}")).alias(f"__{name}") for name in source.coordinates]


def _label_column(job: Job) -> str | None:
    source = job.lake.source
    texts = [column.name for column in source.columns if column.type == "string"]
    return "name" if "name" in texts else (texts[0] if texts else None)


def _outliers(job: Job, points: DataFrame, stamp: str) -> list[dict[str, Any]]:
    outliers = (
        scan.read(job.spark, job.lake, "outliers", job.run, stamp)
        .where(F.col("rank") <= TOP_OUTLIERS)
        .drop("run")
    )
    taken = {name.lower() for name in outliers.columns} - {"id"} | {"run", "point", "nearest"}
    payload = points.select(*(name for name in points.columns if name.lower() not in taken))
    rows = [row.asDict() for row in outliers.join(payload, "id", how="inner").orderBy("rank").collect()]
    if not rows:
        return []
    everyone = stored_points(job)
    near = nearest_of(everyone, [row["id"] for row in rows], get_metric(job.lake.source.metric), NEAREST)
    label, neighbours = _label_column(job), near.neighbour.tolist()
    labels = {}
    if label:
        named = points.where(F.col("id").isin(neighbours)).select("id", F.col(label).alias("_label"))
        labels = {row["id"]: row["_label"] for row in named.collect()}
    nearest: dict[int, list[dict[str, Any]]] = {}
    for id_, other, distance in zip(near.id.tolist(), neighbours, near.distance.tolist(), strict=True):
        nearest.setdefault(id_, []).append({"id": other, "label": labels.get(other), "distance": distance})
    return [{**row, "nearest": nearest.get(row["id"], [])} for row in rows]


def _quarantine(job: Job, stamp: str) -> dict[str, Any]:
    quarantine = scan.read(job.spark, job.lake, "quarantine", job.run, stamp)
    kind = F.regexp_replace("reason", VALUE, "")  # as records.kind_of, by which ingest counts
    of_records = quarantine.where(F.col("line").isNotNull()).groupBy(kind.alias("kind"))
    reasons = of_records.count().orderBy(F.col("count").desc(), "kind").limit(20)
    examples = quarantine.orderBy("source", "line").limit(EXAMPLES).drop("run")
    return {
        "quarantine_reasons": {row["kind"]: row["count"] for row in reasons.collect()},
        "quarantine_examples": [row.asDict() for row in examples.collect()],
    }
