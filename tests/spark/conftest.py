"""One Spark session for all tests, with the settings of the small profile; data sets made on the spot."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[2]
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = str(REPO / "jobs")
os.environ.setdefault("NUMBA_CACHE_DIR", str(REPO / ".cache" / "numba"))
# pyspark starts its JVM by $SPARK_HOME/bin/spark-submit. Ours gives it what jobs have: settings, jars, the
# archive of classes. What a person has set for jobs is no matter of the tests.
for name in (
    "SPARK_CONF_DIR",
    "SPARK_JOB_VENV",
    "DELTA_JARS",
    "EPSJOIN_PROFILE",
    "EPSJOIN_CONF",
    "EPSJOIN_MASTER",
):
    os.environ.pop(name, None)
os.environ["SPARK_HOME"] = str(REPO)
# No job has hundreds of queries as this session has. Each aggregate and each broadcast takes a page, of 16 MB
# in a heap of 1 GB, so that the garbage collector looks at all of it again and again; C1 has 48 MB for code.
# Of the classes that Spark makes of queries it keeps 100, and would compile again what an earlier test had.
os.environ["PYSPARK_SUBMIT_ARGS"] = (
    "--master local[2] --conf spark.buffer.pageSize=1m --conf spark.sql.codegen.cache.maxEntries=1000"
    " pyspark-shell"
)
os.environ["SPARK_SUBMIT_OPTS"] = "-XX:ReservedCodeCacheSize=240m"

import numpy as np
from pyspark.sql import SparkSession

from epsjoin.params import RunParams
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.job.job import Job, Step, run_job
from epsjoin.spark.job.session import get_session
from epsjoin.spark.startup.rehearse import STEPS
from tests.tiny import RUN, coordinate, key, new_lake


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(item.fspath).is_relative_to(REPO / "tests" / "spark"):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = get_session("tests")
    yield session
    session.stop()


STAGES: dict[str, Step] = {
    f"quality_{stage}": partial(check_quality, stage=stage) for stage in ("input", "results")
}
"""The gates, by the names of the jobs."""

JobMaker = Callable[..., Job]


def new_job(
    spark: SparkSession,
    folder: Path,
    columns: Sequence[Mapping[str, Any]],
    *,
    path: str = "snapshot.csv",
    format: str = "csv",
    run: str = RUN,
    params: Mapping[str, Any] | None = None,
    **custom: Any,
) -> Job:
    """A job on a data set of the test's own: its files in the folder, a contract, an empty lake."""
    lake = new_lake(folder, columns, path=path, format=format, **custom)
    merged = {**lake.source.defaults, **(params or {})}
    return Job(lambda: spark, lake, run, RunParams(**merged), folder)


def copy_of(job: Job, folder: Path) -> Job:
    """The job on a copy of its files, contracts and lake, which a test may break."""
    shutil.copytree(job.project, folder)
    lake = replace(job.lake, uri=(folder / "lake").as_uri(), contracts=folder / "data_contracts")
    return replace(job, lake=lake, project=folder)


@pytest.fixture
def make_job(spark: SparkSession, tmp_path: Path) -> JobMaker:
    """Make a job in the test's own folder: see ``new_job``."""
    return partial(new_job, spark, tmp_path)


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Job:
    """The chain has run on 2,000 points with many pairs; to be copied, never to be changed."""
    place = tmp_path_factory.mktemp("chain")
    points = np.random.default_rng(3).random((2000, 2)).tolist()
    (place / "snapshot.csv").write_text(
        "id,x,y\n" + "".join(f"{i},{x!r},{y!r}\n" for i, (x, y) in enumerate(points))
    )
    columns = [key(), coordinate("x"), coordinate("y")]
    job = new_job(spark, place, columns, defaults={"eps": 0.05, "n_parts": 2})
    for step in STEPS.values():
        step(job)
    return job


def submit(job: Job, name: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a job as spark-submit does; its exit code and the last line on stderr."""
    capsys.readouterr()
    given = ("--lake", job.lake.uri, "--dataset", "tiny", "--run", RUN)
    code = run_job(name, {**STEPS, **STAGES}[name], [*given, "--contracts", str(job.lake.contracts)])
    return code, "".join(capsys.readouterr().err.strip().splitlines()[-1:])
