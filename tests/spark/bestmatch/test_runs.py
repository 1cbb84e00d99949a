"""Runs that follow one another: each record is in one slice, whatever the order in which runs are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from epsjoin.contracts.load_source import load_source
from epsjoin.contracts.times import run_after, run_before
from epsjoin.errors import ContractError, DataRefusedError, MissingSliceError, TableError
from epsjoin.lake import delta_log, refusals
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.slices import read_slice, write_slice
from epsjoin.params import RunParams
from epsjoin.spark.bestmatch import match, sides
from epsjoin.spark.bestmatch.sides import to_numbers
from epsjoin.spark.job.job import Job
from tests.tiny import coordinate, key, new_lake, write_contract

RUNS = [f"2022-{month:02}-01" for month in range(1, 13)]
DAY = 86_400.0
LATE, EPS = 3 * DAY, 1.5 * DAY
COLUMNS = [key(), {"name": "at", "logicalType": "timestamp", "required": True}, coordinate("x")]
CRITERIA = [{"name": "time", "columns": ["at"], "eps": EPS}, {"name": "place", "columns": ["x"], "eps": 2.0}]
Points = Mapping[str, pa.Table]
"""Points by run."""


def new_job(folder: Path, uri: str, at: str = "timestamp", **match_: Any) -> Job:
    columns = [{**each, "logicalType": at} if each["name"] == "at" else each for each in COLUMNS]
    section = {"with": "other", "criteria": CRITERIA, "order": {"by": "time", "late": LATE}, **match_}
    lake = new_lake(folder, columns, interval="month", match=section)
    write_contract(lake.contracts / "other.odcs.yaml", columns, "other.csv", "csv", {"interval": "month"})
    return Job(no_session, replace(lake, uri=uri), RUNS[0], RunParams(), folder)


def no_session() -> SparkSession:
    raise AssertionError("a few records need no session")


def seconds(run: str) -> float:
    return datetime.fromisoformat(run).replace(tzinfo=UTC).timestamp()


def events(seed: int, n: int) -> Points:
    """Events of a year, many near the ends of months and of each other, each in the month of its arrival."""
    rng = np.random.default_rng(seed)
    borders = np.array([seconds(run) for run in RUNS])
    near = rng.choice(borders[1:], n // 2) + rng.uniform(-8, 2, n // 2) * DAY
    time = np.concatenate([near, rng.uniform(borders[0], seconds("2023-01-01"), n - n // 2)])
    time = np.round(time / 21_600) * 21_600  # six hours: many ties
    arrival = time + rng.choice([0.0, 0.5, 1.0], n) * LATE  # as late as may be, and not at all
    time, arrival = (each[arrival < seconds("2023-01-01")] for each in (time, arrival))
    n = time.size
    month = np.searchsorted(borders, arrival, "right") - 1
    ids, x = rng.permutation(n), rng.integers(0, 6, n).astype(float)
    return {
        run: points(*(column[month == number] for column in (ids, time, x)))
        for number, run in enumerate(RUNS)
    }


def points(ids: Sequence[int], time: Sequence[float], x: Sequence[float]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "at": pa.array((np.asarray(time) * 1e6).astype("datetime64[us]"), pa.timestamp("us", "UTC")),
            "x": pa.array(x, pa.float64()),
            "point": pa.array([b"12345678"] * len(ids), pa.binary()),
        }
    )


def arrive(job: Job, run: str, left: Points, right: Points) -> None:
    write_slice(job.lake, Slice("points", run), left[run])
    write_slice(job.lake.partner(), Slice("points", run), right[run])


def run_match(job: Job, run: str) -> dict[str, float]:
    return match.run(replace(job, run=run, lake=delta_log.pin_versions(job.lake, "match")))


def table(lake: Lake, run: str) -> list[dict[str, Any]]:
    rows = read_slice(lake, Slice("matches", run)).drop_columns(["run"])
    return list(rows.sort_by([("left_id", "ascending"), ("right_id", "ascending")]).to_pylist())


LEFT, RIGHT = events(1, 600), events(2, 500)


@dataclass(frozen=True)
class Made:
    job: Job
    rows: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def in_order(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("in_order")
    job = new_job(folder, (folder / "lake").as_uri())
    for run in RUNS:
        arrive(job, run, LEFT, RIGHT)
        run_match(job, run)
    return Made(job, {run: table(job.lake, run) for run in RUNS})


def test_slices__together_are_the_matches_of_one_large_snapshot(in_order: Made, tmp_path: Path) -> None:
    job = new_job(tmp_path, (tmp_path / "lake").as_uri(), order=None)
    arrive(job, RUNS[0], *({RUNS[0]: pa.concat_tables(side.values())} for side in (LEFT, RIGHT)))
    run_match(job, RUNS[0])
    until = seconds("2023-01-01") - LATE - 2 * EPS
    time = {row["id"]: row["at"].timestamp() for rows in LEFT.values() for row in rows.to_pylist()}
    expected = [row for row in table(job.lake, RUNS[0]) if time[row["left_id"]] < until]
    found = [row for rows in in_order.rows.values() for row in rows]
    order = ("left_id", "right_id")
    assert sorted(found, key=lambda row: tuple(str(row[name]) for name in order)) == sorted(
        expected, key=lambda row: tuple(str(row[name]) for name in order)
    )
    assert {row["best_for"] for row in found} == {"left", "both", "nobody"}, "the test would show little"


def test_each_record__is_in_one_slice_only(in_order: Made) -> None:
    seen: dict[int, str] = {}
    for run, rows in in_order.rows.items():
        for row in rows:
            assert seen.setdefault(row["left_id"], run) == run
    crossing = [
        run for run in RUNS for row in in_order.rows[run] if row["left_id"] not in LEFT[run]["id"].to_pylist()
    ]
    assert len(crossing) > 50, "records that wait for the next run are what this is about"


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (0, 2, 3, 4, 5))])
def test_runs__in_any_order_leave_the_slices_of_day_by_day(in_order: Made, tmp_path: Path, seed: int) -> None:
    job = new_job(tmp_path, (tmp_path / "lake").as_uri())
    order = RUNS[::-1] if seed == 0 else np.random.default_rng(seed).permutation(RUNS).tolist()
    for run in order:
        arrive(job, run, LEFT, RIGHT)
        run_match(job, run)
    assert {run: table(job.lake, run) for run in RUNS} == in_order.rows
    assert all(Fingerprints(job.lake, run).has("matches") for run in RUNS)


def test_match__again_or_after_it_was_killed_between_two_slices_leaves_the_same(
    in_order: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job(tmp_path, (tmp_path / "lake").as_uri())
    for run in RUNS[1:3]:
        arrive(job, run, LEFT, RIGHT)
        run_match(job, run)
    arrive(job, RUNS[0], LEFT, RIGHT)
    replace_slice = match._replace

    def die_at_next(lake: Lake, run: str, most: int) -> dict[str, float]:
        if run != RUNS[0]:
            raise KeyboardInterrupt
        return replace_slice(lake, run, most)

    with monkeypatch.context() as patched:
        patched.setattr(match, "_replace", die_at_next)
        with pytest.raises(KeyboardInterrupt):
            run_match(job, RUNS[0])
    assert not Fingerprints(job.lake, RUNS[1]).has("matches"), (
        "a slice of other points must not pass for good"
    )
    for _ in range(2):
        run_match(job, RUNS[0])
        assert all(table(job.lake, run) == in_order.rows[run] for run in RUNS[:3])
        assert all(Fingerprints(job.lake, run).has("matches") for run in RUNS[:3])


def test_two_runs_at_once__leave_slices_that_fit(
    in_order: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job(tmp_path, (tmp_path / "lake").as_uri())
    arrive(job, RUNS[1], LEFT, RIGHT)
    read = sides.read_sides

    def meanwhile(lake: Lake, run: str) -> sides.Sides:
        found = read(lake, run)
        monkeypatch.setattr(match, "read_sides", read)
        arrive(job, RUNS[0], LEFT, RIGHT)
        run_match(job, RUNS[0])
        return found

    monkeypatch.setattr(match, "read_sides", meanwhile)
    run_match(job, RUNS[1])
    assert all(table(job.lake, run) == in_order.rows[run] for run in RUNS[:2])
    assert all(Fingerprints(job.lake, run).has("matches") for run in RUNS[:2])


def test_one_run_twice_at_once__is_refused_once(
    in_order: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job(tmp_path, (tmp_path / "lake").as_uri())
    arrive(job, RUNS[0], LEFT, RIGHT)
    read = sides.read_sides

    def meanwhile(lake: Lake, run: str) -> sides.Sides:
        monkeypatch.setattr(match, "read_sides", read)
        run_match(job, RUNS[0])
        return read(lake, run)

    monkeypatch.setattr(match, "read_sides", meanwhile)
    with pytest.raises(TableError, match="another job changed matches of run 2022-01-01"):
        run_match(job, RUNS[0])
    assert table(job.lake, RUNS[0]) == in_order.rows[RUNS[0]]


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (
            seconds(RUNS[1]) - LATE - 60,
            "tiny: 1 record of run 2022-02-01 came too late, that of id 3 by 60 s more",
        ),
        (
            seconds(RUNS[2]),
            "tiny: 1 record of run 2022-02-01 came too early, that of id 3 at the end of the run's interval, "
            "which the next one begins with; correct",
        ),
        (
            seconds(RUNS[2]) + 90,
            "tiny: 1 record of run 2022-02-01 came too early, that of id 3 90 s after the end of the run's "
            "interval; correct",
        ),
    ],
)
def test_record__that_would_be_in_no_slice_stops_the_run(tmp_path: Path, time: float, words: str) -> None:
    job = new_job(tmp_path, (tmp_path / "lake").as_uri())
    inside = [seconds(RUNS[1]) - LATE, seconds(RUNS[2]) - 1e-3]
    arrive(job, RUNS[1], {RUNS[1]: points([1, 2], inside, [0, 0])}, RIGHT)
    run_match(job, RUNS[1])
    arrive(job, RUNS[1], {RUNS[1]: points([1, 2, 3], [*inside, time], [0, 0, 0])}, RIGHT)
    with pytest.raises(DataRefusedError, match=words):
        run_match(job, RUNS[1])


def test_record__that_comes_again_in_the_next_run_counts_once_and_is_refused_if_it_was_corrected(
    tmp_path: Path,
) -> None:
    end = seconds(RUNS[1])
    times = [end - 3600, end - 1800, end + 9 * DAY]
    left = {RUNS[0]: points([1, 2], times[:2], [0, 0]), RUNS[1]: points([2, 3], times[1:], [0, 0])}
    right = {RUNS[0]: points([7, 8], times[:2], [1, 1]), RUNS[1]: points([8, 9], times[1:], [1, 1])}

    def matched(folder: str, left: Points, right: Points) -> list[list[dict[str, Any]]]:
        job = new_job(tmp_path / folder, (tmp_path / folder / "lake").as_uri())
        for run in RUNS[:2]:
            arrive(job, run, left, right)
            run_match(job, run)
        assert set(table(job.lake, RUNS[1])[0]) >= {"left_id", "right_id"}
        return [table(job.lake, run) for run in RUNS[:2]]

    once = {RUNS[0]: left[RUNS[0]], RUNS[1]: left[RUNS[1]].slice(1)}
    others_once = {RUNS[0]: right[RUNS[0]], RUNS[1]: right[RUNS[1]].slice(1)}
    for folder in ("again", "once"):
        (tmp_path / folder).mkdir()
    found = matched("again", left, right)
    assert found == matched("once", once, others_once)
    assert {(row["left_id"], row["right_id"]) for row in found[1]} >= {(1, 7), (2, 8)}
    (tmp_path / "corrected").mkdir()
    corrected = {**right, RUNS[1]: points([8, 9], times[1:], [500, 1])}
    with pytest.raises(
        DataRefusedError, match="other: 1 record of run 2022-01-01 came again in run 2022-02-01"
    ):
        matched("corrected", left, corrected)


def test_match__without_the_partners_records_names_the_partner_and_why_it_has_none(tmp_path: Path) -> None:
    job = new_job(tmp_path, (tmp_path / "lake").as_uri())
    write_slice(job.lake, Slice("points", RUNS[0]), LEFT[RUNS[0]])
    with pytest.raises(MissingSliceError, match="^other: points has no slice of run 2022-01-01; run ingest"):
        run_match(job, RUNS[0])
    refusals.write(job.lake.partner(), RUNS[0], "half of it is missing")
    with pytest.raises(
        MissingSliceError, match="^other: the snapshot of run 2022-01-01 was refused: half of it"
    ):
        run_match(job, RUNS[0])


def test_order__whose_partners_would_lie_in_three_runs_is_refused(tmp_path: Path) -> None:
    new = partial(new_job, tmp_path, (tmp_path / "lake").as_uri())
    new(order={"by": "time", "late": 22 * DAY})  # with 4 eps the 28 days of a February
    with pytest.raises(
        ContractError, match=r"late \+ 4 eps of time are .* an interval of a month has 2.4192e\+06 s"
    ):
        new(order={"by": "time", "late": 22 * DAY + 1})


def test_order__by_numbers_is_by_seconds_since_1970(in_order: Made, tmp_path: Path) -> None:
    new = partial(new_job, tmp_path, (tmp_path / "lake").as_uri(), at="number")
    with pytest.raises(ContractError, match=r"or of seconds since 1970 \(numbers with unit: s\), .* 'time'$"):
        new()
    job = new(criteria=[CRITERIA[0] | {"unit": "s"}, CRITERIA[1]])
    left, right = (
        {run: rows.set_column(1, "at", pa.array(to_numbers(rows["at"]))) for run, rows in side.items()}
        for side in (LEFT, RIGHT)
    )
    for run in RUNS[:3]:
        arrive(job, run, left, right)
        run_match(job, run)
        assert table(job.lake, run) == in_order.rows[run]
    assert in_order.rows[RUNS[2]]


@pytest.mark.parametrize("mine", [["at"], ["clock"], ["at", "at"], ["at", "clock"]])
@pytest.mark.parametrize("theirs", [["at"], ["clock"]])
def test_order__by_what_is_no_point_in_time_is_refused(
    tmp_path: Path, mine: list[str], theirs: list[str]
) -> None:
    """By a time of day alone each record would be said to come too late, by half a century."""
    columns = [*COLUMNS, {"name": "clock", "logicalType": "time", "required": True}]
    time = {"name": "time", "columns": mine, "with_columns": theirs, "eps": EPS}
    section = {"with": "other", "criteria": [time], "order": {"by": "time"}}
    wrong = "tiny" if mine in (["clock"], ["at", "at"]) else "other" if theirs == ["clock"] else ""
    sentence = f"order: time must have one column of dates or timestamps of {wrong}; "
    with pytest.raises(ContractError, match=sentence) if wrong else nullcontext():
        lake = new_lake(tmp_path, columns, interval="month", match=section)
        write_contract(lake.contracts / "other.odcs.yaml", columns, "other.csv", "csv", {"interval": "month"})
        lake.partner()


def test_neighbouring_runs__are_those_of_neighbouring_intervals() -> None:
    from datetime import date

    for interval, run, after in (
        ("day", "2024-02-29", "2024-03-01"),
        ("week", "2024-02-29", "2024-03-07"),
        ("month", "2024-02-01", "2024-03-01"),
        ("quarter", "2023-10-01", "2024-01-01"),
        ("year", "2023-01-01", "2024-01-01"),
    ):
        assert run_after(interval, date.fromisoformat(run)) == date.fromisoformat(after)
        assert run_before(interval, date.fromisoformat(after)) == date.fromisoformat(run)


def test_contract__of_a_match_that_is_changed_makes_old_slices_unfit(tmp_path: Path) -> None:
    job = new_job(tmp_path, (tmp_path / "lake").as_uri())
    arrive(job, RUNS[0], LEFT, RIGHT)
    run_match(job, RUNS[0])
    job = new_job(tmp_path, job.lake.uri, take="one")
    assert load_source(job.lake.contracts, "tiny").match == job.lake.source.match
    assert not Fingerprints(job.lake, RUNS[0]).has("matches")
