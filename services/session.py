"""The processes of one session of the kernel: whatever its leader has started and still runs."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

GRACE = 10
"""How many seconds a process has to end by itself before it is killed."""


def read_process(pid: int) -> dict[str, str]:
    """Read what ``/proc`` says of a process, nothing if it has ended; number and beginning are its alone."""
    try:
        # the name, in brackets, may hold spaces and brackets, and any bytes: the kernel cuts it after 15
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    fields = text.rpartition(")")[2].split()
    return {"state": fields[0], "session": fields[3], "began": fields[19]}


class Session:
    """The session whose leader a file names.

    Parameters
    ----------
    file : holds the leader's number and beginning, so that it is found by later commands, too.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def begin(self, leader: int) -> None:
        """Write the file of a leader that has just started."""
        self.file.write_text(f"{leader} {read_process(leader)['began']}\n")

    def find_processes(self) -> list[int]:
        """List the processes that have not ended; the leader may have."""
        try:
            leader, began = self.file.read_text().split()
        except (OSError, ValueError):
            return []
        everyone = {int(path.name): read_process(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
        if everyone.get(int(leader), {}).get("began", began) != began:
            return []  # the number was given to another process, so nothing of the session is left
        return [
            pid for pid, found in everyone.items() if found.get("session") == leader and found["state"] != "Z"
        ]

    def end(self) -> None:
        """End every process, and forget the session."""
        for what in (signal.SIGTERM, signal.SIGKILL):
            for pid in self.find_processes():
                with suppress(ProcessLookupError):
                    os.kill(pid, what)
            end = time.monotonic() + GRACE
            while self.find_processes() and time.monotonic() < end:
                time.sleep(0.1)
        self.file.unlink(missing_ok=True)
