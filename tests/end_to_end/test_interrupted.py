"""A job that Ctrl-C ends says so in one sentence and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children with their parent"),
]

JOB = """
from epsjoin.spark.job.job import run_job

def wait(job):
    job.spark
    print("waits", flush=True)
    job.spark.sparkContext._jvm.java.lang.Thread.sleep(600_000)

raise SystemExit(run_job("waiting", wait))
"""


def test_spark_submit__ended_by_ctrl_c_says_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    scratch, script = tmp_path / "scratch", tmp_path / "waiting.py"
    scratch.mkdir()
    script.write_text(JOB)
    arguments = ("--lake", str(tmp_path / "lake"), "--dataset", "navaids", "--run", "2023-06-01")
    submitted = subprocess.Popen(
        [str(REPO / "bin" / "spark-submit"), str(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(scratch)},
    )
    try:
        assert submitted.stdout is not None
        for line in submitted.stdout:
            if line == "waits\n":
                break
        os.killpg(submitted.pid, signal.SIGINT)
        said, _ = submitted.communicate(timeout=300)
    finally:
        submitted.kill()
    assert submitted.returncode == 130
    assert said == "waiting: interrupted; the same command again makes the run anew\n"
    assert not [file for file in scratch.rglob("*") if file.is_file()]
