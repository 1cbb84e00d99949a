"""Reports of tasks that have ended, while others still run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from epsjoin.spark.tasks.reports import TaskReport, task_number

Report = tuple[int, str]
"""The number of a task, and its report as JSON."""


class _Lists(AccumulatorParam[list[Report]]):
    """Appends lists."""

    def zero(self, value: list[Report]) -> list[Report]:  # noqa: ARG002  # Spark's signature
        return []

    def addInPlace(self, value1: list[Report], value2: list[Report]) -> list[Report]:
        value1.extend(value2)
        return value1


class EndedTasks:
    """Reports of tasks that have ended, by an accumulator of Spark's.

    When a task has ended well, Spark adds its report once, however often it was tried.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._reports = spark.sparkContext.accumulator([], _Lists())
        self._n_read = 0

    def reporting(
        self, work: Callable[[Any], Iterable[pa.RecordBatch]]
    ) -> Callable[[Any], Iterator[pa.RecordBatch]]:
        """Make the work of a task send the reports that it yields."""
        return _reporting(self._reports, work)

    def news(self) -> list[tuple[int, TaskReport]]:
        """Take the numbers and reports of tasks that have ended since the last call."""
        reports = self._reports.value[self._n_read :]
        self._n_read += len(reports)
        return [(number, TaskReport.from_json(text)) for number, text in reports]


def _reporting(
    reports: Accumulator[list[Report]], work: Callable[[Any], Iterable[pa.RecordBatch]]
) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    def work_and_report(rows: Any) -> Iterator[pa.RecordBatch]:
        for batch in work(rows):
            reports.add([(task_number(), text) for text in batch.column("report").to_pylist()])
            yield batch

    return work_and_report
