"""Back-fills by Airflow's own scheduler: any months, any order, beside the schedule. Fake Spark."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from airflow import settings
from airflow.cli.cli_parser import get_parser
from airflow.dag_processing.dagbag import DagBag
from airflow.jobs.job import Job
from airflow.models.backfill import Backfill, InvalidBackfillConf
from airflow.models.dag import DagModel
from airflow.models.pool import Pool
from airflow.utils.session import create_session
from fastapi.testclient import TestClient
from pendulum import duration
from sqlalchemy import delete, update

import backfill
import dag_commands
import intervals
from dags.fake_spark import REPOSITORY, FakeSpark
from dags.in_process import Scheduler, runs_of, states_of
from epsjoin.pipeline import JOBS

SCHEMA = (REPOSITORY / "jobs" / "epsjoin" / "params.schema.json").read_text(encoding="utf-8")
MONTHS = ["2022-01-01", "2022-02-01", "2022-03-01"]
BAD_PARAMS = ['{"eps": -1}', '{"eps": "near"}', '{"min_pts": 2.5}', '{"cuts": "square"}', '{"seed": true}']


@pytest.fixture
def scheduler(database: None, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scheduler]:
    """The DAG navaids, whose schedule goes on beside the back-fill; of a run, only ``ingest`` is real."""
    monkeypatch.setattr(intervals, "GRACE", duration(months=1))  # as if the last month had just ended
    scheduler = Scheduler(DagBag(REPOSITORY / "dags" / "navaids.py"), only=["ingest"])
    yield scheduler
    scheduler.close()


def by_cli(*options: str, first: str = MONTHS[0], last: str = MONTHS[-1]) -> None:
    command = ["backfill", "create", "--dag-id", "navaids", "--from-date", first, "--to-date", last, *options]
    arguments = get_parser().parse_args(command)
    arguments.func(arguments)


def by_rest(rest: TestClient, **more: Any) -> int:
    body: dict[str, Any] = {
        "dag_id": "navaids",
        "from_date": f"{MONTHS[0]}T00:00:00Z",
        "to_date": f"{MONTHS[-1]}T00:00:00Z",
    }
    return rest.post("/api/v2/backfills", json=body | more).status_code


def dates_of_jobs(spark: FakeSpark) -> list[str]:
    """The runs that Spark was asked to make, in order."""
    calls = [call.read_text().splitlines() for call in sorted((spark.root / "calls").iterdir())]
    return [call[call.index("--run") + 1] for call in calls]


@pytest.mark.parametrize(("door", "is_backwards"), [("cli", False), ("rest", True)])
def test_backfill__makes_every_month_once_in_the_order_asked_for_beside_the_schedule(
    scheduler: Scheduler, rest: TestClient, door: str, is_backwards: bool
) -> None:
    scheduler.only = ()
    if door == "cli":
        by_cli("--max-active-runs", "1", *(["--run-backwards"] if is_backwards else []))
    else:
        assert by_rest(rest, max_active_runs=1, run_backwards=is_backwards) == 200
    scheduler.run()
    made = runs_of("navaids", run_type="backfill")
    assert {date: run.state for date, run in made.items()} == dict.fromkeys(MONTHS, "success")
    intervals = [(run.data_interval_start, run.data_interval_end) for run in made.values()]
    first_days = [datetime(2022, month, 1, tzinfo=UTC) for month in (1, 2, 3, 4)]
    assert intervals == list(pairwise(first_days))

    scheduled = runs_of("navaids", run_type="scheduled")
    assert [run.state for run in scheduled.values()] == ["success"], "the schedule goes on beside it"
    dates = [date for date, task in scheduler.ran if task == "ingest"]
    assert [date for date in dates if date in MONTHS] == (MONTHS[::-1] if is_backwards else MONTHS)
    assert set(dates) - set(MONTHS) == set(scheduled)


def test_backfill__of_many_months_at_once_keeps_to_the_pool_and_never_writes_a_slice_twice(
    scheduler: Scheduler, fake_spark: FakeSpark
) -> None:
    by_cli("--max-active-runs", "3")
    scheduler.run()
    assert sorted(dates_of_jobs(fake_spark)) == sorted(runs_of("navaids")), "each job is told its own month"
    assert Pool.get_pool("lake_writers").slots == 2
    assert max(len(turn) for turn in scheduler.at_once) == 2, "two jobs at once, the schedule's included"
    assert all(len(set(turn)) == len(turn) for turn in scheduler.at_once), "two jobs of one run at once"
    assert any(set(turn) <= set(MONTHS) for turn in scheduler.at_once), "months run beside each other"
    assert len(scheduler.ran) == len(set(scheduler.ran)) == len(JOBS) * 4


def test_backfill__a_month_that_fails_leaves_the_others_alone_and_can_be_made_again(
    scheduler: Scheduler, fake_spark: FakeSpark
) -> None:
    # of all calls that ask for February, and of no other
    (fake_spark.root / "ends" / "ingest").write_text('case "$*" in *"--run 2022-02-01"*) exit 3 ;; esac\n')
    by_cli("--max-active-runs", "2")
    scheduler.run()
    runs = runs_of("navaids", run_type="backfill")
    assert [run.state for run in runs.values()] == ["success", "failed", "success"]
    february = states_of(runs[MONTHS[1]])
    assert february.pop("ingest") == "failed"
    assert set(february.values()) == {"upstream_failed"}

    (fake_spark.root / "ends" / "ingest").unlink()
    before = len(dates_of_jobs(fake_spark))
    by_cli("--reprocess-behavior", "failed", "--dag-run-conf", '{"eps": 20}')
    scheduler.run()
    assert [run.state for run in runs_of("navaids", run_type="backfill").values()] == ["success"] * 3
    assert dates_of_jobs(fake_spark)[before:] == [MONTHS[1]]
    assert '{"eps": 20}' in fake_spark.calls_text().splitlines()


@pytest.mark.parametrize("conf", BAD_PARAMS)
def test_bad_params__are_refused_by_every_door_before_there_is_a_run(
    scheduler: Scheduler,
    rest: TestClient,
    conf: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(InvalidBackfillConf, match="Invalid input for param"):
        by_cli("--dag-run-conf", conf)
    assert by_rest(rest, dag_run_conf=json.loads(conf)) == 422
    trigger = {"logical_date": "2022-05-01T00:00:00Z", "conf": json.loads(conf)}
    answer = rest.post("/api/v2/dags/navaids/dagRuns", json=trigger)
    assert answer.status_code == 400
    assert "Invalid input for param" in answer.text
    monkeypatch.setattr(sys, "argv", sys.argv)
    assert dag_commands.main(["trigger", "navaids", "-l", "2022-05-01", "-c", conf]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("airflow: Invalid input for param")
    assert runs_of("navaids") == {}


def test_good_params__are_taken_by_every_door(scheduler: Scheduler, rest: TestClient) -> None:
    trigger = {"logical_date": "2022-05-01T00:00:00Z", "conf": {"eps": 1.5, "min_pts": None}}
    assert rest.post("/api/v2/dags/navaids/dagRuns", json=trigger).status_code == 200
    assert by_rest(rest, dag_run_conf={"eps": 1.5}) == 200
    assert set(runs_of("navaids")) == {*MONTHS, "2022-05-01"}


def test_trigger_form__shows_every_param_with_its_title_help_and_limits(
    scheduler: Scheduler, rest: TestClient
) -> None:
    params = rest.get("/api/v2/dags/navaids/details").json()["params"]
    assert params.keys() == json.loads(SCHEMA)["properties"].keys()
    for name, param in params.items():
        assert param["schema"]["title"], name
        empty = "none" if name == "accept" else "the data set's default"
        assert f"Empty: {empty}." in param["schema"]["description_md"], name
    assert params["eps"]["schema"]["exclusiveMinimum"] == 0
    assert (params["min_pts"]["schema"]["minimum"], params["min_pts"]["schema"]["maximum"]) == (1, 2**31)


def test_backfill_run__with_an_airflow_that_runs_waits_and_says_how_each_run_ended(
    scheduler: Scheduler,
    fake_spark: FakeSpark,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = SimpleNamespace(sleep=lambda _: scheduler.run(), monotonic=time.monotonic)
    monkeypatch.setattr(backfill, "time", clock)
    ends = {MONTHS[1]: 3, MONTHS[2]: 5}
    lines = [f'case "$*" in *"--run {month}"*) exit {code} ;; esac\n' for month, code in ends.items()]
    (fake_spark.root / "ends" / "ingest").write_text("".join(lines))
    with create_session() as session:
        session.get_one(DagModel, "navaids").is_paused = True
        job = Job(job_type="SchedulerJob", state="running")
        job.latest_heartbeat += duration(days=1)  # alive for as long as the test takes
        session.add(job)
    try:
        assert backfill.main(["navaids", MONTHS[0], MONTHS[-1], "--max-active-runs", "1"]) == 1
        said = re.findall("^backfill: .*", capsys.readouterr().out, re.MULTILINE)
        (fake_spark.root / "ends" / "ingest").unlink()
        assert backfill.main(["navaids", MONTHS[0], MONTHS[-1], "--reprocess-behavior", "failed"]) == 0
        with create_session() as session:  # as when an Airflow was stopped before it looked
            session.execute(update(Backfill).values(completed_at=None))
        assert backfill.main(["navaids", MONTHS[0], MONTHS[-1]]) == 0
    finally:
        with create_session() as session:
            session.execute(delete(Job).where(Job.job_type == "SchedulerJob"))
    assert [re.sub(r"in \d+ s", "in 0 s", line.removeprefix("backfill: ")) for line in said] == [
        "Airflow runs already, and makes the runs",
        "2022-01-01 done in 0 s (1 of 3)",
        "2022-02-01 failed in ingest (2 of 3)",
        "2022-03-01 skipped: no snapshot (3 of 3)",
        "1 of 3 runs failed; --reprocess-behavior failed makes those again",
    ]
    assert "backfill: no run is missing" in capsys.readouterr().out
    with create_session() as session:
        assert session.get_one(DagModel, "navaids").is_paused, "as it was before"


def test_backfill_run__ends_when_airflow_has_ended(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No run would be made any more, and nobody would say so."""

    def stop(_: float) -> None:
        with create_session() as session:
            session.execute(update(Job).where(Job.job_type == "SchedulerJob").values(state="success"))

    monkeypatch.setattr(backfill, "time", SimpleNamespace(sleep=stop, monotonic=time.monotonic))
    monkeypatch.setattr(backfill, "ABSENT_SECONDS", 0)
    with create_session() as session:
        session.get_one(DagModel, "navaids").is_paused = True
        session.add(Job(job_type="SchedulerJob", state="running"))
    try:
        with pytest.raises(SystemExit, match="Airflow has ended; the same command goes on"):
            backfill.main(["navaids", MONTHS[0], MONTHS[-1]])
    finally:
        with create_session() as session:
            session.execute(delete(Job).where(Job.job_type == "SchedulerJob"))
    assert "Airflow runs already" in capsys.readouterr().out
    with create_session() as session:
        assert session.get_one(DagModel, "navaids").is_paused, "as it was before"


def test_backfill_run__waits_for_somebodys_airflow_that_is_slow_or_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = {0: True, 100: False, 290: False, 299: True, 400: False, 599: False, 600: False}
    now = [0.0]
    monkeypatch.setattr(backfill, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(backfill, "_is_airflow_alive", lambda: looks[now[0]])
    has_ended = backfill._absence()
    for now[0] in (0, 100, 290, 299, 400, 599):
        assert not has_ended()
    now[0] = 600
    assert has_ended()


def test_backfill_run__waits_for_another_that_would_be_in_its_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It would pause the DAG again that another one has unpaused, or stop the Airflow that makes its runs."""
    order = []

    def second() -> None:
        with backfill._alone("dag-navaids", "another back-fill"):
            order.append("second")

    other = threading.Thread(target=second)
    with backfill._alone("dag-navaids", "another back-fill"), backfill._alone("airflow", "somebody"):
        other.start()
        other.join(0.5)
        assert other.is_alive()
        order.append("first")
    other.join()
    assert order == ["first", "second"]
    said = "backfill: another back-fill is at work; this one waits until it has ended\n"
    assert capsys.readouterr().out == said


def test_backfill_run__keeps_airflows_output_where_nobody_else_reads_it(
    database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first start prints a password."""
    backfill.LOG.parent.mkdir(parents=True, exist_ok=True)
    backfill.LOG.touch(0o644)
    backfill.LOG.chmod(0o644)
    ended = mock.Mock(poll=lambda: 1)
    monkeypatch.setattr(backfill.subprocess, "Popen", lambda *_, **__: ended)
    with pytest.raises(SystemExit, match="Airflow ended while it started"), backfill._airflow("navaids"):
        raise AssertionError
    assert stat.S_IMODE(backfill.LOG.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "wrong",
    [
        *(["2022-13-01", "2022-12-01"], ["2022-01-01"], ["2022-01-01", "May"]),
        *(["2022-01-01", "2022-02-01", "--dag-run-conf", conf] for conf in ("{eps}", "[1]")),
    ],
)
def test_backfill_run__refuses_a_wrong_argument_before_it_starts_anything(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        backfill.main(["navaids", *wrong])
    assert "bin/airflow backfill run: error:" in capsys.readouterr().err


NO_NAVAID = "there is no DAG navaid, or .*; there are .*earthquakes, .*landmarks, navaids, "


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (["navaid", *MONTHS[:2]], NO_NAVAID),
        (["navaids", *MONTHS[1::-1]], "FROM must not be after TO, as 2022-02-01 is after 2022-01-01$"),
        (
            ["navaids", "2022-02-15", "2022-02-20"],
            "no interval begins from 2022-02-15 to 2022-02-20; .* as 2022-02-01 or 2022-03-01$",
        ),
        (
            ["navaids", "2922-01-15", "2922-05-20"],
            "that begins on 2922-02-01 is not over before 2922-03-01; ",
        ),
        (
            ["navaids", *MONTHS[:2], "--dag-run-conf", '{"eps": -3}'],
            "Invalid input for param eps: -3 is less than or equal to the minimum of 0$",
        ),
        (
            ["navaids", *MONTHS[:2], "--dag-run-conf", '{"epss": 3}'],
            "conf has 'epss', which is no parameter; ",
        ),
    ],
)
def test_backfill_run__refuses_what_gets_no_runs_before_it_starts_anything(
    wrong: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(backfill, "_alone", lambda *_: pytest.fail("it would start an Airflow"))
    with pytest.raises(SystemExit, match="2"):
        backfill.main(wrong)
    assert re.search(sentence, capsys.readouterr().err.splitlines()[-1])


@pytest.mark.parametrize(
    ("lake", "sentence"),
    [
        ("/tmp/x", "must be a URI such as file:///data/lake"),
        ("s3://me:hunter2@here/lake", "holds a password"),
    ],
)
def test_commands__refuse_a_lake_that_is_none(
    lake: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EPSJOIN_LAKE", lake)
    monkeypatch.setattr(sys, "argv", sys.argv)
    with pytest.raises(SystemExit, match="2"):
        backfill.main(["navaids", *MONTHS[:2]])
    assert dag_commands.main(["test", "navaids", MONTHS[0]]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if "EPSJOIN_LAKE" in line]
    assert [sentence in line for line in said] == [True, True]
    assert "hunter2" not in "".join(said)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (["test", "navaid", MONTHS[0]], NO_NAVAID),
        (["trigger", "navaid", "-l", MONTHS[0]], NO_NAVAID),
        (["test", "navaids", MONTHS[0], "-c", '{"epss": 1}'], "conf has 'epss', which is no parameter; "),
        (
            ["trigger", "navaids", "-l", MONTHS[0], "-c", '{"epss": 1}'],
            "conf has 'epss', which is no parameter; ",
        ),
        (["test", "navaids", MONTHS[0], "-c", '{"eps": -1}'], "Invalid input for param eps: -1 is less "),
        (["test", "navaids", MONTHS[0], "-c", "{eps: 1}"], "must be a JSON object, as .*, not {eps: 1}"),
        (["trigger", "navaids", "-l", MONTHS[0], "-c", "[1]"], "must be a JSON object, as .*, not "),
    ],
)
def test_dag_commands__refuse_a_wrong_argument_before_there_is_a_run(
    scheduler: Scheduler,
    wrong: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", sys.argv)
    assert dag_commands.main(wrong) == 2
    assert re.search(f"^airflow: .*{sentence}", capsys.readouterr().err.splitlines()[-1])
    assert runs_of("navaids") == {}


def test_trigger__refuses_a_lake_that_is_none_and_a_run_that_is_there(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setenv("EPSJOIN_LAKE", "/tmp/x")
    triggered = ["trigger", "navaids", "-l", MONTHS[0]]
    assert dag_commands.main(triggered) == 2
    assert "EPSJOIN_LAKE must be a URI such as" in capsys.readouterr().err.splitlines()[-1]
    assert runs_of("navaids") == {}
    monkeypatch.delenv("EPSJOIN_LAKE")
    assert [dag_commands.main(triggered) for _ in range(2)] == [0, 2]
    assert "already exists" in capsys.readouterr().err.splitlines()[-1]


WRITER = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
database.execute("CREATE TABLE IF NOT EXISTS busy (n INTEGER)")
print("writes", flush=True)
while True:
    database.execute("INSERT INTO busy VALUES (1)")
    time.sleep(0.001)
"""


def test_backfill__comes_into_being_whole_on_sqlite_while_others_write(scheduler: Scheduler) -> None:
    file = str(settings.engine.url.database)
    with subprocess.Popen([sys.executable, "-c", WRITER, file], stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout
            assert writer.stdout.readline() == "writes\n"
            by_cli(first="2021-11-01", last="2023-06-30")
        finally:
            writer.terminate()
    assert len(runs_of("navaids", run_type="backfill")) == 20
