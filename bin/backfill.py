"""``bin/airflow backfill run``: make the runs of a range of dates and wait for them.

The runs are made by the Airflow of this home; where none runs, one is started and, at the end, stopped. Of
two commands at once, the second waits where it would be in the other's way.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells have it."""

try:
    from airflow import settings
    from airflow.cli.commands.backfill_command import create_backfill
    from airflow.configuration import conf
    from airflow.dag_processing.dagbag import DagBag
    from airflow.jobs.job import most_recent_job
    from airflow.models.backfill import Backfill
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.sdk.timezone import coerce_datetime
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from dag_checks import Refusal, check_database, check_lake, check_params, describe_missing, read_conf
    from intervals import IntervalTimetable, NoIntervalError
except KeyboardInterrupt:  # the imports take seconds
    print("backfill: interrupted; nothing was begun", file=sys.stderr)
    raise SystemExit(INTERRUPTED) from None

LOG = Path(os.environ["AIRFLOW_HOME"], "logs", "backfill.log")
"""The output of an Airflow that is started here."""

ENDED = ("success", "failed")
"""States of runs that have ended."""

SKIPPED = "skipped: no snapshot"
NOTHING_TO_DO = "no run is missing; --reprocess-behavior completed makes them again"
START_SECONDS = 300
STOP_SECONDS = 60
POLL_SECONDS = 2
ABSENT_SECONDS = 300
"""Time without a sign of life after which somebody's Airflow is taken for ended."""

Wait = Callable[[], None]
"""Waits a moment, and ends the command where Airflow has ended, which would make no run any more."""


def main(argv: Sequence[str]) -> int:
    """Make the runs of a range of dates; return 0 when all of them ended well."""
    parser = argparse.ArgumentParser(
        prog="bin/airflow backfill run",
        description="Make the runs of a range of dates, and wait for them. Airflow is started and stopped "
        "unless it runs already. A backfill that was interrupted is finished first.",
    )
    parser.add_argument("dag_id", metavar="DATASET", help="name of the data set and of its DAG")
    parser.add_argument("from_date", metavar="FROM", type=_parse_date, help="first logical date, YYYY-MM-DD")
    parser.add_argument("to_date", metavar="TO", type=_parse_date, help="last logical date, YYYY-MM-DD")
    parser.add_argument("--max-active-runs", type=_parse_count, default=2, help="runs at once (default: 2)")
    parser.add_argument("--run-backwards", action="store_true", help="the newest run first")
    parser.add_argument("--reprocess-behavior", choices=["none", "failed", "completed"], default="none")
    parser.add_argument("--dag-run-conf", type=_check_json, help="parameters of all runs, a JSON object")
    parser.set_defaults(dry_run=False, run_on_latest_version=None)  # arguments of Airflow's own command
    arguments = parser.parse_args(argv)
    try:
        _check(arguments)
    except (NoIntervalError, Refusal) as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end as by Ctrl-C
    dag_id = arguments.dag_id
    with (
        _alone(f"dag-{dag_id}", f"another back-fill of {dag_id}"),
        _airflow(dag_id) as wait,
        _unpause(dag_id),
    ):
        for unfinished in _find_backfills(dag_id):
            if _has_open_runs(unfinished):
                _say(f"an earlier backfill of {dag_id} is not finished; it goes on first")
                _wait_for(unfinished, wait)
        while _find_backfills(dag_id):  # completed up to half a minute after the last run has ended
            wait()
        create_backfill(arguments)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # Airflow's own would end with exit code 0
        created = _find_backfills(dag_id)
        if not created:  # there was nothing to do, and the scheduler has completed it already
            _say(NOTHING_TO_DO)
            return 0
        return _wait_for(created[0], wait)


def _parse_date(text: str) -> datetime:
    try:
        return datetime.fromisoformat(f"{text}T00:00+00:00")
    except ValueError:
        raise argparse.ArgumentTypeError(f"it must be a date like 2023-06-01, not {text}") from None


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"it must be a number, 1 or more, not {text}")
    return int(text)


def _check_json(text: str) -> str:
    try:
        read_conf(text)
    except Refusal as refusal:
        raise argparse.ArgumentTypeError(str(refusal)) from None
    return text


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what no Airflow would make runs of: to start one takes a minute."""
    first, last = arguments.from_date, arguments.to_date
    if first > last:
        raise Refusal(f"FROM must not be after TO, as {first:%Y-%m-%d} is after {last:%Y-%m-%d}")
    check_lake()
    check_database()
    dags = DagBag(settings.DAGS_FOLDER).dags
    if (dag := dags.get(arguments.dag_id)) is None:
        raise Refusal(describe_missing(arguments.dag_id, dags))
    check_params(dag, read_conf(arguments.dag_run_conf))
    if isinstance(dag.timetable, IntervalTimetable):
        dag.timetable.find_interval(coerce_datetime(first), coerce_datetime(last))


def _say(text: str) -> None:
    print(f"backfill: {text}", flush=True)


@contextmanager
def _alone(name: str, others: str) -> Iterator[None]:
    """Wait until no other command is within the section of this name; one that is killed leaves it."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with (LOG.parent / f"backfill-{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"{others} is at work; this one waits until it has ended")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _airflow(dag_id: str) -> Iterator[Wait]:
    """Find the Airflow that makes the runs, or start one and stop it at the end."""
    with ExitStack() as started:
        started.enter_context(_alone("airflow", "a back-fill that has started an Airflow, and stops it,"))
        if _is_airflow_alive():
            _say("Airflow runs already, and makes the runs")
            started.close()  # it is nobody's to stop, so that others need not wait
            has_ended: Callable[[], bool] = _absence()
        else:
            has_ended = partial(_has_stopped, started.enter_context(_start_airflow(dag_id)))

        def wait() -> None:
            time.sleep(POLL_SECONDS)
            if has_ended():
                raise SystemExit("backfill: Airflow has ended; the same command goes on with the runs")

        yield wait


def _is_airflow_alive() -> bool:
    job = most_recent_job("SchedulerJob")
    return job is not None and job.is_alive()


def _has_stopped(service: subprocess.Popen[bytes]) -> bool:
    return service.poll() is not None


def _absence() -> Callable[[], bool]:
    """Make what tells whether somebody's Airflow is away for good: it may be started again, or be slow."""
    seen = time.monotonic()

    def has_ended() -> bool:
        nonlocal seen
        if _is_airflow_alive():
            seen = time.monotonic()
        return time.monotonic() - seen > ABSENT_SECONDS

    return has_ended


@contextmanager
def _start_airflow(dag_id: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start an Airflow on a free port, wait until it has read the DAG, and stop it at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    environment = {
        **os.environ,
        "AIRFLOW__API__PORT": url.rpartition(":")[2],
        "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",  # runs of any schedule would be cut off at the end
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
    }
    command = ["airflow", "standalone"]  # bin/airflow puts itself first on the path
    if sys.platform == "linux" and shutil.which("setpriv"):
        # when this process dies, in whatever way, Airflow stops as if by Ctrl-C, and stops its services
        command = ["setpriv", "--pdeathsig", "INT", "--", *command]
    began = datetime.now().astimezone()
    LOG.touch()
    LOG.chmod(0o600)  # for nobody else to read: the first start prints the password of admin
    with LOG.open("wb") as log:
        service = subprocess.Popen(
            command,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches this process alone, which then stops Airflow
        )
    try:
        _say(f"Airflow starts at {url}; its log is {LOG}")
        while not (_is_healthy(url) and _was_read_since(dag_id, began) and _is_airflow_alive()):
            if service.poll() is not None:
                raise SystemExit(f"backfill: Airflow ended while it started; see {LOG}")
            if (datetime.now().astimezone() - began).total_seconds() > START_SECONDS:
                raise SystemExit(
                    f"backfill: Airflow is not up, or has no DAG {dag_id}, after {START_SECONDS} s; see {LOG}"
                )
            time.sleep(POLL_SECONDS)
        yield service
    finally:
        service.send_signal(signal.SIGINT)
        try:
            service.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(service.pid, signal.SIGKILL)


def _is_healthy(url: str) -> bool:
    """Whether the API server answers; a task that starts earlier could not report to it."""
    try:
        with urllib.request.urlopen(f"{url}/api/v2/version", timeout=5) as answer:  # noqa: S310  # our own
            return bool(answer.status == 200)
    except OSError:
        return False


def _was_read_since(dag_id: str, began: datetime) -> bool:
    with create_session() as session:
        dag = session.get(DagModel, dag_id)
        return bool(dag and dag.last_parsed_time and dag.last_parsed_time > began)


@contextmanager
def _unpause(dag_id: str) -> Iterator[None]:
    """Unpause a DAG for a while: one that is paused makes no runs, not even those of a backfill.

    A file says that it was paused, for the next command, should this one be killed.
    """
    mark = LOG.parent / f"backfill-dag-{dag_id}.paused"
    with create_session() as session:
        dag = session.get(DagModel, dag_id)
        if dag is None:
            raise SystemExit(f"backfill: Airflow has no DAG {dag_id}")
        was_paused = bool(dag.is_paused)
        if was_paused:
            mark.touch()
        elif mark.exists():
            was_paused = True
            _say(f"{dag_id} was paused before a back-fill that was killed; it will be again at the end")
        dag.is_paused = False
    try:
        yield
    finally:
        with create_session() as session:
            session.get_one(DagModel, dag_id).is_paused = was_paused
        mark.unlink(missing_ok=True)


def _find_backfills(dag_id: str) -> list[int]:
    """List the backfills of a DAG that are not completed."""
    with create_session() as session:
        active = select(Backfill.id).where(Backfill.dag_id == dag_id, Backfill.completed_at.is_(None))
        return list(session.scalars(active))


def _has_open_runs(backfill: int) -> bool:
    """Whether a run of a backfill has not ended; where all have, the scheduler has not looked since."""
    of_backfill = select(DagRun.id).where(DagRun.backfill_id == backfill)
    with create_session() as session:
        return session.scalar(of_backfill.where(DagRun.state.not_in(ENDED)).limit(1)) is not None


def _wait_for(backfill: int, wait: Wait) -> int:
    """Say how each run ends; return 0 when all ended well."""
    ended: dict[datetime | None, str] = {}
    has_skipped = False
    while True:
        with create_session() as session:
            runs = session.scalars(select(DagRun).where(DagRun.backfill_id == backfill)).all()
            for run in runs:
                if run.state in ENDED and run.logical_date not in ended:
                    ended[run.logical_date] = str(run.state)
                    told = _describe(run)
                    has_skipped |= told == SKIPPED
                    _say(f"{run.logical_date:%Y-%m-%d} {told} ({len(ended)} of {len(runs)})")
                    for reason in _find_reasons(run):
                        _say(f"  {reason}")
            if len(ended) == len(runs):
                break
        wait()
    failed = list(ended.values()).count("failed")
    if not ended:
        _say(NOTHING_TO_DO)
    elif failed:
        _say(f"{failed} of {len(ended)} runs failed; --reprocess-behavior failed makes those again")
    if has_skipped:
        _say("when a missing snapshot has come, --reprocess-behavior completed makes its date again")
    return 1 if failed else 0


def _describe(run: DagRun) -> str:
    states = {task.task_id: str(task.state) for task in run.get_task_instances()}
    if broken := [task for task, state in states.items() if state == "failed"]:
        return f"failed in {', '.join(broken)}"
    if states.get("ingest") == "skipped":
        return SKIPPED
    seconds = (run.end_date - run.start_date).total_seconds() if run.end_date and run.start_date else 0
    return f"done in {seconds:.0f} s"


def _find_reasons(run: DagRun) -> list[str]:
    """Find why the failed tasks of a run failed, in their logs; nothing of logs that lie elsewhere."""
    failed = [task for task in run.get_task_instances() if task.state == "failed"]
    return [reason for task in failed if (reason := _read_reason(_log_of(task)))]


def _log_of(task: TaskInstance) -> Path:
    folder = Path(conf.get("logging", "base_log_folder"), f"dag_id={task.dag_id}", f"run_id={task.run_id}")
    return folder / f"task_id={task.task_id}" / f"attempt={task.try_number}.log"


def _read_reason(log: Path) -> str | None:
    """Read the first line of the last exception in a log of Airflow's, whose lines are JSON."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            return str(json.loads(line)["error_detail"][0]["exc_value"]).partition("\n")[0]
        except (ValueError, TypeError, LookupError):  # a line without an exception
            continue
    return None


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("backfill: interrupted; the same command makes the runs that are not done", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
