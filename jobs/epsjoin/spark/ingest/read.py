"""First half of ingest: files are read to staged rows, one task per file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import IO, Any, cast

import pyarrow as pa

from epsjoin.contracts.odcs import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.lake import uris
from epsjoin.lake.lake import Lake
from epsjoin.source.bounds import DigestedStream
from epsjoin.source.records import Record, digest_of, key_id, open_records
from epsjoin.spark.arrow import Task
from epsjoin.spark.ingest.facts import FileFacts

BATCH_ROWS = 50_000
"""Number of records at which a batch is passed on."""

BATCH_CHARACTERS = 64 << 20
"""Number of characters in the records of a batch at which it is passed on, too."""


def staged_schema(lake: Lake) -> pa.Schema:
    """Schema of staged rows: columns of ingest, which begin with an underscore, then those of the source.

    A staged row is a record, or the last row of a file. The last row holds the file's ``FileFacts`` as JSON
    in ``_facts``, which is null in records. Rows of one ``_slot`` are brought together: the slot of a record
    is its id; a record without id has the slot of its place, the row about a file that of the file's number.
    """
    points = lake.schema("points")
    own = [points.field(column.name).with_nullable(True) for column in lake.source.columns]
    return pa.schema(
        [
            ("_slot", pa.int64()),
            ("_file", pa.int32()),
            ("_line", pa.int64()),
            ("_source", pa.string()),
            ("_reason", pa.string()),
            ("_raw", pa.string()),
            ("_facts", pa.string()),
            ("_digest", pa.binary()),
            ("_id", pa.int64()),
            *own,
        ]
    )


def make_reader(source: SourceContract, schema: pa.Schema, n_files: int) -> Task:
    """Make the work of a task that reads the files whose names it gets, and yields their staged rows.

    Of several files of a snapshot, some may have no record: Spark writes such.
    """

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from _read_file(
                    source, schema, row["file"], row["name"], row["uri"], may_be_empty=n_files > 1
                )

    return read


def _read_file(
    source: SourceContract, schema: pa.Schema, index: int, name: str, uri: str, *, may_be_empty: bool = False
) -> Iterator[pa.RecordBatch]:
    filesystem, path = uris.filesystem_of(uri)
    staged: list[dict[str, Any]] = []
    rows_read = rows_left_out = held = 0
    refused = None
    names = [column.name for column in source.columns]
    with filesystem.open_input_file(path) as handle:
        stored = DigestedStream(cast("IO[bytes]", handle))
        is_seekable = source.format == "parquet"
        if is_seekable:  # it is not read from front to back, so it is digested first
            stored.read_rest()
            handle.seek(0)
        opened = cast("IO[bytes]", handle if is_seekable else stored)
        records = open_records(opened, name, source, may_be_empty=may_be_empty)
        try:
            for position, record in enumerate(records):
                rows_read += 1
                if record.is_left_out:
                    rows_left_out += 1
                    continue
                staged.append(_stage(source, names, index, name, position, record))
                held += len(record.raw)
                if len(staged) == BATCH_ROWS or held >= BATCH_CHARACTERS:
                    yield pa.RecordBatch.from_pylist(staged, schema)
                    staged.clear()
                    held = 0
        except DataRefusedError as error:
            refused = str(error)
        if not is_seekable:
            stored.read_rest()
    facts = FileFacts(
        name,
        stored.n_bytes,
        stored.sha256.hexdigest(),
        rows_read,
        rows_left_out,
        records.found_columns,
        refused,
    )
    about_file = {"_slot": index, "_file": index, "_line": 0, "_source": name}
    staged.append({**about_file, "_facts": json.dumps(asdict(facts))})
    yield pa.RecordBatch.from_pylist(staged, schema)


def _stage(
    source: SourceContract, names: list[str], file: int, name: str, position: int, record: Record
) -> dict[str, Any]:
    # in a source without key the id is the record's place, so equal records stay apart
    place = (file << 40) | position
    row: dict[str, Any] = {"_slot": place, "_file": file, "_line": record.line, "_source": name}
    row |= {"_reason": record.reason, "_raw": record.raw}
    if record.values is None:
        return row
    id_ = key_id(source, record.values) if source.key else place
    if isinstance(id_, str):
        return {**row, "_reason": id_}
    digest = digest_of(record.values) if source.key else None
    own = dict(zip(names, record.values, strict=True))
    return {**row, "_slot": id_, "_id": id_, "_digest": digest, **own}
