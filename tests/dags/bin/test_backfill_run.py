"""``bin/airflow backfill run`` starts or finds an Airflow, waits, and says how each run ended. Fake Spark."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from airflow.jobs.job import Job
from airflow.models.backfill import Backfill
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.pool import Pool
from airflow.sdk.timezone import utcnow
from airflow.utils.session import create_session
from pendulum import duration
from sqlalchemy import delete, update
from sqlalchemy.exc import OperationalError

import backfill
import backfill_airflow
from dags.doors import MONTHS
from dags.fake_spark import FakeSpark, write_script
from dags.in_process import Scheduler
from dags.scripts import has_ended


def test_backfill_run__with_an_airflow_that_runs_waits_and_says_how_each_run_ended(
    scheduler: Scheduler,
    fake_spark: FakeSpark,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = SimpleNamespace(sleep=lambda _: scheduler.run(), monotonic=time.monotonic)
    monkeypatch.setattr(backfill_airflow, "time", clock)
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
        capsys.readouterr()
        assert backfill.main(["navaids", MONTHS[0], MONTHS[-1]]) == 0
        again = re.findall("^backfill: .*", capsys.readouterr().out, re.MULTILINE)
    finally:
        with create_session() as session:
            session.execute(delete(Job).where(Job.job_type == "SchedulerJob"))
    assert [re.sub(r"in \d+ s", "in 0 s", line.removeprefix("backfill: ")) for line in said] == [
        "Airflow runs already, and makes the runs",
        "2022-01-01 done in 0 s (1 of 3)",
        "2022-02-01 failed in ingest (2 of 3)",
        "2022-03-01 skipped: no snapshot (3 of 3)",
        "1 of 3 runs failed; --reprocess-behavior failed makes those again",
        "when a missing snapshot has come, --reprocess-behavior completed makes its date again",
    ]
    assert [line.partition(";")[0] for line in again] == [
        "backfill: Airflow runs already, and makes the runs",
        "backfill: no run is missing",
    ], "runs that an earlier one has ended are not told again"
    with create_session() as session:
        assert session.get_one(DagModel, "navaids").is_paused, "as it was before"


def test_backfill_run__explains_which_dates_it_makes_again(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="^0$"):
        backfill.main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "which dates are made again: none, those whose run failed, or all (default: none)" in said


def test_backfill_run__says_what_keeps_its_runs_waiting(
    scheduler: Scheduler,
    fake_spark: FakeSpark,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They would be waited for without a word, also by later commands."""

    def pause(dag: bool, backfill: bool) -> None:
        with create_session() as session:
            session.get_one(DagModel, "navaids").is_paused = dag
            session.execute(update(Backfill).values(is_paused=backfill))

    def cancel() -> None:
        with create_session() as session:  # as by the page of the DAG
            session.execute(update(DagRun).where(DagRun.state == "queued").values(state="failed"))

    def give_slots(number: int | None) -> None:
        with create_session() as session:
            session.execute(delete(Pool).where(Pool.pool == "lake_writers"))
            if number is not None:
                session.add(Pool(pool="lake_writers", slots=number, include_deferred=False))

    steps = [
        lambda: pause(True, False),
        lambda: None,
        lambda: pause(False, True),
        lambda: None,
        lambda: pause(False, False),
        lambda: None,
        lambda: give_slots(0),
        lambda: None,
        lambda: give_slots(None),
        lambda: None,
        lambda: give_slots(2),
        lambda: None,
        cancel,
    ]
    clock = SimpleNamespace(sleep=lambda _: steps.pop(0)(), monotonic=time.monotonic)
    monkeypatch.setattr(backfill_airflow, "time", clock)
    with create_session() as session:
        job = Job(job_type="SchedulerJob", state="running")
        job.latest_heartbeat += duration(days=1)  # alive for as long as the test takes
        session.add(job)
    try:
        assert backfill.main(["navaids", MONTHS[0], MONTHS[0]]) == 1
    finally:
        give_slots(2)
        with create_session() as session:
            session.execute(delete(Job).where(Job.job_type == "SchedulerJob"))
            session.execute(update(Backfill).values(completed_at=utcnow()))
    assert not steps
    said = re.findall("^backfill: (.*)", capsys.readouterr().out, re.MULTILINE)
    assert said[1:] == [
        "navaids is paused, and its runs wait; bin/airflow dags unpause navaids lets them go on",
        "the backfill is paused, and its runs wait; the DAG's page lets it go on, or be cancelled",
        "the pool lake_writers has no slots, for which all jobs wait; give it some (Admin, Pools)",
        "there is no pool lake_writers, for which all jobs wait; bin/airflow setup makes it",
        f"{MONTHS[0]} failed, though none of its tasks did: cancelled, or marked as failed (1 of 1)",
        "1 of 1 runs failed; --reprocess-behavior failed makes those again",
    ]


@pytest.mark.parametrize(
    ("skipped", "told"),
    [
        (["ingest", "quality_input", "match", "report"], backfill.SKIPPED),
        (["ingest_iscgem", "quality_input_iscgem", "match", "report"], backfill.SKIPPED),
        (["replicate", "merge_join", "report"], "ended before the join: its eps was rejected"),
        ([], "done in 7 s"),
    ],
)
def test_describe__says_done_only_of_a_run_that_has_done_all(skipped: list[str], told: str) -> None:
    tasks = {"ingest", "ingest_iscgem", "approve_epsilon", "replicate", "report", *skipped}
    states = {task: "skipped" if task in skipped else "success" for task in tasks}
    run = SimpleNamespace(
        state="success",
        start_date=utcnow(),
        end_date=utcnow() + duration(seconds=7),
        get_task_instances=lambda: [SimpleNamespace(task_id=task, state=states[task]) for task in states],
    )
    assert backfill._describe(run) == told


def test_find_reasons__of_a_failed_task_has_the_sentence_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__LOGGING__BASE_LOG_FOLDER", str(tmp_path))
    names = {"ingest": "failed", "replicate": "upstream_failed", "report": "failed", "join": "success"}
    tasks = [
        SimpleNamespace(dag_id="navaids", run_id="backfill__1", task_id=name, state=state, try_number=2)
        for name, state in names.items()
    ]
    run = mock.Mock(get_task_instances=lambda: tasks)
    assert backfill._find_reasons(run) == [], "logs that lie elsewhere tell nothing"
    for name in names:
        folder = tmp_path / "dag_id=navaids" / "run_id=backfill__1" / f"task_id={name}"
        folder.mkdir(parents=True)
        said = f"{name}: 5 records are missing\nLook at docs"
        detail = {"exc_type": "AirflowFailException", "exc_value": said}
        lines = [{"event": "Task failed", "error_detail": [detail]}, {"event": "end"}, ["odd"]]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "attempt=2.log").write_text(f"{text}not JSON\n" if name == "ingest" else "{}")
    assert backfill._find_reasons(run) == ["ingest: 5 records are missing"]


def test_backfill_run__after_one_that_was_killed_pauses_what_was_paused_before_it(
    scheduler: Scheduler, capsys: pytest.CaptureFixture[str]
) -> None:
    def set_paused(is_paused: bool) -> None:
        with create_session() as session:
            session.get_one(DagModel, "navaids").is_paused = is_paused

    def is_paused() -> bool:
        with create_session() as session:
            return bool(session.get_one(DagModel, "navaids").is_paused)

    backfill_airflow.LOG.parent.mkdir(parents=True, exist_ok=True)
    killed = []
    for was_paused in (True, False):
        set_paused(was_paused)
        killed.append(backfill._unpause("navaids"))
        killed[-1].__enter__()  # and never left
        assert not is_paused()
        with backfill._unpause("navaids"):
            assert not is_paused()
        assert is_paused() == was_paused
        assert ("was paused before a back-fill that was killed" in capsys.readouterr().out) == was_paused
    set_paused(False)
    with backfill._unpause("navaids"):
        pass
    assert not is_paused(), "that is forgotten once it is paused again"


def test_backfill_run__ends_when_airflow_has_ended(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No run would be made any more, and nobody would say so."""

    def stop(_: float) -> None:
        with create_session() as session:
            session.execute(update(Job).where(Job.job_type == "SchedulerJob").values(state="success"))

    monkeypatch.setattr(backfill_airflow, "time", SimpleNamespace(sleep=stop, monotonic=time.monotonic))
    monkeypatch.setattr(backfill_airflow, "ABSENT_SECONDS", 0)
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


def test_backfill_run__says_that_the_database_is_gone(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by ``bin/services down`` while it waits."""

    def stop(_: float) -> None:
        raise OperationalError("SELECT", {}, Exception("FATAL:  the database\n is shutting down"))

    monkeypatch.setattr(backfill_airflow, "time", SimpleNamespace(sleep=stop, monotonic=time.monotonic))
    with create_session() as session:
        session.add(Job(job_type="SchedulerJob", state="running"))
    try:
        with pytest.raises(
            SystemExit,
            match=r"database does not answer any more \(FATAL: the database is shutting down\); once it does",
        ):
            backfill.main(["navaids", MONTHS[0], MONTHS[-1]])
    finally:
        with create_session() as session:
            session.execute(delete(Job).where(Job.job_type == "SchedulerJob"))
            session.execute(update(Backfill).values(completed_at=utcnow()))


def test_backfill_run__waits_for_somebodys_airflow_that_is_slow_or_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = {0: True, 100: False, 290: False, 299: True, 400: False, 599: False, 600: False}
    now = [0.0]
    monkeypatch.setattr(backfill_airflow, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(backfill_airflow, "_is_airflow_alive", lambda: looks[now[0]])
    has_ended = backfill_airflow._absence()
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
        with backfill_airflow.alone("dag-navaids", "another back-fill"):
            order.append("second")

    other = threading.Thread(target=second)
    with (
        backfill_airflow.alone("dag-navaids", "another back-fill"),
        backfill_airflow.alone("airflow", "somebody"),
    ):
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
    backfill_airflow.LOG.parent.mkdir(parents=True, exist_ok=True)
    backfill_airflow.LOG.touch(0o644)
    backfill_airflow.LOG.chmod(0o644)
    ended = mock.Mock(poll=lambda: 1)
    monkeypatch.setattr(backfill_airflow.subprocess, "Popen", lambda *_, **__: ended)
    with (
        pytest.raises(SystemExit, match="Airflow ended while it started"),
        backfill_airflow.airflow_for("navaids"),
    ):
        raise AssertionError
    assert stat.S_IMODE(backfill_airflow.LOG.stat().st_mode) == 0o600


def fake_airflow(folder: Path, obeys: bool = True) -> None:
    """A program that heeds the same signals as standalone, and none that it was started to ignore."""
    fake = f"""#!{sys.executable}
import os, pathlib, signal, subprocess, sys, time

def stop(*_):
    pathlib.Path("asked").touch()
    if {obeys}:
        service.terminate()
        sys.exit()

service = subprocess.Popen(["sleep", "600"])
for asked in (signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(asked) is not signal.SIG_IGN:
        signal.signal(asked, stop)
schedule = os.environ.get("AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE")
pathlib.Path("begun").write_text(f"{{service.pid}} {{schedule}}")
pathlib.Path("begun").rename("started")
while True:
    time.sleep(600)
"""
    write_script(folder / "airflow", fake)


@pytest.fixture
def ignores_ctrl_c() -> Iterator[None]:
    """As what a script starts in the background does, and all that it starts."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def start_fake(monkeypatch: pytest.MonkeyPatch, folder: Path, stop_seconds: float) -> Path:
    """Have the fake Airflow found, and taken for healthy once it has started; the file that says so."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    backfill_airflow.LOG.parent.mkdir(parents=True, exist_ok=True)
    started = Path("started")
    for name in ("_is_healthy", "_was_read_since", "_is_airflow_alive"):
        monkeypatch.setattr(backfill_airflow, name, lambda *_: started.exists())
    monkeypatch.setattr(backfill_airflow, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(backfill_airflow, "STOP_SECONDS", stop_seconds)
    return started


@pytest.mark.parametrize("obeys", [True, False])
def test_backfill_run__stops_the_airflow_that_it_has_started(
    database: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, obeys: bool
) -> None:
    """As by Ctrl-C; and one that does not end, by force, with its services."""
    fake_airflow(tmp_path, obeys)
    started = start_fake(monkeypatch, tmp_path, 30 if obeys else 0.5)
    with backfill_airflow._start_airflow("navaids") as airflow:
        pid, has_schedule = started.read_text().split()
        assert has_schedule == "False", "runs of the schedule would be cut off"
        assert not Path("asked").exists()
    assert Path("asked").exists()
    assert airflow.wait(10) == (0 if obeys else -signal.SIGKILL)
    assert has_ended(int(pid))


def test_backfill_run__in_the_background_of_a_script_stops_its_airflow_as_well(
    database: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ignores_ctrl_c: None
) -> None:
    fake_airflow(tmp_path)
    started = start_fake(monkeypatch, tmp_path, 30)
    with backfill_airflow._start_airflow("navaids") as airflow:
        pid = int(started.read_text().split()[0])
    assert airflow.wait(10) == 0, "not by force"
    assert has_ended(pid)


@pytest.mark.skipif(not shutil.which("setpriv"), reason="Linux alone")
def test_backfill_run__that_is_killed_in_the_background_of_a_script_leaves_no_airflow(
    database: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_airflow(tmp_path)
    started = start_fake(monkeypatch, tmp_path, 30)
    ended, commands = mock.Mock(poll=lambda: 1), list[list[str]]()

    def remember(command: list[str], **_: object) -> mock.Mock:
        commands.append(command)
        return ended

    with monkeypatch.context() as patched:
        patched.setattr(backfill_airflow.subprocess, "Popen", remember)
        with (
            pytest.raises(SystemExit, match="Airflow ended while it started"),
            backfill_airflow._start_airflow("navaids"),
        ):
            raise AssertionError
    killed = f"""
import os, pathlib, signal, subprocess, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
subprocess.Popen({commands[0]!r}, start_new_session=True)
while not pathlib.Path("started").exists():
    time.sleep(0.05)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode == -signal.SIGKILL
    assert has_ended(int(started.read_text().split()[0]))
