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
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import IO, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from epsjoin.contract import Column, SourceContract
from epsjoin.errors import DataRefusedError

MAX_FIELD = 131_072
"""Characters that a CSV field may have: an unclosed quote must not swallow the rest of a file."""

MAX_LINE = 16 << 20
"""Bytes that a line may have, and characters of a record, for both are held in memory; a file without line
ends holds no records."""

MAX_NAMES = 1 << 20
"""Characters that the names of a file's columns may have together, for all are kept, shown and stored."""

MAX_EXPANSION = 500
"""Bytes that a byte of a gzip or Parquet file may become, besides ``FREE_EXPANSION`` in all: of text it
becomes 3 to 20, of a bomb a thousand."""
FREE_EXPANSION = 256 << 20

VALUE = r"(?s): ['\"].*"
"""The part of a reason that is dropped to count by its kind; Python and Java read this pattern alike."""

BUFFER = 1 << 20
INT64 = range(-(2**63), 2**63)
EXACT = range(-(2**53), 2**53 + 1)
"""Whole numbers that all are float64 as well; of larger ones two different ones may become equal."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,100}")  # int() refuses thousands of digits with a sentence of its own
_NOT_PYTHON = (ValueError, OverflowError, KeyError)
"""What pyarrow raises for a value that Python has no object for; KeyError: an unknown time zone."""

_NUMBER = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE
)


def refusal(kind: str, value: object = None) -> str:
    """The reason why a record is refused: its kind, then the value in quotes.

    Kinds are fixed sentences about the columns of a contract, so there are few of them, however many
    records are bad; whatever differs from record to record belongs into the value. No column's name and
    no sentence has a quote after a colon, so the kind can be had back from the reason.
    """
    return kind if value is None else f"{kind}: {str(value)[:80]!r}"


def kind_of(reason: str) -> str:
    """A reason without the value that caused it, to count by."""
    return re.sub(VALUE, "", reason)


class Record(NamedTuple):
    r"""One record of a file.

    Parameters
    ----------
    line : line (CSV, JSON) or row (Parquet) where it begins, 1 is the first.
    raw : the record as it stands in the file (Parquet: the contract's columns of it); bytes that are not
        UTF-8 as ``\xNN``.
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

    def _csv(self) -> Iterator[Record]:
        # utf-8-sig drops a byte-order mark; surrogateescape keeps bad bytes, so a bad row costs one row
        lines_ = open_lines(self._stream, self.name)
        text = io.TextIOWrapper(lines_, "utf-8-sig", errors="surrogateescape", newline="")
        csv.field_size_limit(MAX_FIELD)
        taken: list[str] = []

        def lines() -> Iterator[str]:
            size = 0
            for number, line in enumerate(text, 1):
                size = len(line) if not taken else size + len(line)
                taken.append(line)
                if size > MAX_LINE and len(taken) > 1:
                    # every field and line may be short: quoted fields with breaks, one after the other
                    begin = number - len(taken) + 1
                    raise DataRefusedError(
                        f"{self.name}: line {begin}: the record that begins here is longer than "
                        f"{MAX_LINE:,} characters"
                    )
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
                if fault := _fatal_csv(error):
                    raise DataRefusedError(f"{self.name}: line {begin}: {fault}") from error
                fields, problem = [], refusal("not CSV: text after the end of a quoted field")
            else:
                problem = ""
                if len(fields) != len(header):
                    counts = f"{len(fields)}, not {len(header)}"
                    problem = refusal("not as many fields as the header has", counts)
            line = reader.line_num
            raw = "".join(taken)
            taken.clear()
            if not problem and not raw.isascii() and _has_bad_bytes(raw):
                problem = refusal("not UTF-8")
            if problem:
                if fields == [] and not raw.strip():
                    continue  # a blank line is no record
                yield Record(begin, _printable(raw), None, problem)
                continue
            values, reason = _convert(self.source, [fields[place] for place in places], _from_text)
            yield Record(begin, _printable(raw), values, reason)

    def _csv_header(self, reader: Iterator[list[str]]) -> list[str] | None:
        try:
            header = next(reader, None)
        except csv.Error as error:
            fault = _fatal_csv(error) or f"the header is not CSV: {error}"
            raise DataRefusedError(f"{self.name}: line 1: {fault}") from error
        if header is None:
            return None
        self._find(_printable(name) for name in header)
        self._require(self._wanted())
        return self.found_columns

    def _find(self, names: Iterable[str]) -> None:
        """Keep further names of columns."""
        self.found_columns += names
        if sum(map(len, self.found_columns)) + len(self.found_columns) > MAX_NAMES:
            raise DataRefusedError(
                f"{self.name}: the names of its columns have more than {MAX_NAMES:,} characters together"
            )

    def _wanted(self) -> list[str]:
        return [column.name for column in self.source.columns]

    def _require(self, wanted: Sequence[str]) -> None:
        missing = [name for name in wanted if name not in self.found_columns]
        if missing:
            raise DataRefusedError(
                f"{self.name}: column {', '.join(map(repr, missing))} is missing; "
                f"the file has {', '.join(self.found_columns)}"
            )
        for name in wanted:
            if self.found_columns.count(name) > 1:
                raise DataRefusedError(f"{self.name}: column {name!r} occurs more than once in the header")

    def _json(self) -> Iterator[Record]:
        seen: set[str] = set()
        for number, line in enumerate(open_lines(self._stream, self.name), 1):
            if not line.strip():
                continue
            encoding = "utf-8-sig" if number == 1 else "utf-8"
            raw = line.decode(encoding, "backslashreplace").rstrip("\r\n")
            body, problem = _json_object(line, encoding)
            if body is None:
                yield Record(number, raw, None, problem)
                continue
            if new := [name for name in body if name not in seen]:
                self._find(name.encode("utf-8", "backslashreplace").decode() for name in new)
                seen.update(new)
            values, reason = _convert(self.source, [body.get(c) for c in self._wanted()], _from_value)
            yield Record(number, raw, values, reason)
        if seen:  # a record may leave out what is not required, and so may all of them
            self._require([column.name for column in self.source.columns if column.required])

    def _parquet(self) -> Iterator[Record]:
        try:
            size = self._stream.seek(0, io.SEEK_END)
            file = pq.ParquetFile(self._stream)
            schema, footer = file.schema_arrow, file.metadata
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DataRefusedError(f"{self.name}: not a Parquet file: {error}") from error
        self._find(schema.names)
        wanted = self._wanted()
        self._require(wanted)
        decoded = parquet_bytes(footer, schema, wanted)
        check_expansion(self.name, size, decoded)
        # a text that is stored once may stand in every row: it is decoded when its rows' lengths are known
        texts = [name for name in wanted if _is_text(schema.field(name).type)]
        row = 0
        try:
            file = pq.ParquetFile(self._stream, metadata=footer, read_dictionary=texts)
            for batch in file.iter_batches(10_000, columns=wanted):
                lengths = _text_lengths(batch)
                decoded += int(lengths.sum())
                check_expansion(self.name, size, decoded)
                for part in self._short(batch, lengths, row):
                    for body, problem in _parquet_rows(part.select(wanted)):
                        row += 1
                        raw = json.dumps(body, default=str, ensure_ascii=False)
                        if problem is not None:
                            yield Record(row, raw, None, problem)
                            continue
                        values, reason = _convert(self.source, list(body.values()), _from_value)
                        yield Record(row, raw, values, reason)
        except (pa.ArrowException, OSError) as error:
            raise DataRefusedError(f"{self.name}: broken after {row} rows: {error}") from error

    def _short(self, batch: pa.RecordBatch, lengths: NDArray[np.int64], row: int) -> Iterator[pa.RecordBatch]:
        """The batch cut into pieces whose texts are short enough to be held, decoded."""
        if len(lengths) and lengths.max() > MAX_LINE:
            raise DataRefusedError(
                f"{self.name}: row {row + int(lengths.argmax()) + 1}: its texts are longer than "
                f"{MAX_LINE:,} bytes"
            )
        begin, total = 0, np.cumsum(lengths)
        while begin < batch.num_rows:
            before = int(total[begin - 1]) if begin else 0
            end = int(np.searchsorted(total, before + MAX_LINE, "right"))
            yield _decoded(batch.slice(begin, end - begin))
            begin = end


def open_lines(stream: IO[bytes], name: str) -> IO[bytes]:
    """The bytes of a file of lines, decompressed if its name ends in .gz, their bounds watched.

    Parameters
    ----------
    stream : what is stored; read forward only.
    name : of the file.

    Raises
    ------
    DataRefusedError
        While it is read: ``MAX_LINE`` or ``MAX_EXPANSION`` is exceeded.
    """
    # neither a raw stream nor GzipFile is quick at giving lines; a BufferedReader over it is
    stored = _Counted(stream)
    opened: Any = io.BufferedReader(stored, BUFFER)
    if name.endswith(".gz"):
        opened = gzip.GzipFile(fileobj=opened)
    bounded = _Bounded(opened, name, stored if name.endswith(".gz") else None)
    return cast("IO[bytes]", io.BufferedReader(bounded, BUFFER))


def check_expansion(name: str, size: int, decoded: int) -> None:
    """Refuse a Parquet file of ``size`` bytes that become ``decoded`` bytes.

    Raises
    ------
    DataRefusedError
        ``MAX_EXPANSION`` is exceeded.
    """
    if decoded > FREE_EXPANSION + MAX_EXPANSION * size:
        raise DataRefusedError(
            f"{name}: {size:,} bytes become {decoded:,} or more, over {MAX_EXPANSION} times as many; "
            "if it is what it should be, give it in smaller files"
        )


class _Counted(io.RawIOBase):
    """A stream that knows how many bytes were read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.n_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self.n_bytes += len(data)
        return len(data)


class _Bounded(_Counted):
    """A stream of lines of bounded length, that does not become much longer than what is stored of it.

    Parameters
    ----------
    stream, name : of the file.
    stored : its compressed bytes; None: it is not compressed.

    Raises
    ------
    DataRefusedError
        While it is read: ``MAX_LINE`` or ``MAX_EXPANSION`` is exceeded.
    """

    def __init__(self, stream: IO[bytes], name: str, stored: _Counted | None) -> None:
        super().__init__(stream)
        self._name = name
        self._stored = stored
        self._line = 0

    def readinto(self, buffer: Any) -> int:
        n = super().readinto(buffer)
        data = bytes(buffer[:n])
        ends = [each for each in (data.find(b"\n"), data.find(b"\r")) if each >= 0]
        if self._line + (min(ends) if ends else n) > MAX_LINE:
            raise DataRefusedError(
                f"{self._name}: a line is longer than {MAX_LINE:,} bytes, near byte {self.n_bytes:,}; "
                "records stand in lines of their own"
            )
        self._line = n - 1 - max(data.rfind(b"\n"), data.rfind(b"\r")) if ends else self._line + n
        if self._stored and self.n_bytes > FREE_EXPANSION + MAX_EXPANSION * self._stored.n_bytes:
            raise DataRefusedError(
                f"{self._name}: {self._stored.n_bytes:,} bytes became {self.n_bytes:,}, over {MAX_EXPANSION} "
                "times as many; if it is what it should be, give it uncompressed"
            )
        return n


def _fatal_csv(error: csv.Error) -> str | None:
    """What is wrong from here on, where the reader cannot know where the next record begins."""
    if "field larger" in str(error):
        return f"a field longer than {MAX_FIELD:,} characters begins here; is a quote missing?"
    return "a quoted field begins here and does not end" if "unexpected end" in str(error) else None


def _json_object(line: bytes, encoding: str) -> tuple[dict[str, Any] | None, str]:
    try:
        body = json.loads(line.decode(encoding).rstrip("\r\n"))
    except UnicodeDecodeError:
        return None, refusal("not UTF-8")
    except json.JSONDecodeError as error:
        return None, refusal("not JSON", f"{error.msg} at column {error.colno}")
    except RecursionError:
        return None, refusal("not JSON", "nested too deep")
    except ValueError:  # int() refuses thousands of digits
        return None, refusal("not JSON", "a number has too many digits")
    if not isinstance(body, dict):
        return None, refusal("not a JSON object", type(body).__name__)
    return body, ""


def parquet_bytes(footer: pq.FileMetaData, schema: pa.Schema, columns: Iterable[str]) -> int:
    """Bytes that columns of a Parquet file have when they are decoded, as its footer says, or more.

    A run of equal values takes a few bytes in the file, however long it is; hence the values are counted.
    Texts that a dictionary holds once are counted once.
    """
    widths = dict.fromkeys(columns, 8)
    for name in widths:
        kind = schema.field(name).type
        if pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind):
            widths[name] = max(8, kind.byte_width)
    total = 0
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for place in range(row_group.num_columns):
            chunk = row_group.column(place)
            width = widths.get(chunk.path_in_schema.partition(".")[0], 0)
            total += max(chunk.num_values * width, chunk.total_uncompressed_size) if width else 0
    return total


def _is_text(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_kind(kind) for is_kind in kinds)


def _is_text_once(kind: pa.DataType) -> bool:
    return pa.types.is_dictionary(kind) and _is_text(kind.value_type)


def _text_lengths(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Bytes of each row's texts, as if each stood for itself."""
    lengths = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if _is_text_once(column.type):
            of_rows = pc.take(pc.binary_length(column.dictionary), column.indices)
            lengths += pc.fill_null(of_rows, 0).to_numpy(zero_copy_only=False)
    return lengths


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        column.dictionary_decode() if _is_text_once(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _parquet_rows(batch: pa.RecordBatch) -> Iterator[tuple[dict[str, Any], str | None]]:
    """The rows of a batch, each with the reason why a value of it cannot be had in Python.

    One such value makes ``to_pylist`` raise for all rows; those without one must not pay for it.
    """
    try:
        bodies = batch.to_pylist()
    except _NOT_PYTHON:
        for row in range(batch.num_rows):
            yield _parquet_row(batch.slice(row, 1))
    else:
        for body in bodies:
            yield body, None


def _parquet_row(row: pa.RecordBatch) -> tuple[dict[str, Any], str | None]:
    body: dict[str, Any] = {}
    problem: str | None = None
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            body[name] = column[0].as_py()
        except _NOT_PYTHON as error:
            body[name] = _shown(column)
            # any other sentence is pyarrow's, and may hold the value
            known = isinstance(error, (UnicodeError, OverflowError))
            kind = _kind_of_error(error) if known else "cannot be read"
            problem = problem or refusal(f"{name}: {kind}", body[name])
    return body, problem


def _shown(column: pa.Array) -> str:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()  # or the text would be that of the whole dictionary
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        data: bytes = column.cast(pa.large_binary())[0].as_py()
        return data.decode("utf-8", "backslashreplace")
    return str(column.to_string(skip_new_lines=True))


def _kind_of_error(error: Exception) -> str:
    if isinstance(error, UnicodeError):
        return "not UTF-8"
    return "out of range" if isinstance(error, OverflowError) else str(error)


def _has_bad_bytes(text: str) -> bool:
    return any("\udc80" <= sign <= "\udcff" for sign in text)


def _printable(raw: str) -> str:
    return raw.rstrip("\r\n").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _convert(
    source: SourceContract, fields: Sequence[Any], convert: Callable[[Column, Any], Any]
) -> tuple[tuple[Any, ...] | None, str | None]:
    values: list[Any] = []
    for column, given in zip(source.columns, fields, strict=True):
        if given is None or given == "":
            if column.required:
                return None, refusal(f"{column.name}: missing")
            values.append(None)
            continue
        try:
            value = convert(column, given)
        except (ValueError, OverflowError) as error:
            return None, refusal(f"{column.name}: {_kind_of_error(error)}", given)
        if column.type == "number" and not math.isfinite(value):
            return None, refusal(f"{column.name}: not finite", given)
        if column.type == "integer" and column.name in source.coordinates and value not in EXACT:
            return None, refusal(f"{column.name}: beyond 2**53, where float64 leaves numbers out", given)
        if column.minimum is not None and value < column.minimum:
            return None, refusal(f"{column.name}: below {_limit(column.minimum)}", given)
        if column.maximum is not None and value > column.maximum:
            return None, refusal(f"{column.name}: above {_limit(column.maximum)}", given)
        if column.values and value not in column.values:
            return None, refusal(f"{column.name}: not one of {', '.join(column.values)}", given)
        values.append(value)
    return tuple(values), None


def _limit(number: float) -> str:
    return str(number).removesuffix(".0")


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
        value.encode()  # JSON can write half a surrogate pair, which no file can hold
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
        if isinstance(value, datetime) and column.type == "timestamp" and value == value:  # not NaT
            return _in_range(value)
        if isinstance(value, date) and not isinstance(value, datetime) and column.type == "date":
            return value
    raise ValueError(f"not of type {column.type}")


def _from_iso(column: Column, text: str) -> date | datetime:
    try:
        value = date.fromisoformat(text) if column.type == "date" else datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"not an ISO {column.type}") from error
    return _in_range(value) if isinstance(value, datetime) else value


def _in_range(value: datetime) -> datetime:
    """The value, if it is within the years 1 to 9999 in UTC too, as the tables hold it."""
    if value.tzinfo is not None:
        value.astimezone(UTC)
    return value


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
    """128 bits that tell two rows apart; equal for equal values of the contract's columns."""
    return hashlib.blake2b(repr(values).encode(), digest_size=16).digest()
