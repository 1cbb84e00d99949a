"""``bin/airflow standalone``, as Airflow has it; but however it is asked to end, its services end with it.

Airflow's own stops them at Ctrl-C alone. What ``kill`` and systemd send, and a terminal that is closed, would
leave them running. And a scheduler waits for its tasks, which wait for an API server that has ended: services
that have not ended within a minute are killed.
"""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import psutil  # type: ignore[import-untyped]  # as it comes
from airflow.__main__ import main

STOP_SECONDS = 60


_started: list[psutil.Process] = []


def stop(number: int, frame: FrameType | None) -> NoReturn:
    """End as by Ctrl-C, within ``STOP_SECONDS``."""
    del number, frame
    # now, as what a service has started is nobody's child once the service has ended
    _started.extend(psutil.Process().children(recursive=True))
    signal.alarm(STOP_SECONDS)
    raise KeyboardInterrupt


def kill_services(number: int, frame: FrameType | None) -> None:
    """Kill all processes that were started here, and theirs."""
    del number, frame
    for process in {*_started, *psutil.Process().children(recursive=True)}:
        with suppress(psutil.NoSuchProcess):
            process.kill()


address = "127.0.0.1", int(os.environ["AIRFLOW__API__PORT"])
with suppress(OSError), socket.create_connection(address, timeout=1):
    # another scheduler on the same database would take tasks of the first one's runs
    raise SystemExit(
        f"airflow: something answers at {address[0]}:{address[1]} already: another standalone, or services "
        "of one that was killed; stop them, or set AIRFLOW__API__PORT and AIRFLOW_HOME"
    )
for asked in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(asked) is not signal.SIG_IGN:  # as nohup has it
        signal.signal(asked, stop)
signal.signal(signal.SIGALRM, kill_services)
main()  # type: ignore[no-untyped-call]  # of Airflow
