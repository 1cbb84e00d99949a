"""What a process without the secret of a driver, if possible of another user, can ask of that driver."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="Linux alone"),
]

REPO = Path(__file__).resolve().parents[2]
ENDPOINTS = ("BlockManagerMaster", "LocalSchedulerBackendEndpoint", "OutputCommitCoordinator")


def ask_as_a_stranger(port: int) -> dict[str, str]:
    """What each endpoint of a driver does with a question of somebody who has no secret."""
    (jars,) = REPO.resolve().glob(".venv/lib/python3*/site-packages/pyspark/jars")
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    program = Path(__file__).with_name("Stranger.java")
    if subprocess.run([*become, "test", "-r", program, "-a", "-r", jars], check=False).returncode:
        become = []  # the project lies where only its user gets
    command = [*become, "java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars.resolve()}/*", program, str(port)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ") for line in done.stdout.splitlines())


def listen_and_ask(*settings: str) -> dict[str, str]:
    """Start a local driver and ask it as a stranger."""
    script = Path(__file__).with_name("listening.py")
    given: Sequence[str | Path] = [REPO / "bin" / "spark-submit", "--master", "local[1]", *settings, script]
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as driver:
        assert driver.stdout
        try:
            said = next(line for line in driver.stdout if line.startswith("listening: "))
            return ask_as_a_stranger(int(said.removeprefix("listening: ")))
        finally:
            driver.kill()


def test_local_driver__refuses_everybody_without_its_secret() -> None:
    assert listen_and_ask() == dict.fromkeys(ENDPOINTS, "refuses")


def test_local_driver__without_the_setting_would_answer_everybody() -> None:
    """The question is asked well: only the setting makes the difference."""
    assert listen_and_ask("--conf", "spark.authenticate=false") == dict.fromkeys(ENDPOINTS, "answers")
