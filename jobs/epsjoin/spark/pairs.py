"""Pairs that a step works on, batch by batch, wherever they are: in a table's files, or in a frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from epsjoin.spark import tables, tasks
from epsjoin.spark.arrow import Task, from_packets
from epsjoin.spark.job import Job
from epsjoin.spark.lineage import Join
from epsjoin.spark.merge_join import PAIRS

COLUMNS = ("left_id", "right_id", "distance")
BATCH_PAIRS = 1 << 20


class Pairs(Protocol):
    """Pairs in any number of shares; those of a part are never in two."""

    @property
    def spark(self) -> SparkSession:
        """The session."""

    def map(self, work: Task, schema: str) -> DataFrame:
        """What ``work`` makes of the batches of each share, columns ``COLUMNS``, as a lazy frame."""

    def frame(self) -> DataFrame:
        """The pairs themselves."""


@dataclass(frozen=True)
class PacketPairs:
    """Pairs of a join of frames, a partition each, in packets; read for every use, so best persisted."""

    packets: DataFrame

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.packets.sparkSession

    def map(self, work: Task, schema: str) -> DataFrame:
        """See :class:`Pairs`."""

        def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return work(from_packets(batches))

        return self.packets.mapInArrow(unpack, schema)

    def frame(self) -> DataFrame:
        """See :class:`Pairs`."""
        return self.map(iter, PAIRS)


@dataclass(frozen=True)
class StoredPairs:
    """Pairs of a run's slice, a file each; the tasks read the files themselves."""

    spark: SparkSession
    lake: tables.Lake
    run: str
    files: Sequence[tables.File]

    @classmethod
    def of(cls, job: Job, join: Join) -> StoredPairs:
        """The pairs of a job's run.

        Raises
        ------
        TableError
            There is no slice, or it was made from other tables than this join.
        """
        return cls(job.spark, job.lake, job.run, tables.files_of(job.lake, "pairs", job.run, join.stamp))

    def map(self, work: Task, schema: str) -> DataFrame:
        """See :class:`Pairs`."""
        location = self.lake.location("pairs")

        def read(file: tables.File) -> Iterator[pa.RecordBatch]:
            return work(tables.stream_file(location, file, COLUMNS, BATCH_PAIRS))

        return tasks.run_tasks(self.spark, self.files, read, schema)

    def frame(self) -> DataFrame:
        """See :class:`Pairs`."""
        return tables.read(self.spark, self.lake, "pairs", self.run).select(*COLUMNS)
