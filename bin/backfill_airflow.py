"""The Airflow that makes the runs of a back-fill: one that runs already, or one that is started for it."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

from airflow.jobs.job import most_recent_job
from airflow.models.dag import DagModel
from airflow.utils.session import create_session

LOG = Path(os.environ["AIRFLOW_HOME"], "logs", "backfill.log")
"""The output of an Airflow that is started here."""

START_SECONDS = 300
STOP_SECONDS = 60
POLL_SECONDS = 2
ABSENT_SECONDS = 300
"""Time without a sign of life after which somebody's Airflow is taken for ended."""

Wait = Callable[[], None]
"""Waits a moment, and ends the command where Airflow has ended, which would make no run any more."""


def say(text: str) -> None:
    """Print a line of the command."""
    print(f"backfill: {text}", flush=True)


@contextmanager
def alone(name: str, others: str) -> Iterator[None]:
    """Wait until no other command is within the section of this name; one that is killed leaves it."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with (LOG.parent / f"backfill-{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{others} is at work; this one waits until it has ended")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def airflow_for(dag_id: str) -> Iterator[Wait]:
    """Find the Airflow that makes the runs, or start one and stop it at the end."""
    with ExitStack() as started:
        started.enter_context(alone("airflow", "a back-fill that has started an Airflow, and stops it,"))
        if _is_airflow_alive():
            say("Airflow runs already, and makes the runs")
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
        # when this process dies, in whatever way, Airflow stops as if by Ctrl-C, and stops its services; not
        # by the signal of Ctrl-C itself, which is ignored by whatever a script starts in the background
        command = ["setpriv", "--pdeathsig", "TERM", "--", *command]
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
        say(f"Airflow starts at {url}; its log is {LOG}")
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
        service.terminate()
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
