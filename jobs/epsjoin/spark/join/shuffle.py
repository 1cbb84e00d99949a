"""Replicas that go through one shuffle, where there is no table to write them into."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from epsjoin.errors import BudgetError
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.spark import tasks
from epsjoin.spark.arrow import Task, from_ipc_column, to_ipc
from epsjoin.spark.join.replicas import FLUSH_BYTES, new_report, replicas_of
from epsjoin.spark.points import Points
from epsjoin.spark.reading import Reading

PACKETS = "part int, ipc binary, report string"


# report, in some rows: what the task counted until then, as the JSON of a TaskReport


def replicate_frame(points: Points, plan: JoinPlan, is_right: bool | None = None) -> DataFrame:
    """Packets of rows by part: (part int, ipc binary, report string); lazy, without a shuffle.

    Reports, of what a task has counted, go to part 0.

    Parameters
    ----------
    is_right : of two tables: whether these are the right one's points.
    """
    encode = make_packer(plan.to_json(), points.reading, is_right, refuses=False)
    return points.frame.mapInArrow(encode, PACKETS)


def make_packer(plan_json: str, reading: Reading, is_right: bool | None, *, refuses: bool) -> Task:
    """A task's work on points: their replicas in packets; too small a budget is reported, or raised."""

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = JoinPlan.from_json(plan_json)
        arrays = reading.of_dimensions(plan.dimensions).arrays
        report = new_report()
        held: dict[int, list[pa.Table]] = defaultdict(list)
        held_bytes = 0
        try:
            for batch in batches:
                for part, rows in replicas_of(*arrays(batch), plan, report.counters):
                    if is_right is not None:
                        rows = rows.append_column("is_right", pa.repeat(is_right, len(rows)))
                    held[part].append(rows)
                    held_bytes += rows.nbytes
                if held_bytes > FLUSH_BYTES:
                    yield _packets(held)
                    held_bytes = 0
        except BudgetError as error:
            if not refuses:
                raise
            report.refused.append(str(error))
        yield _packets(held)
        yield _packet_rows([0], [None], [report.to_json()])

    return encode


def read_packets(batches: Iterable[pa.RecordBatch], report: tasks.TaskReport) -> Iterator[pa.RecordBatch]:
    """The rows in packets of :func:`replicate_frame`; what their encoders told is added to the report."""
    for batch in batches:
        of_encoders = batch["report"].drop_null().to_pylist()
        report.add(tasks.TaskReport.from_json(text) for text in of_encoders)
        yield from from_ipc_column([batch])


def _packets(held: dict[int, list[pa.Table]]) -> pa.RecordBatch:
    packets = [to_ipc(pa.concat_tables(rows)) for rows in held.values()]
    batch = _packet_rows(list(held), packets, [None] * len(packets))
    held.clear()
    return batch


def _packet_rows(
    parts: list[int], packets: Sequence[bytes | None], reports: Sequence[str | None]
) -> pa.RecordBatch:
    columns = {"part": pa.array(parts, pa.int32()), "ipc": pa.array(packets, pa.binary())}
    return pa.record_batch({**columns, "report": pa.array(reports, pa.string())})
