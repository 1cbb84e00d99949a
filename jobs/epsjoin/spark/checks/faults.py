"""Faults of a run's tables, and reading of tables in which a broken file is one fault among others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from epsjoin.console import say
from epsjoin.errors import DataRefusedError, TableError
from epsjoin.lake import schemas, slices
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.spark.job.job import Job
from epsjoin.spark.tasks import tasks

MAX_SHOWN = 20
"""Maximum number of faults that are printed."""
BATCH_ROWS = 1 << 18
"""Maximum number of rows that a task reads from a file at a time."""

PAIR, DEGREE, FAULT, GONE = "pair", "degree", "fault", "gone"
"""Kinds of rows that tasks return. GONE: a file cannot be read, or its rows are not those of the log."""

PAIR_ROWS = "kind string, a long, b long, distance double, fault string"


class Faults:
    """Sentences that say what is wrong: all are counted, the first ``MAX_SHOWN`` are kept."""

    def __init__(self) -> None:
        self.first: list[str] = []
        self.total = 0
        self._again = 0

    def add(self, sentences: Iterator[str] | Sequence[str]) -> bool:
        """Add sentences; return whether there were any. What several checks have found is told once."""
        before = self.total
        for sentence in sentences:
            self.total += 1
            if sentence in self.first:
                self._again += 1
            elif len(self.first) < MAX_SHOWN:
                self.first.append(sentence)
        return self.total > before

    def refuse(self) -> None:
        """Print the faults and stop, if there are any.

        Raises
        ------
        DataRefusedError
            There are faults; the message has the first.
        """
        if not self.total:
            return
        for sentence in self.first:
            say(f"  {sentence}")
        n = self.total - self._again
        more = "" if n == 1 else f" ({n:,} findings, {len(self.first)} of them above)"
        raise DataRefusedError(f"the tables are wrong: {self.first[0]}{more}")


def files_of(job: Job, table: str) -> list[File]:
    """List the files of the run's slice of a table."""
    return slices.files_of(job.lake, Slice(table, job.run))


def read_files(
    job: Job, table: str, read: Callable[[File], Iterator[pa.RecordBatch]], schema: str
) -> pa.Table:
    """Apply ``read`` to every file of a table, and collect its rows on the driver."""
    found = tasks.run_tasks(job.spark, files_of(job, table), report_broken_files(schema, read))
    return pa.Table.from_batches(found, schema=schemas.parse_ddl(schema))


def report_broken_files(
    schema: str, read: Callable[[File], Iterator[pa.RecordBatch]]
) -> Callable[[File], Iterator[pa.RecordBatch]]:
    """Make of ``read`` a function that returns a row GONE for a broken file, instead of failing its task."""

    def safely(file: File) -> Iterator[pa.RecordBatch]:
        try:
            yield from read(file)
        except TableError as error:
            yield to_batch(schema, GONE, fault=[str(error)])

    return safely


def to_batch(schema: str, kind: str = "", **columns: object) -> pa.RecordBatch:
    """Make a batch with the columns of a schema; columns without values are null."""
    fields = schemas.parse_ddl(schema)
    n = len(next(iter(columns.values())))  # type: ignore[arg-type]  # a column of any kind
    values = {"kind": [kind] * n} | columns
    return pa.record_batch(
        [
            pa.array(values[field.name], field.type) if field.name in values else pa.nulls(n, field.type)
            for field in fields
        ],
        schema=fields,
    )
