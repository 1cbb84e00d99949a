"""The clusters of a run: points by role, clusters by size, the largest of them, and the map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from epsjoin.findings import NOISE
from epsjoin.lake.lake import Slice
from epsjoin.spark import scan
from epsjoin.spark.job import Job
from epsjoin.spark.report.names import name_points, to_name

MAX_MAP_CLUSTERED = 30_000
"""Maximum number of clustered points on the map; more would hide one another."""

MAX_MAP_NOISE = 20_000
"""Maximum number of noise points on the map."""

MAX_CLUSTERS = 20
"""Maximum number of clusters that are listed, the largest first."""


def gather_clusters(job: Job, points: DataFrame, where: Slice, label: str | None) -> dict[str, Any]:
    """Gather the fields of ``Findings`` about the clusters of the run.

    Parameters
    ----------
    points : the run's points.
    where : the slice of ``clusters``.
    label : the column that names a point to a person.
    """
    clusters = scan.read(job.spark, job.lake, where).persist()
    roles = {row["role"]: row["count"] for row in clusters.groupBy("role").count().collect()}
    members = clusters.where(F.col("cluster_id") != NOISE)
    sizes = members.groupBy("cluster_id").agg(
        F.count("*").alias("size"),
        F.count(F.when(F.col("role") == "core", 1)).alias("core"),
        F.count(F.when(F.col("role") == "border", 1)).alias("border"),
    )
    histogram = sizes.groupBy("size").count().orderBy("size").collect()
    gathered = {
        "n_clusters": sum(row["count"] for row in histogram),
        **{f"n_{role}": roles.get(role, 0) for role in ("core", "border", "noise")},
        "cluster_sizes": np.array([row["size"] for row in histogram], np.int64),
        "cluster_size_counts": np.array([row["count"] for row in histogram], np.int64),
        "largest_clusters": _list_largest(job, sizes, members, points, label),
        **_sample_map(job, clusters, points),
    }
    clusters.unpersist()
    return gathered


def _list_largest(
    job: Job, sizes: DataFrame, members: DataFrame, points: DataFrame, label: str | None
) -> list[dict[str, Any]]:
    """List the largest clusters with their centres, as ``Findings.largest_clusters`` has them."""
    names = job.lake.source.coordinates
    largest = sizes.orderBy(F.col("size").desc(), "cluster_id").limit(MAX_CLUSTERS).persist()
    centres = (
        members.join(F.broadcast(largest.select("cluster_id")), "cluster_id", how="inner")
        .join(points.select("id", *(F.col(name).alias(f"__{name}") for name in names)), "id", how="inner")
        .groupBy("cluster_id")
        .agg(*_mean_coordinates(job))
    )
    # a cluster's id is the id of its smallest core point, and that point names the cluster
    named = name_points(points, job.lake.source, label).withColumnRenamed("id", "cluster_id")
    rows = (
        largest.join(centres, "cluster_id", how="inner")
        .join(named, "cluster_id", how="inner")
        .orderBy(F.col("size").desc(), "cluster_id")
        .collect()
    )
    largest.unpersist()
    return [
        {
            **{key: row[key] for key in ("cluster_id", "size", "core", "border")},
            "centre": [float(row[f"__{name}"]) for name in names],
            **to_name(row),
        }
        for row in rows
    ]


def _mean_coordinates(job: Job) -> list[Column]:
    """Average the coordinates; on a map the places on the sphere, so that the mean of 179° and -179° is 180°.

    Columns begin with ``__``, as a coordinate may have the name of a column of ``clusters``.
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


def _sample_map(job: Job, clusters: DataFrame, points: DataFrame) -> dict[str, Any]:
    """Draw the points of the map at random, with the run's seed: the fields of ``Findings`` about them."""
    axes = _choose_axes(job, points)
    order = F.xxhash64(F.lit(job.params.seed), F.col("id"))
    is_noise = F.col("cluster_id") == NOISE
    clustered = clusters.where(~is_noise).orderBy(order, "id").limit(MAX_MAP_CLUSTERED)
    noise = clusters.where(is_noise).orderBy(order, "id").limit(MAX_MAP_NOISE)
    places = points.select("id", *(F.col(name).alias(f"_{name}") for name in axes if name))
    sample = clustered.unionByName(noise).join(places, "id", how="inner").orderBy("id").toArrow()
    return {
        "map_points": np.column_stack([_to_column(sample, name) for name in axes]),
        "map_cluster_ids": sample["cluster_id"].to_numpy(),
        "map_roles": np.array(sample["role"].to_pylist(), dtype=np.str_),
        "map_axes": axes,
    }


def _choose_axes(job: Job, points: DataFrame) -> tuple[str, str]:
    """Choose the names of x and y: longitude and latitude, or the two widest coordinates."""
    source = job.lake.source
    if source.latitude:
        return source.longitude, source.latitude
    names = source.coordinates
    widths = points.agg(*[(F.max(name) - F.min(name)).alias(name) for name in names]).collect()[0]
    widest = sorted(names, key=lambda name: (-float(widths[name]), names.index(name)))
    return widest[0], widest[1] if len(widest) > 1 else ""


def _to_column(rows: pa.Table, name: str) -> NDArray[np.float64]:
    return rows[f"_{name}"].to_numpy().astype(np.float64) if name else np.zeros(len(rows))
