"""Progress: a person who waits sees how many tasks are through."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from epsjoin.spark.progress import progress_shown


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
