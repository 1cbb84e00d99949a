"""Whole rows of a frame that travel with their points through the shuffle of a join.

A row goes to one part, as its point does. There it waits in a file without a name until its part is joined:
so the memory of a task is that of a join of points, however wide the rows are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from epsjoin.kernels.arrays import Ints
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.one_sided import hold
from epsjoin.local.scratch import scratch_root
from epsjoin.spark.join.replicas import Replicate, replicas_of
from epsjoin.spark.points.reading import Reading

CARRIED = "row"
"""The column that holds whole rows, as structures, beside ids and points."""

_TRAVELS = (
    *(T.NumericType, T.StringType, T.BinaryType, T.BooleanType),
    *(T.DateType, T.TimestampType, T.TimestampNTZType, T.DayTimeIntervalType),
)
"""Types of values that Spark gives to a task and takes back from it unchanged."""


def can_travel(kind: T.DataType) -> bool:
    """Whether Spark gives values of this type, such as the rows of a frame, to tasks and takes them back.

    It does not for types that users define, such as vectors of Spark ML, and for two columns with the same
    name.
    """
    if isinstance(kind, T.StructType):
        is_named = 0 < len(kind.names) == len(set(kind.names))
        return is_named and all(can_travel(field.dataType) for field in kind.fields)
    if isinstance(kind, T.ArrayType):
        return can_travel(kind.elementType)
    if isinstance(kind, T.MapType):
        return can_travel(kind.keyType) and can_travel(kind.valueType)
    return isinstance(kind, _TRAVELS)


def held_with_rows(reading: Reading) -> Replicate:
    """Make the function that sends points, each to the part that holds it, with the column ``CARRIED``.

    Parameters
    ----------
    reading : of the columns before ``CARRIED``, which is the last one.
    """

    def replicas(
        batch: pa.RecordBatch, plan: JoinPlan, counters: dict[str, float]
    ) -> Iterator[tuple[int, pa.Table]]:
        *columns, row = range(batch.num_columns)
        ids, points = reading.of_dimensions(plan.dimensions).arrays(batch.select(columns))
        held = hold(points, ids, plan)
        carried, begin = batch.column(row).take(pa.array(held.row)), 0
        for part, sent in replicas_of(ids, points, plan, counters, spread=lambda *_: held):
            yield part, sent.append_column(CARRIED, carried.slice(begin, len(sent)))
            begin += len(sent)

    return replicas


def without_row(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Copy all columns of a batch but the rows: a view of them would keep the rows in memory."""
    others = batch.drop_columns([CARRIED])
    return others.take(pa.array(range(len(others)), pa.int64()))


class RowFile:
    """Carried rows in a file without a name, which is gone with the process, however it ends."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(dir=scratch_root())  # noqa: SIM115  # closed by __exit__
        self._writer: pa.RecordBatchStreamWriter | None = None

    def __enter__(self) -> Self:
        """Use it until the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Drop the rows."""
        self._file.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Write the ids and the rows of a batch."""
        kept = batch.select(["id", CARRIED])
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, kept.schema)
        self._writer.write_batch(kept)

    def take(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """Yield the rows with some of the ids, as the frame has them, in the order in which they came."""
        if self._writer is None:
            return
        self._writer.close()
        self._file.seek(0)
        wanted = pa.array(ids, pa.int64())
        for batch in pa.ipc.open_stream(self._file):
            rows = batch.filter(pc.is_in(batch.column("id"), value_set=wanted)).column(CARRIED)
            if len(rows):
                yield pa.RecordBatch.from_arrays(rows.flatten(), schema=pa.schema(list(rows.type)))
