"""From the bytes of a source file to typed records, or to a reason why not.

A record is never dropped: it has values, or it has a reason. A file that cannot be read to its end, or
that lacks a column, is refused as a whole.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from typing import IO, Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from epsjoin.contract import Column, SourceContract
from epsjoin.errors import DataRefusedError

MAX_FIELD = 131_072
"""Characters that a CSV field may have: an unclosed quote must not swallow the rest of a file."""

INT64 = range(-(2**63), 2**63)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE
)


class Record(NamedTuple):
    r"""One record of a file.

    Parameters
    ----------
    line : line (CSV, JSON) or row (Parquet) where it begins, 1 is the first.
    raw : the record as it stands in the file; bytes that are not UTF-8 as ``\xNN``.
    values : typed values in the contract's column order; ``None`` where there is a reason.
    reason : what is wrong with it; ``None`` where it can be used.
    """

    line: int
    raw: str
    values: tuple[Any, ...] | None
    reason: str | None


class Reading:
    """A file being read: an iterator of records that also knows the columns it found.

    Parameters
    ----------
    stream : the file's bytes, decompressed or not; read forward only (Parquet: seekable).
    name : the file's name for messages.
    source : the contract.

    Raises
    ------
    DataRefusedError
        While iterating: the file is empty, broken, cannot be decoded to its end, or lacks a column.
    """

    def __init__(self, stream: IO[bytes], name: str, source: SourceContract) -> None:
        self.name = name
        self.source = source
        self.found_columns: list[str] = []
        self._stream = stream

    def __iter__(self) -> Iterator[Record]:
        read = {"csv": self._csv, "json": self._json, "parquet": self._parquet}[self.source.format]
        rows = 0
        try:
            for record in read():
                rows += 1
                yield record
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataRefusedError(f"{self.name}: broken gzip after {rows} records: {error}") from error
        if rows == 0:
            what = "a header but no record" if self.found_columns else "nothing in it"
            raise DataRefusedError(f"{self.name}: the file has {what}")

    def _decompressed(self) -> IO[bytes]:
        if self.name.endswith(".gz"):
            return cast("IO[bytes]", gzip.GzipFile(fileobj=self._stream, mode="rb"))
        return self._stream

    def _csv(self) -> Iterator[Record]:
        # utf-8-sig drops a byte-order mark; surrogateescape keeps bad bytes, so a bad row costs one row
        text = io.TextIOWrapper(self._decompressed(), "utf-8-sig", errors="surrogateescape", newline="")
        taken: list[str] = []

        def lines() -> Iterator[str]:
            for line in text:
                taken.append(line)
                yield line

        reader = csv.reader(lines(), strict=True)
        header = self._csv_header(reader)
        if header is None:
            return
        places = [header.index(column.name) for column in self.source.columns]
        taken.clear()
        line = reader.line_num
        while True:
            begin = line + 1
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if "field larger" in str(error) or "unexpected end" in str(error):
                    raise DataRefusedError(
                        f"{self.name}: line {begin}: a quoted field begins here and does not end"
                    ) from error
                fields, problem = [], f"not CSV: {error}"
            else:
                problem = (
                    ""
                    if len(fields) == len(header)
                    else f"{len(fields)} fields, the header has {len(header)}"
                )
            line = reader.line_num
            raw = "".join(taken)
            taken.clear()
            if not problem and not raw.isascii() and _has_bad_bytes(raw):
                problem = "not UTF-8"
            if problem:
                if fields == [] and not raw.strip():
                    continue  # a blank line is no record
                yield Record(begin, _printable(raw), None, problem)
                continue
            values, reason = _convert(self.source.columns, [fields[place] for place in places], _from_text)
            yield Record(begin, _printable(raw), values, reason)

    def _csv_header(self, reader: Iterator[list[str]]) -> list[str] | None:
        try:
            header = next(reader, None)
        except csv.Error as error:
            raise DataRefusedError(f"{self.name}: line 1: the header is not CSV: {error}") from error
        if header is None:
            return None
        self.found_columns = [name.encode("utf-8", "backslashreplace").decode() for name in header]
        self._require(header)
        doubled = [name for name in header if header.count(name) > 1 and name in self._wanted()]
        if doubled:
            raise DataRefusedError(f"{self.name}: column {doubled[0]!r} occurs more than once in the header")
        return header

    def _wanted(self) -> list[str]:
        return [column.name for column in self.source.columns]

    def _require(self, found: Sequence[str]) -> None:
        missing = [name for name in self._wanted() if name not in found]
        if missing:
            raise DataRefusedError(
                f"{self.name}: column {', '.join(map(repr, missing))} is missing; "
                f"the file has {', '.join(found)}"
            )

    def _json(self) -> Iterator[Record]:
        seen: dict[str, None] = {}
        for number, line in enumerate(self._decompressed(), 1):
            if not line.strip():
                continue
            raw = line.decode("utf-8-sig" if number == 1 else "utf-8", "backslashreplace").rstrip("\r\n")
            try:
                body = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except UnicodeDecodeError:
                yield Record(number, raw, None, "not UTF-8")
                continue
            except (json.JSONDecodeError, RecursionError) as error:
                yield Record(number, raw, None, f"not JSON: {error}")
                continue
            if not isinstance(body, dict):
                yield Record(number, raw, None, f"not a JSON object but {type(body).__name__}")
                continue
            seen.update(dict.fromkeys(body))
            values, reason = _convert(self.source.columns, [body.get(c) for c in self._wanted()], _from_value)
            yield Record(number, raw, values, reason)
        self.found_columns = list(seen)
        if seen:
            self._require([*seen, *(c.name for c in self.source.columns if not c.required)])

    def _parquet(self) -> Iterator[Record]:
        try:
            file = pq.ParquetFile(self._stream)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataRefusedError(f"{self.name}: not a Parquet file: {error}") from error
        self.found_columns = list(file.schema_arrow.names)
        self._require(self.found_columns)
        row = 0
        try:
            for batch in file.iter_batches(10_000):
                for body in batch.to_pylist():
                    row += 1
                    values, reason = _convert(
                        self.source.columns, [body[c] for c in self._wanted()], _from_value
                    )
                    yield Record(row, json.dumps(body, default=str, ensure_ascii=False), values, reason)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataRefusedError(f"{self.name}: broken after {row} rows: {error}") from error


def _has_bad_bytes(text: str) -> bool:
    return any("\udc80" <= sign <= "\udcff" for sign in text)


def _printable(raw: str) -> str:
    return raw.rstrip("\r\n").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _convert(
    columns: Sequence[Column], fields: Sequence[Any], convert: Callable[[Column, Any], Any]
) -> tuple[tuple[Any, ...] | None, str | None]:
    values: list[Any] = []
    for column, given in zip(columns, fields, strict=True):
        if given is None or given == "":
            if column.required:
                return None, f"{column.name}: missing"
            values.append(None)
            continue
        try:
            value = convert(column, given)
        except ValueError as error:
            return None, f"{column.name}: {error}: {str(given)[:80]!r}"
        if column.type == "number" and not math.isfinite(value):
            return None, f"{column.name}: not finite: {str(given)[:80]!r}"
        if column.minimum is not None and value < column.minimum:
            return None, f"{column.name}: {value} is below {column.minimum}"
        if column.maximum is not None and value > column.maximum:
            return None, f"{column.name}: {value} is above {column.maximum}"
        values.append(value)
    return tuple(values), None


def _from_text(column: Column, text: str) -> Any:
    if column.type == "string":
        return text
    text = text.strip()
    if column.type == "number":
        if not _NUMBER.fullmatch(text):
            raise ValueError("not a number")
        return float(text)
    if column.type == "integer":
        if not _INTEGER.fullmatch(text) or int(text) not in INT64:
            raise ValueError("not a 64-bit integer")
        return int(text)
    if column.type == "boolean":
        if text.lower() not in ("true", "false"):
            raise ValueError("not true or false")
        return text.lower() == "true"
    return _from_iso(column, text)


def _from_value(column: Column, value: Any) -> Any:
    if column.type == "string" and isinstance(value, str):
        return value
    if column.type == "number" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if column.type == "integer" and isinstance(value, int) and not isinstance(value, bool) and value in INT64:
        return value
    if column.type == "boolean" and isinstance(value, bool):
        return value
    if column.type in ("date", "timestamp"):
        if isinstance(value, str):
            return _from_iso(column, value)
        if isinstance(value, datetime) and column.type == "timestamp":
            return value
        if isinstance(value, date) and not isinstance(value, datetime) and column.type == "date":
            return value
    raise ValueError(f"not of type {column.type}")


def _from_iso(column: Column, text: str) -> date | datetime:
    try:
        return date.fromisoformat(text) if column.type == "date" else datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"not an ISO {column.type}") from error


def key_id(source: SourceContract, values: Sequence[Any]) -> int | str:
    """The id of a record with this source's key, or the reason why it has none.

    A single integer key is the id as it is. Any other key is hashed column by column, each with its
    type and length, so that the keys ``1|11`` and ``11|1`` differ. 64 bits: of n keys, n^2 / 2^65 pairs
    are expected to share an id; ``ingest`` finds them and stops.
    """
    names = [column.name for column in source.columns]
    keys = [values[names.index(name)] for name in source.key]
    for name, value in zip(source.key, keys, strict=True):
        if value is None:
            return f"{name}: missing key"
    if len(keys) == 1 and isinstance(keys[0], int) and not isinstance(keys[0], bool):
        return keys[0] if keys[0] != -1 else f"{source.key[0]}: -1 is kept for noise: '-1'"
    digest = hashlib.blake2b(digest_size=8)
    for value in keys:
        encoded = value.isoformat() if isinstance(value, (date, datetime)) else str(value)
        field = f"{type(value).__name__}:{len(encoded.encode())}:".encode() + encoded.encode()
        digest.update(field)
    return int.from_bytes(digest.digest(), "little", signed=True)


def digest_of(values: Sequence[Any]) -> bytes:
    """128 bits that tell two rows apart; equal for equal values of the contract's columns."""
    return hashlib.blake2b(repr(values).encode(), digest_size=16).digest()
