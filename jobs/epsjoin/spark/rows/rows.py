"""Rows that a step processes batch by batch, wherever they are: in a table's files, in a frame, in transit.

Functions that follow one another on the same rows run in one task: handing rows from one function to the next
through Spark costs more than most of these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from epsjoin.lake import parquet, schemas, slices
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.lake.phases import phase
from epsjoin.spark.job.job import Job
from epsjoin.spark.rows.splits import Split, bytes_read, plan_splits
from epsjoin.spark.rows.stored import MAX_THREADS, scan_files
from epsjoin.spark.tasks import tasks
from epsjoin.spark.tasks.arrow import Task, from_ipc_column, to_ipc
from epsjoin.spark.tasks.cost import counted
from epsjoin.spark.tasks.progress import progress_shown
from epsjoin.spark.tasks.shared import give, given_files, take

BATCH_ROWS = 1 << 20
"""Maximum number of rows in a batch that a task reads from a file, by default."""

_BATCH_LIMIT = "spark.sql.execution.arrow.maxRecordsPerBatch"
"""Setting of the maximum number of rows in an Arrow batch; 0 and less mean no limit."""

_MIN_SPLIT_ROWS = 1 << 16
"""Minimum number of rows that the driver writes to a file, if there are as many."""


class Rows(Protocol):
    """Rows with the columns ``schema`` (DDL), in any number of splits; one task reads one split."""

    @property
    def spark(self) -> SparkSession:
        """The session."""

    @property
    def schema(self) -> str:
        """Names and types of the columns."""

    def map(self, work: Task, schema: str) -> DataFrame:
        """Apply ``work`` to the batches of each split; returns a lazy frame with the columns ``schema``."""

    def run(self, work: Task) -> list[pa.RecordBatch]:
        """Apply ``work`` now, and collect the batches on the driver, in the order of the splits."""


@dataclass(frozen=True)
class FrameRows:
    """The rows of a frame; each partition is a split."""

    frame: DataFrame

    @property
    def schema(self) -> str:
        """See :class:`Rows`."""
        types = ((column.name, column.dataType.typeName()) for column in self.frame.schema)
        return ", ".join(f"{name} {'int' if kind == 'integer' else kind}" for name, kind in types)

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.frame.sparkSession

    def map(self, work: Task, schema: str) -> DataFrame:
        """See :class:`Rows`."""
        return self.frame.mapInArrow(counted(self.spark, work), schema)

    def run(self, work: Task) -> list[pa.RecordBatch]:
        """See :class:`Rows`."""
        with given_files(self.spark) as by_file:

            def work_and_give(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for given in give(work(batches), by_file):
                    yield pa.record_batch({"ipc": pa.array([given], pa.binary())})

            with progress_shown(self.spark), phase("wait"):
                given = self.map(work_and_give, _IPC).toArrow()["ipc"].to_pylist()
            return [batch for each in given for batch in take(each)]


@dataclass(frozen=True)
class IpcRows:
    """Rows stored as Arrow IPC streams in a frame, which is computed anew for every use unless persisted.

    Parameters
    ----------
    frame : one binary column, ``ipc``.
    schema : names and types of the columns inside the streams.
    """

    frame: DataFrame
    schema: str

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.frame.sparkSession

    def map(self, work: Task, schema: str) -> DataFrame:
        """See :class:`Rows`."""
        return FrameRows(self.frame).map(_compose(work, from_ipc_column), schema)

    def run(self, work: Task) -> list[pa.RecordBatch]:
        """See :class:`Rows`."""
        return FrameRows(self.frame).run(_compose(work, from_ipc_column))


@dataclass(frozen=True)
class StoredRows:
    """Rows of a run's slice; the tasks read the files themselves.

    Parameters
    ----------
    session : returns the session; called only if tasks are planned or started.
    n_cores : number of cores that read, see :func:`epsjoin.spark.rows.splits.plan_splits`; ``None``: those of
        the session.
    batch_rows : maximum number of rows in a batch.
    whole_files : whether each file is read by one task.
    """

    session: Callable[[], SparkSession]
    location: str
    files: Sequence[File]
    schema: str
    n_cores: int | None = None
    batch_rows: int = BATCH_ROWS
    whole_files: bool = False

    @classmethod
    def of(cls, job: Job, where: Slice, schema: str, *, whole_files: bool = False) -> StoredRows:
        """Columns of a slice, read by a task for each core, or by fewer or more if it is small or large.

        Raises
        ------
        TableError
            There is no slice, or it has another fingerprint.
        """
        files = slices.files_of(job.lake, where)
        return cls(job.session, job.lake.location(where.table), files, schema, whole_files=whole_files)

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.session()

    @property
    def n(self) -> int:
        """Number of rows, as the log says."""
        return sum(file.rows for file in self.files)

    @property
    def bytes_read(self) -> float:
        """Estimate of the bytes that are read of all files."""
        columns = schemas.parse_ddl(self.schema)
        return sum(bytes_read(file, columns) for file in self.files)

    def splits(self) -> list[Split]:
        """Plan what each task reads."""
        n_cores = self.n_cores or self.spark.sparkContext.defaultParallelism
        columns = schemas.parse_ddl(self.schema)
        return plan_splits(self.files, columns, n_cores, whole_files=self.whole_files)

    def map(self, work: Task, schema: str) -> DataFrame:
        """See :class:`Rows`."""
        return tasks.lazy_tasks(self.spark, self.splits(), self.reader(work), schema)

    def run(self, work: Task) -> list[pa.RecordBatch]:
        """See :class:`Rows`."""
        return tasks.run_tasks(self.spark, self.splits(), self.reader(work))

    def scan(self, names: Sequence[str], work: Task) -> list[pa.RecordBatch]:
        """Apply ``work`` to the batches of some columns; the driver does it if that is faster."""
        whole = schemas.parse_ddl(self.schema)
        columns = pa.schema([whole.field(name) for name in names])
        return scan_files(self.session, self.location, self.files, columns, work, threads=MAX_THREADS)

    def reader(self, work: Task) -> Callable[[Split], Iterator[pa.RecordBatch]]:
        """Make a function that reads a split and applies ``work``; it can be pickled without the session."""
        columns, location, batch_rows = schemas.parse_ddl(self.schema), self.location, self.batch_rows

        def read(split: Split) -> Iterator[pa.RecordBatch]:
            return work(
                batch
                for file, number, of in split
                for batch in parquet.stream_file(location, file, columns, batch_rows, (number, of))
            )

        return read


@dataclass(frozen=True)
class MappedRows:
    """The result of applying ``work`` to other rows, split by split; computed when it is used."""

    rows: Rows
    work: Task
    schema: str

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.rows.spark

    def map(self, work: Task, schema: str) -> DataFrame:
        """See :class:`Rows`."""
        return self.rows.map(_compose(work, self.work), schema)

    def run(self, work: Task) -> list[pa.RecordBatch]:
        """See :class:`Rows`."""
        return self.rows.run(_compose(work, self.work))


@dataclass(frozen=True)
class DriverRows:
    """Rows that the driver holds or makes; work on them runs on the driver, by threads.

    Parameters
    ----------
    session : returns the session; called only if the rows go to Spark.
    n_threads : number of threads.
    splits : from each of these ``make`` makes the batches of a split.
    make : yields the batches of a split.
    """

    session: Callable[[], SparkSession]
    n_threads: int
    splits: Sequence[Any]
    make: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: str

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.session()

    @classmethod
    def of_ranges(
        cls,
        session: Callable[[], SparkSession],
        n_threads: int,
        n: int,
        make: Callable[[slice], pa.RecordBatch],
        schema: str,
    ) -> DriverRows:
        """Make n rows by ranges, each a batch; if there are many rows, at least one range for each thread."""
        step = max(_MIN_SPLIT_ROWS, min(BATCH_ROWS, -(-n // n_threads)))

        def batches(begin: int) -> Iterator[pa.RecordBatch]:
            yield make(slice(begin, begin + step))

        return cls(session, n_threads, range(0, n, step), batches, schema)

    def map(self, work: Task, schema: str) -> DataFrame:
        """See :class:`Rows`; the rows go to Spark before ``work`` is applied."""
        return FrameRows(frame_of(self.spark, collect_table(self))).map(work, schema)

    def run(self, work: Task) -> list[pa.RecordBatch]:
        """See :class:`Rows`."""
        return tasks.run_here(self.splits, lambda split: work(self.make(split)), self.n_threads)


def _compose(work: Task, before: Task) -> Task:
    def both(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return work(before(batches))

    return both


def frame_of(session: SparkSession, table: pa.Table) -> DataFrame:
    """Give a table to Spark, also if batches have no limit, in which case pyspark refuses Arrow tables."""
    limit = str(session.conf.get(_BATCH_LIMIT))
    if int(limit) > 0:
        return session.createDataFrame(table)
    session.conf.set(_BATCH_LIMIT, max(1, table.num_rows))
    try:
        return session.createDataFrame(table)
    finally:
        session.conf.set(_BATCH_LIMIT, limit)


def to_frame(rows: Rows) -> DataFrame:
    """The rows as a lazy frame."""
    return rows.frame if isinstance(rows, FrameRows) else rows.map(iter, rows.schema)


def select_columns(rows: Rows, schema: str) -> Rows:
    """Read only the columns ``schema`` if that saves work, as from files; return other rows as they are."""
    return replace(rows, schema=schema) if isinstance(rows, StoredRows) else rows


def to_ipc_rows(rows: Rows) -> IpcRows:
    """Write the rows as Arrow IPC streams, one for each batch; lazy."""
    return IpcRows(rows.map(_write_ipc, _IPC), rows.schema)


_IPC = "ipc binary"


def _write_ipc(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.record_batch({"ipc": pa.array([to_ipc(batch)], pa.binary())})


def collect_table(rows: Rows) -> pa.Table:
    """Collect all rows on the driver."""
    return pa.Table.from_batches(rows.run(iter), schema=schemas.parse_ddl(rows.schema))


def count_rows(rows: Rows) -> int:
    """Count rows: those of files by the log, others in tasks."""
    if isinstance(rows, StoredRows):
        return rows.n

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [sum(map(len, batches))]})

    return sum(batch["n"][0].as_py() for batch in rows.run(count))
