"""Errors that are none of ours, as a job says them: what a task raises is told in test_tasks.py."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import PicklingError

import numpy as np
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from epsjoin.spark.job.failures import summarize_error


def test_summarize_error__of_javas_own_is_what_it_threw(spark: SparkSession) -> None:
    with pytest.raises(Py4JJavaError) as caught:
        spark._jvm.java.util.ArrayList().get(0)
    assert summarize_error(caught.value) == (
        "java.lang.IndexOutOfBoundsException: Index 0 out of bounds for length 0"
    )


def test_summarize_error__of_a_file_that_spark_may_not_read_does_not_advise_to_make_it_again() -> None:
    file = "file:///lake/navaids/points/run=2023-06-01/a.parquet"
    error = RuntimeError(
        f"[FAILED_READ_FILE.NO_HINT] Encountered error while reading file {file}. SQLSTATE: KD001\n"
        "Caused by: java.io.FileNotFoundException: /lake/a.parquet (Permission denied)\n"
    )
    assert summarize_error(error) == (
        f"points: {file} cannot be read (permission denied); let this user read it"
    )


def test_summarize_error__of_a_full_disk_names_the_folder_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What Java throws does not say which of a machine's disks is full."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/scratch,/more")
    error = RuntimeError(
        "An error occurred while calling o100.getResult.\n"
        ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
        "\tat py4j.Gateway.invoke(Gateway.java:282)\n"
        "Caused by: java.io.IOException: No space left on device\n"
        "\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)"
    )
    assert summarize_error(error) == (
        "Spark cannot write its temporary files in /scratch,/more (java.io.IOException: No space left on "
        "device); make room there, or set SPARK_LOCAL_DIRS to a folder on another disk"
    )


def test_summarize_error__of_a_disk_that_is_full_as_rows_are_spilled_names_the_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark throws it as a lack of memory, without a cause."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/scratch")
    spilled = (
        "Error while calling spill() on org.apache.spark.Sorter@47 : No space left on device SQLSTATE: 82003"
    )
    error = RuntimeError(
        "An error occurred while calling o49.collectToPython.\n"
        ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed "
        "1 times, most recent failure: Lost task 0.0 in stage 0.0 (TID 0) (10.0.0.7 executor driver): "
        f"org.apache.spark.memory.SparkOutOfMemoryError: [SPILL_OUT_OF_MEMORY] {spilled}\n"
        "\tat org.apache.spark.memory.TaskMemoryManager.trySpillAndAcquire(TaskMemoryManager.java:288)"
    )
    assert summarize_error(error).startswith(
        f"Spark cannot write its temporary files in /scratch ({spilled}); make room there"
    )


@contextmanager
def files_of_a_megabyte() -> Iterator[None]:
    """Within, a file that this process writes cannot grow further, as on a full disk."""
    _, most = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("what", ["rows", "broadcast"])
def test_summarize_error__of_a_disk_that_the_driver_finds_full_names_the_folder(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Python does not say which file it is; that of other writers may be on another disk."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/scratch")
    values = np.random.default_rng(0).random(1 << 19)
    write = spark.sparkContext.broadcast if what == "broadcast" else spark.createDataFrame
    with files_of_a_megabyte(), pytest.raises((OSError, PicklingError)) as raised:
        write(pa.table({"value": values}))
    said = summarize_error(raised.value)
    assert re.fullmatch(
        r"Spark cannot write its temporary files in /scratch \(.*\[Errno 27\] File too large\); make room "
        "there, or set SPARK_LOCAL_DIRS to a folder on another disk",
        said,
    )
    with files_of_a_megabyte(), pytest.raises(OSError, match="too large") as raised:
        (tmp_path / "metrics.json").write_bytes(values.tobytes())
    assert summarize_error(raised.value) == "[Errno 27] File too large"


def lost_task(executor: str) -> RuntimeError:
    """What Java throws where a task of Spark finds a disk full."""
    lost = f"Lost task 0.3 in stage 2.0 (TID 9) (10.0.0.7 executor {executor}): java.io.IOException: No space"
    return RuntimeError(
        "An error occurred while calling o100.getResult.\n"
        ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 2.0 failed 4 "
        f"times, most recent failure: {lost} left on device\n"
        "\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)\n"
        "\nDriver stacktrace:\n"
        "\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2856)\n"
        "Caused by: java.io.IOException: No space left on device\n"
        "\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)"
    )


def test_summarize_error__of_the_full_disk_of_a_worker_names_its_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The folders of the driver are on another disk."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/scratch,/more")
    assert summarize_error(lost_task("12")) == (
        "Spark cannot write its temporary files on the machine 10.0.0.7, executor 12 (java.io.IOException: "
        "No space left on device); make room in the folders that Spark has there, or give it others "
        "(SPARK_LOCAL_DIRS of the worker, spark.local.dir)"
    )
    assert "temporary files in /scratch,/more" in summarize_error(lost_task("driver")), "of local mode"
