"""The processes of one session of the kernel: whatever its leader has started and still runs."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from service import read_process

GRACE = 10
"""How many seconds a process has to end by itself before it is killed."""


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

    def _read(self) -> tuple[str, str]:
        try:
            leader, began = self.file.read_text().split()
        except (OSError, ValueError):
            return "0", ""
        return leader, began

    @property
    def leader(self) -> int:
        """Number of the leader, which may have ended; 0 where there is no session."""
        return int(self._read()[0])

    def find_processes(self) -> list[int]:
        """List the processes that have not ended; the leader may have."""
        leader, began = self._read()
        if not began:
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
