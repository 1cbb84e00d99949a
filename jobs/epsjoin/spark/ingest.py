"""Ingest: one snapshot's files to typed points; what cannot be a point goes to quarantine with its reason."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from io import RawIOBase
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.console import say
from epsjoin.contracts.odcs import SourceContract
from epsjoin.errors import DataRefusedError, TableError
from epsjoin.lake import delta_log, parquet, schemas, slices, uris
from epsjoin.lake.arrow import to_binary
from epsjoin.lake.lake import Lake
from epsjoin.lake.lineage import new_stamp
from epsjoin.lake.parquet import Target
from epsjoin.source.keys import digest_of, key_id
from epsjoin.source.records import Reading, Record
from epsjoin.source.values import kind_of, refusal
from epsjoin.spark import tasks
from epsjoin.spark.arrow import Task
from epsjoin.spark.job import Job
from epsjoin.spark.rows import FrameRows
from epsjoin.spark.snapshot import find_snapshot

BATCH_ROWS = 50_000
BATCH_CHARACTERS = 64 << 20
"""Records are handed on when so many are held, or when they are so long together."""
FILE_ROWS, FILE_BYTES = 1_000_000, 256 << 20
"""A file of points is written when so much is held."""
RECORD, FILE = 0, 1
"""What a staged row is: a record of a file, and what is to be said of the file itself."""


def ingest(job: Job) -> dict[str, float]:
    """Replace the run's slices of ``quarantine``, ``snapshots`` and ``points`` by the run's snapshot.

    Rows meet their key's other rows in one shuffle by id: the same row again is refused (the first is
    kept), one key with different rows is refused whole. Rows read are counted by the readers, rows kept
    and refused by the writers; the sums must agree. Files of one pass bear one
    stamp.

    Raises
    ------
    NothingToDoError
        No snapshot is dated within the run's interval.
    DataRefusedError
        A file is empty, broken or lacks a column; two keys share an id; or the share of bad rows is above
        the contract's limit. The quarantine slice is then written, the points slice is not touched.
    """
    files = find_snapshot(job)
    say(f"ingest: {job.lake.source.name} {job.run}: {', '.join(name for name, _ in files)}")
    staged_schema = _staged_schema(job.lake)
    listed = job.spark.createDataFrame(
        [(index, name, uri) for index, (name, uri) in enumerate(files)], "file int, name string, uri string"
    ).repartition(len(files), "file")
    staged = (
        listed.mapInArrow(_reader(job.lake.source, staged_schema), schemas.ddl(staged_schema))
        .repartition("_slot")
        .sortWithinPartitions("_slot", "_file", "_line")
    )
    stamp = new_stamp()
    writer = _writer(
        job.lake.source,
        parquet.target(job.lake, "points", job.run, stamp),
        parquet.target(job.lake, "quarantine", job.run, stamp),
    )
    reports = tasks.reports_of(FrameRows(staged).run(writer))
    written = [file for report in reports for file in report.files]
    delta_log.commit(job.lake, "quarantine", job.run, written, stamp)

    refused = sorted(sentence for report in reports for sentence in report.refused)
    if refused:
        raise DataRefusedError(refused[0] + (f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""))
    snapshots = _snapshot_rows(reports)
    read = sum(row["rows_read"] for row in snapshots)
    quarantined = sum(row["rows_quarantined"] for row in snapshots)
    limit = job.lake.source.max_quarantine_share
    if quarantined > limit * read:
        raise DataRefusedError(
            f"{quarantined:,} of {read:,} rows ({quarantined / read:.1%}) are bad, {limit:.1%} are allowed; "
            f"most often: {_commonest_kind(reports)}. Every one is in the quarantine table, run {job.run}"
        )
    if quarantined == read:
        raise DataRefusedError("no row is left after quarantine")
    slices.write_slice(
        job.lake, "snapshots", job.run, slices.rows_of(job.lake, "snapshots", snapshots), stamp
    )
    delta_log.commit(job.lake, "points", job.run, written, stamp)
    say(f"ingest: {read:,} rows read, {read - quarantined:,} kept, {quarantined:,} quarantined")
    return {
        "rows_read": read,
        "rows_ok": read - quarantined,
        "rows_quarantined": quarantined,
        "bytes": sum(row["bytes"] for row in snapshots),
        "expected_id_collisions": read**2 / 2**65 if _is_hashed(job.lake.source) else 0.0,
    }


def _is_hashed(source: SourceContract) -> bool:
    return len(source.key) > 1 or (len(source.key) == 1 and source.column(source.key[0]).type != "integer")


def _staged_schema(lake: Lake) -> pa.Schema:
    points = lake.schema("points")
    own = [points.field(column.name).with_nullable(True) for column in lake.source.columns]
    return pa.schema(
        [
            ("_slot", pa.int64()),
            ("_what", pa.int32()),
            ("_file", pa.int32()),
            ("_line", pa.int64()),
            ("_source", pa.string()),
            ("_reason", pa.string()),
            ("_raw", pa.string()),
            ("_digest", pa.binary()),
            ("_id", pa.int64()),
            *own,
        ]
    )


class _Counting(RawIOBase):
    """A file's bytes on their way to the reader: counted and digested as they pass."""

    def __init__(self, inner: IO[bytes]) -> None:
        self.inner = inner
        self.size = 0
        self.sha256 = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.inner.read(len(buffer))
        buffer[: len(data)] = data
        self.size += len(data)
        self.sha256.update(data)
        return len(data)

    def finish(self) -> None:
        """Digest what the reader left unread, so that the digest is the file's."""
        while self.read(1 << 20):
            pass


def _reader(source: SourceContract, schema: pa.Schema) -> Task:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from _read_file(source, schema, row["file"], row["name"], row["uri"])

    return read


def _read_file(
    source: SourceContract, schema: pa.Schema, index: int, name: str, uri: str
) -> Iterator[pa.RecordBatch]:
    filesystem, path = uris.filesystem_of(uri)
    facts: dict[str, Any] = {"source": name, "rows_read": 0, "refused": None}
    staged: list[dict[str, Any]] = []
    held = 0
    names = [column.name for column in source.columns]
    with filesystem.open_input_file(path) as handle:
        size, digest = _size_and_digest(handle) if source.format == "parquet" else (0, "")
        counting = _Counting(cast("IO[bytes]", handle))
        reading = Reading(cast("IO[bytes]", handle if source.format == "parquet" else counting), name, source)
        try:
            for position, record in enumerate(reading):
                staged.append(_stage(source, names, index, name, position, record))
                facts["rows_read"] += 1
                held += len(record.raw)
                if len(staged) == BATCH_ROWS or held >= BATCH_CHARACTERS:
                    yield pa.RecordBatch.from_pylist(staged, schema)
                    staged.clear()
                    held = 0
        except DataRefusedError as error:
            facts["refused"] = str(error)
        if source.format != "parquet":
            counting.finish()
            size, digest = counting.size, counting.sha256.hexdigest()
    facts.update(bytes=size, sha256=digest, columns=reading.found_columns)
    staged.append(
        {
            "_slot": index,
            "_what": FILE,
            "_file": index,
            "_line": 0,
            "_source": name,
            "_raw": json.dumps(facts),
        }
    )
    yield pa.RecordBatch.from_pylist(staged, schema)


def _size_and_digest(handle: pa.NativeFile) -> tuple[int, str]:
    digest = hashlib.sha256()
    while data := handle.read(1 << 20):
        digest.update(data)
    size = handle.tell()
    handle.seek(0)
    return size, digest.hexdigest()


def _stage(
    source: SourceContract, names: list[str], file: int, name: str, position: int, record: Record
) -> dict[str, Any]:
    # a source without key: the record's place is its id, so equal records stay two records
    place = (file << 40) | position
    row: dict[str, Any] = {
        "_slot": place,
        "_what": RECORD,
        "_file": file,
        "_line": record.line,
        "_source": name,
        "_reason": record.reason,
        "_raw": record.raw,
    }
    if record.values is None:
        return row
    id_ = key_id(source, record.values) if source.key else place
    if isinstance(id_, str):
        return {**row, "_reason": id_}
    digest = digest_of(record.values) if source.key else None
    return {
        **row,
        "_slot": id_,
        "_id": id_,
        "_digest": digest,
        **dict(zip(names, record.values, strict=True)),
    }


def _writer(source: SourceContract, points: Target, quarantine: Target) -> Task:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report = tasks.TaskReport()
        kept: list[pa.Table] = []
        refused: list[dict[str, Any]] = []
        of_quarantine = pa.schema([column for column in quarantine.schema if column.name != "run"])
        tally: dict[str, Counter[str]] = defaultdict(Counter)
        kinds: Counter[str] = Counter()
        for rows in _whole_groups(batches):
            good, bad = _settle(source, rows, report)
            kept.append(_points(source, points, good))
            refused += bad
            for name, count in Counter(good["_source"].to_pylist()).items():
                tally[name]["ok"] += count
            for row in bad:
                if row["line"] is None:  # about the file, no record of it
                    continue
                tally[row["source"]]["quarantined"] += 1
                kinds[kind_of(row["reason"])] += 1
            if sum(map(len, kept)) >= FILE_ROWS or sum(each.nbytes for each in kept) >= FILE_BYTES:
                report.write(points, kept)
                kept = []
            if len(refused) >= BATCH_ROWS or sum(len(row["raw"]) for row in refused) >= BATCH_CHARACTERS:
                report.write(quarantine, [pa.Table.from_pylist(refused, of_quarantine)])
                refused = []
        report.write(points, kept)
        report.write(quarantine, [pa.Table.from_pylist(refused, of_quarantine)])
        report.facts += [{"source": name, **counts} for name, counts in tally.items()]
        report.facts += [{"kind": kind, "rows": count} for kind, count in kinds.items()]
        yield report.to_batch()

    return write


def _whole_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The sorted rows again, cut so that rows of one slot are never apart."""
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


def _settle(
    source: SourceContract, rows: pa.Table, report: tasks.TaskReport
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Decide about every row: keep it, or refuse it with a reason; file facts go to the report."""
    slots = rows["_slot"].to_numpy()  # where there is an id, its slot is the id
    has_id = rows["_id"].is_valid().to_numpy()
    keep = has_id.copy()
    reasons: dict[int, str] = {}
    for group in _groups_of_equal(slots, has_id):
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
        row = rows.slice(index, 1).select(["_what", "_source", "_line", "_reason", "_raw"]).to_pylist()[0]
        if row["_what"] == FILE:
            bad += _file_facts(row, report)
            continue
        reason = reasons.get(index) or row["_reason"]
        bad.append({"source": row["_source"], "line": row["_line"], "reason": reason, "raw": row["_raw"]})
    return rows.filter(pa.array(keep)), bad


def _groups_of_equal(slots: NDArray[np.int64], has_id: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """Row numbers of the slots that more than one record with an id has."""
    numbers = np.flatnonzero(has_id)
    mine = slots[numbers]
    starts = np.flatnonzero(np.r_[True, mine[1:] != mine[:-1]]) if len(mine) else np.empty(0, np.int64)
    sizes = np.diff(np.r_[starts, len(mine)])
    for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True):
        yield numbers[start : start + size]


def _file_facts(row: Mapping[str, Any], report: tasks.TaskReport) -> list[dict[str, Any]]:
    facts = json.loads(row["_raw"])
    report.facts.append(facts)
    if facts["refused"] is None:
        return []
    report.refused.append(facts["refused"])
    raw = ",".join(facts["columns"])
    return [{"source": row["_source"], "line": None, "reason": facts["refused"], "raw": raw}]


def _points(source: SourceContract, points: Target, rows: pa.Table) -> pa.Table:
    matrix = np.column_stack([rows[name].to_numpy().astype("<f8") for name in source.coordinates])
    columns = {name: rows[name] for name in (column.name for column in source.columns)}
    columns["id"] = rows["_id"]
    columns["point"] = to_binary(matrix)
    return pa.table({name: columns[name] for name in points.schema.names if name != "run"})


def _snapshot_rows(reports: list[tasks.TaskReport]) -> list[dict[str, Any]]:
    facts = [fact for report in reports for fact in report.facts]
    rows = []
    for file in sorted((fact for fact in facts if "sha256" in fact), key=lambda fact: str(fact["source"])):
        mine = [fact for fact in facts if fact.get("source") == file["source"] and "sha256" not in fact]
        ok = sum(fact.get("ok", 0) for fact in mine)
        quarantined = sum(fact.get("quarantined", 0) for fact in mine)
        if ok + quarantined != file["rows_read"]:
            raise TableError(
                f"{file['source']}: {file['rows_read']} rows read, "
                f"but {ok} kept and {quarantined} quarantined"
            )
        rows.append(
            {
                "source": file["source"],
                "bytes": file["bytes"],
                "sha256": file["sha256"],
                "rows_read": file["rows_read"],
                "rows_ok": ok,
                "rows_quarantined": quarantined,
                "columns": json.dumps(file["columns"], ensure_ascii=False),
            }
        )
    return rows


def _commonest_kind(reports: list[tasks.TaskReport]) -> str:
    kinds: Counter[str] = Counter()
    for report in reports:
        for fact in report.facts:
            if "kind" in fact:
                kinds[fact["kind"]] += fact["rows"]
    return max(sorted(kinds), key=lambda kind: kinds[kind])
