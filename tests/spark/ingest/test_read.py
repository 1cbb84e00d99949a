"""Reading a snapshot's files: what is left of one that is refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv

from epsjoin.errors import EpsjoinError
from epsjoin.lake.lake import Slice
from epsjoin.lake.targets import target_of
from epsjoin.spark.ingest import read
from epsjoin.spark.ingest.facts import FileFacts, facts_of
from epsjoin.spark.ingest.read import SourceFile, make_reader, unreadable
from epsjoin.spark.ingest.writer import Targets
from epsjoin.spark.tasks.reports import TaskReport
from tests.spark.conftest import JobMaker
from tests.spark.ingest.test_ingest import XY


@pytest.mark.parametrize("source_format", ["csv", "json"])
def test_read_file__digests_what_a_refused_file_has_left(
    make_job: JobMaker, tmp_path: Path, source_format: str
) -> None:
    job = make_job(XY, path="a", format=source_format)
    content = ("id,x,y,name\n" + '1,0,0,"' + "a" * 5_000_000) if source_format == "csv" else '{"id": 1}\n' * 9
    (tmp_path / "a").write_text(content)
    file = SourceFile(0, "a", (tmp_path / "a").as_uri(), may_be_empty=False)
    targets = Targets(*(target_of(job.lake, Slice(table, job.run)) for table in Targets._fields))
    *_, last = make_reader(job.lake.source, targets)(file)
    report = TaskReport.from_json(last["report"][0].as_py())
    (facts,) = (fact for fact in facts_of([report]) if isinstance(fact, FileFacts))
    assert facts.refused
    assert facts.n_bytes == len(content)
    assert facts.sha256 == hashlib.sha256(content.encode()).hexdigest()


def test_read_file__says_of_a_file_that_it_cannot_open_what_to_do(make_job: JobMaker, tmp_path: Path) -> None:
    """As where somebody has taken it away since it was listed."""
    job = make_job(XY, path="a.csv")
    targets = Targets(*(target_of(job.lake, Slice(table, job.run)) for table in Targets._fields))
    gone = SourceFile(0, "a.csv", (tmp_path / "a.csv").as_uri(), may_be_empty=False)
    with pytest.raises(EpsjoinError, match=r"^a\.csv cannot be read \(.*\); run ingest again$") as raised:
        list(make_reader(job.lake.source, targets)(gone))
    assert raised.value.exit_code == 1, "another try may help"


@pytest.mark.parametrize("change", ["written anew", "goes on", "another in its place", "gone"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_read_file__takes_no_file_that_changes_while_it_is_read(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, change: str
) -> None:
    """One half might be of the old file, the other of the new one, without a sign of it in the records."""
    form = ending.split(".")[1]
    job = make_job(XY, path=f"a{ending}", format=form)
    file, stream = tmp_path / f"a{ending}", io.BytesIO()
    rows = pa.table({"id": range(9), "x": [0.0] * 9, "y": [0.0] * 9, "name": ["a"] * 9})
    (pq.write_table if form == "parquet" else write_csv)(rows, stream)
    file.write_bytes(gzip.compress(stream.getvalue()) if ending == ".csv.gz" else stream.getvalue())
    targets = Targets(*(target_of(job.lake, Slice(table, job.run)) for table in Targets._fields))
    given = SourceFile(0, file.name, file.as_uri(), may_be_empty=False)
    assert len(list(make_reader(job.lake.source, targets)(given))) == 2
    content = file.read_bytes()
    opened = read.open_batches

    def open_and_change(*args: Any, **named: Any) -> Any:
        if change == "written anew":
            file.write_bytes(content[:-1] + b"b")
            os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))
        elif change == "goes on":
            file.write_bytes(content + b"9,0,0,a\n")
        else:
            file.unlink()
            if change == "another in its place":
                file.write_bytes(content + b"9,0,0,a\n")
        return opened(*args, **named)

    monkeypatch.setattr(read, "open_batches", open_and_change)
    told = rf"^{file.name}: the file changed while it was read; run ingest again$"
    with pytest.raises(EpsjoinError, match=told) as raised:
        list(make_reader(job.lake.source, targets)(given))
    assert raised.value.exit_code == 1, "another try may help"


def test_unreadable__names_the_one_who_can_mend_it() -> None:
    told = str(unreadable("a.csv", PermissionError(13, "Permission denied", "/x/a.csv")))
    assert told == (
        "a.csv cannot be read ([Errno 13] Permission denied: '/x/a.csv'); let this user read it, then run "
        "ingest again"
    )
