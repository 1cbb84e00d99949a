"""Replicas that go through one shuffle, where there is no table to write them into."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from epsjoin.errors import BudgetError
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.stored import read_plan
from epsjoin.spark.join.replicas import Replicate, hold_by_part, new_report, replicas_read_by
from epsjoin.spark.points.points import Points, refuse_changed
from epsjoin.spark.tasks.arrow import Task, from_ipc_column, stream_batch, to_ipc
from epsjoin.spark.tasks.reports import TaskReport

REPLICA_STREAMS = "part int, ipc binary, report string"
"""Columns of replicas in a shuffle, as DDL: a part, an Arrow IPC stream of its rows, or a task's report.

A report is the ``TaskReport`` of a task that made replicas, as JSON, and goes to part 0.
"""


def replicate_frame(
    points: Points, plan: JoinPlan, is_right: bool | None, replicas: Replicate | None = None
) -> DataFrame:
    """Return the replicas of points with the columns ``REPLICA_STREAMS``; lazy, without a shuffle.

    Parameters
    ----------
    is_right : for two tables: whether these are the right one's points.
    replicas : makes them of the rows of the points; by default they are those of the points as they are read.
    """
    send = make_sender(plan.to_json(), replicas or replicas_read_by(points.reading), is_right, refuses=False)
    return points.rows.map(send, REPLICA_STREAMS)


def make_sender(plan_json: str, replicas: Replicate, is_right: bool | None, *, refuses: bool) -> Task:
    """Make the work of a task that yields the replicas of its points as ``REPLICA_STREAMS``.

    Parameters
    ----------
    replicas : makes them of a batch of rows, by plans of this kind.
    refuses : whether too small a budget is written to the task's report; otherwise the task fails.
    """

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = read_plan(plan_json)
        report = new_report()
        try:
            for held in hold_by_part(replicas(batch, plan, report.counters) for batch in batches):
                yield _to_streams(held, is_right)
        except BudgetError as error:
            if not refuses:
                raise
            report.refused.append(str(error))
        yield stream_batch("part", [0], [None], [report.to_json()])

    return send


def read_streams(batches: Iterable[pa.RecordBatch], report: TaskReport) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``REPLICA_STREAMS``, and add their senders' reports to ``report``."""
    for batch in batches:
        of_senders = batch["report"].drop_null().to_pylist()
        report.add(TaskReport.from_json(text) for text in of_senders)
        yield from from_ipc_column([batch])


def read_part(
    batches: Iterable[pa.RecordBatch], n_points: int
) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Yield the number of a part and its rows, after a shuffle by part; nothing where nothing came.

    The number comes with the rows. It is not that of the task: if a lazy result is united with another frame,
    or coalesced, a task with another number gets the same partition.

    Parameters
    ----------
    batches : a partition of the shuffle, with the columns ``REPLICA_STREAMS``.
    n_points : number of points of all frames.

    Raises
    ------
    DataRefusedError
        At the end of part 0: the replicas were made of another number of points.
    """
    following = (batch for batch in batches if batch.num_rows)
    for first in following:
        part = first["part"][0].as_py()
        yield part, _read_rows(itertools.chain([first], following), n_points if part == 0 else None)


def _read_rows(batches: Iterable[pa.RecordBatch], n_points: int | None) -> Iterator[pa.RecordBatch]:
    of_senders = TaskReport()
    yield from read_streams(batches, of_senders)
    if n_points is not None:
        refuse_changed(n_points, of_senders.counters.get("points", 0))


def _to_streams(held: dict[int, list[pa.Table]], is_right: bool | None) -> pa.RecordBatch:
    """Turn what is held into streams, one for each part, and drop each part when that is done."""
    parts, streams = list(held), []
    for part in parts:
        rows = pa.concat_tables(held.pop(part))
        if is_right is not None:
            rows = rows.append_column("is_right", pa.repeat(is_right, len(rows)))
        streams.append(to_ipc(rows))
    return stream_batch("part", parts, streams, [None] * len(streams))
