"""Where the pairs of a running join go: a Delta table that grows, or a folder of Parquet files.

A thread of its own writes, so that the join goes on meanwhile; a queue of a few batches keeps memory bounded:
where writing is slower, the join waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from queue import Empty, Full, Queue

import pyarrow as pa
import pyarrow.fs as pafs

from epsjoin.errors import ArgumentError
from epsjoin.lake import transactions, uris
from epsjoin.lake.growing import GrowingTable
from epsjoin.lake.parquet import File
from epsjoin.lake.targets import Target
from epsjoin.local.join.arrays import Rows
from epsjoin.local.sweep.pairs import Pairs

AHEAD = 4
"""Number of batches that may wait to be written."""
MAX_FILE_ROWS = 1 << 22
"""Number of rows after which a file is ended."""
SUCCESS = "_SUCCESS"
"""Name of the file that says that a folder of Parquet files is complete."""
_UNFINISHED = "_unfinished"
"""Name of the folder in which files are written; readers of a folder pass over names with an underscore."""
_POLL_SECONDS = 0.2
"""Time after which a wait looks whether it was interrupted: some packages' handlers let waits go on."""

_PAIRS = pa.schema([("left_id", pa.int64()), ("right_id", pa.int64()), ("distance", pa.float64())])
_ROWS = pa.schema([("id", pa.int64())])


class Sink:
    """What files are written for.

    Parameters
    ----------
    into : writes the files.
    add : makes a file that is written part of the result.
    """

    def __init__(self, into: Target, add: Callable[[File], None]) -> None:
        self.into, self.add = into, add


@contextmanager
def delta_table(to: str, gives_rows: bool) -> Iterator[Sink]:
    """Replace a Delta table by files that come one after the other; see :class:`GrowingTable`."""
    into = _target(uris.parse_table_uri(to, "to"), gives_rows)
    transactions.check_replaceable(into)
    table, files = GrowingTable(into), list[File]()

    def add(file: File) -> None:
        files.append(file)
        table.add([file])

    with table.deleted_on_error():
        yield Sink(into, add)
    table.complete(files)


@contextmanager
def parquet_folder(to: str, gives_rows: bool) -> Iterator[Sink]:
    """Fill an empty folder with Parquet files, each of which is whole as soon as it is there."""
    place = uris.parse_table_uri(to, "to")
    filesystem, root = uris.filesystem_of(place)
    if filesystem.get_file_info(root).type == pafs.FileType.File:
        raise ArgumentError(f"to must be a folder, and {to} is a file")
    found = filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True))
    if found:
        raise ArgumentError(
            f"to must be an empty folder, or one that is not there; {to} has {found[0].base_name}"
        )
    into = _target(f"{place}/{_UNFINISHED}", gives_rows)

    def add(file: File) -> None:
        with uris.writing(f"{root}/{file.path}"):
            filesystem.move(f"{root}/{_UNFINISHED}/{file.path}", f"{root}/{file.path}")

    try:
        yield Sink(into, add)
    finally:
        with suppress(OSError):  # it may not be there; and readers pass over it
            filesystem.delete_dir(f"{root}/{_UNFINISHED}")
    with uris.writing(f"{root}/{SUCCESS}"):
        filesystem.create_dir(root, recursive=True)
        filesystem.open_output_stream(f"{root}/{SUCCESS}").close()


KINDS: dict[str, Callable[[str, bool], AbstractContextManager[Sink]]] = {
    "delta": delta_table,
    "parquet": parquet_folder,
}
"""What opens a sink, given its place and whether rows come in place of pairs."""


def _target(location: str, gives_rows: bool) -> Target:
    return Target("progressive_join", location, _ROWS if gives_rows else _PAIRS, (), {})


class _StoppedError(Exception):
    """The join has ended with an error: nothing more is written."""


class Writer:
    """Writes batches in a thread of its own, while ``with`` lasts; an error of the thread is raised there.

    Parameters
    ----------
    sink : where they are written.
    seconds : a file is ended at the latest after so many.
    """

    def __init__(self, sink: Sink, seconds: float) -> None:
        self._sink, self._seconds = sink, seconds
        self._queue: Queue[pa.RecordBatch | None] = Queue(AHEAD)
        self._has_ended = False
        self._stopped, self._has_written = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write_all, name="epsjoin-drain", daemon=True)

    def put(self, batch: Pairs | Rows | None, lonely_side: int | None = None) -> None:
        """Hand over a batch, None for the end; waits while enough of them wait, raises what went wrong."""
        rows = None if batch is None else to_rows(batch, lonely_side)
        while self._error is None:
            try:
                return self._queue.put(rows, timeout=_POLL_SECONDS)
            except Full:
                continue
        raise self._error

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        interrupt: BaseException | None = None
        if kind is None:
            try:
                self.put(None)
                while not self._has_written.wait(_POLL_SECONDS):
                    pass
            except BaseException as error:  # noqa: BLE001  # raised below, once the thread has ended
                interrupt = error
        while not self._has_written.is_set():  # a thread whose join is interrupted is taken for ended
            self._stopped.set()
            try:
                self._has_written.wait(_POLL_SECONDS)
            except KeyboardInterrupt as error:
                interrupt = error
        self._thread.join()
        if interrupt is not None:
            raise interrupt
        if kind is None and self._error is not None:
            raise self._error

    def _write_all(self) -> None:
        try:
            while not self._has_ended:
                file = self._sink.into.write(self._rows_of_a_file())
                if self._stopped.is_set():
                    return
                if file is not None:
                    self._sink.add(file)
        except _StoppedError:
            pass
        except BaseException as error:  # noqa: BLE001  # raised where batches are put
            self._error = error
        finally:
            self._has_written.set()

    def _rows_of_a_file(self) -> Iterator[pa.RecordBatch]:
        begun, n_rows = time.monotonic(), 0
        while n_rows < MAX_FILE_ROWS and (not n_rows or time.monotonic() - begun < self._seconds):
            if self._stopped.is_set():
                raise _StoppedError
            try:
                batch = self._queue.get(timeout=_POLL_SECONDS)
            except Empty:
                continue
            if batch is None:
                self._has_ended = True
                return
            if not n_rows:
                begun = time.monotonic()
            n_rows += batch.num_rows
            yield batch


def to_rows(batch: Pairs | Rows, lonely_side: int | None) -> pa.RecordBatch:
    """A batch with the columns ``left_id``, ``right_id`` and ``distance``, or ``id``; null for no partner.

    Parameters
    ----------
    lonely_side : 0 if left rows have no partner, 1 if right rows have none; None: all are pairs. An id may be
        that of nobody, so that the batch itself does not tell.
    """
    if isinstance(batch, Rows):
        return pa.record_batch({"id": batch.left})
    columns = [pa.array(column) for column in batch]
    if lonely_side is not None:
        n = len(batch.left)
        columns[1 - lonely_side], columns[2] = pa.nulls(n, pa.int64()), pa.nulls(n, pa.float64())
    return pa.record_batch(columns, _PAIRS)
