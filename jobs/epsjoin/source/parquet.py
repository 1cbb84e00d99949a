"""Records of a Parquet file."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source import bounds
from epsjoin.source.bounds import check_expansion, list_leaves, parquet_bytes
from epsjoin.source.lists import Splitter
from epsjoin.source.reasons import refusal
from epsjoin.source.untyped import FoundColumns, UntypedRecord
from epsjoin.source.values import kind_of_error

BATCH_ROWS = 10_000
_NOT_A_TIME = -(2**63)
_NO_PYTHON_VALUE = (ValueError, OverflowError, KeyError)
"""Errors that pyarrow raises for a value that Python has no object for; KeyError: an unknown time zone."""


def read_parquet(
    stream: IO[bytes], name: str, source: SourceContract, columns: FoundColumns
) -> Iterator[UntypedRecord]:
    """Yield the records of a Parquet file; their fields are Python values.

    Parameters
    ----------
    stream, name : the file's bytes, seekable, and its name.
    source : the contract.
    columns : takes the names in the file's schema.

    Raises
    ------
    DataRefusedError
        While it is read: it is no Parquet file, is broken, lacks a column or exceeds a bound.
    """
    row = 0
    try:
        for part in read_parts(stream, name, source, columns):
            for record in split_rows(source, part, itertools.count(row + 1)):
                row += 1
                yield record
    except (pa.ArrowException, OSError) as error:
        raise DataRefusedError(f"{name}: broken after {row:,} rows: {error}") from error


def read_parts(
    stream: IO[bytes], name: str, source: SourceContract, columns: FoundColumns
) -> Iterator[pa.RecordBatch]:
    """Yield the contract's columns of a Parquet file, a few rows at a time; see :func:`read_parquet`."""
    try:
        size = stream.seek(0, io.SEEK_END)
        file = pq.ParquetFile(stream)
        schema, footer = file.schema_arrow, file.metadata
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataRefusedError(f"{name}: not a Parquet file: {error}") from error
    columns.add(schema.names)
    wanted = Splitter(source).names
    columns.require_all(source)
    leaves = list_leaves(footer, schema, wanted)
    decoded = parquet_bytes(footer, schema, leaves)
    check_expansion(name, size, decoded)
    # a text that is stored once may stand in every row, so it is decoded only when the rows' lengths are
    # known
    texts = [leaf for leaf in map(footer.schema.column, leaves) if _is_text(leaf)]
    has_json = any(leaf.logical_type.type == "JSON" for leaf in texts)  # only as texts can these be coded
    row = 0
    try:
        file = pq.ParquetFile(
            stream,
            metadata=footer,
            read_dictionary=[leaf.path for leaf in texts],
            arrow_extensions_enabled=not has_json,
        )
        for batch in file.iter_batches(BATCH_ROWS, columns=wanted):
            lengths = _text_lengths(batch)
            decoded += int(lengths.sum())
            check_expansion(name, size, decoded)
            for part in _split_by_text(batch, lengths, name, row):
                yield _in_microseconds(decode_texts(part).select(wanted))
                row += part.num_rows
    except (pa.ArrowException, OSError) as error:
        raise DataRefusedError(f"{name}: broken after {row:,} rows: {error}") from error


def split_rows(
    source: SourceContract, part: pa.RecordBatch, numbers: Iterable[int]
) -> Iterator[UntypedRecord]:
    """The rows of a part as records.

    Parameters
    ----------
    source, part : the contract; some rows, in the columns of the file that it names.
    numbers : the number of each row in the file; 1 is the first.
    """
    splitter = Splitter(source)
    for number, (body, problem) in zip(numbers, to_rows(part), strict=False):
        raw = json.dumps(body, default=str, ensure_ascii=False)
        yield UntypedRecord(number, raw, *(splitter.split(body) if problem is None else (None, problem)))


def _text_lengths(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Bytes of the texts of each row, after each text of a dictionary is written out in every row."""
    columns = (column for column in batch.columns if _has_text_dictionary(column.type))
    return sum(map(_text_lengths_of, columns), np.zeros(batch.num_rows, np.int64))


def _text_lengths_of(column: pa.Array) -> NDArray[np.int64]:
    """The same of one column, which may have texts within lists, structures and maps."""
    kind = column.type
    if _is_text_dictionary(kind):
        of_rows = pc.take(pc.binary_length(column.dictionary), column.indices)
        return np.asarray(pc.fill_null(of_rows, 0).to_numpy(zero_copy_only=False), np.int64)
    if not _has_text_dictionary(kind):
        return np.zeros(len(column), np.int64)
    if pa.types.is_struct(kind):
        return sum(map(_text_lengths_of, column.flatten()), np.zeros(len(column), np.int64))
    if pa.types.is_map(kind):
        column = column.cast(pa.list_(kind.field(0)))
    n_items = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(_text_lengths_of(column.flatten()))])
    ends = np.cumsum(n_items)
    return np.asarray(before[ends] - before[ends - n_items])


def _split_by_text(
    batch: pa.RecordBatch, lengths: NDArray[np.int64], name: str, row: int
) -> Iterator[pa.RecordBatch]:
    """The batch cut into runs of rows whose texts together have at most ``MAX_LINE`` bytes.

    Raises
    ------
    DataRefusedError
        The texts of one row are longer.
    """
    if len(lengths) and lengths.max() > bounds.MAX_LINE:
        raise DataRefusedError(
            f"{name}: row {row + int(lengths.argmax()) + 1}: its texts are longer than "
            f"{bounds.MAX_LINE:,} bytes"
        )
    begin, total = 0, np.cumsum(lengths)
    while begin < batch.num_rows:
        before = int(total[begin - 1]) if begin else 0
        end = int(np.searchsorted(total, before + bounds.MAX_LINE, "right"))
        yield batch.slice(begin, end - begin)
        begin = end


def decode_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with every text of a dictionary written out in every row."""
    columns = [
        column.dictionary_decode() if _is_text_dictionary(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _in_microseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with times in nanoseconds as the tables have them, in whole microseconds, rounded down.

    Only pandas has objects for nanoseconds, and it is not there in every process that reads.
    """
    columns = [_column_in_microseconds(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _column_in_microseconds(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(column.indices, _column_in_microseconds(column.dictionary))
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        coarser = pa.timestamp("us", kind.tz)
    elif pa.types.is_time64(kind) and kind.unit == "ns":
        coarser = pa.time64("us")
    else:
        return column
    counts = column.view(pa.int64()).fill_null(0).to_numpy()
    # the least count stands for no time, which pandas calls NaT; in microseconds it is no time, either
    whole = np.where(counts == _NOT_A_TIME, _NOT_A_TIME, counts // 1000)
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(whole, pa.int64(), mask=is_null).view(coarser)


def to_rows(batch: pa.RecordBatch) -> Iterator[tuple[dict[str, Any], str | None]]:
    """The rows of a batch as Python values, each with the reason why one of its values cannot be had.

    One such value makes ``to_pylist`` raise for all rows; only then the rows are converted one by one.
    """
    try:
        bodies = batch.to_pylist()
    except _NO_PYTHON_VALUE:
        for row in range(batch.num_rows):
            yield _to_row(batch.slice(row, 1))
    else:
        for body in bodies:
            yield body, None


def _to_row(row: pa.RecordBatch) -> tuple[dict[str, Any], str | None]:
    body: dict[str, Any] = {}
    problem: str | None = None
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            body[name] = column[0].as_py()
        except _NO_PYTHON_VALUE as error:
            body[name] = _format_value(column)
            # any other sentence is pyarrow's, and may hold the value
            known = isinstance(error, (UnicodeError, OverflowError))
            kind = kind_of_error(error) if known else "cannot be read"
            problem = problem or refusal(f"{name}: {kind}", body[name])
    return body, problem


def _format_value(column: pa.Array) -> str:
    """The only value of a column as text, without making a Python object of it."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()  # or the text would be that of the whole dictionary
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        data: bytes = column.cast(pa.large_binary())[0].as_py()
        return data.decode("utf-8", "backslashreplace")
    return str(column.to_string(skip_new_lines=True))


def _is_text(leaf: pq.ColumnSchema) -> bool:
    """Whether a column of the file holds texts or bytes."""
    return bool(leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL")


def _is_text_dictionary(kind: pa.DataType) -> bool:
    """Whether a column of this type holds each distinct text once, in a dictionary."""
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return pa.types.is_dictionary(kind) and any(is_kind(kind.value_type) for is_kind in kinds)


def _has_text_dictionary(kind: pa.DataType) -> bool:
    """Whether a column of this type does so itself or within its values."""
    within = range(kind.num_fields) if pa.types.is_nested(kind) else ()
    return _is_text_dictionary(kind) or any(_has_text_dictionary(kind.field(place).type) for place in within)
