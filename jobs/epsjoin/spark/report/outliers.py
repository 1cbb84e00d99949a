"""The first outliers of a run, with their columns of the source and their nearest points."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.lake.lake import Slice
from epsjoin.local.metric import get_metric
from epsjoin.spark import scan
from epsjoin.spark.job import Job
from epsjoin.spark.neighbours.nearest import nearest_of
from epsjoin.spark.points import stored_points

MAX_OUTLIERS = 20
"""Maximum number of outliers that are shown, by rank."""

N_NEAREST = 3
"""Number of nearest points that are shown of each outlier."""


def gather_outliers(job: Job, points: DataFrame, where: Slice, label: str | None) -> list[dict[str, Any]]:
    """Gather the first outliers by rank, as ``Findings.outliers`` has them.

    Parameters
    ----------
    points : the run's points.
    where : the slice of ``outliers``.
    label : the column that names a point to a person.
    """
    outliers = scan.read(job.spark, job.lake, where).where(F.col("rank") <= MAX_OUTLIERS).drop("run")
    taken = {name.lower() for name in outliers.columns} - {"id"} | {"run", "point", "nearest"}
    payload = points.select(*(name for name in points.columns if name.lower() not in taken))
    rows = [row.asDict() for row in outliers.join(payload, "id", how="inner").orderBy("rank").collect()]
    nearest = _find_nearest(job, points, [row["id"] for row in rows], label) if rows else {}
    return [{**row, "nearest": nearest.get(row["id"], [])} for row in rows]


def _find_nearest(
    job: Job, points: DataFrame, ids: list[int], label: str | None
) -> dict[int, list[dict[str, Any]]]:
    """Find the nearest other points of each of these, however far: id to rows of id, label and distance."""
    found = nearest_of(stored_points(job), ids, get_metric(job.lake.source.metric), N_NEAREST)
    neighbours = found.neighbour.tolist()
    labels = {}
    if label:
        labelled = points.where(F.col("id").isin(neighbours)).select("id", F.col(label).alias("_label"))
        labels = {row["id"]: row["_label"] for row in labelled.collect()}
    nearest: dict[int, list[dict[str, Any]]] = {}
    for id_, other, distance in zip(found.id.tolist(), neighbours, found.distance.tolist(), strict=True):
        nearest.setdefault(id_, []).append({"id": other, "label": labels.get(other), "distance": distance})
    return nearest
