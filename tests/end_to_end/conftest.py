"""The demo, which takes minutes: run once for all tests that look at what it leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
RUN = "2023-06-01"


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Folder of the tables of the data set, and what was said at the end."""
    home = tmp_path_factory.mktemp("demo")
    (home / "airflow").mkdir()
    shutil.copy(REPO / ".airflow" / "airflow.db", home / "airflow")  # as setup has made it
    for folder in ("classes", "mine", "tmp"):
        (home / folder).mkdir()
    for module in ("numpy", "yaml"):  # what a person has there is not what the jobs import
        (home / "mine" / f"{module}.py").write_text('raise SystemExit("not that of the environment")')
    environment = {**os.environ, "AIRFLOW_HOME": str(home / "airflow"), "EPSJOIN_LAKE": f"file://{home}/lake"}
    environment["TMPDIR"] = f"{home}/tmp"
    of_java = f"-Djava.io.tmpdir={home}/tmp"  # which does not look at TMPDIR
    # a file for each job
    environment["SPARK_SUBMIT_OPTS"] = f"{of_java} -Xlog:class+load:file={home}/classes/%p"
    said = ""
    for command in (
        [f"{REPO}/bin/airflow", "run", "navaids", RUN],
        [f"{REPO}/bin/epsjoin", "show", "--lake", f"{home}/lake", "--dataset", "navaids", "--run", RUN],
    ):
        done = subprocess.run(
            command, cwd=home / "mine", env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
        said = done.stdout
    return home / "lake" / "navaids", said
