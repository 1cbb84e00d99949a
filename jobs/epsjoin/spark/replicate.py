"""Replicate: plan the cuts on a sample, then spread the points over the parts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from epsjoin.errors import BudgetError, TableError
from epsjoin.local.metric import get_metric
from epsjoin.local.plan import Cuts, JoinPlan, plan_join, replicate
from epsjoin.spark import tables, tasks
from epsjoin.spark.arrow import Task, to_binary, to_matrix
from epsjoin.spark.job import Job, say
from epsjoin.spark.lineage import stamp_of_plan
from epsjoin.spark.sample import sample_points

PART_BYTES = 128 << 20
"""A worker's memory for the rows of one part, beside what it needs for itself."""

LEAST_PARTS = 8
FLUSH_BYTES = 256 << 20
"""A task writes its replicas out when it holds so many bytes of them."""


def write_replicas(job: Job) -> dict[str, float]:
    """Replace the run's slices of ``join_plan`` and ``replicas``.

    The number of parts follows from the number of points, never from the cluster: a re-run elsewhere
    gives the same tables.

    Raises
    ------
    BudgetError
        More pairs are expected than ``max_pairs``, or the points need more rows than the budget.
    TableError
        ``points`` or ``epsilon`` has no slice of this run, or rows were lost on the way.
    """
    source, params = job.lake.source, job.params
    eps = float(tables.read_row(job.lake, "epsilon", job.run)["eps"])
    points = tables.read(job.spark, job.lake, "points", job.run)
    n_points = tables.count(job.lake, "points", job.run)
    metric = get_metric(source.metric)
    dimensions = len(source.coordinates)
    ids, sample = sample_points(points, n_points, params.sample_rows, params.seed, dimensions)
    plan = plan_join(
        sample,
        ids,
        n_points,
        eps,
        metric,
        Cuts(
            params.cuts,
            params.n_parts or max(LEAST_PARTS, math.ceil(n_points * row_bytes(dimensions) / PART_BYTES)),
            params.k,
            params.msl,
            params.replication_budget,
            params.sample_rows,
            params.seed,
        ),
    )
    say(
        f"replicate: eps {eps:g} {source.unit}, {plan.kind} cuts, {plan.n_parts} parts; expected: "
        f"{plan.expected_rows:,.0f} rows, {plan.expected_pairs:,.0f} pairs"
    )
    if plan.expected_pairs > params.max_pairs:
        raise BudgetError(
            f"about {plan.expected_pairs:,.0f} pairs are expected within eps {eps:g}, "
            f"{params.max_pairs:,} are allowed (max_pairs); take a smaller eps, or allow more pairs"
        )
    stamp = stamp_of_plan(job.lake, job.run, plan.to_json())
    into = tables.target(job.lake, "replicas", job.run, stamp)
    encoder = _encoder(plan.to_json(), into, dimensions)
    reports = tasks.collect_reports(points.select("id", "point").mapInArrow(encoder, tasks.REPORT_SCHEMA))
    counters = tasks.add_counters(reports)
    refused = [sentence for report in reports for sentence in report.refused]
    if refused:
        raise BudgetError(refused[0])
    if counters.get("points", 0) != n_points:
        raise TableError(f"{counters.get('points', 0):,.0f} points were read, the log says {n_points:,}")
    if counters["rows"] > params.replication_budget * n_points:
        raise BudgetError(
            f"{counters['rows'] / n_points:.2f} rows per point, the budget is {params.replication_budget:g}; "
            "allow more (replication_budget), or cut into fewer parts (n_parts)"
        )
    written = [file for report in reports for file in report.files]
    tables.commit(job.lake, "replicas", job.run, written, into.stamp)
    tables.write_slice(
        job.lake, "join_plan", job.run, tables.rows_of(job.lake, "join_plan", [_plan_row(plan, n_points)])
    )
    say(f"replicate: {counters['rows']:,.0f} rows, {counters['rows'] / n_points:.2f} per point")
    return {**counters, "parts": plan.n_parts, "expected_rows": plan.expected_rows}


def row_bytes(dimensions: int) -> int:
    """Bytes of a worker's memory for one row of a part: point, embedded point, blocks, keys, order."""
    return 16 * dimensions + 16 * math.ceil(dimensions / 4) + 80


def _plan_row(plan: JoinPlan, n_points: int) -> dict[str, object]:
    return {
        "kind": plan.kind,
        "eps": plan.eps,
        "metric": plan.metric,
        "n_parts": plan.n_parts,
        "sample_rows": plan.sample_rows,
        "n_points": n_points,
        "expected_rows": plan.expected_rows,
        "expected_candidates": plan.expected_candidates,
        "expected_pairs": plan.expected_pairs,
        "plan": plan.to_json(),
    }


def _encoder(plan_json: str, into: tables.Target, dimensions: int) -> Task:
    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = JoinPlan.from_json(plan_json)
        report = tasks.TaskReport(counters={"points": 0, "rows": 0, "replicated_points": 0})
        held: dict[int, list[pa.Table]] = defaultdict(list)
        held_bytes = 0
        try:
            for batch in batches:
                for part, rows in _replicas_of(batch, plan, dimensions, report):
                    held[part].append(rows)
                    held_bytes += rows.nbytes
                if held_bytes > FLUSH_BYTES:
                    report.files += _flush(into, held)
                    held_bytes = 0
            report.files += _flush(into, held)
        except BudgetError as error:  # a refusal, not a broken task that Spark should try again
            report.refused.append(str(error))
        yield report.to_batch()

    return encode


def _replicas_of(
    batch: pa.RecordBatch, plan: JoinPlan, dimensions: int, report: tasks.TaskReport
) -> Iterator[tuple[int, pa.Table]]:
    ids = batch.column("id").to_numpy()
    points = to_matrix(batch.column("point"), dimensions)
    replicas = replicate(points, ids, plan)
    report.counters["points"] += len(ids)
    report.counters["rows"] += len(replicas.row)
    report.counters["replicated_points"] += int((np.bincount(replicas.row, minlength=len(ids)) > 1).sum())
    bounds = np.flatnonzero(np.r_[True, replicas.part[1:] != replicas.part[:-1], True])
    if not len(replicas.part):
        return
    for begin, end in pairwise(bounds):
        row, key = replicas.row[begin:end], replicas.key[begin:end]
        is_planned = plan.kind == "planned"
        yield (
            int(replicas.part[begin]),
            pa.table(
                {
                    "id": ids[row],
                    "mask": pa.array(key) if is_planned else pa.nulls(len(row), pa.int64()),
                    "code": pa.nulls(len(row), pa.binary()) if is_planned else to_binary(key),
                    "point": to_binary(points[row]),
                }
            ),
        )


def _flush(into: tables.Target, held: dict[int, list[pa.Table]]) -> list[tables.File]:
    files = [into.write(held[part], part=part) for part in sorted(held)]
    held.clear()
    return [file for file in files if file is not None]
