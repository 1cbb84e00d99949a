"""Ingest in this process, with the work of its tasks but without Spark: quick enough for many snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from epsjoin.lake import targets
from epsjoin.params import RunParams
from epsjoin.spark.ingest import ingest
from epsjoin.spark.ingest.doubles import doubles_of, make_finder
from epsjoin.spark.ingest.passes import reports_in
from epsjoin.spark.ingest.read import SourceFile, make_reader
from epsjoin.spark.ingest.settle import make_second_reader, make_settler, staged_schema
from epsjoin.spark.ingest.writer import Targets
from epsjoin.spark.job.job import Job
from epsjoin.spark.tasks.reports import TaskReport
from tests.tiny import RUN, new_lake


def no_session() -> NoReturn:
    pytest.fail("a session was asked for")


def new_job(folder: Path, columns: Sequence[Mapping[str, Any]], **custom: Any) -> Job:
    """A job that has no session, on monthly snapshots of a data set of the test's own."""
    lake = new_lake(folder, columns, path="{date}.csv", **{"interval": "month", **custom})
    return Job(no_session, lake, RUN, RunParams(), folder)


@contextmanager
def reading_here() -> Iterator[None]:
    """While this lasts, ``ingest.run`` reads in this process."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ingest, "read_and_settle", read_and_settle)
        yield


def read_and_settle(job: Job, files: Sequence[SourceFile], into: Targets) -> list[TaskReport]:
    source = job.lake.source
    read = make_reader(source, into)
    batches = [batch for file in files for batch in read(file)]
    if not source.key:
        return reports_in(batches)
    rows = pa.Table.from_batches(batches).sort_by("bucket").to_batches()
    found = list(make_finder()(rows))
    reports = reports_in(found)
    doubles = doubles_of(found, reports)
    if not doubles:
        return reports
    assert len(files) == 1, "what is read again is all that was read"
    for target in into:
        mine = [file for report in reports for file in report.files if file.table == target.table]
        targets.delete_files(target, [file.path for file in mine])
    second = make_second_reader(source, into, staged_schema(job.lake))
    staged = pa.Table.from_batches(second((files[0], doubles[0])))
    order = [("_slot", "ascending"), ("_file", "ascending"), ("_line", "ascending")]
    settle = make_settler(source, into, len(files))
    return reports_in(settle(staged.sort_by(order).to_batches()))
