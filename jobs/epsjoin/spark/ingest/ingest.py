"""Ingest: one snapshot's files to typed points; what cannot be a point goes to quarantine with its reason."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from epsjoin.console import say
from epsjoin.contracts.odcs import SourceContract
from epsjoin.errors import DataRefusedError, TableError
from epsjoin.lake import delta_log, parquet, schemas, slices
from epsjoin.lake.lineage import new_stamp
from epsjoin.spark import tasks
from epsjoin.spark.ingest.read import make_reader, staged_schema
from epsjoin.spark.ingest.settle import make_writer
from epsjoin.spark.ingest.snapshot import find_snapshot
from epsjoin.spark.job import Job
from epsjoin.spark.rows import FrameRows


def run(job: Job) -> dict[str, float]:
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
    schema = staged_schema(job.lake)
    listed = job.spark.createDataFrame(
        [(index, name, uri) for index, (name, uri) in enumerate(files)], "file int, name string, uri string"
    ).repartition(len(files), "file")
    staged = (
        listed.mapInArrow(make_reader(job.lake.source, schema), schemas.ddl(schema))
        .repartition("_slot")
        .sortWithinPartitions("_slot", "_file", "_line")
    )
    stamp = new_stamp()
    writer = make_writer(
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
