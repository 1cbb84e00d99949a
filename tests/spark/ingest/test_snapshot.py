"""Which files are a run's snapshot."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import date
from pathlib import Path
from unittest import mock

import pyarrow.fs as pafs
import pytest

from epsjoin.contracts.times import interval_of
from epsjoin.errors import ArgumentError, DataRefusedError, EpsjoinError, NothingToDoError
from epsjoin.spark.ingest import ingest, snapshot
from epsjoin.spark.ingest.snapshot import find_snapshot
from tests.spark.conftest import JobMaker
from tests.spark.ingest.test_ingest import GOOD, XY


def test_find_snapshot__refuses_a_folder_in_a_snapshot(make_job: JobMaker, tmp_path: Path) -> None:
    (tmp_path / "2023-06-04" / "_temporary").mkdir(parents=True)
    (tmp_path / "2023-06-04" / ".hidden").mkdir()
    (tmp_path / "2023-06-04" / "a.csv").write_text(GOOD)
    job = make_job(XY, path="{date}", interval="month")
    assert [name for name, _ in find_snapshot(job)] == ["2023-06-04/a.csv"]
    (tmp_path / "2023-06-04" / "more").mkdir()
    with pytest.raises(DataRefusedError, match="2023-06-04: 'more' in it is not a file") as raised:
        find_snapshot(job)
    assert raised.value.exit_code == 3


@pytest.mark.parametrize(
    ("interval", "day", "begin", "end"),
    [
        ("day", "2024-02-28", "2024-02-28", "2024-02-29"),
        ("week", "2023-12-28", "2023-12-28", "2024-01-04"),
        ("month", "2023-12-01", "2023-12-01", "2024-01-01"),
        ("month", "2023-01-31", "2023-01-01", "2023-02-01"),
        ("quarter", "2023-11-01", "2023-10-01", "2024-01-01"),
        ("quarter", "2023-03-31", "2023-01-01", "2023-04-01"),
        ("year", "2024-02-29", "2024-01-01", "2025-01-01"),
    ],
)
def test_interval_of__a_day_ends_where_the_next_begins(interval: str, day: str, begin: str, end: str) -> None:
    found = interval_of(interval, date.fromisoformat(day))
    assert [each.isoformat() for each in found] == [begin, end]


@pytest.mark.parametrize(
    ("interval", "run", "right"),
    [
        ("month", "2023-06-02", "2023-06-01"),
        ("quarter", "2023-06-01", "2023-04-01"),
        ("year", "2023-06-01", "2023-01-01"),
    ],
)
def test_find_snapshot__refuses_a_run_that_begins_within_an_interval(
    make_job: JobMaker, tmp_path: Path, interval: str, run: str, right: str
) -> None:
    (tmp_path / "2023-06-04.csv").write_text(GOOD)
    job = make_job(XY, path="{date}.csv", interval=interval, run=run)
    sentence = f"run {run} is not the first day of a {interval}, by .* that {interval} is run {right}"
    with pytest.raises(ArgumentError, match=sentence) as raised:
        find_snapshot(job)
    assert raised.value.exit_code == 2
    assert find_snapshot(replace(job, run=right))


def test_find_snapshot__weeks_begin_with_the_weekday_of_the_runs_that_are_there(
    make_job: JobMaker, tmp_path: Path
) -> None:
    for day in ("2023-06-04", "2023-06-13"):
        (tmp_path / f"{day}.csv").write_text(GOOD)
    job = make_job(XY, path="{date}.csv", interval="week", run="2023-06-01")
    ingest.run(job)
    assert find_snapshot(replace(job, run="2023-06-08"))
    with pytest.raises(
        ArgumentError, match="run 2023-06-11 is not the first day of a week, .* run 2023-06-08"
    ):
        find_snapshot(replace(job, run="2023-06-11"))


def test_find_snapshot__without_one_names_those_before_and_after(make_job: JobMaker, tmp_path: Path) -> None:
    for day in ("2020-01-01", "2023-05-31", "2023-07-02", "2024-12-31"):
        (tmp_path / f"{day}.csv").write_text(GOOD)
    job = make_job(XY, path="{date}.csv", interval="month")
    said = "the last one before is 2023-05-31, the first one after is 2023-07-02$"
    with pytest.raises(NothingToDoError, match=said):
        find_snapshot(job)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("more/{date}.csv", "more does not exist below "),
        ("all.csv/{date}.csv", "all.csv is a file, or below one$"),
        ("all.csv/more/{date}.csv", "all.csv/more is a file, or below one$"),
    ],
)
def test_find_snapshot__refuses_a_folder_that_is_none(
    make_job: JobMaker, tmp_path: Path, path: str, why: str
) -> None:
    (tmp_path / "all.csv").write_text(GOOD)
    with pytest.raises(DataRefusedError, match=f"the snapshots' folder {why}"):
        find_snapshot(make_job(XY, path=path, interval="month"))


def test_find_snapshot__passes_over_a_day_that_does_not_exist(make_job: JobMaker, tmp_path: Path) -> None:
    for day in ("2023-06-30", "2023-06-31"):
        (tmp_path / f"{day}.csv").write_text(GOOD)
    job = make_job(XY, path="{date}.csv", interval="month")
    assert [name for name, _ in find_snapshot(job)] == ["2023-06-30.csv"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a_{date:yyyyMMdd}.csv", "a_20230604.csv"),
        ("{date:dd.MM.yyyy}.csv", "02.06.2023.csv"),
        ("{date}.csv", "2023-06-03.csv"),
        ("{date:MM-dd-yyyy}.csv", None),
    ],
)
@pytest.mark.parametrize("is_uri", [False, True])
def test_find_snapshot__reads_dates_in_the_form_of_the_path(
    make_job: JobMaker, tmp_path: Path, path: str, found: str | None, is_uri: bool
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    for name in ("a_20230604", "a_20230531", "a_20230631", "a_120230605", "31.05.2023", "02.06.2023"):
        (folder / f"{name}.csv").write_text(GOOD)
    (folder / "2023-06-03.csv").write_text(GOOD)
    whole = f"{folder.as_uri()}/{path}" if is_uri else f"{folder}/{path}"
    job = make_job(XY, path=whole, interval="month")
    if found is None:
        with pytest.raises(NothingToDoError, match="there is none at all"):
            find_snapshot(job)
    else:
        assert [name for name, _ in find_snapshot(job)] == [found]


def test_find_snapshot__passes_over_a_name_that_is_not_utf_8_unless_it_is_in_the_snapshot(
    make_job: JobMaker, tmp_path: Path
) -> None:
    (tmp_path / "2023-06-04").mkdir()
    (tmp_path / "2023-06-04" / "a.csv").write_text(GOOD)
    Path(os.fsdecode(bytes(tmp_path) + b"/m\xe4rz.csv")).touch()
    job = make_job(XY, path="{date}", interval="month")
    assert [name for name, _ in find_snapshot(job)] == ["2023-06-04/a.csv"]
    Path(os.fsdecode(bytes(tmp_path) + b"/2023-06-04/m\xe4rz.csv")).touch()
    with pytest.raises(DataRefusedError, match="rz.csv. in it is not a file, or its name is not UTF-8"):
        find_snapshot(job)


@pytest.mark.parametrize("form", ["/points{}.csv", "file:///points{}.csv"])
@pytest.mark.parametrize("date", ["", "-2023-06-04"])
def test_find_snapshot__directly_below_the_root_reads_no_other(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, date: str
) -> None:
    (tmp_path / f"points{date}.csv").write_text(GOOD)  # the project's own
    monkeypatch.setattr(snapshot, "_entries", lambda _, folder: [pafs.FileInfo(f"{folder}points{date}.csv")])
    asked = mock.Mock(side_effect=lambda uri, name: [(name, uri)])
    monkeypatch.setattr(snapshot, "_list_files", asked)
    job = make_job(XY, path=form.format("-{date}" if date else ""), interval="month")
    ((_, uri),) = find_snapshot(job)
    assert uri == f"file:///points{date}.csv"


@pytest.mark.parametrize("target", ["nowhere.csv", "b.csv"])
def test_find_snapshot__refuses_a_link_that_leads_nowhere(
    make_job: JobMaker, tmp_path: Path, target: str
) -> None:
    """``b.csv`` leads to itself."""
    folder = tmp_path / "2023-06-04"
    folder.mkdir()
    (folder / "a.csv").write_text(GOOD)
    (folder / "good.csv").symlink_to("a.csv")
    job = make_job(XY, path="{date}", interval="month")
    assert [name for name, _ in find_snapshot(job)] == ["2023-06-04/a.csv", "2023-06-04/good.csv"]
    (folder / "b.csv").symlink_to(target)
    with pytest.raises(DataRefusedError, match="2023-06-04: 'b.csv' in it is a link that leads nowhere"):
        find_snapshot(job)
    (tmp_path / "2023-06-05").symlink_to(folder / target)
    with pytest.raises(DataRefusedError, match="there is no file 2023-06-05, or it is a link that leads now"):
        find_snapshot(job)


@pytest.mark.parametrize(("path", "what"), [("{date}.csv", "the snapshots' folder"), ("all", "the folder")])
def test_find_snapshot__says_what_to_do_about_a_folder_that_it_may_not_read(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, what: str
) -> None:
    (tmp_path / "all").mkdir()

    def forbid(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))  # the user of the tests may read any

    monkeypatch.setattr(Path, "iterdir", forbid)
    with pytest.raises(EpsjoinError, match=rf"^{what}.* cannot be read \(.*\); let this user") as raised:
        find_snapshot(make_job(XY, path=path, interval="month"))
    assert raised.value.exit_code == 1, "another try may help"
