"""Slices that are read without a query of Spark's: small ones by the driver, others by tasks.

A report asks a dozen small questions of five tables. Spark plans, compiles and starts each query, which takes
longer than all of the work on a small slice, and needs a session first. So a question is a function of Arrow
batches (a :data:`~epsjoin.spark.tasks.arrow.Task`), which returns little, and :func:`scan_files` calls it
wherever that is faster. The answer must not depend on where: the results are merged on the driver in a way
that does not depend on the order and the size of the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from epsjoin.lake import parquet, slices
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.spark.job.job import Job
from epsjoin.spark.rows.splits import Split, bytes_read, plan_splits
from epsjoin.spark.tasks import tasks
from epsjoin.spark.tasks.arrow import Task

MAX_HERE_BYTES = 256 << 20
"""Maximum number of bytes that the driver reads itself, which takes less time than to start tasks."""

MAX_THREADS, IN_THREADS = 4, 8
"""If rows are wide: the maximum number of splits that the driver reads at a time, and how many times
``MAX_HERE_BYTES`` it then reads."""

BATCH_BYTES, MAX_BATCH_ROWS = 2 << 20, 1 << 16
"""Maximum size of a batch, in bytes of its columns and in rows."""


@dataclass(frozen=True)
class StoredSlice:
    """A slice whose files have been listed once, for several looks at it.

    Parameters
    ----------
    job : whose session runs the tasks; if there are none, no session is needed.
    where : the slice.
    schema : all columns of the table, by its contract.
    files : the files, by path.
    """

    job: Job
    where: Slice
    schema: pa.Schema
    files: Sequence[File]

    @classmethod
    def of(cls, job: Job, where: Slice) -> StoredSlice:
        """List the files of a slice.

        Raises
        ------
        TableError
            There is no slice, or it has another fingerprint.
        """
        return cls(job, where, job.lake.schema(where.table), slices.files_of(job.lake, where))

    @property
    def n(self) -> int:
        """Number of rows, as the log says."""
        return sum(file.rows for file in self.files)

    @property
    def location(self) -> str:
        """URI of the table's folder."""
        return self.job.lake.location(self.where.table)

    def columns(self, names: Sequence[str]) -> pa.Schema:
        """Types of these columns."""
        return parquet.as_read(pa.schema([self.schema.field(name) for name in names]))

    def scan(self, names: Sequence[str], work: Task, *, threads: int = 1) -> list[pa.RecordBatch]:
        """Apply ``work`` to the batches of some columns, and collect the result; see :func:`scan_files`."""
        columns, whole = self.columns(names), self.schema
        return scan_files(
            lambda: self.job.spark, self.location, self.files, columns, work, whole, threads=threads
        )

    def filter(
        self, is_wanted: Callable[[pa.RecordBatch], NDArray[np.bool_]], names: Sequence[str]
    ) -> pa.Table:
        """Read all rows of some columns and keep those that are wanted, in no particular order.

        Parameters
        ----------
        is_wanted : tells for each row of a batch of these columns whether it is kept.
        names : names of the columns.
        """

        def select(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch.filter(pa.array(is_wanted(batch)))

        return in_table(self.scan(names, select), self.columns(names))

    def filter_ids(self, ids: NDArray[np.int64], names: Sequence[str]) -> pa.Table:
        """Read the rows with these ids, by rising id, with the column ``id`` first."""
        columns = list(dict.fromkeys(["id", *names]))  # a column of the source may be called id
        if not ids.size:
            return self.columns(columns).empty_table()
        wanted = np.sort(ids)
        return self.filter(lambda batch: np.isin(batch["id"].to_numpy(), wanted), columns).sort_by("id")

    def stream(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns on the driver, batch by batch."""
        for file in self.files:
            yield from parquet.stream_file(
                self.location, file, self.columns(names), MAX_BATCH_ROWS, whole=self.schema
            )

    def take(
        self,
        by: Sequence[str],
        is_wanted: Callable[[pa.RecordBatch], NDArray[np.bool_]],
        names: Sequence[str],
    ) -> pa.Table:
        """Take a few rows: other columns than ``by`` are read only of row groups that have such rows.

        Parameters
        ----------
        by : names of the columns that decide.
        is_wanted : tells for each row of a batch of them whether it is taken.
        names : names of the columns to return.
        """
        return parquet.take_where(
            self.location, self.files, self.schema, by, is_wanted, names, MAX_BATCH_ROWS
        )

    def take_ids(self, ids: NDArray[np.int64], names: Sequence[str]) -> pa.Table:
        """Take the rows with these ids, some of which the table may lack, in no particular order."""
        wanted = np.unique(ids)
        return self.take(["id"], lambda batch: np.isin(batch["id"].to_numpy(), wanted), names)


def in_table(batches: Sequence[pa.RecordBatch], columns: pa.Schema) -> pa.Table:
    """The rows of all batches, if any, with these columns."""
    return pa.Table.from_batches(batches).cast(columns) if batches else columns.empty_table()


def scan_files(
    session: Callable[[], SparkSession],
    location: str,
    files: Sequence[File],
    columns: pa.Schema,
    work: Task,
    whole: pa.Schema | None = None,
    *,
    threads: int = 1,
) -> list[pa.RecordBatch]:
    """Apply ``work`` to the batches of files, and collect what it yields.

    The driver does it if it reads at most ``MAX_HERE_BYTES``, or ``IN_THREADS`` times as many in several
    threads; otherwise tasks do. Either way ``work`` is called once for each split, with its batches.

    Parameters
    ----------
    session : returns the session; not called if the driver does it.
    location : URI of the table's folder.
    columns : the columns to read.
    whole : all columns of the table, if the files may lack optional ones; see :func:`parquet.stream_file`.
    threads : maximum number of threads of the driver.
    """
    n_bytes, n_rows = sum(bytes_read(file, columns) for file in files), sum(file.rows for file in files)
    batch_rows = int(min(MAX_BATCH_ROWS, max(1, BATCH_BYTES * n_rows // max(1.0, n_bytes))))

    def read(split: Split) -> Iterator[pa.RecordBatch]:
        return work(
            batch
            for file, number, of in split
            for batch in parquet.stream_file(location, file, columns, batch_rows, (number, of), whole)
        )

    if n_bytes <= MAX_HERE_BYTES * (IN_THREADS if threads > 1 else 1):
        return tasks.run_here(plan_splits(files, columns, threads), read, threads)
    spark = session()
    return tasks.run_tasks(spark, plan_splits(files, columns, spark.sparkContext.defaultParallelism), read)
