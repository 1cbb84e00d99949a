"""``bin/airflow standalone``, as Airflow has it; but however it is asked to end, its services end with it.

Airflow's own stops them at Ctrl-C alone. What ``kill`` and systemd send, and a terminal that is closed, would
leave them running. And a scheduler waits for its tasks, which wait for an API server that has ended: services
that have not ended within a minute are killed. And Airflow's own goes on when a service has ended, even the
scheduler, without which no run is made: here all end then, so that whoever waits for a run learns of it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import psutil  # type: ignore[import-untyped]  # it has no types
from airflow.__main__ import main
from airflow.cli.commands import standalone_command

STOP_SECONDS = 60
PR_SET_CHILD_SUBREAPER = 36
"""Of Linux: what a killed descendant leaves behind becomes a child of this process."""

_started: list[psutil.Process] = []
_stopping = threading.Event()
_ended: list[str] = []
"""Services that have ended though nobody had asked them to."""


class Service(standalone_command.SubCommand):
    """A service of standalone; when it ends unasked, all end."""

    def run(self) -> None:
        """Start the service and pass on what it says."""
        threading.Thread(target=self._watch, daemon=True).start()
        super().run()  # type: ignore[no-untyped-call]  # of Airflow

    def _watch(self) -> None:
        while self.process is None:
            if _stopping.wait(0.1):
                return
        code = self.process.wait()
        if not _stopping.is_set():
            _ended.append(self.name)
            print(
                f"airflow: {self.name} has ended with exit code {code}, so all services end", file=sys.stderr
            )
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def stop(_number: int, _frame: FrameType | None) -> NoReturn:
    """End as by Ctrl-C, within ``STOP_SECONDS``."""
    _stopping.set()
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
if sys.platform == "linux":  # the workers of a killed scheduler live on, and its output would have no end
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
standalone_command.SubCommand = Service  # type: ignore[misc]  # Airflow makes its services of this name
main()  # type: ignore[no-untyped-call]  # of Airflow
if _ended:
    raise SystemExit(1)
