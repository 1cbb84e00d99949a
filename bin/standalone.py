"""``bin/airflow standalone``, as Airflow has it; but however it is asked to end, its services end with it.

Airflow's own stops them at Ctrl-C alone. What ``kill`` and systemd send, and a terminal that is closed, would
leave them running. And a scheduler waits for its tasks, which wait for an API server that has ended: services
that have not ended within a minute are killed.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import psutil  # type: ignore[import-untyped]  # it has no types
from airflow.__main__ import main

STOP_SECONDS = 60

_started: list[psutil.Process] = []


def stop(_number: int, _frame: FrameType | None) -> NoReturn:
    """End as by Ctrl-C, within ``STOP_SECONDS``."""
    # now, as what a service has started is nobody's child once the service has ended
    _started.extend(psutil.Process().children(recursive=True))
    signal.alarm(STOP_SECONDS)
    raise KeyboardInterrupt


def kill_services(_number: int, _frame: FrameType | None) -> None:
    """Kill all processes that were started here, and theirs."""
    for process in {*_started, *psutil.Process().children(recursive=True)}:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def refuse(why: str) -> NoReturn:
    """End before anything is begun: of two schedulers each would take tasks of all runs."""
    print(f"airflow: {why}", file=sys.stderr)
    raise SystemExit(2)


def has_scheduler() -> bool:
    """Whether a scheduler is at work on the database; there is none before Airflow has made its tables."""
    from airflow.jobs.job import most_recent_job
    from sqlalchemy.exc import SQLAlchemyError

    try:
        job = most_recent_job("SchedulerJob")
    except SQLAlchemyError:
        return False
    return job is not None and job.is_alive()


port = int(os.environ["AIRFLOW__API__PORT"])
with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
    refuse(
        f"something answers at 127.0.0.1:{port} already: another standalone, services of one that was "
        "killed, or another program; stop it, or set AIRFLOW__API__PORT"
    )
if has_scheduler():
    refuse(
        "a scheduler is at work on this database, of another standalone or of one that was killed; stop it "
        "(one that has ended counts for half a minute more), or set AIRFLOW_HOME"
    )
for asked in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(asked) is not signal.SIG_IGN:  # as nohup has it
        signal.signal(asked, stop)
signal.signal(signal.SIGALRM, kill_services)
main()  # type: ignore[no-untyped-call]  # of Airflow
