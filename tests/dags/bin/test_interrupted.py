"""Commands that Ctrl-C ends say so in one sentence, and leave no job behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dags.fake_spark import REPOSITORY
from dags.scripts import BIN

_INTERRUPTED = """
import os, signal, subprocess, sys
import dag_commands

during = sys.argv[1]

def work():
    if during == "job":
        wait = "import time; print(flush=True); time.sleep(600)"
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        job = subprocess.Popen([sys.executable, "-c", wait, "spark-submit"], **how)
        job.stdout.readline()  # a Python that is still starting ends with 1
    os.kill(os.getpid(), signal.SIGINT)
    with open(during, "w") as ended:
        ended.write(str(job.wait()))
    print("the task has failed", file=sys.stderr)
    raise SystemExit(1)

dag_commands.check_database = lambda: None
dag_commands.airflow.main = work
raise SystemExit(dag_commands.main(["test", "navaids", "2023-06-01"]))
"""


@pytest.mark.parametrize("during", ["job", "no job"])
def test_airflow_run__that_is_interrupted_ends_with_its_job_and_one_sentence(
    during: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, during],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{BIN}:{REPOSITORY}/plugins"},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 130
    assert done.stderr == "airflow: interrupted; the same command again makes the run anew\n"
    ended = tmp_path / "job"
    assert ended.exists() == (during == "job")
    assert not ended.exists() or ended.read_text() == f"{-signal.SIGINT}"


@pytest.mark.parametrize(("script", "who"), [("backfill.py", "backfill"), ("dag_commands.py", "airflow")])
def test_command__that_is_interrupted_while_airflow_is_imported_says_one_sentence(
    tmp_path: Path, script: str, who: str
) -> None:
    (tmp_path / "airflow.py").write_text("raise KeyboardInterrupt")
    done = subprocess.run(
        [sys.executable, str(BIN / script), "run"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, f"{who}: interrupted; nothing was begun\n")
