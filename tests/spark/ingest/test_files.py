"""The files of a snapshot: which a run takes, under any name, with or without records."""

from __future__ import annotations

from pathlib import Path

import pytest

from epsjoin.errors import DataRefusedError, NothingToDoError
from epsjoin.lake import uris
from epsjoin.spark.ingest import ingest
from epsjoin.spark.ingest.snapshot import find_snapshot
from tests.spark.conftest import JobMaker
from tests.spark.ingest.ingested import GOOD, XY, rows


def test_ingest__takes_the_last_snapshot_of_the_interval(make_job: JobMaker, tmp_path: Path) -> None:
    for day in ("2023-05-31", "2023-06-04", "2023-06-30", "2023-07-01"):
        (tmp_path / f"{day}.csv").write_text(GOOD)
    job = make_job(XY, path="{date}.csv", interval="month")
    ingest.run(job)
    assert rows(job, "snapshots")[0]["source"] == "2023-06-30.csv"


def test_ingest__has_nothing_to_do_without_a_snapshot(make_job: JobMaker, tmp_path: Path) -> None:
    (tmp_path / "2023-05-31.csv").write_text(GOOD)
    job = make_job(XY, path="{date}.csv", interval="month")
    with pytest.raises(NothingToDoError, match="no snapshot of tiny is dated 2023-06-01 to 2023-07-01"):
        ingest.run(job)


def test_ingest__reads_a_folder_of_files_as_one_snapshot(make_job: JobMaker, tmp_path: Path) -> None:
    (tmp_path / "2023-06-04").mkdir()
    (tmp_path / "2023-06-04" / "a.csv").write_text(GOOD)
    (tmp_path / "2023-06-04" / "b.csv").write_text("id,x,y,name\n3,4.5,5.5,c\n4,0,0,d\n")
    job = make_job(XY, path="{date}", interval="month", max_quarantine_share=0.5)
    ingest.run(job)
    assert sorted(row["id"] for row in rows(job, "points")) == [1, 2, 3, 4]
    assert [(r["source"], r["reason"]) for r in rows(job, "quarantine")] == [
        ("2023-06-04/b.csv", "key: the same row again")
    ]
    assert [(r["rows_ok"], r["rows_quarantined"]) for r in rows(job, "snapshots")] == [(3, 0), (1, 1)]


@pytest.mark.parametrize(
    ("name", "nothing", "record"),
    [
        ("csv", "id,x,y,name\n", "id,x,y,name\n1,0,0,a\n"),
        ("json", "", '{"id": 1, "x": 0, "y": 0, "name": "a"}\n'),
        ("json", "\n", '{"id": 1, "x": 0, "y": 0, "name": "a"}\n'),
    ],
)
def test_ingest__takes_parts_without_a_record_beside_others_and_says_so(
    make_job: JobMaker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    nothing: str,
    record: str,
) -> None:
    """As Spark writes them."""
    folder = tmp_path / "2023-06-04"
    folder.mkdir()
    (folder / f"a.{name}").write_text(nothing)
    (folder / f"b.{name}").write_text(record)
    job = make_job(XY, path="{date}", format=name, interval="month")
    assert ingest.run(job)["rows_ok"] == 1
    said = capsys.readouterr().out
    assert "1 row read, 1 kept, 0 quarantined; 1 of 2 files without a record" in said
    size = f"{len(nothing)} {'byte' if len(nothing) == 1 else 'bytes'}"
    assert f"ingest: no record is in 2023-06-04/a.{name} ({size})\n" in said
    assert [(row["source"], row["rows_read"]) for row in rows(job, "snapshots")] == [
        (f"2023-06-04/a.{name}", 0),
        (f"2023-06-04/b.{name}", 1),
    ]
    (folder / f"b.{name}").write_text(nothing)
    with pytest.raises(DataRefusedError, match="no row is left: of 0, 0 are in quarantine and 0 left out"):
        ingest.run(job)


def test_ingest__names_five_files_without_a_record_and_counts_the_others(
    make_job: JobMaker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "2023-06-04"
    folder.mkdir()
    for i in range(7):
        (folder / f"{i}.json").write_text("")
    (folder / "8.json").write_text('{"id": 1, "x": 0, "y": 0, "name": "a"}\n')
    ingest.run(make_job(XY, path="{date}", format="json", interval="month"))
    said = [line for line in capsys.readouterr().out.splitlines() if "no record is in" in line]
    assert said == [
        *(f"ingest: no record is in 2023-06-04/{i}.json (0 bytes)" for i in range(5)),
        "ingest: no record is in 2 further files; the table snapshots has their names",
    ]


ODD = "a #1%25.csv"
"""A name of which a URI means something else."""


@pytest.mark.parametrize(
    ("path", "place", "name"),
    [
        (ODD, ODD, ODD),
        ("{date}", f"2023-06-04/{ODD}", f"2023-06-04/{ODD}"),
        ("{date} " + ODD, f"2023-06-04 {ODD}", f"2023-06-04 {ODD}"),
        (f"in {ODD}/{{date}}", f"in {ODD}/2023-06-04/{ODD}", f"2023-06-04/{ODD}"),
    ],
)
@pytest.mark.parametrize("is_uri", [False, True])
def test_ingest__a_file_may_have_any_name(
    make_job: JobMaker, tmp_path: Path, path: str, place: str, name: str, is_uri: bool
) -> None:
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text(GOOD)
    if is_uri:
        path = (tmp_path / path).as_uri().replace("%7Bdate%7D", "{date}")
        name = path if "{date}" not in path else name
    job = make_job(XY, path=path, interval="month")
    ((shown, uri),) = find_snapshot(job)
    found = uris.filesystem_of(uri)[1]
    assert (shown, found) == (name, str(tmp_path / place))
    if place == f"2023-06-04/{ODD}" and not is_uri:
        ingest.run(job)
        assert [row["source"] for row in rows(job, "snapshots")] == [name]
