"""Tasks that Spark starts for a list of items, without a query."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from epsjoin.errors import DataRefusedError
from epsjoin.spark.job.failures import summarize_error
from epsjoin.spark.rows.rows import FrameRows
from epsjoin.spark.tasks import tasks
from epsjoin.spark.tasks.reports import TaskReport
from epsjoin.spark.tasks.tasks import lazy_tasks, run_tasks


@pytest.mark.parametrize("items", [[], [0], [3, 0, 1, 5]])
def test_run_tasks__gives_the_rows_of_the_lazy_frame_in_the_order_of_the_items(
    spark: SparkSession, items: list[int]
) -> None:
    def numbers(item: int) -> Iterator[pa.RecordBatch]:
        for begin in range(0, item, 2):
            yield pa.record_batch({"item": [item] * (min(item, begin + 2) - begin)})

    found = [row for batch in run_tasks(spark, items, numbers) for row in batch["item"].to_pylist()]
    assert found == [item for item in items for _ in range(item)]
    assert lazy_tasks(spark, items, numbers, "item long").toArrow()["item"].to_pylist() == found


@pytest.mark.parametrize("is_simplified", ["true", "false"])
def test_run_tasks__takes_the_workers_of_queries(spark: SparkSession, is_simplified: str) -> None:
    """A second set of workers would load and compile everything again, and hold its memory twice."""

    def parents(batches: Iterable[object]) -> Iterator[pa.RecordBatch]:
        list(batches)
        yield pa.record_batch({"parent": [os.getppid()]})

    environment = dict(spark.sparkContext.environment)
    assert environment
    spark.conf.set("spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled", is_simplified)
    try:
        of_query = FrameRows(spark.range(4).repartition(2)).run(parents)
        of_tasks = run_tasks(spark, [[1], [2]], parents)
    finally:
        spark.conf.unset("spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled")
    assert len({batch["parent"][0].as_py() for batch in (*of_query, *of_tasks)}) == 1
    assert spark.sparkContext.environment == environment


def test_task_report__tells_a_workers_memory_from_the_drivers(spark: SparkSession) -> None:
    def report(_: int) -> Iterator[pa.RecordBatch]:
        yield TaskReport().to_batch()

    assert set(TaskReport.of_batches(report(0))[0].counters) == {"largest_driver_bytes"}
    assert set(TaskReport.of_batches(run_tasks(spark, [0], report))[0].counters) == {"largest_worker_bytes"}


def test_task_report__has_the_seconds_of_a_phase_in_which_reports_of_other_tasks_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, report = [0.0], TaskReport()
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def read() -> Iterator[int]:
        now[0] += 4.0
        report.add([TaskReport(counters={"rows": 2.0, "reading_seconds": 1.0})])
        yield 1

    assert list(report.timed(read(), "reading")) == [1]
    assert report.counters == {"rows": 2.0, "reading_seconds": 5.0}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process tells no peak of its own")
def test_peak_bytes__is_not_that_of_the_process_that_started_it() -> None:
    ours = np.ones(1 << 26)  # half a GB
    told = "from epsjoin.spark.tasks.reports import peak_bytes; print(peak_bytes())"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert 1 << 24 < int(done.stdout) < ours.nbytes // 2


def test_run_tasks__an_error_of_a_task_is_told_in_its_words(spark: SparkSession) -> None:
    def refuse(item: int) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"item": [item]})
        raise DataRefusedError(f"the item {item} is refused")

    with pytest.raises(PySparkException) as caught:
        run_tasks(spark, [7], refuse)
    assert summarize_error(caught.value) == "the item 7 is refused"
    assert "SPARK_SIMPLIFIED_TRACEBACK" not in spark.sparkContext.environment


def test_run_tasks__an_error_that_nobody_foresaw_is_told_by_its_own_line(spark: SparkSession) -> None:
    def fail(item: int) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"item": [{7: item}[8]]})

    for start in (run_tasks, lambda *given: lazy_tasks(*given, "item long").collect()):
        with pytest.raises(PySparkException) as caught:
            start(spark, [7], fail)
        assert summarize_error(caught.value) == "KeyError: 8"


def test_run_tasks__changes_no_dictionary_that_other_threads_may_be_reading(spark: SparkSession) -> None:
    """PySpark iterates over it for each Python function of anybody's queries."""
    environment = spark.sparkContext.environment

    before = dict(environment)
    with tasks._environment_of_queries(spark):
        assert spark.sparkContext.environment is not environment
        assert environment == before
        assert spark.sparkContext.environment.items() > before.items()
    assert spark.sparkContext.environment is environment


def test_run_tasks__may_be_called_by_several_threads(spark: SparkSession) -> None:
    def double(item: int) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"double": [2 * item]})

    environment = dict(spark.sparkContext.environment)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda item: run_tasks(spark, [item], double), range(8)))
    assert [batch["double"][0].as_py() for [batch] in found] == list(range(0, 16, 2))
    assert spark.sparkContext.environment == environment


def test_run_tasks__carries_rows_of_many_megabytes(spark: SparkSession) -> None:
    values = np.random.default_rng(0).random(1 << 19)

    def large(item: int) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": values + item})

    for item, batch in zip(range(3), run_tasks(spark, range(3), large), strict=True):
        np.testing.assert_array_equal(batch["value"].to_numpy(), values + item)
