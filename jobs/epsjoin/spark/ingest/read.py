"""Reading a snapshot: a task per file or section writes points and refused records, and passes on the ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, NamedTuple, cast

import numpy as np
import pyarrow as pa

from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError, EpsjoinError, to_one_line
from epsjoin.kernels.ids import spread_ids
from epsjoin.lake import uris
from epsjoin.source.batches import NOBODY, Batch, open_batches
from epsjoin.source.blocks import OpenSection
from epsjoin.source.bounds import DigestedStream, LimitedStream
from epsjoin.source.rules import Ints
from epsjoin.source.sections import Section
from epsjoin.spark.ingest.facts import FileFacts, to_dict
from epsjoin.spark.ingest.writer import FILE_ROWS, Targets, Writer
from epsjoin.spark.tasks.arrow import stream_batch, to_ipc
from epsjoin.spark.tasks.reports import TaskReport

_BUCKET_BITS = 6
BUCKETS = 1 << _BUCKET_BITS
"""Number of buckets of ids; ids of one bucket are compared in memory at once."""

ID_STREAMS = "bucket int, ipc binary, report string"
"""What readers pass on, as DDL: a bucket, an Arrow IPC stream of ids and places, or a task's report as JSON.

A place is the number of a record in its file, below the number of the file: see :func:`places_of`.
"""

_PLACE_BITS = 40


def places_of(file: int, numbers: Ints) -> Ints:
    """The numbers of records in a file as places in the snapshot."""
    return numbers | (file << _PLACE_BITS)


def split_places(places: Ints) -> dict[int, Ints]:
    """The numbers of records by their files, rising."""
    places = np.sort(places)
    files, begins = np.unique(places >> _PLACE_BITS, return_index=True)
    numbers = np.split(places & ((1 << _PLACE_BITS) - 1), begins[1:]) if places.size else []
    return dict(zip(files.tolist(), numbers, strict=True))


class FileState(NamedTuple):
    """The size of a file and when it was last changed, in nanoseconds."""

    size: int
    changed: int | None


@dataclass(frozen=True)
class SourceFile:
    """A file of the snapshot, or a section of one; small, since it is sent to the tasks.

    Parameters
    ----------
    index : its number among the files and sections of the snapshot.
    name : its name for people.
    uri : its place.
    may_be_empty : whether it may have no record: Spark may write such a file among several.
    section, state : the section, and the state of the file when it was divided; ``None``: the whole file.
    """

    index: int
    name: str
    uri: str
    may_be_empty: bool
    section: Section | None = None
    state: FileState | None = None


def state_of(file: SourceFile) -> FileState:
    """The state of the file now."""
    filesystem, path = uris.filesystem_of(file.uri)
    info = filesystem.get_file_info(path)
    return FileState(info.size or 0, info.mtime_ns)


def unreadable(what: str, error: OSError) -> EpsjoinError:
    """Make the error that says what cannot be read, and what to do about it.

    Another try may help, also if this user may not read it: this says nothing about the data, and the person
    whoever has just delivered the file may still be about to let others read it.
    """
    remedy = "run ingest again"
    if isinstance(error, PermissionError):
        remedy = f"let this user read it, then {remedy}"
    return EpsjoinError(f"{what} cannot be read ({to_one_line(error)}); {remedy}")


@contextmanager
def open_source(name: str, uri: str, n: int = 1) -> Iterator[list[pa.NativeFile]]:
    """Open a file of the snapshot ``n`` times.

    Raises
    ------
    EpsjoinError
        It cannot be opened: this user may not read it, or it has gone since it was listed.
    """
    filesystem, path = uris.filesystem_of(uri)
    with ExitStack() as handles:
        try:
            opened = [handles.enter_context(filesystem.open_input_file(path)) for _ in range(n)]
        except OSError as error:
            raise unreadable(name, error) from error
        yield opened


def read_file(file: SourceFile, into: Writer, aside: Ints | None = NOBODY) -> Iterator[Batch]:
    """Read a file or section: its points and refused records are written, the facts about it reported.

    Parameters
    ----------
    file : the file or section.
    into : what writes them.
    aside : rising places of the records in the file that are to be passed on instead; ``None``: all records.

    Yields
    ------
    The batches, of which the points and the refused records are written already.

    Raises
    ------
    EpsjoinError
        The file cannot be opened, or was changed while it was read, so that half of one file and half of
        another may have been read. A section that was changed is reported as refused; its file is read anew.
    """
    rows_read = rows_left_out = 0
    refused = None
    section = file.section
    state = file.state or state_of(file)
    with open_source(file.name, file.uri, 2) as (handle, head):
        stored = DigestedStream(cast("IO[bytes]", handle))
        is_digested = section is None or section.begin == 0
        is_seekable = into.source.format == "parquet"
        if is_seekable:  # it is not read from front to back, so it is digested first
            stored.read_rest()
            handle.seek(0)
        stream = cast("IO[bytes]", handle if is_seekable or not is_digested else stored)
        if section:
            handle.seek(section.begin)
            stream = cast("IO[bytes]", LimitedStream(stream, section.end - section.begin))
        batches = open_batches(
            stream,
            file.name,
            into.source,
            may_be_empty=file.may_be_empty or section is not None,
            aside=aside,
            section=OpenSection(section.line, cast("IO[bytes]", head)) if section else None,
        )
        try:
            for batch in batches:
                rows_read += batch.n_records
                rows_left_out += batch.n_left_out
                _write(file, into, batch)
                yield batch
        except DataRefusedError as error:
            refused = str(error)
        if is_digested and not is_seekable:
            stored.read_rest()
    columns = batches.found_columns
    if state_of(file) != state:
        refused = f"{file.name}: the file changed while it was read; run ingest again"
        if not section:  # another try may help, whatever was wrong with it
            raise EpsjoinError(refused)
    if refused is not None and not section:
        raw = into.source.delimiter.join(columns)
        into.refuse([{"source": file.name, "line": None, "reason": refused, "raw": raw}])
        into.report.refused.append(refused)
    digest = stored.sha256.hexdigest() if is_digested else ""
    number = section.number if section else None
    facts = FileFacts(file.name, stored.n_bytes, digest, rows_read, rows_left_out, columns, refused, number)
    into.report.facts.append(to_dict(facts))


def _write(file: SourceFile, into: Writer, batch: Batch) -> None:
    """Write the points of a batch and the records that it refuses."""
    # in a source without a key the id is the record's place, so equal records stay distinct
    ids = batch.ids if into.source.key else places_of(file.index, batch.places)
    into.keep(file.name, pa.array(ids), batch.values)
    into.refuse(
        [
            {"source": file.name, "line": each.line, "reason": each.reason, "raw": each.raw}
            for each in batch.refused
        ]
    )


def make_reader(source: SourceContract, targets: Targets) -> Callable[[SourceFile], Iterator[pa.RecordBatch]]:
    """Make the work of a task that reads a file and yields ``ID_STREAMS``: all ids, then its report.

    For a source without a key no ids are passed on: they are places, each of which occurs once.
    """

    def read(file: SourceFile) -> Iterator[pa.RecordBatch]:
        into = Writer(source, targets, TaskReport(number=file.index))
        held: list[Ints] = []
        for batch in read_file(file, into):
            if source.key:
                held.append(np.stack([batch.ids, places_of(file.index, batch.places)]))
            if sum(each.shape[1] for each in held) >= FILE_ROWS:
                yield _to_streams(np.concatenate(held, axis=1))
                held = []
        if held:
            yield _to_streams(np.concatenate(held, axis=1))
        yield stream_batch("bucket", [0], [None], [into.close().to_json()])

    return read


def _to_streams(ids_and_places: Ints) -> pa.RecordBatch:
    ids = ids_and_places[0]
    bucket = spread_ids(ids, _BUCKET_BITS).astype(np.uint8)
    order = np.argsort(bucket, kind="stable")
    ids, places = ids[order], ids_and_places[1][order]
    cuts = np.searchsorted(bucket[order], np.arange(BUCKETS + 1))
    found = np.flatnonzero(np.diff(cuts)).tolist()
    streams = [
        to_ipc(pa.record_batch({"id": ids[cuts[i] : cuts[i + 1]], "place": places[cuts[i] : cuts[i + 1]]}))
        for i in found
    ]
    return stream_batch("bucket", found, streams, [None] * len(found))
