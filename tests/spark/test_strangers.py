"""What a process without the secret of a driver, if possible of another user, can ask of that driver."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="Linux alone")

REPO = Path(__file__).resolve().parents[2]
ENDPOINTS = ("BlockManagerMaster", "LocalSchedulerBackendEndpoint", "OutputCommitCoordinator")


def ask_as_a_stranger(port: str) -> dict[str, str]:
    """What each endpoint of a driver does with a question of somebody who has no secret."""
    (jars,) = REPO.resolve().glob(".venv/lib/python3*/site-packages/pyspark/jars")
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    program = Path(__file__).with_name("Stranger.java")
    if subprocess.run([*become, "test", "-r", program, "-a", "-r", jars], check=False).returncode:
        become = []  # the project lies where only its user gets
    command = [*become, "java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars.resolve()}/*", program, port]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ") for line in done.stdout.splitlines())


def test_local_driver__refuses_everybody_without_its_secret(spark: SparkSession) -> None:
    # bin/spark-submit has started it
    assert ask_as_a_stranger(str(spark.conf.get("spark.driver.port"))) == dict.fromkeys(ENDPOINTS, "refuses")


@pytest.mark.long  # that the question is asked well: only the setting differs
def test_local_driver__without_the_setting_would_answer() -> None:
    script = Path(__file__).with_name("listening.py")
    settings = ("--master", "local[1]", "--conf", "spark.authenticate=false")
    given = [REPO / "bin" / "spark-submit", *settings, script]
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as driver:
        assert driver.stdout
        try:
            said = next(line for line in driver.stdout if line.startswith("listening: "))
            port = said.removeprefix("listening: ").strip()
            assert ask_as_a_stranger(port) == dict.fromkeys(ENDPOINTS, "answers")
        finally:
            driver.kill()
