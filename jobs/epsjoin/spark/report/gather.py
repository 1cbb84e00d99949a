"""Gathers what a run's report shows from the run's tables; bounded, however large the tables are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from epsjoin.findings import Findings, Row
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.sizes import WORKER_BYTES, row_bytes
from epsjoin.source.values import VALUE
from epsjoin.spark import scan
from epsjoin.spark.epsilon.k_distances import k_distances, other_eps, refit
from epsjoin.spark.job import Job
from epsjoin.spark.neighbours.nearest import nearest_of
from epsjoin.spark.points import stored_points
from epsjoin.spark.report.clusters import gather_clusters
from epsjoin.spark.report.difference import find_difference
from epsjoin.spark.report.names import choose_label, name_points, to_name

MAX_REASONS = 20
"""Maximum number of reasons for refusals that are shown, the most frequent first."""

MAX_EXAMPLES = 5
"""Maximum number of refused records that are shown."""

MAX_OUTLIERS = 20
"""Maximum number of outliers that are shown, by rank."""

N_NEAREST = 3
"""Number of nearest points that are shown of each outlier."""

MAX_RUNS = 12
"""Maximum number of runs in the trends, the reported run included."""


def gather(job: Job) -> Findings:
    """Gather everything that the report of a run shows.

    Raises
    ------
    TableError
        A table has no slice of this run, or one that was made from other tables than the rest.
    """
    lake, run, source = job.lake, job.run, job.lake.source
    # all fingerprints are taken before a table is read, so that what is replaced in between shows
    inputs = Fingerprints(lake, run)
    of = inputs.slices()

    label = choose_label(source)
    points = scan.read(job.spark, lake, of["points"])
    n_points = slices.count_rows(lake, of["points"])
    counters = _read_own_counters(lake, run)
    candidates = counters.get("merge_join", {}).get("candidates")

    epsilon = slices.read_row(lake, of["epsilon"])
    curve = slices.read_slice(lake, of["epsilon_curve"]).sort_by("radius")
    eps, k = float(epsilon["eps"]), job.params.n_neighbours
    fit = refit(job, stored_points(job))
    k_curve = k_distances(job, of["outliers"], n_points, eps, fit)

    difference = find_difference(job, label)
    findings = Findings(
        dataset=source.name,
        title=source.title,
        run=run,
        metric=source.metric,
        unit=source.unit,
        coordinates=source.coordinates,
        key=source.key,
        params=job.params.in_use(),
        n_points=n_points,
        n_pairs=slices.count_rows(lake, of["pairs"]),
        **_gather_input(job, of["snapshots"], of["quarantine"]),
        **gather_clusters(job, points, of["clusters"], label),
        epsilon=epsilon,
        curve_radius=curve["radius"].to_numpy(),
        curve_pairs=curve["pairs"].to_numpy(),
        curve_in_fit=curve["in_fit"].to_numpy(zero_copy_only=False),
        plan=_describe_plan(job, inputs.row("join_plan")),
        n_replicas=slices.count_rows(lake, of["replicas"]),
        n_candidates=None if candidates is None else int(candidates),
        counters=counters,
        is_geographic=bool(source.latitude),
        outliers=_gather_outliers(job, points, of["outliers"], label),
        label=label or "",
        quality=slices.read_quality(lake, run),
        k=k,
        k_distance=k_curve.distance,
        k_share=k_curve.share,
        k_is_counted=k_curve.is_counted,
        other_eps=other_eps(fit, k_curve, eps, k),
        difference=difference,
        trends=make_trends_before(lake, run),
        seconds_before=_select_seconds(_read_own_counters(lake, difference["run"])) if difference else {},
    )
    return replace(findings, trends=[*findings.trends, _make_trend(findings)])


def _describe_plan(job: Job, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of ``join_plan`` with what its plan expects of the largest part and of one core."""
    plan = JoinPlan.from_json(row["plan"])
    part_bytes = plan.expected_part_rows * row_bytes(len(job.lake.source.coordinates))
    return {
        **{name: value for name, value in row.items() if name != "plan"},
        "expected_part_rows": plan.expected_part_rows,
        "expected_worker_bytes": WORKER_BYTES + part_bytes,
        "expected_seconds": plan.expected_seconds,
    }


def _gather_input(job: Job, of_snapshots: Slice, of_quarantine: Slice) -> dict[str, Any]:
    """Gather the fields of ``Findings`` about the input of the run.

    Parameters
    ----------
    of_snapshots, of_quarantine : the slices of ``snapshots`` and ``quarantine``.
    """
    snapshots = slices.read_slice(job.lake, of_snapshots).to_pylist()
    named = {column.name for column in job.lake.source.columns}
    found = {name for row in snapshots for name in json.loads(row["columns"])}
    quarantine = scan.read(job.spark, job.lake, of_quarantine)
    examples = quarantine.orderBy("source", "line").limit(MAX_EXAMPLES).drop("run").collect()
    return {
        "snapshots": snapshots,
        "unknown_columns": tuple(sorted(found - named)),
        "quarantine_reasons": count_reasons(quarantine),
        "quarantine_examples": [row.asDict() for row in examples],
    }


def count_reasons(quarantine: DataFrame) -> dict[str, int]:
    """Count the refused records by reason, the most frequent first, at most ``MAX_REASONS`` reasons.

    As in the job ingest, a reason is counted without the value in it.
    """
    kind = F.regexp_replace("reason", VALUE, "").alias("kind")
    of_records = quarantine.where(F.col("line").isNotNull()).groupBy(kind)
    reasons = of_records.count().orderBy(F.col("count").desc(), "kind").limit(MAX_REASONS).collect()
    return {row["kind"]: row["count"] for row in reasons}


def _gather_outliers(job: Job, points: DataFrame, where: Slice, label: str | None) -> list[dict[str, Any]]:
    """Gather the first outliers by rank, as ``Findings.outliers`` has them.

    Parameters
    ----------
    points : the run's points.
    where : the slice of ``outliers``.
    label : the column that names a point to a person.
    """
    outliers = scan.read(job.spark, job.lake, where)
    first = outliers.where(F.col("rank") <= MAX_OUTLIERS).drop("run").orderBy("rank").collect()
    if not first:
        return []
    source, ids = job.lake.source, [row["id"] for row in first]
    names = [column.name for column in source.columns]
    of_source = {
        row["_id"]: row
        for row in points.where(F.col("id").isin(ids)).select(F.col("id").alias("_id"), *names).collect()
    }
    nearest = _find_nearest(job, points, ids, label)
    return [
        {
            **row.asDict(),
            "key": [of_source[row["id"]][name] for name in source.key],
            "label": of_source[row["id"]][label] if label else None,
            "columns": {name: of_source[row["id"]][name] for name in names},
            "tied": ranks,
            "nearest": nearest.get(row["id"], []),
        }
        for row, ranks in zip(first, find_ties(first, outliers), strict=True)
    ]


def find_ties(rows: Sequence[SparkRow], outliers: DataFrame) -> list[tuple[int, int]]:
    """Find for each of the first outliers the first and the last rank of the points that only ids order.

    Parameters
    ----------
    rows : the first rows of ``outliers``, by rank from 1.
    outliers : all rows of the run. Points that are tied follow one another, so only those that are tied with
        the last one of ``rows`` are looked for.
    """
    scores = [_score_of(row) for row in rows]
    last = outliers.where(_has_score_of(rows[-1])).agg(F.max("rank")).collect()[0][0]
    ends = {score: number for number, score in enumerate(scores, 1)} | {scores[-1]: last}
    return [(scores.index(score) + 1, ends[score]) for score in scores]


def _score_of(row: SparkRow) -> tuple[str, float]:
    """Return the number that decides on an outlier's rank, as ``neighbours.rank`` sorts, and its name."""
    if row["k_distance"] is None:
        return "degree", row["degree"]
    return ("k_distance", row["k_distance"]) if row["lof"] is None else ("lof", row["lof"])


def _has_score_of(row: SparkRow) -> Column:
    """Whether a row of ``outliers`` has the score of this one."""
    name, value = _score_of(row)
    before = {"degree": F.col("k_distance").isNull(), "k_distance": F.col("lof").isNull(), "lof": F.lit(True)}
    return before[name] & (F.col(name) == F.lit(value))


def _find_nearest(
    job: Job, points: DataFrame, ids: list[int], label: str | None
) -> dict[int, list[dict[str, Any]]]:
    """Find the nearest other points of each of these, however far: id to rows of id, key, label, distance."""
    found = nearest_of(stored_points(job), ids, get_metric(job.lake.source.metric), N_NEAREST)
    others = points.where(F.col("id").isin(found.neighbour.tolist()))
    names = {row["id"]: to_name(row) for row in name_points(others, job.lake.source, label).collect()}
    nearest: dict[int, list[dict[str, Any]]] = {}
    for id_, other, distance in zip(
        found.id.tolist(), found.neighbour.tolist(), found.distance.tolist(), strict=True
    ):
        nearest.setdefault(id_, []).append({"id": other, **names[other], "distance": distance})
    return nearest


def _read_own_counters(lake: Lake, run: str) -> slices.Counters:
    """Read what the jobs of a run counted, without the report, which cannot know its own counters."""
    return {job: of_job for job, of_job in slices.read_counters(lake, run).items() if job != "report"}


def _select_seconds(counters: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Select the wall-clock time of every job whose time was taken."""
    return {job: of_job["seconds"] for job, of_job in counters.items() if "seconds" in of_job}


def make_trends_before(lake: Lake, run: str) -> list[dict[str, Any]]:
    """Make a row for each of the last runs before this one, oldest first, as ``findings`` describes it.

    Notes
    -----
    Read from the logs of ``points`` and ``pairs``, and from ``job_metrics`` and ``quality``: no large table
    is read, however many runs there are.
    """
    points, pairs = (slices.count_rows_by_run(lake, table) for table in ("points", "pairs"))
    rows = []
    for other in slices.list_runs_before(lake, run)[-(MAX_RUNS - 1) :]:
        counters = _read_own_counters(lake, other)
        clusters = counters.get("cluster", {})
        rows.append(
            {
                "run": other,
                "points": points[other],
                "pairs": pairs.get(other),
                "eps": counters.get("fit_epsilon", {}).get("eps"),
                "clusters": clusters.get("clusters"),
                "noise": clusters.get("noise"),
                "refused": counters.get("ingest", {}).get("rows_quarantined"),
                "errors": _count_errors(slices.read_quality(lake, other)),
                "seconds": sum(_select_seconds(counters).values()) or None,
            }
        )
    return rows


def _make_trend(findings: Findings) -> dict[str, Any]:
    """Make the run's own row of the trends from what its page shows."""
    return {
        "run": findings.run,
        "points": findings.n_points,
        "pairs": findings.n_pairs,
        "clusters": findings.n_clusters,
        "noise": findings.n_noise,
        "eps": findings.epsilon["eps"],
        "refused": findings.n_quarantined,
        "errors": _count_errors(findings.quality),
        "seconds": sum(_select_seconds(findings.counters).values()) or None,
    }


def _count_errors(quality: Sequence[Row]) -> int | None:
    """Count the broken expectations of severity error; ``None`` if nothing was checked."""
    return sum(not row["success"] and row["severity"] == "error" for row in quality) if quality else None
