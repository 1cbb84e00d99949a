"""Where the pairs of a running join go: a Delta table that grows, or a folder of Parquet files.

A thread of its own writes, so that the join goes on meanwhile; a queue of a few batches keeps memory bounded:
where writing is slower, the join waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from queue import Empty, Full, Queue

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from epsjoin.errors import ArgumentError
from epsjoin.lake import transactions, uris
from epsjoin.lake.growing import GrowingTable
from epsjoin.lake.parquet import File
from epsjoin.lake.targets import Target
from epsjoin.local.join.arrays import NO_ROW, Rows
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

_PAIRS = pa.schema([("left_id", pa.int64()), ("right_id", pa.int64()), ("distance", pa.float64())])
_ROWS = pa.schema([("id", pa.int64())])

Sink = Callable[[str, bool], "AbstractContextManager[Destination]"]
"""Opens what pairs are written to: of its place, and of whether rows come in place of pairs."""


class Destination:
    """What files are written for.

    Parameters
    ----------
    into : writes the files.
    add : makes a file that is written part of the result.
    """

    def __init__(self, into: Target, add: Callable[[File], None]) -> None:
        self.into, self.add = into, add


@contextmanager
def delta_table(to: str, gives_rows: bool) -> Iterator[Destination]:
    """Replace a Delta table by files that come one after the other; see :class:`GrowingTable`."""
    into = _target(uris.parse_table_uri(to, "to"), gives_rows)
    transactions.check_replaceable(into)
    table, files = GrowingTable(into), list[File]()

    def add(file: File) -> None:
        files.append(file)
        table.add([file])

    with table.deleted_on_error():
        yield Destination(into, add)
    table.complete(files)


@contextmanager
def parquet_folder(to: str, gives_rows: bool) -> Iterator[Destination]:
    """Fill an empty folder with Parquet files, each of which is whole as soon as it is there."""
    place = uris.parse_table_uri(to, "to")
    filesystem, root = uris.filesystem_of(place)
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
        yield Destination(into, add)
    finally:
        if filesystem.get_file_info(f"{root}/{_UNFINISHED}").type == pafs.FileType.Directory:
            filesystem.delete_dir(f"{root}/{_UNFINISHED}")
    with uris.writing(f"{root}/{SUCCESS}"):
        filesystem.create_dir(root, recursive=True)
        filesystem.open_output_stream(f"{root}/{SUCCESS}").close()


SINKS: dict[str, Sink] = {"delta": delta_table, "parquet": parquet_folder}
"""Kinds of places that pairs are written to."""


def _target(location: str, gives_rows: bool) -> Target:
    return Target("progressive_join", location, _ROWS if gives_rows else _PAIRS, (), {})


class _StoppedError(Exception):
    """The join has ended with an error: nothing more is written."""


class Writer:
    """Writes batches in a thread of its own, while ``with`` lasts; an error of the thread is raised there.

    Parameters
    ----------
    to : where they are written.
    seconds : a file is ended at the latest after so many.
    """

    def __init__(self, to: Destination, seconds: float) -> None:
        self._to, self._seconds = to, seconds
        self._queue: Queue[pa.RecordBatch | None] = Queue(AHEAD)
        self._has_ended = False
        self._stopped = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write_all, name="epsjoin-drain", daemon=True)

    def put(self, batch: Pairs | Rows | None) -> None:
        """Hand over a batch, None for the end; waits while enough of them wait, raises what went wrong."""
        rows = None if batch is None else to_rows(batch)
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
        if kind is None:
            self.put(None)
        else:
            self._stopped.set()
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    def _write_all(self) -> None:
        try:
            while not self._has_ended:
                file = self._to.into.write(self._rows_of_a_file())
                if file is not None:
                    self._to.add(file)
        except _StoppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where batches are put
            self._error = error

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


def to_rows(batch: Pairs | Rows) -> pa.RecordBatch:
    """A batch with the columns ``left_id``, ``right_id`` and ``distance``, or ``id``; null for no partner."""
    if isinstance(batch, Rows):
        return pa.record_batch({"id": batch.left})
    alone = np.isnan(batch.distance)
    columns: Sequence[pa.Array] = [
        *(pa.array(ids, mask=alone & (ids == NO_ROW)) for ids in (batch.left, batch.right)),
        pa.array(batch.distance, mask=alone),
    ]
    return pa.record_batch(columns, _PAIRS)
