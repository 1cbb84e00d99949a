"""Arrow columns to NumPy arrays and back, without a copy where the layout allows it; packets.

A *packet* is many of our rows in one row of Spark's, as an Arrow stream in a binary column, or in one element
of an RDD. Spark then moves and keeps a few blocks of bytes, and takes no row of ours apart, which is what
costs in the JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.errors import TableError

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A task's work on its batches; what ``mapInArrow`` takes."""


def to_matrix(column: pa.Array | pa.ChunkedArray, dimensions: int) -> NDArray[np.float64]:
    """Rows of a binary column, each ``dimensions`` little-endian float64, as an (n, d) array.

    Returns
    -------
    (n, d) float64, C order; a read-only view of one chunk's buffer, a copy of several.

    Raises
    ------
    TableError
        A value is null or not ``8 * dimensions`` bytes long.
    """
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 0:
            return np.empty((0, dimensions))
        if column.num_chunks == 1:
            return to_matrix(column.chunk(0), dimensions)
        return np.concatenate([to_matrix(chunk, dimensions) for chunk in column.chunks])
    if len(column) == 0:
        return np.empty((0, dimensions))
    is_large = pa.types.is_large_binary(column.type)
    offsets = np.frombuffer(column.buffers()[1], np.int64 if is_large else np.int32)
    offsets = offsets[column.offset : column.offset + len(column) + 1]
    if column.null_count or not (np.diff(offsets) == 8 * dimensions).all():
        raise TableError(
            f"a point is not {dimensions} float64 values long; was the contract changed? Run ingest again"
        )
    data = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    return data.view("<f8").reshape(-1, dimensions)


def to_binary(rows: NDArray[np.generic]) -> pa.Array:
    """Each row of a two-dimensional array as one value of a binary column; the bytes are copied.

    Rows are (n, d) float64 for points, (n, w) uint8 for codes. The column must stay below 2 GiB.
    """
    rows = np.ascontiguousarray(rows)
    width = rows.shape[1] * rows.itemsize
    if len(rows) * width >= 2**31:
        raise ValueError(f"{len(rows)} rows of {width} bytes do not fit one Arrow binary array")
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(rows)])


def to_codes(column: pa.Array) -> NDArray[np.uint8]:
    """Rows of a binary column of equal length as an (n, w) uint8 array.

    Raises
    ------
    TableError
        A value is null, or not as long as the first.
    """
    if len(column) == 0:
        return np.empty((0, 2), np.uint8)
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    widths = np.diff(offsets)
    if column.null_count or not (widths == widths[0]).all():
        raise TableError("the codes of one plan have one width; these do not. Run replicate again")
    return np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].reshape(-1, widths[0])


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


def pair_columns(
    batch: pa.RecordBatch,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The columns left_id, right_id and distance of a batch of pairs, as views."""
    left, right, distance = (batch.column(name).to_numpy() for name in ("left_id", "right_id", "distance"))
    return left, right, distance
