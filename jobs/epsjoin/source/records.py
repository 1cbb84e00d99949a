"""Typed records of a source file, whatever its format: bytes become fields, fields become typed values.

A record is never dropped: it has values, or it has a reason. A file that cannot be read to its end, or
that lacks a column, is refused as a whole.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from typing import IO, Any, NamedTuple

from epsjoin.contracts.odcs import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source.csv_ import read_csv
from epsjoin.source.json_ import read_json
from epsjoin.source.parquet import read_parquet
from epsjoin.source.untyped import FoundColumns, UntypedRecord
from epsjoin.source.values import convert, from_text, from_value, refusal

_FORMATS = {
    "csv": (read_csv, from_text),
    "json": (read_json, from_value),
    "parquet": (read_parquet, from_value),
}
"""Functions by a contract's ``format``: one splits a file into fields, one types a field."""


class Record(NamedTuple):
    r"""One record of a file.

    Parameters
    ----------
    line : line (CSV, JSON) or row (Parquet) where it begins, 1 is the first.
    raw : the record as it stands in the file (Parquet: the contract's columns of it); bytes that are not
        UTF-8 as ``\xNN``.
    values : typed values in the contract's column order; ``None`` where there is a reason.
    reason : why the record is refused; ``None`` where it can be used.
    """

    line: int
    raw: str
    values: tuple[Any, ...] | None
    reason: str | None


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
    ) -> None:
        self.found_columns = columns.names
        self._name = name
        self._source = source
        self._untyped = untyped
        self._from_field = from_field

    def __iter__(self) -> Iterator[Record]:
        rows = 0
        try:
            for line, raw, fields, problem in self._untyped:
                rows += 1
                if fields is None:
                    yield Record(line, raw, None, problem)
                else:
                    yield Record(line, raw, *convert(self._source, fields, self._from_field))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataRefusedError(f"{self._name}: broken gzip after {rows} records: {error}") from error
        if rows == 0:
            what = "a header but no record" if self.found_columns else "nothing in it"
            raise DataRefusedError(f"{self._name}: the file has {what}")


def open_records(stream: IO[bytes], name: str, source: SourceContract) -> Records:
    """Open a file by its contract's format; nothing is read before the records are iterated.

    Parameters
    ----------
    stream : the file's bytes, compressed if its name ends in .gz; read forward only (Parquet: seekable).
    name : the file's name, also for messages.
    source : the contract.
    """
    read, from_field = _FORMATS[source.format]
    columns = FoundColumns(name)
    return Records(name, source, columns, read(stream, name, source, columns), from_field)


def key_id(source: SourceContract, values: Sequence[Any]) -> int | str:
    """The id of a record, from the source's key columns, or the reason why it has none.

    A single integer key is the id itself. Any other key is hashed column by column, each value with its type
    and length, so that the keys ``1|11`` and ``11|1`` differ. The hash has 64 bits: among n keys, n^2 / 2^65
    pairs are expected to share an id; ``ingest`` finds them and stops.
    """
    names = [column.name for column in source.columns]
    keys = [values[names.index(name)] for name in source.key]
    for name, value in zip(source.key, keys, strict=True):
        if value is None:
            return refusal(f"{name}: missing key")
    if len(keys) == 1 and isinstance(keys[0], int) and not isinstance(keys[0], bool):
        return keys[0] if keys[0] != -1 else refusal(f"{source.key[0]}: -1 is kept for noise", -1)
    digest = hashlib.blake2b(digest_size=8)
    for value in keys:
        encoded = value.isoformat() if isinstance(value, (date, datetime)) else str(value)
        field = f"{type(value).__name__}:{len(encoded.encode())}:".encode() + encoded.encode()
        digest.update(field)
    return int.from_bytes(digest.digest(), "little", signed=True)


def digest_of(values: Sequence[Any]) -> bytes:
    """A 128-bit digest of a row's values in the contract's columns; equal values have equal digests."""
    return hashlib.blake2b(repr(values).encode(), digest_size=16).digest()
