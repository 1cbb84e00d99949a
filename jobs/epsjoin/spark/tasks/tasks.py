"""Tasks that read and write files themselves, on workers or by threads of the driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from epsjoin.lake.phases import phase, timed
from epsjoin.spark.tasks.cost import counted
from epsjoin.spark.tasks.progress import progress_shown
from epsjoin.spark.tasks.shared import give, given_files, take


def run_tasks(
    spark: SparkSession, items: Sequence[Any], work: Callable[[Any], Iterable[pa.RecordBatch]]
) -> list[pa.RecordBatch]:
    """Run one task per item, and collect the batches that ``work(item)`` yields, in the order of the items.

    Items are small (a part and its files), and ``work`` reads its files itself. The batches of a task, of one
    schema, travel to the driver as one Arrow IPC stream, so no row passes through the JVM; on one machine,
    many rows are left in a file that the driver maps, so that the JVM's heap need not hold them.

    Notes
    -----
    This runs on an RDD, not as a query like :func:`lazy_tasks`, since a query takes longer to plan, to start
    and to return: 0.37 instead of 0.19 s if each of 8 tasks returns 2 MB (``docs/benchmarks/scaling.md``).
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
    load the package and the kernels again. It gets a new dictionary, since other threads may read the old
    one.
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
