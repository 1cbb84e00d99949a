"""The step ``ingest``: records of one snapshot become typed points, or go to quarantine with a reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from epsjoin.console import counted, percent, percents, say
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError, EpsjoinError, NothingToDoError, TableError
from epsjoin.lake import refusals, slices, targets, transactions
from epsjoin.lake.fingerprints import new_fingerprint
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.local.guard.judge import Finding, refusal_of
from epsjoin.pipeline import tables_of
from epsjoin.spark.ingest.divide import merge_sections
from epsjoin.spark.ingest.facts import Fact, FileFacts, KindCount, RowCounts, facts_of
from epsjoin.spark.ingest.guard import Snapshot, judge_snapshot
from epsjoin.spark.ingest.passes import read_and_settle
from epsjoin.spark.ingest.read import SourceFile
from epsjoin.spark.ingest.snapshot import find_snapshot
from epsjoin.spark.ingest.writer import Targets
from epsjoin.spark.job.job import Job
from epsjoin.spark.rows.stored import StoredSlice
from epsjoin.spark.tasks.reports import TaskReport
from epsjoin.spark.windows import count_values

_MAX_NAMED = 5
"""Maximum number of files without a record that are named, each in a line."""


def run(job: Job) -> dict[str, float]:
    """Replace the run's slices of the tables that ``pipeline`` names by the run's snapshot.

    Each file, or section of a large one, is read by one task, which writes its points and its refused
    records. The ids alone are compared to find the doubles; files that have some are read again, and a
    shuffle brings the doubles of a key together: of equal rows the first is kept and the others are refused;
    different rows with one key are all refused. The readers count the rows that they read, the writers those
    that they keep and refuse; the sums must agree. Records that the contract's condition leaves out are only
    counted. The files of one pass have the same fingerprint.

    Before anything but ``quarantine`` and ``guard`` is written, the snapshot is compared with the one before
    it, see :mod:`epsjoin.local.guard.judge`.

    Raises
    ------
    NothingToDoError
        No snapshot, or no record of it, is dated within the run's interval.
    DataRefusedError
        A file is empty, broken or lacks a column; two keys share an id; too many rows are bad; or the guard
        holds the snapshot. The slice of ``quarantine`` and, if the guard holds it, that of ``guard`` are then
        written, and the others are not touched; if the run has points already, none is. The sentence is kept
        beside the run's report until a snapshot comes in (:mod:`epsjoin.lake.refusals`).
    """
    try:
        return _take_in(job, find_snapshot(job))
    except NothingToDoError:
        refusals.clear(job.lake, job.run)  # an earlier refusal is no longer about the run's snapshot
        raise
    except DataRefusedError as error:
        try:
            refusals.write(job.lake, job.run, str(error))
        except EpsjoinError as failed:  # the refusal matters more
            say(f"ingest: {failed}")
        raise


def _take_in(job: Job, files: Sequence[tuple[str, str]]) -> dict[str, float]:
    fingerprint = new_fingerprint()
    name = files[0][0] if len(files) == 1 else files[0][0].rpartition("/")[0]
    say(f"ingest: {job.lake.source.name} {job.run}: {', '.join(name for name, _ in files)}")
    of = {table: Slice(table, job.run, fingerprint=fingerprint) for table in tables_of("ingest")}
    into = Targets(*(targets.target_of(job.lake, of[table]) for table in Targets._fields))
    sources = [SourceFile(i, name, uri, may_be_empty=len(files) > 1) for i, (name, uri) in enumerate(files)]
    is_new, committed = job.run not in slices.list_runs(job.lake, "points"), set[str]()
    with targets.deleted_on_error(*into, committed=committed):
        reports = read_and_settle(job, sources, into)
        written = [file for report in reports for file in report.files]

        def commit_quarantine() -> None:
            committed.update(file.path for file in written if file.table == "quarantine")
            transactions.commit(job.lake, {of["quarantine"]: written})

        try:
            snapshots = _check_records(job, reports, is_new=is_new)
            values = count_values(_stored(job, of["points"], written), job.lake.source.windowed)
        except (DataRefusedError, NothingToDoError):
            if is_new:
                commit_quarantine()
            raise
        points, digests = (_stored(job, of[table], written) for table in ("points", "digests"))
        findings = judge_snapshot(job, Snapshot(name, points, digests, snapshots))
        refusal = refusal_of(findings)
        if refusal is not None and not is_new:
            raise DataRefusedError(refusal)
        commit_quarantine()
        _write_findings(job, findings, of["guard"])
        if refusal is not None:
            raise DataRefusedError(refusal)
        slices.write_slice(job.lake, of["snapshots"], slices.table_of(job.lake, "snapshots", snapshots))
        slices.write_slice(job.lake, of["value_counts"], slices.table_of(job.lake, "value_counts", values))
    for table in ("digests", "points"):
        transactions.commit(job.lake, {of[table]: written})
    refusals.clear(job.lake, job.run)
    return _tell(job, snapshots)


def _stored(job: Job, where: Slice, written: Iterable[File]) -> StoredSlice:
    """A slice before it is committed; its files are in the same order as those of a slice in the lake."""
    files = sorted((file for file in written if file.table == where.table), key=lambda file: file.path)
    return StoredSlice(job, where, job.lake.schema(where.table), files)


def _check_records(job: Job, reports: Sequence[TaskReport], *, is_new: bool) -> list[dict[str, Any]]:
    """Check the files and their records by themselves; return the rows of ``snapshots``.

    Parameters
    ----------
    is_new : whether the run has no points yet, so that bad rows are stored although it is refused.

    Raises
    ------
    DataRefusedError
        A file is refused, too many records are bad, or none is left.
    NothingToDoError
        None is left, and the contract's condition is about the run's interval.
    """
    refused = sorted(sentence for report in reports for sentence in report.refused)
    if refused:
        raise DataRefusedError(refused[0] + (f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""))
    facts, _ = merge_sections(job.lake.source, facts_of(reports))
    snapshots = _snapshot_rows(facts, job.lake.source.condition)
    read, kept, quarantined, left_out = _sums(snapshots)
    limit = job.lake.source.max_quarantine_share
    share = quarantined / max(1, read - left_out)  # in float64, 0.29 * 100 is less than 29
    if share > limit:
        beside = f", beside {left_out:,} that are left out" if left_out else ""
        where = f"Every one is in the quarantine table, run {job.run}"
        if not is_new:
            where = f"Run {job.run} keeps what came in before, so that these are stored nowhere"
        remedy = "mend the source, or raise max_quarantine_share in the contract"
        if quarantined == read - left_out:  # a share of 1 would let in nothing
            remedy = "mend the source, or what the contract says of it"
        bad, allowed = percents(share, limit)
        raise DataRefusedError(
            f"{quarantined:,} of {read - left_out:,} rows ({bad}) are bad{beside}, "
            f"{allowed} are allowed; most often: {_commonest_kind(facts)}. {where}; {remedy}"
        )
    if not kept and job.lake.source.is_of_interval:
        raise NothingToDoError(f"no record of {job.lake.source.name} is of the interval of run {job.run}")
    if not kept:
        raise DataRefusedError(
            f"no row is left: of {read:,}, {quarantined:,} are in quarantine and {left_out:,} left out"
        )
    return snapshots


def _write_findings(job: Job, findings: Sequence[Finding], where: Slice) -> None:
    """Store what the guard found, and print what is unusual but lets the snapshot in."""
    rows = [finding._asdict() for finding in findings]
    slices.write_slice(job.lake, where, slices.table_of(job.lake, "guard", rows))
    for finding in findings:
        if finding.verdict in ("warned", "accepted"):
            say(f"ingest: {finding.verdict}: {finding.check}: {finding.words}")


def _sums(snapshots: Sequence[Mapping[str, Any]]) -> list[int]:
    """Numbers of records that were read, taken, refused and left out, over all files."""
    names = ("rows_read", "rows_ok", "rows_quarantined", "rows_left_out")
    return [sum(row[name] for row in snapshots) for name in names]


def _tell(job: Job, snapshots: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Say what came in; return the counters."""
    read, kept, quarantined, left_out = _sums(snapshots)
    empty = [row for row in snapshots if not row["rows_read"]]
    said = f"{kept:,} kept, {quarantined:,} quarantined"
    condition = job.lake.source.condition
    if condition:
        share = f" ({percent(left_out / read)})" if left_out else ""
        said += f", {left_out:,}{share} left out, for which this is not true: {condition}"
    if empty:
        said += f"; {len(empty)} of {len(snapshots)} files without a record"
    say(f"ingest: {counted(read, 'row')} read, {said}")
    for row in empty[:_MAX_NAMED]:
        say(f"ingest: no record is in {row['source']} ({counted(row['bytes'], 'byte')})")
    if len(empty) > _MAX_NAMED:
        further = counted(len(empty) - _MAX_NAMED, "further file")
        say(f"ingest: no record is in {further}; the table snapshots has their names")
    return {
        "rows_read": read,
        "rows_ok": kept,
        "rows_quarantined": quarantined,
        "rows_left_out": left_out,
        "bytes": sum(row["bytes"] for row in snapshots),
        "expected_id_collisions": read**2 / 2**65 if _is_hashed(job.lake.source) else 0.0,
    }


def _is_hashed(source: SourceContract) -> bool:
    return len(source.key) > 1 or (len(source.key) == 1 and source.column(source.key[0]).type != "integer")


def _snapshot_rows(facts: Sequence[Fact], condition: str) -> list[dict[str, Any]]:
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
        if n_kept + n_quarantined + file.rows_left_out != file.rows_read:
            raise TableError(
                f"{file.source}: {file.rows_read:,} rows read, but "
                f"{n_kept:,} kept, {n_quarantined:,} quarantined and {file.rows_left_out:,} left out"
            )
        rows.append(
            {
                "source": file.source,
                "bytes": file.n_bytes,
                "sha256": file.sha256,
                "rows_read": file.rows_read,
                "rows_ok": n_kept,
                "rows_quarantined": n_quarantined,
                "rows_left_out": file.rows_left_out,
                "taken_where": condition or None,
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
