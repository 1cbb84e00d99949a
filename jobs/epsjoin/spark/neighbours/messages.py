"""Work in rounds: each cell takes the messages sent to it, and sends others for the next round.

A round is one shuffle, with a task for each cell. What a cell keeps, it sends to itself; so no round is
computed again for a later one, and nothing needs to be persisted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from epsjoin.spark.rows.rows import FrameRows
from epsjoin.spark.tasks.arrow import from_ipc, to_ipc

MESSAGES = "cell int, kind int, sender int, ipc binary"
"""Columns of messages: receiving cell, kind, sending cell, and rows as an Arrow IPC stream."""

_MAX_BYTES = 64 << 20
"""Maximum number of bytes of a message, unless its rows must stay together: Spark takes no value of 2 GiB."""


class Message(NamedTuple):
    """A message as its cell gets it."""

    kind: int
    sender: int
    stream: pa.Scalar

    def read(self) -> pa.Table:
        """Its rows."""
        return pa.Table.from_batches(from_ipc(self.stream.as_buffer()))

    def pass_on(self, cell: int) -> pa.RecordBatch:
        """The same message once more, to a cell of the next round."""
        return _in_batch(cell, self.kind, self.sender, self.stream)


Work = Callable[[int, Iterator[Message]], Iterator[pa.RecordBatch]]
"""The work of a cell: from its number and its messages, by kind, it makes messages or rows of a result."""


def write_messages(
    cell: int, kind: int, sender: int, rows: pa.Table, together: int = 1, most: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Write rows as messages to a cell, none if there are no rows.

    Parameters
    ----------
    together : number of consecutive rows that are never separated.
    most : maximum number of rows of a message.
    """
    fit = _MAX_BYTES * len(rows) // max(1, rows.nbytes)
    step = max(1, min(fit, most or fit) // together) * together
    for begin in range(0, len(rows), step):
        yield _in_batch(cell, kind, sender, to_ipc(rows.slice(begin, step)))


def by_kind(messages: Iterable[Message]) -> defaultdict[int, list[Message]]:
    """The messages of each kind."""
    found: defaultdict[int, list[Message]] = defaultdict(list)
    for message in messages:
        found[message.kind].append(message)
    return found


def exchange(messages: DataFrame, n_cells: int, work: Work, schema: str = MESSAGES) -> DataFrame:
    """Let each cell that has messages work on them.

    Parameters
    ----------
    messages : columns ``MESSAGES``; their cells are below ``n_cells``.
    work : yields batches of ``schema``. It reads messages one by one, those of the smallest kind first.
    schema : columns of the result, as DDL.

    Returns
    -------
    DataFrame
        Lazy; messages of the next round unless ``schema`` says otherwise.
    """
    by_cell = messages.repartitionById(n_cells, "cell").sortWithinPartitions("kind")

    def work_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = iter(batches)
        for first in rows:
            if len(first):
                yield from work(first["cell"][0].as_py(), _messages(chain([first], rows)))

    return FrameRows(by_cell).map(work_on, schema)


def _messages(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    for batch in batches:
        yield from map(Message, batch["kind"].to_pylist(), batch["sender"].to_pylist(), batch["ipc"])


def _in_batch(cell: int, kind: int, sender: int, stream: bytes | pa.Scalar) -> pa.RecordBatch:
    numbers = {
        name: pa.array([value], pa.int32())
        for name, value in zip(("cell", "kind", "sender"), (cell, kind, sender), strict=True)
    }
    if isinstance(stream, pa.Scalar):
        stream = stream.cast(pa.binary())  # a session may pass large ones
    return pa.record_batch({**numbers, "ipc": pa.array([stream], pa.binary())})
