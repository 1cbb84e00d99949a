"""The wrapper bin/spark-submit: a job's exit code and its one sentence reach whoever started it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.end_to_end


def submit(tmp_path: Path, job: str, run: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(str(REPO / "bin" / "spark-submit"), "--master", "local[2]", str(REPO / "jobs" / f"{job}.py")),
            *("--lake", str(tmp_path / "lake"), "--dataset", "navaids", "--run", run),
            *("--metrics-out", str(tmp_path / "metrics.json")),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


def test_spark_submit__passes_on_success_and_leaves_nothing_beside_the_lake(tmp_path: Path) -> None:
    done = submit(tmp_path, "ingest", "2023-06-01")
    assert done.returncode == 0, done.stderr
    assert "11,020 rows read" in done.stdout
    assert json.loads((tmp_path / "metrics.json").read_text())["rows_ok"] == 11020
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake", "metrics.json"]


def test_spark_submit__passes_on_that_there_was_nothing_to_do(tmp_path: Path) -> None:
    done = submit(tmp_path, "ingest", "2021-01-01")
    assert done.returncode == 5
    assert "nothing to do" in done.stdout


def test_spark_submit__passes_on_a_missing_slice_as_one_sentence(tmp_path: Path) -> None:
    done = submit(tmp_path, "cluster", "2023-06-01")
    assert done.returncode == 3
    # spark-submit puts a driver's stderr on its own stdout
    assert done.stdout.strip().splitlines()[-1] == (
        "cluster: points has no slice of run 2023-06-01; run ingest for it first"
    )
