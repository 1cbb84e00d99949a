"""The project's scripts, run with a fake Spark."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from dags.fake_spark import REPOSITORY

BIN = REPOSITORY / "bin"
BYTECODE = {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}


def run(command: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # a test that says where bytecode goes is not told by make; for others Airflow's is compiled by now
    told = BYTECODE if BYTECODE & environment.keys() else set()
    inherited = {name: value for name, value in os.environ.items() if name not in told}
    return subprocess.run(
        [str(BIN / command), *arguments],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,  # a script that hangs; a busy machine needs up to 60
    )


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def has_ended(pid: int) -> bool:
    """Whether a process ends within 10 s: one that was killed may still run for a moment."""
    until = time.monotonic() + 10
    while (runs := alive(pid)) and time.monotonic() < until:
        time.sleep(0.05)
    return not runs
