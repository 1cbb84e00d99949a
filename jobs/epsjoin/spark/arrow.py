"""Arrow columns to NumPy arrays and back, without a copy where the layout allows it; packets.

A *packet* is many of our rows in one row of Spark's, as an Arrow stream in a binary column, or in one element
of an RDD. Spark then moves and keeps a few blocks of bytes, and takes no row of ours apart, which is what
costs in the JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A task's work on its batches; what ``mapInArrow`` takes."""


def to_packet(rows: pa.RecordBatch | pa.Table, *, compressed: bool = False) -> bytes:
    """Rows as an Arrow stream; the bytes are copied."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows.combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_options(compressed=compressed)) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _options(*, compressed: bool) -> pa.ipc.IpcWriteOptions:
    return pa.ipc.IpcWriteOptions(compression="lz4" if compressed else None)


def from_packets(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the packets in the column ``packet``, where it is not null; see :func:`from_packet`."""
    for batch in batches:
        for packet in batch.column("packet").drop_null():
            yield from from_packet(packet.as_buffer())


def from_packet(packet: bytes | pa.Buffer) -> Iterator[pa.RecordBatch]:
    """The rows of a packet; views of its bytes, unless they are compressed."""
    yield from pa.ipc.open_stream(packet)


def to_one_packet(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """All batches, of one schema, as one compressed packet; none of none."""
    following = iter(batches)
    for first in following:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, first.schema, options=_options(compressed=True)) as stream:
            stream.write_batch(first)
            for batch in following:
                stream.write_batch(batch)
        yield bytes(sink.getvalue())
