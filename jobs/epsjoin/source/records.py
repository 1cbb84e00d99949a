"""Typed records of a source file, whatever its format: bytes become fields, fields become typed values.

A record is never dropped: it has values, or it has a reason, or the contract says to leave it out. A file
that cannot be read to its end, or that lacks a column, is refused as a whole.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from epsjoin.contracts.conditions import Filter
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.source.bounds import MAX_LINE
from epsjoin.source.csv_ import read_csv
from epsjoin.source.json_ import read_json
from epsjoin.source.parquet import read_parquet
from epsjoin.source.reasons import refusal
from epsjoin.source.untyped import FoundColumns, UntypedRecord
from epsjoin.source.values import convert, from_text, from_value, text_of_key, type_field

BATCH_ROWS = 10_000
"""Number of records on which a contract's condition is evaluated at once."""

FORMATS = {
    "csv": (read_csv, from_text),
    "json": (read_json, from_value),
    "parquet": (read_parquet, from_value),
}
"""Functions by a contract's ``format``: one splits a file into fields, one types a field."""


_ENDINGS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}


def format_of(file: Path) -> str:
    """The format of an existing file, by the end of its name; formats of text may have ``.gz`` behind it.

    Raises
    ------
    ArgumentError
        It is no file, or its name has another end.
    """
    if not file.is_file():
        raise ArgumentError(f"{file} is no file")
    ending = Path(file.name.removesuffix(".gz")).suffix.lower()
    if ending not in _ENDINGS or (ending == ".parquet" and file.suffix == ".gz"):
        raise ArgumentError(f"{file}: a name must end in {', '.join(_ENDINGS)}, or in .gz after one of text")
    return _ENDINGS[ending]


class Record(NamedTuple):
    r"""One record of a file.

    Parameters
    ----------
    line : line (CSV, JSON) or row (Parquet) where it begins, 1 is the first.
    raw : the record as it stands in the file (Parquet: the contract's columns of it); bytes that are not
        UTF-8 as ``\xNN``.
    values : typed values in the contract's column order; ``None`` where there is a reason, and in a record
        that is left out.
    reason : why the record is refused; ``None`` where it can be used.
    is_left_out : whether the contract's condition leaves the record out; nothing else is asked of it.
    """

    line: int
    raw: str
    values: tuple[Any, ...] | None
    reason: str | None
    is_left_out: bool = False


Item = TypeVar("Item")
AnyRecord = TypeVar("AnyRecord", Record, UntypedRecord)


class Records:
    """The records of one file, to be iterated once; :func:`open_records` makes it.

    Attributes
    ----------
    found_columns : names of the columns found in the file so far, in the file's order.

    Raises
    ------
    DataRefusedError
        While iterating: the file is empty, broken, cannot be decoded to its end, or lacks a column.
    """

    def __init__(
        self,
        name: str,
        source: SourceContract,
        columns: FoundColumns,
        untyped: Iterator[UntypedRecord],
        from_field: Callable[..., Any],
        may_be_empty: bool,
    ) -> None:
        self.found_columns = columns.names
        self._name = name
        self._source = source
        self._untyped = untyped
        self._from_field = from_field
        self._may_be_empty = may_be_empty

    def __iter__(self) -> Iterator[Record]:
        records = to_records(self._source, self._untyped, self._from_field)
        file = self._name, self._source, self.found_columns
        return refuse_broken(records, lambda _: 1, *file, may_be_empty=self._may_be_empty)


def refuse_broken(
    items: Iterable[Item],
    rows_of: Callable[[Item], int],
    name: str,
    source: SourceContract,
    columns: list[str],
    *,
    may_be_empty: bool,
) -> Iterator[Item]:
    """Pass on what is read of a file, and refuse a file that cannot be decompressed or has no record.

    Parameters
    ----------
    items : records, or batches of them.
    rows_of : the number of records in an item.
    name, source : the file's name, and the contract.
    columns : names of the columns found in the file so far.
    may_be_empty : whether the file may have columns and no record; of JSON, whose columns are in its records,
        nothing at all.

    Raises
    ------
    DataRefusedError
        While iterating.
    """
    rows = 0
    try:
        for item in items:
            rows += rows_of(item)
            yield item
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataRefusedError(f"{name}: broken gzip after {rows:,} records: {error}") from error
    if rows == 0 and not (may_be_empty and (columns or source.format == "json")):
        what = "a header but no record" if columns else "nothing in it"
        raise DataRefusedError(f"{name}: the file has {what}")


def to_records(
    source: SourceContract, untyped: Iterator[UntypedRecord], from_field: Callable[..., Any]
) -> Iterator[Record]:
    """Type records by the contract: this is the definition of what becomes of a record.

    Parameters
    ----------
    source : the contract.
    untyped : the records.
    from_field : function that types one field; see ``FORMATS``.
    """
    taken_if = source.filter
    if taken_if is None:
        return (_to_record(source, record, from_field) for record in untyped)
    return _filter(source, taken_if, untyped, from_field)


def _to_record(source: SourceContract, untyped: UntypedRecord, from_field: Callable[..., Any]) -> Record:
    line, raw, fields, problem = untyped
    if fields is None:
        return Record(line, raw, None, problem)
    return Record(line, raw, *convert(source, fields, from_field))


def _filter(
    source: SourceContract,
    taken_if: Filter,
    records: Iterator[UntypedRecord],
    from_field: Callable[..., Any],
) -> Iterator[Record]:
    """The records, of which those that the contract's condition leaves out are marked.

    What the condition names must be of its column's type; of a record that is left out nothing else is
    looked at.
    """
    places = [(i, c) for i, c in enumerate(source.columns) if c.name in taken_if.columns]
    for batch in in_batches(records):
        named: dict[str, list[Any]] = {column.name: [] for _, column in places}
        reasons: list[str | None] = []
        for untyped in batch:
            reason = untyped.problem
            for place, column in places:
                value = None
                if untyped.fields is not None:
                    value, wrong = type_field(source, column, untyped.fields[place], from_field)
                    reason = reason or wrong
                named[column.name].append(value)
            reasons.append(reason)
        for untyped, reason, is_taken in zip(batch, reasons, taken_if.takes(named), strict=True):
            if reason is not None:
                yield Record(untyped.line, untyped.raw, None, reason)
            elif is_taken:
                yield _to_record(source, untyped, from_field)
            else:
                yield Record(untyped.line, untyped.raw, None, None, is_left_out=True)


def in_batches(records: Iterable[AnyRecord]) -> Iterator[list[AnyRecord]]:
    """Batches of records; those before an error are passed on before it is raised."""
    held: list[AnyRecord] = []
    size = 0
    try:
        for record in records:
            held.append(record)
            size += len(record.raw)
            if len(held) == BATCH_ROWS or size >= MAX_LINE:
                yield held
                held, size = [], 0
    except Exception:
        if held:
            yield held
        raise
    if held:
        yield held


def open_records(
    stream: IO[bytes], name: str, source: SourceContract, *, may_be_empty: bool = False
) -> Records:
    """Open a file by its contract's format; nothing is read before the records are iterated.

    Parameters
    ----------
    stream : the file's bytes, compressed if its name ends in .gz; read forward only (Parquet: seekable).
    name : the file's name, also for messages.
    source : the contract.
    may_be_empty : whether a file may have columns and no record, as parts of a snapshot may; of JSON, whose
        columns are in its records, nothing at all.
    """
    read, from_field = FORMATS[source.format]
    columns = FoundColumns(name)
    return Records(name, source, columns, read(stream, name, source, columns), from_field, may_be_empty)


def key_id(source: SourceContract, values: Sequence[Any]) -> int | str:
    """The id of a record, from the source's key columns, or the reason why it has none.

    A single integer key is the id itself. Any other key is hashed column by column, each value with its type
    and length, so that the keys ``1|11`` and ``11|1`` differ. The hash has 64 bits: among n keys, n^2 / 2^65
    pairs are expected to share an id; ``ingest`` finds them and stops. Texts of the same value have the same
    hash: a time is hashed as that of UTC, and -0 as 0.
    """
    names = [column.name for column in source.columns]
    keys = [values[names.index(name)] for name in source.key]
    for name, value in zip(source.key, keys, strict=True):
        if value is None:
            return refusal(f"{source.column(name).in_file}: missing key")
    if len(keys) == 1 and isinstance(keys[0], int) and not isinstance(keys[0], bool):
        return keys[0] if keys[0] != -1 else _refuse_noise(source)
    digest = hashlib.blake2b(digest_size=8)
    for value in keys:
        encoded = text_of_key(value)
        field = f"{type(value).__name__}:{len(encoded.encode())}:".encode() + encoded.encode()
        digest.update(field)
    return int.from_bytes(digest.digest(), "little", signed=True)


def _refuse_noise(source: SourceContract) -> str:
    return refusal(f"{source.column(source.key[0]).in_file}: -1 is kept for noise", -1)
