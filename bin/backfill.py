"""``bin/airflow backfill run``: start an Airflow, make the runs of a range of dates, wait, stop it."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from airflow.cli.cli_parser import get_parser
from airflow.jobs.job import most_recent_job
from airflow.models.backfill import Backfill
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from sqlalchemy import select

HOME = Path(os.environ["AIRFLOW_HOME"])
LOG = HOME / "logs" / "backfill.log"
"""What the services say that are started here."""

NOTHING_TO_DO = "no run is missing; --reprocess-behavior completed makes them again"
START_SECONDS = 300
STOP_SECONDS = 60
LOOK_EVERY_SECONDS = 2


def main(argv: Sequence[str]) -> int:
    """Make the runs of a range of dates; 0 when all of them ended well."""
    parser = argparse.ArgumentParser(
        prog="bin/airflow backfill run",
        description="Make the runs of a range of dates, and wait for them. Airflow is started and stopped "
        "unless it runs already. A backfill that was interrupted goes on first, to its end.",
    )
    parser.add_argument("dag_id", metavar="DATASET", help="name of the data set and of its DAG")
    parser.add_argument("from_date", metavar="FROM", help="first logical date, YYYY-MM-DD")
    parser.add_argument("to_date", metavar="TO", help="last logical date, YYYY-MM-DD")
    parser.add_argument("--max-active-runs", default="2", help="runs at once (default: 2)")
    parser.add_argument("--run-backwards", action="store_true", help="the newest run first")
    parser.add_argument("--reprocess-behavior", choices=["none", "failed", "completed"], default="none")
    parser.add_argument("--dag-run-conf", help="parameters of all runs, a JSON object")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, _interrupted)
    command = [
        *("backfill", "create", "--dag-id", arguments.dag_id),
        *("--from-date", arguments.from_date, "--to-date", arguments.to_date),
        *("--max-active-runs", arguments.max_active_runs),
        *("--reprocess-behavior", arguments.reprocess_behavior),
        *(["--run-backwards"] if arguments.run_backwards else []),
        *(["--dag-run-conf", arguments.dag_run_conf] if arguments.dag_run_conf else []),
    ]
    with _airflow_that_runs(arguments.dag_id), _unpaused(arguments.dag_id):
        for unfinished in _backfills(arguments.dag_id):
            _say(f"an earlier backfill of {arguments.dag_id} is not finished; it goes on first")
            _wait_for(unfinished)
        _airflow(*command)
        made = _backfills(arguments.dag_id)
        if not made:  # the scheduler was faster: nothing was to be done, and it is completed
            _say(NOTHING_TO_DO)
            return 0
        return _wait_for(made[0])


def _say(text: str) -> None:
    print(f"backfill: {text}", flush=True)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def _airflow(*arguments: str) -> None:
    """Run a command of Airflow in this process, which has paid for the imports."""
    parsed = get_parser().parse_args(arguments)
    parsed.func(parsed)


def _until(is_there: Callable[[], object], what: str, service: subprocess.Popen[bytes] | None) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not is_there():
        if service is not None and service.poll() is not None:
            raise SystemExit(f"backfill: Airflow ended while it started; see {LOG}")
        if time.monotonic() > deadline:
            raise SystemExit(f"backfill: {what} after {START_SECONDS} s; see {LOG}")
        time.sleep(LOOK_EVERY_SECONDS)


@contextmanager
def _airflow_that_runs(dag_id: str) -> Iterator[None]:
    """Use the Airflow of this home that runs, or start one on free ports and stop it at the end."""
    job = most_recent_job("SchedulerJob")
    if job is not None and job.is_alive():
        _say("Airflow runs already, and makes the runs")
        yield
        return
    main_port, *log_ports = _free_ports(3)
    environment = {
        **os.environ,
        "AIRFLOW__API__PORT": str(main_port),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{main_port}/execution/",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(log_ports[0]),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(log_ports[1]),
    }
    # when this process dies, whatever the way, Airflow stops as if by Ctrl-C, and takes its services along
    tied = (
        ["setpriv", "--pdeathsig", "INT", "--"] if sys.platform == "linux" and shutil.which("setpriv") else []
    )
    began = datetime.now().astimezone()
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("wb") as log:
        service = subprocess.Popen(  # noqa: S603 - a command of ours
            [*tied, "airflow", "standalone"],  # bin/airflow puts it first on the path
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C comes here, and from here
        )
    try:
        _say(f"Airflow starts on port {main_port}; its log is {LOG}")
        _until(lambda: _is_healthy(main_port), "Airflow is not up", service)
        _until(lambda: _was_read_since(dag_id, began), f"Airflow has no DAG {dag_id}", service)
        yield
    finally:
        service.send_signal(signal.SIGINT)
        try:
            service.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(service.pid, signal.SIGKILL)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _is_healthy(port: int) -> bool:
    """Whether pages are served; a task that starts before would find nobody to report to."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/version", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _was_read_since(dag_id: str, began: datetime) -> bool:
    with create_session() as session:
        dag = session.get(DagModel, dag_id)
        return bool(dag and dag.last_parsed_time and dag.last_parsed_time > began)


@contextmanager
def _unpaused(dag_id: str) -> Iterator[None]:
    """A paused DAG makes no runs, not even those of a backfill."""
    with create_session() as session:
        dag = session.get(DagModel, dag_id)
        if dag is None:
            raise SystemExit(f"backfill: Airflow has no DAG {dag_id}")
        was_paused = bool(dag.is_paused)
        dag.is_paused = False
    try:
        yield
    finally:
        if was_paused:
            with create_session() as session:
                session.get_one(DagModel, dag_id).is_paused = True


def _backfills(dag_id: str) -> list[int]:
    with create_session() as session:
        active = select(Backfill.id).where(Backfill.dag_id == dag_id, Backfill.completed_at.is_(None))
        return list(session.scalars(active))


def _wait_for(backfill: int) -> int:
    """Say how each run ends; 0 when all ended well."""
    ended: dict[datetime | None, str] = {}
    while True:
        with create_session() as session:
            runs = session.scalars(select(DagRun).where(DagRun.backfill_id == backfill)).all()
            for run in runs:
                if run.state in ("success", "failed") and run.logical_date not in ended:
                    ended[run.logical_date] = str(run.state)
                    _say(f"{run.logical_date:%Y-%m-%d} {_how(run)} ({len(ended)} of {len(runs)})")
            if len(ended) == len(runs):
                break
        time.sleep(LOOK_EVERY_SECONDS)
    failed = list(ended.values()).count("failed")
    if not ended:
        _say(NOTHING_TO_DO)
    elif failed:
        _say(f"{failed} of {len(ended)} runs failed; --reprocess-behavior failed makes those again")
    return 1 if failed else 0


def _how(run: DagRun) -> str:
    states = {task.task_id: str(task.state) for task in run.get_task_instances()}
    if broken := [task for task, state in states.items() if state == "failed"]:
        return f"failed in {', '.join(broken)}"
    if states.get("ingest") == "skipped":
        return "skipped: no snapshot"
    seconds = (run.end_date - run.start_date).total_seconds() if run.end_date and run.start_date else 0
    return f"done in {seconds:.0f} s"


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        raise SystemExit("backfill: interrupted; the same command goes on with it") from None
