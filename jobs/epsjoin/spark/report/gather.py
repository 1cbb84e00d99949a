"""Gathers what a run's report shows from the run's tables; bounded, however large the tables are."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from epsjoin.findings import Findings
from epsjoin.lake import slices
from epsjoin.lake.lineage import (
    Join,
    read_join,
    stamp_of_clusters,
    stamp_of_epsilon,
    stamp_of_ingest,
    stamp_of_points,
)
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
from epsjoin.spark.report.trends import read_own_counters, select_seconds, trend_of, trends_before


def gather(job: Job) -> Findings:
    """Gather everything that the report of a run shows.

    Raises
    ------
    TableError
        A table has no slice of this run, or one that was made from other tables than the rest.
    """
    lake, run, source = job.lake, job.run, job.lake.source
    # all fingerprints are taken before a table is read, so that what is replaced in between shows
    join, of_points = read_join(lake, run), stamp_of_points(lake, run)
    of_clusters, of_ingest = stamp_of_clusters(lake, run, join), stamp_of_ingest(lake, run)
    of_epsilon = stamp_of_epsilon(lake, run)

    label = _choose_label(job)
    points = scan.read(job.spark, lake, "points", run, of_ingest)
    n_points = slices.count(lake, "points", run, of_ingest)
    counters = read_own_counters(lake, run)
    candidates = counters.get("merge_join", {}).get("candidates")

    epsilon = slices.read_row(lake, "epsilon", run, of_points)
    curve = slices.read_small(lake, "epsilon_curve", run, stamp=of_epsilon).sort_by("radius")
    eps, k = float(epsilon["eps"]), job.params.n_neighbours
    fit = refit(job, stored_points(job))
    k_curve = k_distances(job, of_clusters, n_points, eps, fit)

    inputs = gather_input(job, of_ingest)
    clusters = gather_clusters(job, points, join.stamp, label)
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
        n_pairs=slices.count(lake, "pairs", run, join.stamp),
        n_clusters=clusters.n_clusters,
        n_core=clusters.n_core,
        n_border=clusters.n_border,
        n_noise=clusters.n_noise,
        snapshots=inputs.snapshots,
        unknown_columns=inputs.unknown_columns,
        quarantine_reasons=inputs.quarantine_reasons,
        quarantine_examples=inputs.quarantine_examples,
        epsilon=epsilon,
        curve_radius=curve["radius"].to_numpy(),
        curve_pairs=curve["pairs"].to_numpy(),
        curve_in_fit=curve["in_fit"].to_numpy(zero_copy_only=False),
        plan=_describe_plan(job, join),
        n_replicas=slices.count(lake, "replicas", run, join.stamp),
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
        outliers=gather_outliers(job, points, of_clusters, label),
        label=label or "",
        quality=read_quality(lake, run),
        k=k,
        k_distance=k_curve.distance,
        k_share=k_curve.share,
        k_is_counted=k_curve.is_counted,
        other_eps=other_eps(fit, k_curve, eps, k),
        difference=difference,
        trends=trends_before(lake, run),
        seconds_before=select_seconds(read_own_counters(lake, difference["run"])) if difference else {},
    )
    return replace(findings, trends=[*findings.trends, trend_of(findings)])


def _choose_label(job: Job) -> str | None:
    """Choose the column that names a point to a person: ``name``, otherwise the first column of text."""
    texts = [column.name for column in job.lake.source.columns if column.type == "string"]
    return "name" if "name" in texts else (texts[0] if texts else None)


def _describe_plan(job: Job, join: Join) -> dict[str, Any]:
    """Return the row of ``join_plan`` with what its plan expects of the largest part and of one core."""
    plan = JoinPlan.from_json(join.plan["plan"])
    part_bytes = plan.expected_part_rows * row_bytes(len(job.lake.source.coordinates))
    return {
        **{name: value for name, value in join.plan.items() if name != "plan"},
        "expected_part_rows": plan.expected_part_rows,
        "expected_worker_bytes": WORKER_BYTES + part_bytes,
        "expected_seconds": plan.expected_seconds,
    }
