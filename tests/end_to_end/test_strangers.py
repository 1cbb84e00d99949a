"""What a process without the secret of a driver, if possible of another user, can ask of that driver."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="Linux alone"),
]

REPO = Path(__file__).resolve().parents[2]
ENDPOINTS = ("BlockManagerMaster", "LocalSchedulerBackendEndpoint", "OutputCommitCoordinator")


def ask_as_a_stranger(*ports: str) -> str:
    """What each endpoint of each driver does with a question of somebody who has no secret."""
    (jars,) = REPO.resolve().glob(".venv/lib/python3*/site-packages/pyspark/jars")
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    program = Path(__file__).with_name("Stranger.java")
    if subprocess.run([*become, "test", "-r", program, "-a", "-r", jars], check=False).returncode:
        become = []  # the project lies where only its user gets
    command = [*become, "java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars.resolve()}/*", program, *ports]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def listening(*settings: str) -> Iterator[str]:
    """The port at which a local driver listens."""
    script = Path(__file__).with_name("listening.py")
    given: Sequence[str | Path] = [REPO / "bin" / "spark-submit", "--master", "local[1]", *settings, script]
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as driver:
        assert driver.stdout
        try:
            said = next(line for line in driver.stdout if line.startswith("listening: "))
            yield said.removeprefix("listening: ").strip()
        finally:
            driver.kill()


def test_local_driver__refuses_everybody_without_its_secret_and_without_the_setting_would_answer() -> None:
    """The question is asked well: one stranger asks two drivers, and only the setting differs."""
    with listening() as ours, listening("--conf", "spark.authenticate=false") as open_to_all:
        said = dict(line.split(": ") for line in ask_as_a_stranger(ours, open_to_all).splitlines())
    expected = {f"{ours} {name}": "refuses" for name in ENDPOINTS}
    assert said == expected | {f"{open_to_all} {name}": "answers" for name in ENDPOINTS}
