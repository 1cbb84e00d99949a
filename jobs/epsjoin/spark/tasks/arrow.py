"""Record batches to Arrow IPC streams and back.

An *Arrow IPC stream* holds many of our rows in one binary value: in one row of a Spark frame with a binary
column, or in one element of an RDD. Spark then moves and stores a few blocks of bytes. It does not take our
rows apart, which is what costs most in the JVM.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.abc import MetaPathFinder

import pyarrow as pa

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""The function that a task applies to its batches, of the type that ``mapInArrow`` takes."""

Scan = Callable[[Sequence[str], Task], list[pa.RecordBatch]]
"""Applies a function to the batches of some columns, wherever that is done, and collects what it yields."""


class _NoPandas(MetaPathFinder):
    """Lets an import of pandas fail, as if it were not installed."""

    def find_spec(self, fullname: str, *_: object) -> None:
        """Raise an error for pandas."""
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def keep_pandas_out() -> None:
    """Keep pyarrow from importing pandas in this process, which would cost some 0.4 seconds of CPU.

    pyarrow looks for pandas once, when it makes its first array, to tell frames and series from other
    sequences; no setting prevents this. At that moment pandas is hidden; code that asks for a pandas frame
    later gets one. A process that has loaded pandas already is left as it is.
    """
    if "pandas" not in sys.modules:
        hidden = _NoPandas()
        sys.meta_path.insert(0, hidden)
        try:
            pa.array([])
        finally:
            sys.meta_path.remove(hidden)


def give_back_freed_memory() -> None:
    """Let Arrow return freed memory to the system from now on.

    Its own allocator would keep it, and the arrays of a part need the memory.
    """
    pa.set_memory_pool(pa.system_memory_pool())


def to_ipc(rows: pa.RecordBatch | pa.Table) -> bytes:
    """Write rows as one Arrow IPC stream; the bytes are copied."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows.combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def stream_batch(
    name: str, numbers: Sequence[int], streams: Sequence[bytes | None], reports: Sequence[str | None]
) -> pa.RecordBatch:
    """Make rows of Arrow IPC streams and reports, each with the number of the partition that it goes to.

    Parameters
    ----------
    name : of the column of numbers; the others are ``ipc`` and ``report``.
    """
    columns = {name: pa.array(numbers, pa.int32()), "ipc": pa.array(streams, pa.binary())}
    return pa.record_batch({**columns, "report": pa.array(reports, pa.string())})


def from_ipc_column(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the rows of all Arrow IPC streams in the column ``ipc``, except nulls; see :func:`from_ipc`."""
    for batch in batches:
        for stream in batch.column("ipc").drop_null():
            yield from from_ipc(stream.as_buffer())


def from_ipc(stream: bytes | pa.Buffer) -> Iterator[pa.RecordBatch]:
    """Read the rows of an Arrow IPC stream, as views of its bytes unless they are compressed."""
    yield from pa.ipc.open_stream(stream)


def batches_to_ipc(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """Write all batches, of one schema, as one compressed Arrow IPC stream; no batches yield nothing."""
    following = iter(batches)
    for first in following:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(
            sink, first.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
        ) as stream:
            stream.write_batch(first)
            for batch in following:
                stream.write_batch(batch)
        yield bytes(sink.getvalue())
