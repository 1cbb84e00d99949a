"""The step ingest: records of one snapshot's files become typed points, or go to quarantine with a reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from epsjoin.console import say
from epsjoin.contracts.odcs import SourceContract
from epsjoin.errors import DataRefusedError, TableError
from epsjoin.lake import delta_log, parquet, schemas, slices
from epsjoin.lake.fingerprints import new_fingerprint
from epsjoin.lake.lake import Slice
from epsjoin.spark import tasks
from epsjoin.spark.ingest.facts import Fact, FileFacts, KindCount, RowCounts, facts_of
from epsjoin.spark.ingest.read import make_reader, staged_schema
from epsjoin.spark.ingest.settle import make_writer
from epsjoin.spark.ingest.snapshot import find_snapshot
from epsjoin.spark.job import Job
from epsjoin.spark.rows import FrameRows


def run(job: Job) -> dict[str, float]:
    """Replace the run's slices of ``quarantine``, ``snapshots`` and ``points`` by the run's snapshot.

    One shuffle by id brings rows with the same key together: of equal rows the first is kept and the others
    are refused; different rows with one key are all refused. The readers count the rows that they read, the
    writers those that they keep and refuse; the sums must agree. The files of one pass bear the same
    fingerprint.

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
        listed.mapInArrow(make_reader(job.lake.source, schema), schemas.to_ddl(schema))
        .repartition("_slot")
        .sortWithinPartitions("_slot", "_file", "_line")
    )
    fingerprint = new_fingerprint()
    writer = make_writer(
        job.lake.source,
        parquet.target_of(job.lake, Slice("points", job.run, fingerprint=fingerprint)),
        parquet.target_of(job.lake, Slice("quarantine", job.run, fingerprint=fingerprint)),
    )
    reports = tasks.reports_of(FrameRows(staged).run(writer))
    written = [file for report in reports for file in report.files]
    delta_log.commit(job.lake, {Slice("quarantine", job.run, fingerprint=fingerprint): written})

    refused = sorted(sentence for report in reports for sentence in report.refused)
    if refused:
        raise DataRefusedError(refused[0] + (f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""))
    facts = facts_of(reports)
    snapshots = _snapshot_rows(facts)
    read = sum(row["rows_read"] for row in snapshots)
    quarantined = sum(row["rows_quarantined"] for row in snapshots)
    limit = job.lake.source.max_quarantine_share
    if quarantined > limit * read:
        raise DataRefusedError(
            f"{quarantined:,} of {read:,} rows ({quarantined / read:.1%}) are bad, {limit:.1%} are allowed; "
            f"most often: {_commonest_kind(facts)}. Every one is in the quarantine table, run {job.run}"
        )
    if quarantined == read:
        raise DataRefusedError("no row is left after quarantine")
    slices.write_slice(
        job.lake,
        Slice("snapshots", job.run, fingerprint=fingerprint),
        slices.table_of(job.lake, "snapshots", snapshots),
    )
    delta_log.commit(job.lake, {Slice("points", job.run, fingerprint=fingerprint): written})
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


def _snapshot_rows(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """The rows of ``snapshots``, by file; each file's rows were counted by its reader and by the writers."""
    kept: Counter[str] = Counter()
    quarantined: Counter[str] = Counter()
    for counts in facts:
        if isinstance(counts, RowCounts):
            kept[counts.source] += counts.kept
            quarantined[counts.source] += counts.quarantined
    rows = []
    files = [fact for fact in facts if isinstance(fact, FileFacts)]
    for file in sorted(files, key=lambda file: file.source):
        n_kept, n_quarantined = kept[file.source], quarantined[file.source]
        if n_kept + n_quarantined != file.rows_read:
            raise TableError(
                f"{file.source}: {file.rows_read} rows read, "
                f"but {n_kept} kept and {n_quarantined} quarantined"
            )
        rows.append(
            {
                "source": file.source,
                "bytes": file.n_bytes,
                "sha256": file.sha256,
                "rows_read": file.rows_read,
                "rows_ok": n_kept,
                "rows_quarantined": n_quarantined,
                "columns": json.dumps(file.columns, ensure_ascii=False),
            }
        )
    return rows


def _commonest_kind(facts: Sequence[Fact]) -> str:
    """The kind of reason that most rows of quarantine have; the first by name of equally common ones."""
    rows: Counter[str] = Counter()
    for fact in facts:
        if isinstance(fact, KindCount):
            rows[fact.kind] += fact.rows
    return max(sorted(rows), key=lambda kind: rows[kind])
