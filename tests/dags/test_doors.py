"""Every door by which somebody asks for runs takes the same parameters, and refuses what gets no runs."""

from __future__ import annotations

import json
import re
import sys

import pytest
from airflow.jobs.job import Job
from airflow.models.backfill import InvalidBackfillConf
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.sdk.timezone import utcnow
from airflow.utils.session import create_session
from fastapi.testclient import TestClient
from pendulum import duration
from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError, PendingRollbackError

import backfill
import dag_commands
from dags.doors import MONTHS, by_cli, by_rest
from dags.fake_spark import REPOSITORY, FakeSpark
from dags.in_process import Scheduler, runs_of
from project import find_lake_uri

SCHEMA = (REPOSITORY / "jobs" / "epsjoin" / "params.schema.json").read_text(encoding="utf-8")

BAD_PARAMS = ['{"eps": -1}', '{"eps": "near"}', '{"min_pts": 2.5}', '{"cuts": "square"}', '{"seed": true}']


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


def test_unknown_params__are_refused_by_rest_before_there_is_a_run(
    scheduler: Scheduler, rest: TestClient
) -> None:
    run = {"logical_date": "2022-05-01T00:00:00Z", "conf": {"eps": 1, "epss": 2}}
    months = {"dag_id": "navaids", "from_date": f"{MONTHS[0]}T00:00:00Z", "to_date": f"{MONTHS[2]}T00:00:00Z"}
    months |= {"dag_run_conf": {"epss": 2}}
    asked = {"dags/navaids/dagRuns": run, "backfills": months, "backfills/dry_run": months}
    for path, body in asked.items():
        answer = rest.post(f"/api/v2/{path}", json=body)
        assert answer.status_code == 400, path
        assert re.match(
            "the run's conf has 'epss', which is no parameter; known are eps, ", answer.json()["detail"]
        ), path
    assert runs_of("navaids") == {}


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"[" * 100_000, b'{"conf": [1], "logical_date": null}'])
def test_requests__that_are_none_are_refused_by_airflow(
    scheduler: Scheduler, rest: TestClient, body: bytes
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = rest.post("/api/v2/dags/navaids/dagRuns", content=body, headers=headers)
    assert answer.status_code in (400, 422)
    assert "no parameter" not in answer.text


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


@pytest.mark.parametrize(
    "wrong",
    [
        *(["2022-13-01", "2022-12-01"], ["2022-01-01"], ["2022-01-01", "May"]),
        *(["2022-01-01", "2022-02-01", "--max-active-runs", n] for n in ("0", "-1", "two")),
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
@pytest.mark.usefixtures("database")
def test_backfill_run__refuses_what_gets_no_runs_before_it_starts_anything(
    wrong: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(backfill, "alone", lambda *_: pytest.fail("it would start an Airflow"))
    with pytest.raises(SystemExit, match="2"):
        backfill.main(wrong)
    assert re.search(sentence, capsys.readouterr().err.splitlines()[-1])


@pytest.mark.parametrize(
    ("lake", "sentence"),
    [
        ("/tmp/x", "must be a URI such as file:///data/lake"),
        (
            "file://data/lake",
            "EPSJOIN_LAKE: a file URI has three slashes, file:///..., not 'file://data/lake'",
        ),
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
        (["test", "navaids", MONTHS[0], "-c", '{"eps": NaN}'], "must be a JSON object, as "),
        (
            ["trigger", "navaids", "-l", MONTHS[0], "-c", '{"eps": NaN}'],
            "must be a JSON object, as .*, not {",
        ),
        (
            ["test", "navaids", MONTHS[0], "-c", '{"eps": 1, "eps": 2}'],
            "parameters have 'eps' more than once",
        ),
        (
            ["trigger", "navaids", "-l", MONTHS[0], "-c", '{"eps": 1, "eps": 2}'],
            "the parameters have 'eps' more than once$",
        ),
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


def test_test__beside_a_scheduler_is_refused_unless_the_dag_is_paused(
    scheduler: Scheduler,
    fake_spark: FakeSpark,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The scheduler would take tasks of the run, which this command has made."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    with create_session() as session:
        job = Job(job_type="SchedulerJob", state="running")
        job.latest_heartbeat += duration(days=1)  # alive for as long as the test takes
        session.add(job)
    try:
        assert dag_commands.main(["test", "navaids", MONTHS[0]]) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.startswith("airflow: a scheduler runs, and would take over tasks of this run: trigger it")
        assert runs_of("navaids") == {}
        with create_session() as session:
            session.get_one(DagModel, "navaids").is_paused = True
        fake_spark.ends("ingest", 5, "epsjoin: no snapshot")
        assert dag_commands.main(["test", "navaids", MONTHS[0]]) == 0
        assert fake_spark.jobs == ["ingest"]
    finally:
        with create_session() as session:
            session.execute(delete(Job).where(Job.job_type == "SchedulerJob"))


def test_run__that_fails_says_so_without_a_trace_and_began_when_it_was_made(
    scheduler: Scheduler,
    fake_spark: FakeSpark,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``housekeeping`` deletes runs by when they began, and Airflow says a test does at its logical date."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "tracebacklimit", 1000, raising=False)
    fake_spark.ends("ingest", 3, "epsjoin: too many records were refused")
    began = utcnow()
    assert dag_commands.main(["run", "navaids", MONTHS[0]]) == 1
    said = capsys.readouterr()
    assert said.err.splitlines()[-1] == (
        f"airflow: run {MONTHS[0]} of navaids failed in ingest; the lines above say why"
    )
    assert f"bin/epsjoin quarantine --lake {find_lake_uri()} --dataset navaids --run {MONTHS[0]}" in said.out
    assert 'File "' not in said.out + said.err
    with create_session() as session:
        (run,) = session.scalars(select(DagRun).where(DagRun.dag_id == "navaids"))
        assert run.start_date is not None
        assert run.start_date >= began


@pytest.mark.parametrize(
    "error",
    [
        IntegrityError("INSERT INTO asset", {}, Exception("UNIQUE constraint failed: asset.name")),
        PendingRollbackError("UNIQUE constraint failed: asset.name\nmore"),
    ],
)
@pytest.mark.usefixtures("scheduler")
def test_run__beside_another_first_run_says_to_try_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    """Two of them register what their data sets write at once; of one name one fails."""
    monkeypatch.setattr(sys, "argv", sys.argv)

    def fail() -> None:
        raise error

    monkeypatch.setattr(dag_commands.airflow, "main", fail)
    assert dag_commands.main(["run", "navaids", MONTHS[0]]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith("the same command again makes the run (UNIQUE constraint failed: asset.name)")


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
    assert f"navaids has a run of {MONTHS[0]} already; clear" in capsys.readouterr().err.splitlines()[-1]
    taken = ["trigger", "navaids", "-l", MONTHS[1], "--run-id", MONTHS[0]]
    assert dag_commands.main(taken) == 2
    said = f"the run of {MONTHS[0]} of navaids is called {MONTHS[0]} already"
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert dag_commands.main([*triggered, "--run-id", "other"]) == 2
    assert f"navaids has a run of {MONTHS[0]} already; clear" in capsys.readouterr().err.splitlines()[-1]
