"""A snapshot that is refused as a whole: what is said, and what stays as it was."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from epsjoin.errors import DataRefusedError, NothingToDoError
from epsjoin.lake import refusals, slices
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.ingest import ingest
from tests.spark.conftest import JobMaker
from tests.spark.ingest.test_ingest import GOOD, XY, rows
from tests.tiny import RUN


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "snapshot.csv: the file has nothing in it"),
        (b"id,x,y,name\n", "snapshot.csv: the file has a header but no record"),
        (
            GOOD.replace("y", "why", 1).encode(),
            "snapshot.csv: column 'y' is missing; the file has id, x, why, name",
        ),
        (
            GOOD.replace("name", "x", 1).encode(),
            "column 'name' is missing; the file has id, x, y, x; one that is not required must be there, too",
        ),
        (b"id,x,y\xff,name\n1,0,0,a\n", r"column 'y' is missing; the file has id, x, y\\xff, name"),
        (b'id,x,y,name\n1,0,0,a\n2,0,0,"b\n3,0,0,c\n', "line 3: a quoted field begins here and does not end"),
        (
            b"id,x,y,name\n1,0,0,a\n2,,0,b\n",
            r"1 of 2 rows \(50%\) are bad, 0% are allowed; most often: x: missing.*; "
            "mend the source, or raise max_quarantine_share in the contract",
        ),
        (
            b"id,x,y,name\n1,a,0,a\n2,b,0,b\n",
            r"2 of 2 rows \(100%\) are bad, .*; mend the source, or what the contract says of it$",
        ),
    ],
)
def test_ingest__refuses_a_broken_file_and_leaves_a_run_alone(
    make_job: JobMaker, tmp_path: Path, content: bytes, sentence: str
) -> None:
    """The run passes its gate as before. Of a run that has not come in, the bad rows are stored."""
    job = make_job(XY)
    (tmp_path / "snapshot.csv").write_text(GOOD)
    ingest.run(job)

    def files() -> dict[str, list[File]]:
        written = ("points", "quarantine", "snapshots")
        return {table: slices.files_of(job.lake, Slice(table, RUN)) for table in written}

    before, on_disk = files(), set(tmp_path.rglob("*.parquet"))
    (tmp_path / "snapshot.csv").write_bytes(content)
    with pytest.raises(DataRefusedError, match=sentence):
        ingest.run(job)
    assert files() == before
    assert set(tmp_path.rglob("*.parquet")) == on_disk
    check_quality(job, "input")
    with pytest.raises(DataRefusedError, match=sentence):
        ingest.run(replace(job, run="2023-06-02"))
    assert slices.read_slice(job.lake, Slice("quarantine", "2023-06-02")).num_rows


def test_ingest__keeps_why_a_snapshot_with_a_folder_in_it_is_refused_while_it_is_there(
    make_job: JobMaker, tmp_path: Path
) -> None:
    """The list of reports shows the sentence, as of a broken file."""
    job = make_job(XY, path="{date}")
    inner = tmp_path / RUN / "more"
    inner.mkdir(parents=True)
    with pytest.raises(DataRefusedError, match="'more' in it is not a file") as refused:
        ingest.run(job)
    assert refusals.read(job.lake, RUN) == str(refused.value)
    inner.parent.rename(tmp_path / "2023-06-30")
    with pytest.raises(NothingToDoError):
        ingest.run(job)
    assert refusals.read(job.lake, RUN) == ""


def test_ingest__refuses_a_broken_gzip(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job(XY, path="snapshot.csv.gz")
    whole = gzip.compress((GOOD + "".join(f"{i},{i % 7}.5,0,z{i * i}\n" for i in range(9, 5000))).encode())
    (tmp_path / "snapshot.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataRefusedError, match=r"broken gzip after \d+ records"):
        ingest.run(job)
    assert "broken gzip" in rows(job, "quarantine")[0]["reason"]
