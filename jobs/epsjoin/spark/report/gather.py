"""Gathers what a run's report shows from the run's tables; bounded, however large the tables are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from epsjoin.findings import Findings
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.runs import read_quality
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.sizes import WORKER_BYTES, row_bytes
from epsjoin.spark import scan
from epsjoin.spark.epsilon.k_distances import k_distances, other_eps, refit
from epsjoin.spark.job import Job
from epsjoin.spark.points import stored_points
from epsjoin.spark.report.clusters import gather_clusters
from epsjoin.spark.report.difference import find_difference
from epsjoin.spark.report.input import gather_input
from epsjoin.spark.report.outliers import gather_outliers
from epsjoin.spark.report.trends import make_trend, make_trends_before, read_own_counters, select_seconds


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

    label = _choose_label(job)
    points = scan.read(job.spark, lake, of["points"])
    n_points = slices.count_rows(lake, of["points"])
    counters = read_own_counters(lake, run)
    candidates = counters.get("merge_join", {}).get("candidates")

    epsilon = slices.read_row(lake, of["epsilon"])
    curve = slices.read_slice(lake, of["epsilon_curve"]).sort_by("radius")
    eps, k = float(epsilon["eps"]), job.params.n_neighbours
    fit = refit(job, stored_points(job))
    k_curve = k_distances(job, of["outliers"], n_points, eps, fit)

    read = gather_input(job, of["snapshots"], of["quarantine"])
    clusters = gather_clusters(job, points, of["clusters"], label)
    difference = find_difference(job, label)
    findings = Findings(
        dataset=source.name,
        title=source.title,
        run=run,
        metric=source.metric,
        unit=source.unit,
        coordinates=source.coordinates,
        params=asdict(job.params),
        n_points=n_points,
        n_pairs=slices.count_rows(lake, of["pairs"]),
        n_clusters=clusters.n_clusters,
        n_core=clusters.n_core,
        n_border=clusters.n_border,
        n_noise=clusters.n_noise,
        snapshots=read.snapshots,
        unknown_columns=read.unknown_columns,
        quarantine_reasons=read.quarantine_reasons,
        quarantine_examples=read.quarantine_examples,
        epsilon=epsilon,
        curve_radius=curve["radius"].to_numpy(),
        curve_pairs=curve["pairs"].to_numpy(),
        curve_in_fit=curve["in_fit"].to_numpy(zero_copy_only=False),
        plan=_describe_plan(job, inputs.row("join_plan")),
        n_replicas=slices.count_rows(lake, of["replicas"]),
        n_candidates=None if candidates is None else int(candidates),
        counters=counters,
        map_points=clusters.map.points,
        map_cluster_ids=clusters.map.cluster_ids,
        map_roles=clusters.map.roles,
        map_axes=clusters.map.axes,
        is_geographic=bool(source.latitude),
        largest_clusters=clusters.largest,
        cluster_sizes=clusters.sizes,
        cluster_size_counts=clusters.size_counts,
        outliers=gather_outliers(job, points, of["outliers"], label),
        label=label or "",
        quality=read_quality(lake, run),
        k=k,
        k_distance=k_curve.distance,
        k_share=k_curve.share,
        k_is_counted=k_curve.is_counted,
        other_eps=other_eps(fit, k_curve, eps, k),
        difference=difference,
        trends=make_trends_before(lake, run),
        seconds_before=select_seconds(read_own_counters(lake, difference["run"])) if difference else {},
    )
    return replace(findings, trends=[*findings.trends, make_trend(findings)])


def _choose_label(job: Job) -> str | None:
    """Choose the column that names a point to a person: ``name``, otherwise the first column of text."""
    texts = [column.name for column in job.lake.source.columns if column.type == "string"]
    return "name" if "name" in texts else (texts[0] if texts else None)


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
