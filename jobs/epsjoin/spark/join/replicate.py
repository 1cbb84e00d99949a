"""The step ``replicate``: spread the points over the parts of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from epsjoin.console import counted, say
from epsjoin.errors import BudgetError, TableError
from epsjoin.lake import slices, targets, transactions
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.parquet import File
from epsjoin.lake.targets import Target
from epsjoin.local.plan.blocks import BlockPlan
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.sizes import REPLICA_ROW_BYTES
from epsjoin.local.plan.stored import read_plan
from epsjoin.spark.job.job import Job
from epsjoin.spark.join.base import Increment, find_increment
from epsjoin.spark.join.blocks import rows_of_blocks
from epsjoin.spark.join.plan import RunPlan, plan_run
from epsjoin.spark.join.replicas import FLUSH_BYTES, Replicate, hold_by_part, new_report, replicas_read_by
from epsjoin.spark.join.shuffle import REPLICA_STREAMS, make_sender, read_streams
from epsjoin.spark.points.points import Points, stored_points
from epsjoin.spark.rows.rows import FrameRows
from epsjoin.spark.rows.write import Written
from epsjoin.spark.tasks.arrow import Task
from epsjoin.spark.tasks.reports import TaskReport, task_number

MAX_FILES = 10_000
"""Maximum number of files that tasks write, one for each task and part; above, Spark shuffles by part."""


def run(job: Job, max_files: int = MAX_FILES) -> dict[str, float]:
    """Replace the run's slices of ``join_plan`` and ``replicas``.

    Where few points have changed since an earlier run, the plan is an increment on that run, which needs no
    replicas (:mod:`epsjoin.spark.join.base`). Otherwise:

    The plan is that of :func:`epsjoin.spark.join.plan.plan_run`; the points are spread by it. A part has a
    file from each task that has rows for it; if that would make more than ``max_files`` files, it has a
    single file, after a shuffle of Arrow IPC streams.

    Raises
    ------
    BudgetError
        More pairs are expected than ``max_pairs``, or the points need more rows than the budget.
    TableError
        ``points`` or ``epsilon`` has no slice of this run, or rows were lost on the way.
    """
    job = replace(job, lake=slices.as_now(job.lake))
    inputs = Fingerprints(job.lake, job.run, is_made_now=True)
    eps = float(inputs.row("epsilon")["eps"])
    found = find_increment(inputs, job.params, eps)
    if isinstance(found, Increment):
        return _write_increment(job, inputs, found)
    say(f"replicate: all points are joined: {found}")
    points = stored_points(job)
    n_points = points.n
    planned = plan_run(job, points, eps)
    plan = planned.plan
    replicas = inputs.slice("replicas", join_plan=plan.to_json())
    into = targets.target_of(job.lake, replicas)
    by_task = n_files(points, plan) <= max_files
    with targets.deleted_on_error(into):
        written = encode(points, plan, into) if by_task else _encode_by_part(points, plan, into)
        counters = written.counters
        if counters.get("points", 0) != n_points:
            raise TableError(
                f"{counters.get('points', 0):,.0f} points were read, the log says {n_points:,}; "
                "run replicate again"
            )
        budget = job.params.replication_budget
        if counters["rows"] > budget * n_points:
            raise BudgetError(
                f"{counters['rows'] / n_points:.2f} rows per point, the budget is {budget:g}; "
                "allow more (replication_budget), or cut into fewer parts (n_parts)"
            )
    transactions.commit(job.lake, {replicas: written.files})
    slices.write_slice(
        job.lake,
        inputs.slice("join_plan"),
        slices.table_of(job.lake, "join_plan", [{**_plan_row(planned, n_points), "why": found}]),
    )
    say(f"replicate: {counted(counters['rows'], 'row')}, {counters['rows'] / n_points:.2f} per point")
    return {
        **counters,
        "parts": plan.n_parts,
        "expected_rows": plan.expected_stored_rows,
        "bytes": sum(file.size for file in written.files),
    }


def n_files(points: Points, plan: JoinPlan | BlockPlan) -> float:
    """Return the expected maximum number of files of replicas: one for each part whenever a task writes."""
    n_bytes = plan.expected_stored_rows * (8 * plan.dimensions + REPLICA_ROW_BYTES)
    return plan.n_stored_parts * (points.n_splits + n_bytes / FLUSH_BYTES)


def _replicas_by(plan: JoinPlan | BlockPlan, points: Points) -> Replicate:
    """Make the function that yields the replicas of batches of points by plans of this kind."""
    read = rows_of_blocks if isinstance(plan, BlockPlan) else replicas_read_by
    return read(points.reading)


def encode(points: Points, plan: JoinPlan | BlockPlan, into: Target) -> Written:
    """Let the tasks write the replicas of all points: a file of each task for each part, or a few.

    Raises
    ------
    BudgetError
        A split rule without limit makes too many rows of one cube.
    TableError
        Rows were lost on the way.
    """
    return _check_written(points.rows.run(make_encoder(plan.to_json(), _replicas_by(plan, points), into)))


def _encode_by_part(points: Points, plan: JoinPlan | BlockPlan, into: Target) -> Written:
    """Do as :func:`encode`, but write one file for each part, after a shuffle of Arrow IPC streams."""
    sender = make_sender(plan.to_json(), _replicas_by(plan, points), None, refuses=True)
    streams = points.rows.map(sender, REPLICA_STREAMS)
    by_part = FrameRows(streams.repartitionById(plan.n_stored_parts, "part"))
    return _check_written(by_part.run(_make_part_writer(into)))


def _check_written(reported: Iterable[pa.RecordBatch]) -> Written:
    """Combine the reports of tasks that write replicas; refuse what one of them refused or lost."""
    reports = TaskReport.of_batches(reported)
    refused = [sentence for report in reports for sentence in report.refused]
    if refused:
        raise BudgetError(refused[0])
    written = Written.of(reports)
    if written.counters.get("rows", 0) != written.rows:
        raise TableError(
            f"{written.counters['rows']:,.0f} rows were made, another number was written; run it again"
        )
    return written


def _plan_row(planned: RunPlan, n_points: int) -> dict[str, object]:
    plan = planned.plan
    rule = plan.rule if isinstance(plan, JoinPlan) else None
    return {
        "kind": plan.kind,
        "split_rule": None if rule is None else str(rule),
        "eps": plan.eps,
        "metric": plan.get_metric().name,
        "n_parts": plan.n_parts,
        "sample_rows": planned.sample_rows,
        "n_points": n_points,
        "expected_rows": plan.expected_stored_rows,
        "expected_candidates": plan.expected_candidates,
        "expected_pairs": plan.expected_pairs,
        "plan": plan.to_json(),
        "base": None,
        "generation": 0,
        "placed": None,
        "gone": None,
        "placed_ids": None,
        "gone_ids": None,
    }


def _write_increment(job: Job, inputs: Fingerprints, found: Increment) -> dict[str, float]:
    row, changes, n_points = found
    transactions.commit(job.lake, {inputs.slice("replicas", join_plan=row["plan"]): []})
    slices.write_slice(job.lake, inputs.slice("join_plan"), slices.table_of(job.lake, "join_plan", [row]))
    generation = f"increment number {row['generation']} since all points were joined"
    say(f"replicate: the pairs follow from those of run {row['base']}: {changes}; {generation}")
    counters = {"points": n_points, "rows": 0, "placed": row["placed"], "gone": row["gone"]}
    return {**counters, "generation": row["generation"], "expected_rows": 0.0}


def _make_part_writer(into: Target) -> Task:
    """Make the work of a task that writes the replicas of one part, and passes on the senders' reports.

    The number of the part is that of the task's partition.
    """

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report = TaskReport()
        report.write(into, read_streams(batches, report), part=task_number())
        yield report.to_batch()

    return write


def make_encoder(plan_json: str, replicas_of: Replicate, into: Target) -> Task:
    """Make the work of a task that writes the replicas of its points, and yields one report.

    Parameters
    ----------
    replicas_of : makes them of a batch of rows, by plans of this kind.
    """

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = read_plan(plan_json)
        report = new_report()
        replicas = (
            report.timed(replicas_of(batch, plan, report.counters), "encoding")
            for batch in report.timed(batches, "reading")
        )
        try:
            for held in hold_by_part(replicas):
                report.files += report.timed(_flush(into, held), "writing")
        except BudgetError as error:  # a refusal, not a failure that Spark should try again
            report.refused.append(str(error))
        yield report.to_batch()

    return encode


def _flush(into: Target, held: dict[int, list[pa.Table]]) -> Iterator[File]:
    """Write what is held to one file for each part, and drop each part when it is written."""
    for part in sorted(held):
        file = into.write(held.pop(part), task=task_number(), part=part)
        if file is not None:
            yield file
