"""From the bytes of a source file to typed records, or to a reason why not.

A record is never dropped: it has values, or it has a reason. A file that cannot be read to its end, or
that lacks a column, is refused as a whole.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from epsjoin.contracts.odcs import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source import bounds
from epsjoin.source.bounds import check_expansion, is_text, is_text_once, open_lines, parquet_bytes
from epsjoin.source.values import convert, from_text, from_value, kind_of_error, refusal

_NOT_PYTHON = (ValueError, OverflowError, KeyError)
"""What pyarrow raises for a value that Python has no object for; KeyError: an unknown time zone."""


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
        csv.field_size_limit(bounds.MAX_FIELD)
        taken: list[str] = []

        def lines() -> Iterator[str]:
            size = 0
            for number, line in enumerate(text, 1):
                size = len(line) if not taken else size + len(line)
                taken.append(line)
                if size > bounds.MAX_LINE and len(taken) > 1:
                    # every field and line may be short: quoted fields with breaks, one after the other
                    begin = number - len(taken) + 1
                    raise DataRefusedError(
                        f"{self.name}: line {begin}: the record that begins here is longer than "
                        f"{bounds.MAX_LINE:,} characters"
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
            values, reason = convert(self.source, [fields[place] for place in places], from_text)
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
        if sum(map(len, self.found_columns)) + len(self.found_columns) > bounds.MAX_NAMES:
            raise DataRefusedError(
                f"{self.name}: the names of its columns have more than {bounds.MAX_NAMES:,} characters "
                "together"
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
            values, reason = convert(self.source, [body.get(c) for c in self._wanted()], from_value)
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
        texts = [name for name in wanted if is_text(schema.field(name).type)]
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
                        values, reason = convert(self.source, list(body.values()), from_value)
                        yield Record(row, raw, values, reason)
        except (pa.ArrowException, OSError) as error:
            raise DataRefusedError(f"{self.name}: broken after {row} rows: {error}") from error

    def _short(self, batch: pa.RecordBatch, lengths: NDArray[np.int64], row: int) -> Iterator[pa.RecordBatch]:
        """The batch cut into pieces whose texts are short enough to be held, decoded."""
        if len(lengths) and lengths.max() > bounds.MAX_LINE:
            raise DataRefusedError(
                f"{self.name}: row {row + int(lengths.argmax()) + 1}: its texts are longer than "
                f"{bounds.MAX_LINE:,} bytes"
            )
        begin, total = 0, np.cumsum(lengths)
        while begin < batch.num_rows:
            before = int(total[begin - 1]) if begin else 0
            end = int(np.searchsorted(total, before + bounds.MAX_LINE, "right"))
            yield _decoded(batch.slice(begin, end - begin))
            begin = end


def _fatal_csv(error: csv.Error) -> str | None:
    """What is wrong from here on, where the reader cannot know where the next record begins."""
    if "field larger" in str(error):
        return f"a field longer than {bounds.MAX_FIELD:,} characters begins here; is a quote missing?"
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


def _text_lengths(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Bytes of each row's texts, as if each stood for itself."""
    lengths = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if is_text_once(column.type):
            of_rows = pc.take(pc.binary_length(column.dictionary), column.indices)
            lengths += pc.fill_null(of_rows, 0).to_numpy(zero_copy_only=False)
    return lengths


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        column.dictionary_decode() if is_text_once(column.type) else column for column in batch.columns
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
            kind = kind_of_error(error) if known else "cannot be read"
            problem = problem or refusal(f"{name}: {kind}", body[name])
    return body, problem


def _shown(column: pa.Array) -> str:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()  # or the text would be that of the whole dictionary
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        data: bytes = column.cast(pa.large_binary())[0].as_py()
        return data.decode("utf-8", "backslashreplace")
    return str(column.to_string(skip_new_lines=True))


def _has_bad_bytes(text: str) -> bool:
    return any("\udc80" <= sign <= "\udcff" for sign in text)


def _printable(raw: str) -> str:
    return raw.rstrip("\r\n").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
