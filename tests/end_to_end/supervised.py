"""What supervisord keeps, as it says itself."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]


def supervise(folder: Path, *words: str) -> str:
    """What the supervisord of the services in ``folder`` answers."""
    asked = [REPO / ".venv-airflow" / "bin" / "python", "-m", "supervisor.supervisorctl"]
    asked += ["-c", folder / "supervisor.conf", *words]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout


def pids(folder: Path) -> dict[str, int]:
    """What it keeps, with the number of its process, as soon as nothing is being started."""
    end = time.monotonic() + 60
    while re.search("STARTING|BACKOFF", said := supervise(folder, "status")):
        assert time.monotonic() < end, said
        time.sleep(1)  # each question is a Python that starts
    found = re.findall(r"^\w+:(\S+) +RUNNING +pid (\d+)", said, re.MULTILINE)
    return {name: int(pid) for name, pid in found}
