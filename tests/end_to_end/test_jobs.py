"""The wrapper bin/spark-submit: a job's exit code and its one sentence reach whoever started it."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.end_to_end


def submit(
    tmp_path: Path, job: str, run: str, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(str(REPO / "bin" / "spark-submit"), "--master", "local[2]", *options),
            str(REPO / "jobs" / f"{job}.py"),
            *("--lake", str(tmp_path / "lake"), "--dataset", "navaids", "--run", run),
        ],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long  # the wrapper passes on every code; that this one is 5 is in tests/spark/job/test_job.py
def test_spark_submit__passes_on_that_there_was_nothing_to_do(tmp_path: Path) -> None:
    done = submit(tmp_path, "ingest", "2021-01-01")
    assert done.returncode == 5
    assert "nothing to do" in done.stdout


@pytest.mark.long  # about the settings of the log alone
def test_spark_submit__tells_an_error_of_a_task_once(tmp_path: Path) -> None:
    points = tmp_path / "lake" / "navaids" / "points"
    points.mkdir(parents=True)
    (points / "run=2023-06-01").touch()  # where a folder should be
    done = submit(tmp_path, "ingest", "2023-06-01")
    assert done.returncode == 1
    assert done.stdout.strip().splitlines()[-1].startswith(f"ingest: file://{points}/run=2023-06-01/")
    said = f"{done.stdout}{done.stderr}"
    assert said.count("cannot be written") == 1
    assert "handlePythonException" not in said


def test_spark_submit__without_an_archive_that_java_takes_passes_on_a_missing_slice_as_one_sentence(
    tmp_path: Path,
) -> None:
    """About the archive nobody says a word."""
    with zipfile.ZipFile(tmp_path / "mine.jar", "w") as jar:
        jar.writestr("mine.txt", "")
    jars = os.environ.get("DELTA_JARS", str(REPO / ".cache" / "jars"))
    other_path = ("--driver-class-path", f"{tmp_path}/mine.jar:{jars}/*")
    log = f"-Xlog:class+load:file={tmp_path}/classes"
    done = submit(tmp_path, "fit_epsilon", "2023-06-01", *other_path, SPARK_SUBMIT_OPTS=log)
    assert done.returncode == 3
    # spark-submit puts a driver's stderr on its own stdout
    assert done.stdout.strip().splitlines()[-1] == (
        "fit_epsilon: points has no slice of run 2023-06-01; run ingest for it first"
    )
    assert "(top)" not in (tmp_path / "classes").read_text()
    assert "archive" not in f"{done.stdout}{done.stderr}"
