"""Tasks that read and write files themselves, and the reports that they return to the driver."""

from __future__ import annotations

import json
import resource
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from epsjoin.lake.parquet import File
from epsjoin.lake.phases import phase, timed
from epsjoin.lake.targets import Target
from epsjoin.spark.tasks.cost import counted
from epsjoin.spark.tasks.progress import progress_shown
from epsjoin.spark.tasks.shared import give, given_files, take
from epsjoin.stopwatch import add_seconds, each_within

T = TypeVar("T")


@dataclass
class TaskReport:
    """What one task reports to the driver: the files it wrote, its counters, why it refused its input.

    Counters that end in ``seconds`` are wall-clock times of phases. ``largest_worker_bytes`` is the peak
    memory of the task's process, ``largest_driver_bytes`` that of the driver where it does the work itself.
    All other counters depend on the data alone. The names of its files begin with ``number``, by default that
    of the task, so that their order is that of these numbers.
    """

    files: list[File] = field(default_factory=list)
    counters: dict[str, float] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    number: int = field(default_factory=lambda: task_number())

    def write(
        self, into: Target, batches: Iterable[pa.RecordBatch | pa.Table], **partition: object
    ) -> File | None:
        """Write batches to a new file of the table (see :meth:`Target.write`) and report the file."""
        file = into.write(batches, task=self.number, **partition)
        self.files += [file] if file else []
        return file

    def timed(self, items: Iterable[T], phase: str) -> Iterator[T]:
        """Yield the same items, and add the time spent waiting for them to ``<phase>_seconds``."""
        return each_within(items, lambda: add_seconds(self.counters, f"{phase}_seconds"))

    def add(self, others: Iterable[TaskReport]) -> None:
        """Add the counters and refusals of the tasks whose rows this task has received."""
        for other in others:
            self.counters |= add_counters([self, other])
            self.refused += other.refused

    def to_json(self) -> str:
        """The report as JSON text."""
        where = "worker" if TaskContext.get() else "driver"
        self.counters[f"largest_{where}_bytes"] = peak_bytes()
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> TaskReport:
        """The report that :meth:`to_json` wrote."""
        body = json.loads(text)
        body["files"] = [File(**file) for file in body["files"]]
        return cls(**body)

    def to_batch(self) -> pa.RecordBatch:
        """The report as a batch of one row, which the task returns."""
        return pa.record_batch({"report": pa.array([self.to_json()])})


def peak_bytes() -> int:
    """The most memory that this process has held until now, without what the process that started it held."""
    if sys.platform == "linux":
        # getrusage begins with the peak of the process that has started this one
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) << 10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def task_number() -> int:
    """Number of the partition that this task computes; 0 on the driver."""
    context = TaskContext.get()
    return context.partitionId() if context else 0


def reports_of(batches: Iterable[pa.RecordBatch]) -> list[TaskReport]:
    """The reports that tasks returned, in the order of the batches."""
    return [TaskReport.from_json(text) for batch in batches for text in batch.column("report").to_pylist()]


def add_counters(reports: Iterable[TaskReport]) -> dict[str, float]:
    """Add up the tasks' counters; of those that begin with ``largest_``, take the maximum."""
    total: dict[str, float] = {}
    for report in reports:
        for name, value in report.counters.items():
            total[name] = (
                max(total.get(name, 0), value) if name.startswith("largest_") else total.get(name, 0) + value
            )
    return total


def run_tasks(
    spark: SparkSession, items: Sequence[Any], work: Callable[[Any], Iterable[pa.RecordBatch]]
) -> list[pa.RecordBatch]:
    """Run one task per item, and collect the batches that ``work(item)`` yields, in the order of the items.

    Items are small (a part and its files), and ``work`` reads its files itself. The batches of a task, of one
    schema, travel to the driver as one Arrow IPC stream, so no row passes through the JVM; on one machine
    many rows go by a file that the driver maps, so that the JVM's heap need not hold them.

    Notes
    -----
    This runs on an RDD, not as a query like :func:`lazy_tasks`, since a query takes longer to plan, to start
    and to bring back: 0.37 instead of 0.19 s where each of 8 tasks gives 2 MB
    (``docs/benchmarks/scaling.md``).
    """
    with given_files(spark) as by_file:

        def task(mine: Iterable[Any]) -> Iterator[bytes]:
            for item in mine:
                yield from give(work(item), by_file)

        tried = spark.sparkContext.parallelize(items, max(1, len(items))).mapPartitions(counted(spark, task))
        with _WRAPPING, _environment_of_queries(spark):
            tried.id()  # wraps the function now, so it is sent with the environment of queries
        with progress_shown(spark), phase("wait"):
            taken = tried.collect()
        return [batch for given in taken for batch in take(given)]


def run_here(
    items: Sequence[Any], work: Callable[[Any], Iterable[pa.RecordBatch]], n_threads: int
) -> list[pa.RecordBatch]:
    """As :func:`run_tasks`, but on the driver, by threads, without a session."""
    with ThreadPoolExecutor(n_threads) as pool, phase("wait"):
        done = pool.map(lambda item: list(timed(work(item), "work")), items)
        return [batch for batches in done for batch in batches]


_WRAPPING = threading.Lock()
"""Held while the SparkContext has the environment of queries, since other threads may start tasks."""
_QUERY_SETTINGS = {
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "SPARK_SIMPLIFIED_TRACEBACK",
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "SPARK_HIDE_TRACEBACK",
}
"""Settings of a session, and the variables that they set for the Python workers of its queries."""


@contextmanager
def _environment_of_queries(spark: SparkSession) -> Iterator[None]:
    """Give the SparkContext, for a moment, the environment that queries give their Python workers.

    Spark reuses a Python worker only for functions with the same environment, and that of queries has
    variables that the one of RDDs lacks. Without this, RDDs would start a second set of workers, which would
    load the package and the kernels again. It gets another dictionary: other threads may read its own.
    """
    context = spark.sparkContext
    before = context.environment
    added = {
        word: "1"
        for setting, word in _QUERY_SETTINGS.items()
        if str(spark.conf.get(setting)).lower() == "true"
    }
    context.environment = {**added, **before}
    try:
        yield
    finally:
        context.environment = before


def lazy_tasks(
    spark: SparkSession, items: Sequence[Any], work: Callable[[Any], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """Like :func:`run_tasks`, but return the rows as a lazy frame with the columns ``schema`` (DDL)."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield from work(items[index])

    return spark.range(0, len(items), 1, max(1, len(items))).mapInArrow(counted(spark, task), schema)
