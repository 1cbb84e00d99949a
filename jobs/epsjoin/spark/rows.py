"""Rows that a step works on, batch by batch, wherever they are: in a table's files, in a frame, on the way.

What is done to them one thing after another is done by one task: rows that Spark carries from one function to
the next cost more than most of these functions.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from epsjoin.lake import parquet, schemas, slices
from epsjoin.lake.lake import Slice
from epsjoin.lake.parquet import File
from epsjoin.spark import splits, tasks
from epsjoin.spark.arrow import Task, from_packets, to_packet
from epsjoin.spark.job import Job
from epsjoin.spark.progress import progress_shown
from epsjoin.spark.splits import (
    Piece,
    bytes_read,
    names_of,
)

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])
BATCH_ROWS = 1 << 20


class Rows(Protocol):
    """Rows in any number of shares, of the columns ``schema`` (DDL)."""

    @property
    def spark(self) -> SparkSession:
        """The session."""

    @property
    def schema(self) -> str:
        """Names and types of the columns."""

    def map(self, work: Task, schema: str) -> DataFrame:
        """What ``work`` makes of the batches of each share, as a lazy frame."""

    def run(self, work: Task) -> list[pa.RecordBatch]:
        """The same, computed at once: the batches, on the driver, in the order of the shares."""


@dataclass(frozen=True)
class FrameRows:
    """The rows of a frame; a partition is a share."""

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
        return self.frame.mapInArrow(work, schema)

    def run(self, work: Task) -> list[pa.RecordBatch]:
        """See :class:`Rows`."""
        with progress_shown(self.spark):
            taken = self.map(_packed(work, compressed=True), _PACKET).toArrow()
        return list(from_packets(taken.to_batches()))


@dataclass(frozen=True)
class PacketRows:
    """Rows in the packets of a frame; read anew for every use, so best persisted."""

    packets: DataFrame
    schema: str

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.packets.sparkSession

    def map(self, work: Task, schema: str) -> DataFrame:
        """See :class:`Rows`."""
        return FrameRows(self.packets).map(_unpacked(work), schema)

    def run(self, work: Task) -> list[pa.RecordBatch]:
        """See :class:`Rows`."""
        return FrameRows(self.packets).run(_unpacked(work))


@dataclass(frozen=True)
class StoredRows:
    """Rows of a run's slice; the tasks read the files themselves.

    Parameters
    ----------
    n_cores : there are so many shares, unless these would be larger or smaller than a share should be.
    batch_rows : of a batch, at most.
    whole_files : no file is cut into pieces.
    """

    spark: SparkSession
    location: str
    files: Sequence[File]
    schema: str
    n_cores: int
    batch_rows: int = BATCH_ROWS
    whole_files: bool = False

    @classmethod
    def of(cls, job: Job, where: Slice, schema: str, *, whole_files: bool = False) -> StoredRows:
        """Columns of a slice, in a share for each core, more or fewer for much or little.

        Raises
        ------
        TableError
            There is no slice, or it has another fingerprint.
        """
        files = slices.files_of(job.lake, where)
        n_cores = job.spark.sparkContext.defaultParallelism
        return cls(job.spark, job.lake.location(where.table), files, schema, n_cores, whole_files=whole_files)

    @property
    def n(self) -> int:
        """Rows, as the log says."""
        return sum(file.rows for file in self.files)

    def map(self, work: Task, schema: str) -> DataFrame:
        """See :class:`Rows`."""
        return tasks.lazy_tasks(self.spark, self.shares(), self._reading(work), schema)

    def run(self, work: Task) -> list[pa.RecordBatch]:
        """See :class:`Rows`."""
        return tasks.run_tasks(self.spark, self.shares(), self._reading(work))

    def _reading(self, work: Task) -> Callable[[Sequence[Piece]], Iterator[pa.RecordBatch]]:
        columns, location, batch_rows = names_of(self.schema), self.location, self.batch_rows

        def read(share: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
            return work(
                batch
                for file, number, of in share
                for batch in parquet.stream_file(location, file, columns, batch_rows, (number, of))
            )

        return read

    @property
    def share_bytes(self) -> int:
        """A share reads about so many bytes, ``OPENING_BYTES`` for each file, unless a row group has more."""
        total = sum(bytes_read(file, self.schema) + splits.OPENING_BYTES for file in self.files)
        return min(splits.MOST_SHARE_BYTES, max(splits.LEAST_SHARE_BYTES, math.ceil(total / self.n_cores)))

    def shares(self) -> list[list[Piece]]:
        """What each task reads: pieces of large files, several small ones; each goes where least is so far.

        In an order that is the same for a job that runs again on as many cores: other shares would give files
        of other bytes.
        """
        share_bytes, pieces, sizes = self.share_bytes, [], []
        read = [(bytes_read(file, self.schema), file) for file in self.files]
        read.sort(key=lambda each: (-each[0], -each[1].size, -each[1].rows, each[1].path))
        for size, file in read:
            of = 1 if self.whole_files else max(1, math.ceil(size / share_bytes))
            pieces += [Piece(file, number, of) for number in range(of)]
            sizes += [(size + splits.OPENING_BYTES) / of] * of
        n_shares = min(len(pieces), math.ceil(sum(sizes) / share_bytes))
        shares: list[list[Piece]] = [[] for _ in range(n_shares)]
        loads = [(0.0, place) for place in range(n_shares)]
        for piece, size in zip(pieces, sizes, strict=True):
            load, place = loads[0]
            shares[place].append(piece)
            heapq.heapreplace(loads, (load + size, place))
        return shares


@dataclass(frozen=True)
class MappedRows:
    """What a function makes of other rows, share by share, when it is asked for."""

    rows: Rows
    work: Task
    schema: str

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.rows.spark

    def map(self, work: Task, schema: str) -> DataFrame:
        """See :class:`Rows`."""
        return self.rows.map(_composed(work, self.work), schema)

    def run(self, work: Task) -> list[pa.RecordBatch]:
        """See :class:`Rows`."""
        return self.rows.run(_composed(work, self.work))


def _composed(work: Task, before: Task) -> Task:
    def both(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return work(before(batches))

    return both


def to_frame(rows: Rows) -> DataFrame:
    """The rows as a frame; lazy."""
    return rows.frame if isinstance(rows, FrameRows) else rows.map(iter, rows.schema)


def narrowed(rows: Rows, schema: str) -> Rows:
    """The same rows, of fewer columns where that saves reading."""
    return replace(rows, schema=schema) if isinstance(rows, StoredRows) else rows


def pack(rows: Rows) -> PacketRows:
    """The rows in packets, one of each batch; lazy."""
    return PacketRows(rows.map(_packed(iter), _PACKET), rows.schema)


_PACKET = "packet binary"


def _packed(work: Task, *, compressed: bool = False) -> Task:
    def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in work(batches):
            packet = to_packet(batch, compressed=compressed)
            yield pa.record_batch({"packet": pa.array([packet], pa.binary())})

    return packed


def _unpacked(work: Task) -> Task:
    def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return work(from_packets(batches))

    return unpacked


def brought_together(
    found: Iterable[Arrays], merge: Callable[[Sequence[Arrays]], Arrays], most_rows: int = 1 << 22
) -> Iterator[Arrays]:
    """What was found in a task's batches, merged: rows of its points instead of its pairs.

    Parameters
    ----------
    found : arrays of one length, of each batch.
    merge : one result of several.
    most_rows : held at once; what stays more than that, though merged, is given on.
    """
    held: list[Arrays] = []
    rows = 0
    for each in found:
        held.append(each)
        rows += len(each[0])
        if rows > most_rows:
            held = [merge(held)]
            rows = len(held[0][0])
            if rows > most_rows:
                yield held.pop()
                rows = 0
    if held:
        yield held[0] if len(held) == 1 else merge(held)


def gather(rows: Rows) -> pa.Table:
    """All rows, on the driver."""
    return pa.Table.from_batches(rows.run(iter), schema=schemas.parse_ddl(rows.schema))
