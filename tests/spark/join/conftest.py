"""The first month of a history, which all steps have made once."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from epsjoin.spark.job.job import Job
from tests.spark.conftest import copy_of, new_job
from tests.spark.join.months import MONTHS, history_job, process


@pytest.fixture(scope="session")
def first_month(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Job:
    """All steps have made the first month; the files of all months are there. Never to be changed."""
    folder = tmp_path_factory.mktemp("first_month")
    job = history_job(partial(new_job, spark, folder), folder)
    process(job, MONTHS[0])
    return job


@pytest.fixture
def job(first_month: Job, tmp_path: Path) -> Job:
    """The same, to be changed; its files are in the folder ``copy`` of the test."""
    return copy_of(first_month, tmp_path / "copy")
