"""The passes over a snapshot's files: all are read once, those with doubles once more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from epsjoin.errors import EpsjoinError, TableError
from epsjoin.lake import schemas, targets
from epsjoin.spark.ingest.divide import divide, merge_sections
from epsjoin.spark.ingest.doubles import doubles_of, make_finder
from epsjoin.spark.ingest.facts import FileFacts, RowCounts, facts_of
from epsjoin.spark.ingest.read import ID_STREAMS, SourceFile, make_reader
from epsjoin.spark.ingest.settle import make_second_reader, make_settler, staged_schema
from epsjoin.spark.ingest.writer import Targets
from epsjoin.spark.job.job import Job
from epsjoin.spark.rows.rows import DriverRows, FrameRows
from epsjoin.spark.tasks import tasks
from epsjoin.spark.tasks.reports import TaskReport, add_counters
from epsjoin.spark.tasks.shared import has_one_machine

MAX_GIVEN = 128
"""Maximum number of files and sections whose ids the driver takes, up to a megabyte of each by its JVM."""


def read_and_settle(
    job: Job, files: Sequence[SourceFile], into: Targets, whole: frozenset[str] = frozenset()
) -> list[TaskReport]:
    """Write points, digests and refused records of all files; return the reports of what remains.

    Parameters
    ----------
    whole : names of files that cannot be read in sections, as an earlier attempt has shown.

    Raises
    ------
    TableError
        Ids were lost on the way.
    EpsjoinError
        A file has changed while it was read, or before one with doubles was read again.
    """
    source = job.lake.source
    read = make_reader(source, into)
    if not source.key:  # each id is there once
        return reports_in(tasks.run_tasks(job.spark, files, read))
    items = divide(job.spark, source, files, whole)
    found = _find_doubles(job, items, read)
    reports = reports_in(found)
    n_kept = sum(fact.kept for fact in facts_of(reports) if isinstance(fact, RowCounts))
    n_ids = add_counters(reports).get("ids", 0)
    if n_ids != n_kept:
        raise TableError(f"{n_kept:,} points were written, but {n_ids:,.0f} ids compared; run ingest again")
    _, unfit = merge_sections(source, facts_of(reports))
    if unfit:
        _delete_files(reports, into)
        return read_and_settle(job, files, into, whole | unfit)
    doubles = doubles_of(found, reports)
    if not doubles:
        return reports
    schema = staged_schema(job.lake)
    again = [(items[index], numbers) for index, numbers in sorted(doubles.items())]
    read_again = {(file.name, file.section.number if file.section else None) for file, _ in again}
    before = [report for report in reports if _read_by(report) & read_again]
    _delete_files(before, into)
    second = make_second_reader(source, into, schema)
    staged = tasks.lazy_tasks(job.spark, again, second, schemas.to_ddl(schema))
    by_slot = staged.repartition("_slot").sortWithinPartitions("_slot", "_file", "_line")
    settled = TaskReport.of_batches(FrameRows(by_slot).run(make_settler(source, into, len(items))))
    _check_unchanged(before, settled)
    return [report for report in reports if not _read_by(report) & read_again] + settled


def _find_doubles(
    job: Job, items: Sequence[SourceFile], read: Callable[[SourceFile], Iterator[pa.RecordBatch]]
) -> list[pa.RecordBatch]:
    """Read all files and compare the ids, bucket by bucket; return what :func:`make_finder` finds.

    On one machine the driver compares those of up to ``MAX_GIVEN`` files or sections: a query with a shuffle
    would take longer to plan and to start than it takes to sort some million ids. The driver maps the files
    in which the readers leave them; less than a megabyte of each reader goes through the JVM.
    """
    if not has_one_machine(job.spark) or len(items) > MAX_GIVEN:
        streams = tasks.lazy_tasks(job.spark, items, read, ID_STREAMS)
        by_bucket = streams.repartition("bucket").sortWithinPartitions("bucket")
        return FrameRows(by_bucket).run(make_finder())
    buckets: dict[int, list[pa.RecordBatch]] = {}
    for batch in tasks.run_tasks(job.spark, items, read):
        for row, bucket in enumerate(batch["bucket"].to_pylist()):
            buckets.setdefault(bucket, []).append(batch.slice(row, 1))
    n_threads = job.spark.sparkContext.defaultParallelism
    return DriverRows(job.session, n_threads, list(buckets.values()), iter, ID_STREAMS).run(make_finder())


def _delete_files(reports: Sequence[TaskReport], into: Targets) -> None:
    written = [file for report in reports for file in report.files]
    for target in into:
        targets.delete_files(target, [file.path for file in written if file.table == target.table])


def reports_in(batches: Iterable[pa.RecordBatch]) -> list[TaskReport]:
    """The reports among the batches that readers yield."""
    return [
        TaskReport.from_json(text) for batch in batches for text in batch["report"].drop_null().to_pylist()
    ]


def _read_by(report: TaskReport) -> set[tuple[str, int | None]]:
    """The files, or sections of files, that a reader's report is about."""
    return set(_files_of([report]))


def _files_of(reports: Iterable[TaskReport]) -> dict[tuple[str, int | None], FileFacts]:
    return {(f.source, f.section): f for f in facts_of(reports) if isinstance(f, FileFacts)}


def _check_unchanged(before: Sequence[TaskReport], after: Sequence[TaskReport]) -> None:
    then, now = _files_of(before), _files_of(after)
    for (name, section), first in then.items():
        second = now[name, section]
        if second != first:
            how = (
                f"it had {first.n_bytes:,} bytes of SHA-256 {first.sha256}, then {second.n_bytes:,} of "
                f"{second.sha256}"
                if section is None
                else "it was larger or smaller, or was changed later, than at first"
            )
            raise EpsjoinError(f"{name}: the file changed while it was read: {how}; run ingest again")
