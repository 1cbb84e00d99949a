"""Progress: a person who waits sees how many tasks are through."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from epsjoin.errors import BudgetError
from epsjoin.spark.tasks.progress import progress_shown, watched


def test_progress_shown__says_how_many_tasks_are_through(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(0.5)
            yield batch

    with progress_shown(spark, seconds=0.1):
        spark.range(0, 6, 1, 6).mapInArrow(slow, "id long").collect()
    said = capsys.readouterr().err.splitlines()
    assert "  at work: 0 of 6 tasks done" in said
    assert any(line.endswith("of 6 tasks done") and " 0 of " not in line for line in said)


def test_progress_shown__waits_for_tasks_that_are_still_at_work_when_one_has_failed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A task that was told to end goes on until Spark kills its process, and may write until then."""
    written = str(tmp_path / "written")

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column(0)[0].as_py() == 0:
                time.sleep(0.5)
                raise LookupError("no such thing")
            time.sleep(1.0)
            Path(written).touch()
            yield batch

    with pytest.raises(PythonException, match="no such thing"), progress_shown(spark):
        spark.range(0, 2, 1, 2).mapInArrow(work, "id long").collect()
    was_there = Path(written).exists()
    time.sleep(1.5)
    assert Path(written).exists() == was_there


def test_progress_shown__without_spark_has_the_error_of_the_work_or_of_the_watch() -> None:
    """When Spark's process has died, nobody answers."""
    session, watch = mock.Mock(), mock.Mock()
    gone = mock.Mock(side_effect=Py4JNetworkError("Answer from Java side is empty"))

    def fail(error: Exception) -> None:
        session.sparkContext.removeJobTag = session.sparkContext.cancelJobsWithTag = gone
        raise error

    with pytest.raises(MemoryError, match="the real reason"), progress_shown(session):
        fail(MemoryError("the real reason"))
    session, watch.look = mock.Mock(), lambda: fail(BudgetError("too many pairs"))
    with pytest.raises(BudgetError, match="too many pairs"), watched(watch), progress_shown(session):
        time.sleep(1.0)
