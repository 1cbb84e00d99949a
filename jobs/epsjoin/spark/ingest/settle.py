"""Second half of ingest: staged rows of one key meet, and are kept or refused with a reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.contracts.odcs import SourceContract
from epsjoin.lake.arrow import to_binary
from epsjoin.lake.parquet import Target
from epsjoin.source.values import kind_of, refusal
from epsjoin.spark import tasks
from epsjoin.spark.arrow import Task
from epsjoin.spark.ingest.facts import Fact, FileFacts, KindCount, RowCounts, to_dict
from epsjoin.spark.ingest.read import BATCH_CHARACTERS, BATCH_ROWS

FILE_ROWS = 1_000_000
"""Number of points held in memory at which a file is written."""

FILE_BYTES = 256 << 20
"""Number of bytes of points held in memory at which a file is written, too."""


def make_writer(source: SourceContract, points: Target, quarantine: Target) -> Task:
    """Make the work of a task that writes staged rows, sorted by slot, to points and quarantine."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report = tasks.TaskReport()
        kept: list[pa.Table] = []
        refused: list[dict[str, Any]] = []
        of_quarantine = pa.schema([column for column in quarantine.schema if column.name != "run"])
        n_kept: Counter[str] = Counter()
        n_quarantined: Counter[str] = Counter()
        kinds: Counter[str] = Counter()
        for rows in _cut_between_slots(batches):
            good, bad = separate_refused(source, rows, report)
            kept.append(_make_points(source, points, good))
            refused += bad
            n_kept.update(good["_source"].to_pylist())
            for row in bad:
                if row["line"] is None:  # it is about the file, not about a record
                    continue
                n_quarantined[row["source"]] += 1
                kinds[kind_of(row["reason"])] += 1
            if sum(map(len, kept)) >= FILE_ROWS or sum(each.nbytes for each in kept) >= FILE_BYTES:
                report.write(points, kept)
                kept = []
            if len(refused) >= BATCH_ROWS or sum(len(row["raw"]) for row in refused) >= BATCH_CHARACTERS:
                report.write(quarantine, [pa.Table.from_pylist(refused, of_quarantine)])
                refused = []
        report.write(points, kept)
        report.write(quarantine, [pa.Table.from_pylist(refused, of_quarantine)])
        facts: list[Fact] = [
            RowCounts(name, n_kept[name], n_quarantined[name]) for name in sorted({*n_kept, *n_quarantined})
        ]
        facts += [KindCount(kind, rows) for kind, rows in kinds.items()]
        report.facts += map(to_dict, facts)
        yield report.to_batch()

    return write


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
    source: SourceContract, rows: pa.Table, report: tasks.TaskReport
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Separate the rows to keep from those to refuse, which become rows of quarantine with a reason.

    Facts about files go to the report.
    """
    slots = rows["_slot"].to_numpy()  # the slot of a row with an id is the id
    has_id = rows["_id"].is_valid().to_numpy()
    keep = has_id.copy()
    reasons: dict[int, str] = {}
    for group in _find_groups(slots, has_id):
        members = rows.take(pa.array(group)).select(["_digest", *source.key]).to_pylist()
        if len({tuple(member[name] for name in source.key) for member in members}) > 1:
            report.refused.append(
                f"two keys have the same id {int(slots[group[0]])}: "
                f"{[[member[name] for name in source.key] for member in members][:2]}; use another key"
            )
        if len({member["_digest"] for member in members}) > 1:
            keep[group] = False
            reason = refusal("key: rows with one key differ", f"{len(group)} rows")
            reasons.update((int(i), reason) for i in group)
        else:
            keep[group[1:]] = False
            reasons.update((int(i), refusal("key: the same row again")) for i in group[1:])
    bad = []
    for index in np.flatnonzero(~keep).tolist():
        row = rows.slice(index, 1).select(["_source", "_line", "_reason", "_raw", "_facts"]).to_pylist()[0]
        if row["_facts"] is not None:
            bad += _report_file(FileFacts(**json.loads(row["_facts"])), report)
            continue
        reason = reasons.get(index) or row["_reason"]
        bad.append({"source": row["_source"], "line": row["_line"], "reason": reason, "raw": row["_raw"]})
    return rows.filter(pa.array(keep)), bad


def _find_groups(slots: NDArray[np.int64], has_id: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """Yield the row numbers of each group of records with the same id, for groups of two and more."""
    numbers = np.flatnonzero(has_id)
    mine = slots[numbers]
    starts = np.flatnonzero(np.r_[True, mine[1:] != mine[:-1]]) if len(mine) else np.empty(0, np.int64)
    sizes = np.diff(np.r_[starts, len(mine)])
    for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True):
        yield numbers[start : start + size]


def _report_file(facts: FileFacts, report: tasks.TaskReport) -> list[dict[str, Any]]:
    """Report a file's facts; return the row of quarantine about the file if it is refused as a whole."""
    report.facts.append(to_dict(facts))
    if facts.refused is None:
        return []
    report.refused.append(facts.refused)
    return [{"source": facts.source, "line": None, "reason": facts.refused, "raw": ",".join(facts.columns)}]


def _make_points(source: SourceContract, points: Target, rows: pa.Table) -> pa.Table:
    matrix = np.column_stack([rows[name].to_numpy().astype("<f8") for name in source.coordinates])
    columns = {name: rows[name] for name in (column.name for column in source.columns)}
    columns["id"] = rows["_id"]
    columns["point"] = to_binary(matrix)
    return pa.table({name: columns[name] for name in points.schema.names if name != "run"})
