"""The values of windowed columns: counted by ingest, compared over runs by gate, report and library."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import epsjoin.spark
from epsjoin.errors import ArgumentError, DataRefusedError, MissingSliceError
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.spark import windows
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from epsjoin.spark.report.values import gather_values
from oracles.windows import Window
from tests.open_sets import DATA
from tests.spark.conftest import JobMaker
from tests.tiny import coordinate, has_slice, key

COLUMNS = [
    key(),
    coordinate("x"),
    {"name": "kind", "logicalType": "string", "windowed": True},
    {"name": "level", "logicalType": "integer", "windowed": True},
    {"name": "day", "logicalType": "date", "windowed": True},
    {"name": "is_open", "logicalType": "boolean", "windowed": True},
    {"name": "name", "logicalType": "string"},
]
HEADER = "id,x,kind,level,day,is_open,name\n"
MONTHS = ["2023-01-01", "2023-02-01", "2023-03-01", "2023-05-01", "2023-06-01"]
KINDS = [["VOR", "NDB"], ["VOR", "NDB", "NDB"], ["VOR"], ["VOR", "DME", ""], ["VOR", "VOR", "DME", "TACAN"]]
"""Kinds of the records of each month; there is no snapshot of April."""


@pytest.fixture
def job(make_job: JobMaker) -> Job:
    return make_job(COLUMNS, path="{date}.csv", interval="month", window_runs=3, guard={"lost": None})


def write(folder: Path, run: str, kinds: list[str]) -> None:
    lines = [f"{i},{i},{kind},{i % 2},2020-01-0{i % 2 + 1},true,n{i}\n" for i, kind in enumerate(kinds)]
    (folder / f"{run}.csv").write_text(HEADER + "".join(lines))


def write_months(job: Job) -> dict[str, Job]:
    for month, kinds in zip(MONTHS, KINDS, strict=True):
        write(job.project, month, kinds)
    return {
        month: replace(job, run=month, params=replace(job.params, accept=("lost", "new"))) for month in MONTHS
    }


def counted(job: Job, column: str) -> list[tuple[str | None, int]]:
    rows = slices.read_slice(job.lake, Fingerprints(job.lake, job.run).slice("value_counts")).to_pylist()
    return [(row["value"], row["points"]) for row in rows if row["column_name"] == column]


def test_ingest__counts_the_points_of_each_value(job: Job) -> None:
    lines = [
        "1,1,VOR,10,2020-01-01,true,a",
        "2,1,VOR,9,2020-01-01,,b",
        "3,1,,9,,false,c",
        "3,1,,9,,false,c",
        "4,n/a,NDB,9,,true,d",
        '5,1,"ä, ""b""",,,true,e',
    ]
    (job.project / "2023-06-01.csv").write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    relaxed = replace(job, lake=replace(job.lake, source=replace(job.lake.source, max_quarantine_share=0.9)))
    ingest.run(relaxed)
    assert counted(job, "kind") == [("VOR", 2), ('ä, "b"', 1), (None, 1)]
    assert counted(job, "level") == [("10", 1), ("9", 2), (None, 1)]
    assert counted(job, "day") == [("2020-01-01", 2), (None, 2)]
    assert counted(job, "is_open") == [("false", 1), ("true", 2), (None, 1)]
    assert counted(job, "name") == []


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 1, 3, 0, 2, 1]])
def test_windows__are_those_of_the_runs_by_date_whatever_the_order(
    here: None, job: Job, order: list[int]
) -> None:
    jobs = write_months(job)
    for number in order:
        ingest.run(jobs[MONTHS[number]])
    by_month = dict(zip(MONTHS, KINDS, strict=True))
    by_definition = Window(3)
    for month in range(1, 7):
        run = f"2023-0{month}-01"
        by_definition.push([kind or None for kind in by_month.get(run, [])])
        if run not in by_month:
            continue
        place = (job.lake.uri, "tiny", run)
        window = epsjoin.spark.value_window(*place, "kind", contracts=job.lake.contracts)
        counts = window.counts()
        assert list(zip(counts.values.tolist(), counts.rows.tolist(), strict=True)) == by_definition.counts()
        assert counts.missing == by_definition.missing()
        assert window.new().tolist() == by_definition.new()
        assert window.gone().tolist() == by_definition.gone()
    one = epsjoin.spark.value_window(*place, "kind", runs=1, contracts=job.lake.contracts)
    assert one.counts().values.tolist() == ["DME", "TACAN", "VOR"]
    found = {each.column: each for each in gather_values(job.lake, MONTHS[-1])}
    kinds = found["kind"]
    assert (kinds.n_intervals, kinds.n_runs, kinds.n_values) == (3, 2, 3)
    assert (kinds.new, kinds.gone) == ([{"value": "TACAN", "points": 1}], [])
    assert kinds.moved == [{"value": "DME", "points": 1, "fraction": 0.25, "fraction_before": 0.5}]
    assert found["level"].new == []
    assert found["kind"].n_new == 1
    first, _, _, may, _ = (gather_values(job.lake, month)[0] for month in MONTHS)
    assert (first.n_runs, first.new, first.gone, first.moved) == (1, [], [], [])
    assert (may.n_runs, may.new) == (2, [{"value": "DME", "points": 1}])
    assert may.gone == [{"value": "NDB", "points": 2}]  # of February, which left when there was no snapshot


def test_gate__warns_of_values_that_the_window_has_not(job: Job) -> None:
    jobs = write_months(job)
    warned = {}
    for month in MONTHS:
        ingest.run(jobs[month])
        check_quality(jobs[month], "input")
        rows = slices.read_quality(job.lake, month)
        (rule,) = (row for row in rows if row["expectation"] == "no_value_unseen_for_w_runs")
        warned[month] = (rule["severity"], rule["success"], rule["observed"])
    # of May no run of March and April has DME; of the first run nothing is new
    assert warned == {
        MONTHS[0]: ("warning", True, ""),
        MONTHS[1]: ("warning", True, ""),
        MONTHS[2]: ("warning", True, ""),
        MONTHS[3]: ("warning", False, "3"),
        MONTHS[4]: ("warning", False, "1"),
    }


def test_ingest__refuses_a_column_that_has_no_categories(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    write(job.project, "2023-06-01", ["a", "b", "c"])
    monkeypatch.setattr(windows, "MAX_VALUES", 2)
    with pytest.raises(DataRefusedError, match="column kind has more than 2 distinct values"):
        ingest.run(job)
    assert not has_slice(job.lake, "points", job.run)
    assert slices.count_rows(job.lake, Slice("quarantine", job.run)) == 0


def test_value_window__names_what_is_wrong(job: Job) -> None:
    place = (job.lake.uri, "tiny")
    for run, column, runs, sentence in (
        ("2023-06-01", "name", None, "column name of tiny is not windowed .* kind, level, day, is_open"),
        ("June", "kind", None, "run must be a date like 2023-06-01, not 'June'"),
        ("2023-06-01", "kind", 0, "runs must be a whole number"),
    ):
        with pytest.raises(ArgumentError, match=sentence):
            epsjoin.spark.value_window(*place, run, column, runs=runs, contracts=job.lake.contracts)
    with pytest.raises(MissingSliceError, match="value_counts of tiny has no run in .*; run ingest first"):
        epsjoin.spark.value_window(*place, "2023-06-01", "kind", contracts=job.lake.contracts)


@pytest.mark.long
@pytest.mark.parametrize("step", [1, 11])
def test_types_of_frequencies__are_new_and_gone_in_the_report(make_job: JobMaker, step: int) -> None:
    """Twenty-six months with each of their types once, back-filled in order, and every eleventh first."""
    expected: dict[str, Any] = json.loads((DATA / "histories" / "expected_windows.json").read_text("utf-8"))
    columns = [key(), coordinate("x"), {"name": "type", "logicalType": "string", "windowed": True}]
    job = make_job(
        columns,
        path="{date}.csv",
        interval="month",
        window_runs=expected["w"],
        guard=dict.fromkeys(("lost", "new", "updated", "moved", "keys")),
    )
    runs: dict[str, list[str]] = {}
    path = DATA / "histories" / "airport_frequency_types.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            runs.setdefault(row["run"], []).append(row["type"])
    for run, types in runs.items():
        with (job.project / f"{run}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "x", "type"])
            rows.writerows([i, i, each] for i, each in enumerate(types))
    days = sorted(runs)
    for number in range(len(days)):
        day = days[number * step % len(days)]
        ingest.run(replace(job, run=f"{day[:7]}-01"))
    for wanted, before in zip(expected["runs"], [None, *expected["runs"]], strict=False):
        (found,) = gather_values(job.lake, f"{wanted['run'][:7]}-01")
        assert found.n_gone == len(wanted["gone"])
        assert [row["value"] for row in found.gone] == sorted(wanted["gone"])[:20]
        assert [row["value"] for row in found.new] == (sorted(wanted["new"])[:20] if before else [])
        assert found.n_values == wanted["distinct_in_run"]
