"""Writing rows to a table's files, by the tasks that have the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from epsjoin.lake import transactions
from epsjoin.lake.parquet import File
from epsjoin.lake.targets import Target, deleted_on_error
from epsjoin.spark.rows import scan
from epsjoin.spark.rows.rows import Rows
from epsjoin.spark.tasks.arrow import Task
from epsjoin.spark.tasks.reports import TaskReport, add_counters

Count = Callable[[pa.RecordBatch], Mapping[str, float]]
"""The function that computes the counters of a batch."""


Alter = Callable[[Iterable[pa.RecordBatch], dict[str, float]], Iterable[pa.RecordBatch]]
"""The function that turns a task's batches into what it writes, and adds to its counters."""


class Written(NamedTuple):
    """What the tasks wrote.

    Parameters
    ----------
    files : new files of one table, which are not in its log yet.
    counters : the tasks' counters, added up, and the most memory of a process.
    """

    files: list[File]
    counters: dict[str, float]

    @classmethod
    def of(cls, reports: Sequence[TaskReport]) -> Written:
        """Combine the reports of the tasks."""
        return cls([file for report in reports for file in report.files], add_counters(reports))

    @property
    def rows(self) -> int:
        """Number of rows in the files."""
        return sum(file.rows for file in self.files)


def write_table(
    into: Target, rows: Rows, session: SparkSession, check: Callable[[Written], None] = lambda _: None
) -> DataFrame:
    """Let the tasks write the rows, replace those of a table by them, and read the table.

    Parameters
    ----------
    into : a table outside of a lake.
    rows : rows with its columns.
    session : reads the table.
    check : raises an error if the table must not have what was written; it stays as it was then.
    """
    with deleted_on_error(into):
        written = write_files(into, rows)
        check(written)
    return scan.read_replaced(session, into, transactions.replace_table(into, written.files))


def write_files(
    into: Target,
    rows: Rows,
    count: Count | None = None,
    tell: Callable[[Task], Task] = lambda work: work,
    alter: Alter = lambda batches, _: batches,
) -> Written:
    """Let the tasks write the rows, one file for each split that has any.

    Parameters
    ----------
    rows : rows with the target's columns (without ``run``).
    count : computes the counters of a batch; they are added up.
    tell : makes the work of a task send the report that it yields, see
        :meth:`epsjoin.spark.tasks.ended_tasks.EndedTasks.reporting`.
    alter : changes the batches before they are counted and written.
    """

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report = TaskReport()

        def count_batches() -> Iterator[pa.RecordBatch]:
            for batch in alter(batches, report.counters):
                for name, value in (count(batch) if count else {}).items():
                    report.counters[name] = report.counters.get(name, 0) + value
                yield batch

        report.write(into, count_batches())
        yield report.to_batch()

    written = Written.of(TaskReport.of_batches(rows.run(tell(write))))
    written.counters["rows"] = written.rows
    return written
