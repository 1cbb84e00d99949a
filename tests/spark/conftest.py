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
os.environ["SPARK_CONF_DIR"] = str(REPO / "conf")
os.environ.setdefault("NUMBA_CACHE_DIR", str(REPO / ".cache" / "numba"))
os.environ["PYSPARK_SUBMIT_ARGS"] = (
    f"--properties-file {REPO}/conf/small.conf --load-spark-defaults --master local[2] "
    f"--conf spark.authenticate=true --conf spark.driver.extraClassPath={REPO}/.cache/jars/* "
    f"--conf spark.sql.warehouse.dir={REPO}/.cache/warehouse pyspark-shell"
)

from pyspark.sql import SparkSession

from epsjoin.params import RunParams
from epsjoin.spark.cluster import cluster
from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job import Job, Step
from epsjoin.spark.join import merge_join, replicate
from epsjoin.spark.neighbours import outliers
from epsjoin.spark.session import get_session
from tests.tiny import RUN, new_lake


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(item.fspath).is_relative_to(REPO / "tests" / "spark"):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = get_session("tests")
    yield session
    session.stop()


STEPS: dict[str, Step] = {
    "ingest": ingest.run,
    "fit_epsilon": fit_epsilon.run,
    "replicate": replicate.run,
    "merge_join": merge_join.run,
    "cluster": cluster.run,
    "outliers": outliers.run,
}
"""The chain, in its order, by the names of the jobs."""

JobMaker = Callable[..., Job]


def new_job(
    spark: SparkSession,
    folder: Path,
    columns: Sequence[Mapping[str, Any]],
    *,
    path: str = "snapshot.csv",
    format: str = "csv",  # noqa: A002 - the contract's word
    run: str = RUN,
    params: Mapping[str, Any] | None = None,
    **custom: Any,
) -> Job:
    """A job on a data set of the test's own: its files in the folder, a contract, an empty lake."""
    lake = new_lake(folder, columns, path=path, format=format, **custom)
    merged = {**lake.source.defaults, **(params or {})}
    return Job(spark, lake, run, RunParams(**merged), folder)


def copy_of(job: Job, folder: Path) -> Job:
    """The job on a copy of its files, contracts and lake, which a test may break."""
    shutil.copytree(job.project, folder)
    lake = replace(job.lake, uri=(folder / "lake").as_uri(), contracts=folder / "data_contracts")
    return replace(job, lake=lake, project=folder)


@pytest.fixture
def make_job(spark: SparkSession, tmp_path: Path) -> JobMaker:
    """Make a job in the test's own folder: see ``new_job``."""
    return partial(new_job, spark, tmp_path)
