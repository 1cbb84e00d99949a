"""Snapshots as columns of Arrow, from files or tables, whose rows can be asked for by place."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from epsjoin.contracts.odcs import Column
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.frames.kinds import without_views
from epsjoin.kernels.arrays import Ints
from epsjoin.source.batches import open_batches
from epsjoin.source.csv_ import read_csv
from epsjoin.source.guess_delimiter import choose_delimiter
from epsjoin.source.json_ import read_json
from epsjoin.source.records import format_of
from epsjoin.source.untyped import OTHER_ENCODING, FoundColumns

BATCH_ROWS = 1 << 15
"""Number of rows of a file without blocks of its own that are read at a time."""

_REMEDY = "mend the record or take it out, for only whole files are compared"


_Column = TypeVar("_Column", pa.Array, pa.ChunkedArray)


class Snapshot:
    """One of the two snapshots: its columns, and its rows, which can be read more than once.

    Parameters
    ----------
    label : its name in messages.
    schema : names and types of its columns; text where the file has no types. Views become texts and bytes,
        as Arrow takes no rows of views.
    read : reads the rows from the beginning.
    room : number of bytes of rows that may be kept, so that they need not be read again.

    Raises
    ------
    DataRefusedError
        A column has a name that Arrow does not keep.
    """

    def __init__(
        self, label: str, schema: pa.Schema, read: Callable[[], Iterator[pa.RecordBatch]], room: int
    ) -> None:
        for name in schema.names:
            if "\0" in name:
                raise DataRefusedError(
                    f"{label}: the name of the column {name!r} has a NUL, at which Arrow ends it; give it "
                    f"another one, or of a file of text: {OTHER_ENCODING}"
                )
        self.label = label
        kinds = [without_views(field.type, pa.string(), pa.binary()) for field in schema]
        self.schema = pa.schema([field.with_type(kind) for field, kind in zip(schema, kinds, strict=True)])
        self._has_views = self.schema != schema
        self._read, self._room = read, room
        self._kept: list[pa.RecordBatch] | None = None
        self._begun: Iterator[pa.RecordBatch] | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in their order."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[pa.RecordBatch] | None = []
        n_bytes = 0
        rows, self._begun = self._begun or self._read(), None
        for given in rows:
            batch = given.cast(self.schema) if self._has_views else given
            n_bytes += batch.nbytes
            if n_bytes > self._room:
                kept = None
            if kept is not None:
                kept.append(batch)
            yield batch
        self._kept = kept

    def peek(self) -> pa.RecordBatch | None:
        """The first rows, which are read once all the same."""
        rows = self.batches()
        first = next(rows, None)
        self._begun = itertools.chain([] if first is None else [first], rows)
        return first

    def take(self, places: Ints, schema: pa.Schema) -> pa.Table:
        """The rows at these places, in any order, as ``schema`` has them."""
        order = np.argsort(places, kind="stable")
        wanted, taken, first = places[order], list[pa.RecordBatch](), 0
        for batch in self.batches() if len(places) else ():
            begin, end = np.searchsorted(wanted, (first, first + len(batch)))
            if begin < end:
                taken.append(conform(batch.take(pa.array(wanted[begin:end] - first)), schema, self.label))
            first += len(batch)
        rows = pa.Table.from_batches(taken, schema)
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return rows.take(pa.array(back)) if len(order) else rows

    def texts(self, name: str) -> Iterator[pa.Array]:
        """The distinct values of a column of texts, batch by batch."""
        for batch in self.batches():
            yield to_texts(batch[name]).drop_null().unique()


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds texts, themselves or by their numbers in a dictionary."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain))


def to_texts(column: _Column) -> _Column:
    """Give a column of texts as it is; other values become the texts as which they are compared."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return to_texts(column.cast(kind.value_type))
    # as they are, since more than 2 GB of texts are no plain ones
    return column if pa.types.is_large_string(kind) else column.cast(pa.string())


def conform(batch: pa.RecordBatch, schema: pa.Schema, label: str) -> pa.RecordBatch:
    """The columns of a schema, in its types.

    Raises
    ------
    DataRefusedError
        A value does not fit the type that the column has in both snapshots.
    """
    columns = []
    for field in schema:
        try:
            columns.append(batch[field.name].cast(field.type))
        except pa.ArrowException as error:
            raise DataRefusedError(
                f"{label}: column {field.name!r} cannot be compared as {field.type}, as both snapshots must "
                f"be ({error}); make it of one type in both, such as decimals or texts"
            ) from error
    return pa.record_batch(columns, schema=schema)


def is_csv(source: Any) -> bool:
    """Whether a snapshot is the path of a CSV file; refuses a path as :func:`open_snapshot` does."""
    return isinstance(source, (str, Path)) and format_of(Path(source)) == "csv"


def open_snapshot(source: Any, label: str, room: int, delimiter: str | None = None) -> Snapshot:
    """Open a path, a table or a batch.

    Parameters
    ----------
    source : path of a CSV or JSON lines file, also with gzip, or of a Parquet file; an Arrow table or batch.
    label : the name of a table in messages; a file goes by its path.
    room : see :class:`Snapshot`.
    delimiter : what separates the fields, if it is CSV; by default it is guessed where it is certain.

    Raises
    ------
    ArgumentError
        It is none of these, or its name has another end.
    DataRefusedError
        The file cannot be read, is broken, or has a column's name twice.
    """
    if isinstance(source, pa.RecordBatch):
        source = pa.table(source)
    if isinstance(source, pa.Table):
        table: pa.Table = source
        return _checked(Snapshot(label, table.schema, lambda: iter(table.to_batches()), 0))
    if not isinstance(source, (str, Path)):
        raise ArgumentError(f"{label} must be a path or an Arrow table, not {type(source).__name__}")
    path = Path(source)
    format_ = format_of(path)
    try:
        if format_ == "csv":
            return _checked(_open_csv(path, room, choose_delimiter(path, format_, delimiter)))
        return _checked((_open_json if format_ == "json" else _open_parquet)(path, room))
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise DataRefusedError(f"{path}: cannot be read: {error}") from error


def _checked(snapshot: Snapshot) -> Snapshot:
    names = snapshot.schema.names
    if not names:
        raise DataRefusedError(f"{snapshot.label}: the file has nothing in it")
    for name in names:
        if names.count(name) > 1:
            raise DataRefusedError(f"{snapshot.label}: column {name!r} occurs more than once")
    return snapshot


def _open_csv(path: Path, room: int, delimiter: str) -> Snapshot:
    found = FoundColumns(str(path))
    with path.open("rb") as stream:
        next(read_csv(stream, str(path), replace(_contract("csv", ()), delimiter=delimiter), found), None)
    source = replace(_contract("csv", found.names), delimiter=delimiter)

    def read() -> Iterator[pa.RecordBatch]:
        with path.open("rb") as stream:
            for batch in open_batches(stream, str(path), source, may_be_empty=True):
                if batch.refused:
                    record = batch.refused[0]
                    raise DataRefusedError(f"{path}: line {record.line}: {record.reason}; {_REMEDY}")
                yield from batch.values.combine_chunks().to_batches()

    return Snapshot(str(path), _texts(found.names), read, room)


def _open_json(path: Path, room: int) -> Snapshot:
    found = FoundColumns(str(path))
    with path.open("rb") as stream:
        for _ in read_json(stream, str(path), _contract("json", ()), found):
            pass
    source, schema = _contract("json", found.names), _texts(found.names)

    def to_batch(rows: list[Sequence[Any]]) -> pa.RecordBatch:
        columns = zip(*rows, strict=True)
        try:
            return pa.record_batch(
                [pa.array(map(_to_text, column), pa.string()) for column in columns], schema=schema
            )
        except UnicodeEncodeError as error:
            raise DataRefusedError(
                f"{path}: a text has {error.object[error.start]!a}, half of a character; {_REMEDY}"
            ) from error

    def read() -> Iterator[pa.RecordBatch]:
        rows: list[Sequence[Any]] = []
        with path.open("rb") as stream:
            for record in read_json(stream, str(path), source, FoundColumns(str(path))):
                if record.fields is None:
                    raise DataRefusedError(f"{path}: line {record.line}: {record.problem}; {_REMEDY}")
                rows.append(record.fields)
                if len(rows) == BATCH_ROWS:
                    yield to_batch(rows)
                    rows = []
        if rows:
            yield to_batch(rows)

    return Snapshot(str(path), schema, read, room)


def _to_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _open_parquet(path: Path, room: int) -> Snapshot:
    def read() -> Iterator[pa.RecordBatch]:
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(BATCH_ROWS):
                    batch.validate(full=True)  # checks that texts are UTF-8, as nothing else does
                    yield batch
        except (OSError, pa.ArrowException) as error:
            raise DataRefusedError(f"{path}: cannot be read: {error}") from error

    return Snapshot(str(path), pq.read_schema(path), read, room)


def _contract(format_: str, names: Sequence[str]) -> SourceContract:
    """A contract that takes every record, as texts."""
    return SourceContract("", "", format_, tuple(Column(name, "string") for name in names), ())


def _texts(names: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in names])
