"""Doubles, which are records of one id: their files are read again, and of each key one is kept or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.contracts.sources import SourceContract
from epsjoin.lake.arrow import are_same
from epsjoin.lake.lake import Lake
from epsjoin.source.batches import Aside
from epsjoin.source.reasons import refusal
from epsjoin.source.rules import Ints
from epsjoin.spark.ingest.read import SourceFile, read_file
from epsjoin.spark.ingest.writer import BATCH_CHARACTERS, BATCH_ROWS, Targets, Writer
from epsjoin.spark.tasks.arrow import Task
from epsjoin.spark.tasks.reports import TaskReport, task_number


def staged_schema(lake: Lake) -> pa.Schema:
    """Schema of staged rows: columns of ingest, which begin with an underscore, then those of the source.

    A staged row is a double, or the last row of a file: it holds the report of the task that read the file,
    as JSON in ``_report``, which is null in records. Its ``_slot`` is the file's number, that of a record its
    id; rows of one slot are brought together.
    """
    points = lake.schema("points")
    own = [points.field(column.name).with_nullable(True) for column in lake.source.columns]
    return pa.schema(
        [
            ("_slot", pa.int64()),
            ("_file", pa.int32()),
            ("_line", pa.int64()),
            ("_source", pa.string()),
            ("_raw", pa.string()),
            ("_report", pa.string()),
            ("_id", pa.int64()),
            *own,
        ]
    )


def make_second_reader(
    source: SourceContract, targets: Targets, schema: pa.Schema
) -> Callable[[tuple[SourceFile, Ints | None]], Iterator[pa.RecordBatch]]:
    """Make the work of a task that reads a file with doubles, and yields these as staged rows.

    All other records of the file are written as they were when it was read before.
    """
    names = [column.name for column in source.columns]

    def read(item: tuple[SourceFile, Ints | None]) -> Iterator[pa.RecordBatch]:
        file, doubles = item
        into = Writer(source, targets, TaskReport(number=file.index))
        staged: list[dict[str, Any]] = []
        held = 0
        for batch in read_file(file, into, doubles):
            for aside in batch.aside:
                staged.append(_stage(names, file, aside))
                held += len(aside.record.raw)
            if len(staged) >= BATCH_ROWS or held >= BATCH_CHARACTERS:
                yield pa.RecordBatch.from_pylist(staged, schema)
                staged, held = [], 0
        report = into.close().to_json()
        staged.append({"_slot": file.index, "_file": file.index, "_line": 0, "_report": report})
        yield pa.RecordBatch.from_pylist(staged, schema)

    return read


def _stage(names: list[str], file: SourceFile, aside: Aside) -> dict[str, Any]:
    _, id_, record = aside
    values = record.values or ()
    row = {"_slot": id_, "_id": id_, **dict(zip(names, values, strict=True))}
    return {**row, "_file": file.index, "_line": record.line, "_source": file.name, "_raw": record.raw}


def make_settler(source: SourceContract, targets: Targets, first_task: int) -> Task:
    """Make the work of a task that writes staged rows, sorted by slot, and passes on the readers' reports.

    Parameters
    ----------
    first_task : its number, after those of the readers: the order of the files is that of the records.
    """

    def settle(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        into = Writer(source, targets, TaskReport(number=first_task + task_number()))
        for rows in _cut_between_slots(batches):
            for text in rows["_report"].drop_null().to_pylist():
                yield pa.record_batch({"report": pa.array([text])})
            good, bad = separate_refused(source, rows.filter(rows["_report"].is_null()), into.report)
            for name in good["_source"].unique().to_pylist():
                of_file = good.filter(pc.equal(good["_source"], name))
                into.keep(name, of_file["_id"], of_file)
            into.refuse(bad)
        yield into.close().to_batch()

    return settle


def _cut_between_slots(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Cut the sorted rows into tables so that all rows of one slot are in the same table."""
    held: pa.Table | None = None
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if held is not None:
            table = pa.concat_tables([held, table])
        slots = table["_slot"].to_numpy()
        cut = int(np.searchsorted(slots, slots[-1])) if len(slots) else 0
        held = table.slice(cut)
        if cut:
            yield table.slice(0, cut)
    if held is not None and held.num_rows:
        yield held


def separate_refused(
    source: SourceContract, rows: pa.Table, report: TaskReport
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Separate the rows to keep from those to refuse, which become rows of quarantine with a reason.

    Two keys with one id go to the report, as a reason to refuse the snapshot. Rows are compared by their
    values, not by digests, since a row that is taken for another one is lost.
    """
    slots = rows["_slot"].to_numpy()  # the slot of a row is its id
    keep = np.ones(len(slots), bool)
    reasons: dict[int, str] = {}
    is_next_same = _same_as_next(rows.select([column.name for column in source.columns]))
    for group in _find_groups(slots):
        members = rows.take(pa.array(group)).select(source.key).to_pylist()
        if len({tuple(member[name] for name in source.key) for member in members}) > 1:
            report.refused.append(
                f"two keys have the same id {int(slots[group[0]])}: "
                f"{[[member[name] for name in source.key] for member in members][:2]}; use another key"
            )
        if not is_next_same[group[:-1]].all():
            keep[group] = False
            reason = refusal("key: rows with one key differ", f"{len(group)} rows")
            reasons.update((int(i), reason) for i in group)
        else:
            keep[group[1:]] = False
            reasons.update((int(i), refusal("key: the same row again")) for i in group[1:])
    bad = np.flatnonzero(~keep)
    texts = rows.select(["_source", "_line", "_raw"]).take(pa.array(bad)).to_pylist()
    return rows.filter(pa.array(keep)), [
        {"source": row["_source"], "line": row["_line"], "reason": reasons[index], "raw": row["_raw"]}
        for index, row in zip(bad.tolist(), texts, strict=True)
    ]


def _same_as_next(rows: pa.Table) -> NDArray[np.bool_]:
    """Tell for each row but the last whether the next one has the same values."""
    n = max(0, rows.num_rows - 1)
    same = [are_same(column.slice(0, n), column.slice(1)) for column in rows.columns]
    return np.asarray(np.logical_and.reduce(same))


def _find_groups(slots: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the row numbers of each group of records with the same id, for groups of two and more."""
    starts = np.flatnonzero(np.r_[True, slots[1:] != slots[:-1]]) if len(slots) else np.empty(0, np.int64)
    sizes = np.diff(np.r_[starts, len(slots)])
    for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True):
        yield np.arange(start, start + size)
