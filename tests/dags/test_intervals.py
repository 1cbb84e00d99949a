"""The timetable: which runs there are by schedule and by hand, and how they are called."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.api.client import local_client
from airflow.dag_processing.dagbag import DagBag
from airflow.exceptions import AirflowTimetableInvalid
from airflow.models.dag import DagModel
from airflow.sdk import DAG
from airflow.sdk.timezone import coerce_datetime
from airflow.serialization.decoders import decode_timetable
from airflow.serialization.encoders import encode_timetable
from airflow.timetables import interval as of_airflow
from airflow.timetables.base import DataInterval, TimeRestriction
from airflow.utils.session import create_session
from fastapi.testclient import TestClient
from pendulum import duration

import dag_commands
import intervals
from dags.fake_spark import REPOSITORY, FakeSpark
from dags.in_process import Scheduler, runs_of
from dags.scripts import run as run_script
from intervals import IntervalTimetable, NoIntervalError

START = datetime(2021, 11, 1, tzinfo=UTC)


def date(text: str) -> Any:
    return coerce_datetime(datetime.fromisoformat(f"{text}+00:00"))


def interval(begin: str, end: str) -> DataInterval:
    return DataInterval(date(begin), date(end))


MONTHS = IntervalTimetable("0 0 1 * *", timezone="UTC")
OCTOBER = interval("2026-10-01", "2026-11-01")
NOVEMBER = interval("2026-11-01", "2026-12-01")


# --- runs by hand


@pytest.mark.parametrize(
    ("cron", "begin", "end"),
    [
        ("0 0 * * *", "2023-06-03", "2023-06-04"),
        ("0 0 * * 1", "2023-06-05", "2023-06-12"),
        ("0 0 1 * *", "2023-06-01", "2023-07-01"),
        ("0 0 1 */3 *", "2023-04-01", "2023-07-01"),
        ("0 0 1 1 *", "2023-01-01", "2024-01-01"),
    ],
)
def test_run_by_hand__has_the_interval_that_begins_at_its_date_and_its_first_day_as_name(
    cron: str, begin: str, end: str
) -> None:
    timetable = IntervalTimetable(cron, timezone="UTC")
    found = timetable.infer_manual_data_interval(run_after=date(begin))
    assert found == interval(begin, end)
    assert timetable.generate_run_id(data_interval=found) == begin


@pytest.mark.parametrize(
    ("asked", "holds", "last", "before"),
    [
        ("2023-06-01T12:34:56", "2023-06-01", "2023-06-30", "2023-05-01"),
        ("2023-06-02T00:00", "2023-06-01", "2023-06-30", "2023-05-01"),
        ("2023-05-31T10:00", "2023-05-01", "2023-05-31", "2023-04-01"),  # 2023-06-01T00:00+14:00
        ("2024-02-29T00:00:00.000001", "2024-02-01", "2024-02-29", "2024-01-01"),
    ],
)
def test_run_by_hand__of_another_time_is_refused_and_told_the_right_days(
    asked: str, holds: str, last: str, before: str
) -> None:
    with pytest.raises(NoIntervalError) as refused:
        MONTHS.infer_manual_data_interval(run_after=date(asked))
    said = str(refused.value)
    assert f"none begins at {asked[:10]} {asked[11:16]}" in said
    assert f"give the logical date {holds} 00:00 for {holds} to {last}, or {before} 00:00 for the" in said


def test_run_by_hand__without_a_date_is_refused_and_told_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "utcnow", lambda: date("2026-11-23T04:55"))
    with pytest.raises(NoIntervalError, match=r"needs a logical date.*over began at 2026-10-01 00:00 UTC"):
        MONTHS.generate_run_id(data_interval=None)


@pytest.mark.parametrize("cron", ["0 6 * * *", "@hourly", "30 0 1 * *", "*/5 * * * *"])
def test_schedule__that_is_not_about_midnights_is_refused(cron: str) -> None:
    with pytest.raises(AirflowTimetableInvalid, match="must begin with '0 0'"):
        IntervalTimetable(cron, timezone="UTC").validate()


def test_schedule__of_airflows_own_names_is_taken() -> None:
    IntervalTimetable("@monthly", timezone="UTC").validate()


def test_timetable__comes_back_from_airflows_database() -> None:
    again = decode_timetable(json.loads(json.dumps(encode_timetable(MONTHS))))
    assert type(again) is IntervalTimetable
    assert again == MONTHS
    again.infer_manual_data_interval(run_after=date("2019-01-01"))
    bounded = decode_timetable(json.loads(json.dumps(encode_timetable(FROM_2022))))
    with pytest.raises(NoIntervalError, match="the first run is that of 2022-04-01"):
        bounded.infer_manual_data_interval(run_after=date("2022-01-01"))


FROM_2022 = IntervalTimetable("0 0 1 */3 *", timezone="UTC", first=datetime(2022, 2, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("2022-04-01", None),
        ("2022-01-01", r"the first run is that of 2022-04-01 \(start_date\), not 2022-01-01"),
        ("2026-04-01", None),
        ("2026-07-01", "begins on 2026-07-01 is not over before 2026-10-01; the last one .* 2026-04-01"),
        ("2027-01-01", "begins on 2027-01-01 is not over before 2027-04-01"),
    ],
)
def test_run_by_hand__is_of_no_interval_before_the_first_and_of_none_that_is_not_over(
    monkeypatch: pytest.MonkeyPatch, asked: str, sentence: str | None
) -> None:
    monkeypatch.setattr(intervals, "utcnow", lambda: date("2026-09-30"))
    if sentence is None:
        assert FROM_2022.infer_manual_data_interval(run_after=date(asked)).start == date(asked)
        return
    with pytest.raises(NoIntervalError, match=sentence):
        FROM_2022.infer_manual_data_interval(run_after=date(asked))


@pytest.mark.parametrize("day", ["0001-01-01", "0001-12-31", "0009-02-28", "9998-01-01", "9999-12-31"])
@pytest.mark.parametrize("cron", ["0 0 1 * *", "0 0 1 1 *", "0 0 29 2 *"])
def test_run_by_hand__at_an_end_of_the_calendar_is_refused_in_a_sentence(cron: str, day: str) -> None:
    """Beyond it is no interval that could be told of."""
    timetable = IntervalTimetable(cron, timezone="UTC")
    for ask_for in (
        lambda: timetable.infer_manual_data_interval(run_after=date(day)),
        lambda: timetable.find_interval(date(day), date(day)),
    ):
        with pytest.raises(
            NoIntervalError, match=rf"^no run is of {day}: its year must be from 100 to 9900$"
        ):
            ask_for()


# --- runs by schedule


def next_run(
    monkeypatch: pytest.MonkeyPatch, now: str, last: Any = None, start: datetime | None = START
) -> str:
    """The run that the schedule makes next, and when, as Airflow asks for it."""
    for module in (intervals, of_airflow):
        monkeypatch.setattr(module, "utcnow", lambda: date(now))
    follows = None
    if last is not None:
        kind, made = last
        run = SimpleNamespace(
            creating_job_id=1 if "scheduled" in kind else None,
            run_type=kind.split()[0],
            run_after=made.end,
            data_interval_start=made.start,
            data_interval_end=made.end,
        )
        run.partition_key = run.partition_date = None
        follows = MONTHS.run_info_from_dag_run(dag_run=run)
    restriction = TimeRestriction(start and coerce_datetime(start), None, catchup=False)
    info = MONTHS.next_dagrun_info_v2(last_dagrun_info=follows, restriction=restriction)
    assert info
    return f"{info.logical_date:%Y-%m-%d} at {info.run_after:%Y-%m-%d}"


def test_first_run__is_that_of_the_interval_in_which_the_schedule_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert next_run(monkeypatch, "2026-11-23T04:55") == "2026-11-01 at 2026-12-01"
    assert next_run(monkeypatch, "2026-11-23T04:55", start=None) == "2026-11-01 at 2026-12-01"
    in_future = datetime(2027, 2, 1, tzinfo=UTC)
    assert next_run(monkeypatch, "2026-11-23T04:55", start=in_future) == "2027-02-01 at 2027-03-01"


def test_first_run__that_is_due_is_not_passed_over_when_the_dag_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert next_run(monkeypatch, "2026-12-01T00:00:01") == "2026-11-01 at 2026-12-01"
    assert next_run(monkeypatch, "2026-12-01T00:59") == "2026-11-01 at 2026-12-01"
    assert next_run(monkeypatch, "2026-12-01T01:01") == "2026-12-01 at 2027-01-01"


def test_schedule__that_has_made_a_run_makes_up_the_last_one_it_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may = interval("2026-05-01", "2026-06-01")
    assert next_run(monkeypatch, "2026-11-23", last=("scheduled", may)) == "2026-10-01 at 2026-11-01"
    assert next_run(monkeypatch, "2026-11-23", last=("scheduled", OCTOBER)) == "2026-11-01 at 2026-12-01"


def test_backfill__begins_no_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    old = interval("2022-03-01", "2022-04-01")
    assert next_run(monkeypatch, "2026-11-23", last=("backfill", old)) == "2026-11-01 at 2026-12-01"
    assert next_run(monkeypatch, "2026-11-23", last=("backfill", OCTOBER)) == "2026-11-01 at 2026-12-01"
    made_again = ("backfill of a scheduled one", OCTOBER)
    assert next_run(monkeypatch, "2027-01-15", last=made_again) == "2026-12-01 at 2027-01-01"
    last = ("backfill", NOVEMBER)
    assert next_run(monkeypatch, "2026-12-01T00:10", last=last) == "2026-12-01 at 2027-01-01"


def test_backfill__has_the_intervals_from_the_first_on_that_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of earlier ones no task would run; to the end of a range no more than one is looked at beyond them."""
    monkeypatch.setattr(intervals, "utcnow", lambda: date("2022-02-15"))
    timetable = IntervalTimetable("0 0 1 * *", timezone="UTC", first=START)
    months = []
    restriction = TimeRestriction(date("0001-01-01"), date("9999-12-31"), catchup=True)
    info = timetable.next_dagrun_info_v2(last_dagrun_info=None, restriction=restriction)
    while info and len(months) < 6:
        months.append(f"{info.logical_date:%Y-%m-%d}")
        info = timetable.next_dagrun_info_v2(last_dagrun_info=info, restriction=restriction)
    assert months == ["2021-11-01", "2021-12-01", "2022-01-01"]


@pytest.mark.parametrize(
    ("cron", "days", "expected"),
    [
        ("0 0 * * *", 0, 0),
        ("0 0 * * *", 3, 3),
        ("0 0 * * 1", 7, 1),
        ("0 0 * * 1", 8, 2),
        ("0 0 1 * *", 28, 1),
        ("0 0 1 * *", 29, 2),
        ("0 0 1 1 *", 365, 1),
    ],
)
def test_ends__of_intervals_within_a_time_to_wait(cron: str, days: int, expected: int) -> None:
    assert IntervalTimetable(cron, timezone="UTC").count_ends_within(duration(days=days)) == expected


# --- in Airflow


@pytest.fixture
def scheduler(database: None, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scheduler]:
    monkeypatch.setattr(intervals, "GRACE", duration(0))  # the month may have begun a minute ago
    scheduler = Scheduler(DagBag(REPOSITORY / "dags" / "navaids.py"), only=["ingest"])
    yield scheduler
    scheduler.close()


def ask(rest: TestClient, logical_date: str | None, **more: Any) -> Any:
    return rest.post("/api/v2/dags/navaids/dagRuns", json={"logical_date": logical_date, **more})


def test_unpaused_dag__makes_the_run_that_was_asked_for_and_no_other(
    scheduler: Scheduler, rest: TestClient, fake_spark: FakeSpark
) -> None:
    answer = ask(rest, "2023-06-01T00:00:00Z").json()
    assert answer["dag_run_id"] == "2023-06-01"
    assert answer["data_interval_start"] == "2023-06-01T00:00:00Z"
    assert answer["data_interval_end"] == "2023-07-01T00:00:00Z"
    scheduler.run()
    assert {date: run.state for date, run in runs_of("navaids").items()} == {"2023-06-01": "success"}
    with create_session() as session:
        assert not session.get_one(DagModel, "navaids").is_paused
    assert fake_spark.command("ingest")[fake_spark.command("ingest").index("--run") + 1] == "2023-06-01"


@pytest.mark.parametrize(
    "logical_date",
    ["2023-06-01T12:34:56Z", "2023-06-01T00:00:00+14:00", "2023-06-02T00:00:00Z", None],
)
def test_rest__refuses_a_run_that_is_not_named_by_its_interval(
    scheduler: Scheduler, rest: TestClient, logical_date: str | None
) -> None:
    answer = ask(rest, logical_date)
    assert answer.status_code == 400
    assert "the first day of its interval" in answer.json()["detail"]
    assert runs_of("navaids") == {}


def test_rest__refuses_a_run_at_the_end_of_the_calendar(scheduler: Scheduler, rest: TestClient) -> None:
    answer = ask(rest, "9999-12-01T00:00:00Z")
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "no run is of 9999-12-01: its year must be from 100 to 9900",
    )
    assert runs_of("navaids") == {}


def test_run__with_an_interval_of_its_own_is_refused_by_its_first_task(
    scheduler: Scheduler, rest: TestClient, fake_spark: FakeSpark
) -> None:
    """REST takes an interval and a name as they are given; no timetable is asked."""
    own = {"data_interval_start": "2023-06-02T00:00:00Z", "data_interval_end": "2023-07-02T00:00:00Z"}
    assert ask(rest, "2023-06-02T00:00:00Z", dag_run_id="mine", **own).status_code == 200
    scheduler.run()
    assert runs_of("navaids")["2023-06-02"].state == "failed"
    assert fake_spark.jobs == []


def test_dags_trigger__takes_the_interval_of_the_date_and_refuses_in_one_sentence(
    scheduler: Scheduler,
    navaids: DAG,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = run_script("airflow", "dags", "trigger", "navaids", "-l", "2023-06-15")
    assert (refused.returncode, refused.stderr.count("Traceback")) == (2, 0)
    last = refused.stderr.splitlines()[-1]
    assert last.startswith("airflow: ")
    assert "give the logical date 2023-06-01 00:00" in last
    # the command itself, without another five seconds of Airflow's start
    monkeypatch.setattr(local_client, "trigger_dag", None)  # the command sets it
    monkeypatch.setattr(sys, "argv", [])
    assert dag_commands.main(["trigger", "navaids", "-l", "2023-06-01"]) == 0
    (made,) = runs_of("navaids").values()
    assert (made.run_id, made.run_type) == ("2023-06-01", "manual")
    assert (made.data_interval_start, made.data_interval_end) == (date("2023-06-01"), date("2023-07-01"))
    capsys.readouterr()
    for wrong, says in (
        ([], "needs a logical date"),
        (["-l", "2023-05-01", "-c", '{"eps": -1}'], "Invalid input for param eps"),
    ):
        assert dag_commands.main(["trigger", "navaids", *wrong]) == 2
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith("airflow: ")
        assert says in last
    assert len(runs_of("navaids")) == 1
