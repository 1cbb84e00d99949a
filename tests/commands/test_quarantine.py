"""The refused records of a run, from a stored table and without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epsjoin.commands import cli
from epsjoin.lake import refusals, slices
from epsjoin.lake.lake import Lake, Slice
from tests import tiny
from tests.stored_runs import new_lake
from tests.tiny import coordinate, key

RUN, FILE = "2022-03-01", "2022-03-01.csv"


def refuse(lake: Lake, run: str, *records: tuple[int | None, str, str]) -> None:
    """Store the refused records of a run: line, reason and text of each."""
    rows: list[dict[str, Any]] = [
        {"run": run, "source": FILE, "line": line, "reason": reason, "raw": raw}
        for line, reason, raw in records
    ]
    slices.write_slice(lake, Slice("quarantine", run), slices.table_of(lake, "quarantine", rows))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = new_lake(tmp_path)
    refuse(
        lake,
        RUN,
        (1020, "lat: not a number: 'n/a'", "7,n/a,1"),
        (30, "id: missing", ",0.5,1"),
        (4, "lat: not a number: '?\u202e'", "5,?\u202e,\n1"),
    )
    refuse(lake, "2022-04-01")
    return lake


def ask(lake: Lake, *arguments: str, run: str = RUN) -> int:
    return cli.main(["quarantine", "--lake", lake.uri, "--dataset", "navaids", "--run", run, *arguments])


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_quarantine__counts_kinds_of_reasons_and_shows_records_by_line(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(lake) == 0
    assert said(capsys) == [
        "Navigation aids of the world, run 2022-03-01",
        "2  lat: not a number",
        "1  id: missing",
        r"2022-03-01.csv, line 4: lat: not a number: '?\u202e'",
        r"5,?\u202e,\n1",
        "2022-03-01.csv, line 30: id: missing",
        ",0.5,1",
        "2022-03-01.csv, line 1020: lat: not a number: 'n/a'",
        "7,n/a,1",
    ]


def test_quarantine__of_parquet_shows_records_by_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tiny.new_lake(tmp_path, [key(), coordinate("x")], path="a.parquet", format="parquet")
    refuse(lake, RUN, (4, "x: missing", "{}"))
    given = ["--lake", lake.uri, "--dataset", "tiny", "--contracts", str(lake.contracts), "--run", RUN]
    assert cli.main(["quarantine", *given]) == 0
    assert said(capsys)[2] == "2022-03-01.csv, row 4: x: missing"


def test_quarantine__of_a_reason_shows_its_records_and_says_how_many_more(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(lake, "--reason", "lat", "--limit", "1") == 0
    lines = said(capsys)
    assert lines[1] == "2  lat: not a number"
    assert lines[2].startswith("2022-03-01.csv, line 4: lat")
    assert lines[4:] == ["and 1 other; --limit 2 shows all"]


def test_quarantine__of_a_reason_that_no_record_has_says_so(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(lake, "--reason", "elevation") == 0
    assert said(capsys)[1:] == ["no reason has the text 'elevation'; 3 records were refused for others"]


def test_quarantine__of_a_run_without_bad_records_says_so(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(lake, run="2022-04-01") == 0
    assert said(capsys)[1:] == ["no record was refused"]


def test_quarantine__of_a_run_whose_last_snapshot_was_refused_says_why(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing: list[str] = []
    kinds = ((RUN, ["2  lat: not a number"]), ("2022-04-01", ["no record is in quarantine"]))
    for run, rest in (*kinds, ("2022-05-01", nothing)):
        refusals.write(lake, run, "a.csv: broken gzip")
        assert ask(lake, run=run) == 0
        assert said(capsys)[1:3] == ["the last snapshot was refused: a.csv: broken gzip", *rest]


def test_quarantine__has_the_first_line_of_a_file_that_was_refused_as_a_whole(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse(lake, RUN, (2, "id: missing", ","), (None, "the file is cut off", ""))
    assert ask(lake, "--limit", "1") == 0
    assert said(capsys)[3:5] == ["2022-03-01.csv: the file is cut off", "–"]
    refuse(lake, RUN, (None, "2022-03-01.csv: line 3: the file is cut off", ""))
    assert ask(lake, "--limit", "1") == 0
    assert said(capsys)[2:4] == ["2022-03-01.csv: line 3: the file is cut off", "–"]


def test_quarantine__of_a_run_that_no_ingest_has_seen_names_the_job(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(lake, run="2022-05-01") == 3
    assert "quarantine has no slice of run 2022-05-01; run ingest for it first" in capsys.readouterr().err
