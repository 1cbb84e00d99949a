"""Ingest, first half: files to staged rows, one task a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from io import RawIOBase
from typing import IO, Any, cast

import pyarrow as pa

from epsjoin.contracts.odcs import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.lake import uris
from epsjoin.lake.lake import Lake
from epsjoin.source.keys import digest_of, key_id
from epsjoin.source.records import Reading, Record
from epsjoin.spark.arrow import Task

BATCH_ROWS = 50_000
BATCH_CHARACTERS = 64 << 20
"""Records are handed on when so many are held, or when they are so long together."""
RECORD, FILE = 0, 1
"""What a staged row is: a record of a file, and what is to be said of the file itself."""


def staged_schema(lake: Lake) -> pa.Schema:
    """Columns of a staged row: our own, which begin with an underscore, then the source's."""
    points = lake.schema("points")
    own = [points.field(column.name).with_nullable(True) for column in lake.source.columns]
    return pa.schema(
        [
            ("_slot", pa.int64()),
            ("_what", pa.int32()),
            ("_file", pa.int32()),
            ("_line", pa.int64()),
            ("_source", pa.string()),
            ("_reason", pa.string()),
            ("_raw", pa.string()),
            ("_digest", pa.binary()),
            ("_id", pa.int64()),
            *own,
        ]
    )


class _Counting(RawIOBase):
    """A file's bytes on their way to the reader: counted and digested as they pass."""

    def __init__(self, inner: IO[bytes]) -> None:
        self.inner = inner
        self.size = 0
        self.sha256 = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.inner.read(len(buffer))
        buffer[: len(data)] = data
        self.size += len(data)
        self.sha256.update(data)
        return len(data)

    def finish(self) -> None:
        """Digest what the reader left unread, so that the digest is the file's."""
        while self.read(1 << 20):
            pass


def make_reader(source: SourceContract, schema: pa.Schema) -> Task:
    """A task's work on names of files: read them, yield their staged rows."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from _read_file(source, schema, row["file"], row["name"], row["uri"])

    return read


def _read_file(
    source: SourceContract, schema: pa.Schema, index: int, name: str, uri: str
) -> Iterator[pa.RecordBatch]:
    filesystem, path = uris.filesystem_of(uri)
    facts: dict[str, Any] = {"source": name, "rows_read": 0, "refused": None}
    staged: list[dict[str, Any]] = []
    held = 0
    names = [column.name for column in source.columns]
    with filesystem.open_input_file(path) as handle:
        size, digest = _size_and_digest(handle) if source.format == "parquet" else (0, "")
        counting = _Counting(cast("IO[bytes]", handle))
        reading = Reading(cast("IO[bytes]", handle if source.format == "parquet" else counting), name, source)
        try:
            for position, record in enumerate(reading):
                staged.append(_stage(source, names, index, name, position, record))
                facts["rows_read"] += 1
                held += len(record.raw)
                if len(staged) == BATCH_ROWS or held >= BATCH_CHARACTERS:
                    yield pa.RecordBatch.from_pylist(staged, schema)
                    staged.clear()
                    held = 0
        except DataRefusedError as error:
            facts["refused"] = str(error)
        if source.format != "parquet":
            counting.finish()
            size, digest = counting.size, counting.sha256.hexdigest()
    facts.update(bytes=size, sha256=digest, columns=reading.found_columns)
    staged.append(
        {
            "_slot": index,
            "_what": FILE,
            "_file": index,
            "_line": 0,
            "_source": name,
            "_raw": json.dumps(facts),
        }
    )
    yield pa.RecordBatch.from_pylist(staged, schema)


def _size_and_digest(handle: pa.NativeFile) -> tuple[int, str]:
    digest = hashlib.sha256()
    while data := handle.read(1 << 20):
        digest.update(data)
    size = handle.tell()
    handle.seek(0)
    return size, digest.hexdigest()


def _stage(
    source: SourceContract, names: list[str], file: int, name: str, position: int, record: Record
) -> dict[str, Any]:
    # a source without key: the record's place is its id, so equal records stay two records
    place = (file << 40) | position
    row: dict[str, Any] = {
        "_slot": place,
        "_what": RECORD,
        "_file": file,
        "_line": record.line,
        "_source": name,
        "_reason": record.reason,
        "_raw": record.raw,
    }
    if record.values is None:
        return row
    id_ = key_id(source, record.values) if source.key else place
    if isinstance(id_, str):
        return {**row, "_reason": id_}
    digest = digest_of(record.values) if source.key else None
    return {
        **row,
        "_slot": id_,
        "_id": id_,
        "_digest": digest,
        **dict(zip(names, record.values, strict=True)),
    }
