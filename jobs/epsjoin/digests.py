"""Digests of the rows of Arrow tables: one notion of "the same row" for files, tables and reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsjoin.kernels.arrays import Ints, Words
from epsjoin.kernels.digests import Pieces, digest_messages

UNKEYED = bytes(16)
"""The key of digests that nobody stores or chooses records for: those of a comparison within a process."""

_NAN = np.uint64(0x7FF8000000000000)
"""What every NaN counts as."""

_NULL_IN_LIST = np.uint64(0x7FF8000000000001)
"""What a null in a list counts as: a NaN that no value counts as."""


def digest_table(table: pa.Table | pa.RecordBatch, key: bytes) -> Words:
    """Digest each row of typed columns to 128 bits.

    Rows of two tables whose columns have the same types in the same order have equal digests if all their
    values are equal, and otherwise with probability 2^-128; see :mod:`epsjoin.kernels.digests` for what that
    rests on. -0.0 equals 0.0, as in the join; a NaN equals any other NaN; a null equals a null and nothing
    else, not even the empty text. The order of the columns counts, their names do not. Types do not count
    either: whoever compares two tables gives them the same types, or makes ``key`` depend on the types.

    Parameters
    ----------
    table : columns of numbers, truth values, dates, times, texts, bytes, decimals, and lists of numbers.
    key : 16 bytes; digests under different keys have nothing to do with one another.

    Returns
    -------
    (n, 2) uint64.

    Raises
    ------
    TypeError
        A column has another type; the message names both.

    Notes
    -----
    The message of a row: for each 64 columns a word whose bit c is set where column c is null; then for each
    column a word, or for text, bytes and lists the length in bytes and the bytes. The row can be read back
    from it, so different rows have different messages. Chunks of the table leave no trace in it.
    """
    if isinstance(table, pa.Table):
        parts = [digest_table(batch, key) for batch in table.to_batches()]
        return np.concatenate([np.empty((0, 2), np.uint64), *parts])
    if not table.num_rows:  # Arrow may leave out the buffers
        return np.empty((0, 2), np.uint64)
    return digest_messages(table.num_rows, to_fields(table), key)


def to_fields(rows: pa.RecordBatch, *, has_nulls: bool = True) -> list[Words | Pieces]:
    """What the message of each row consists of: fields that are equal where, and only where, rows are.

    Parameters
    ----------
    rows : at least one.
    has_nulls : False leaves out the words that say which values are null, for rows without a null.

    Raises
    ------
    TypeError
        See :func:`digest_table`.
    """
    columns = [_plain(name, column) for name, column in zip(rows.schema.names, rows.columns, strict=True)]
    marked = range(0, len(columns), 64) if has_nulls else ()
    nulls = [_mark_nulls(columns[first : first + 64]) for first in marked]
    return [*nulls, *map(_to_field, columns)]


def check_types(schema: pa.Schema) -> None:
    """Refuse columns whose values cannot be digested, with the ``TypeError`` of :func:`digest_table`."""
    for field in schema:
        _plain(field.name, pa.nulls(0, field.type))


def _plain(name: str, column: pa.Array) -> pa.Array:
    """The column as one of the types that have a field."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(name, column.dictionary_decode())
    if pa.types.is_floating(kind):
        return column.cast(pa.float64())
    if pa.types.is_null(kind):
        return column.cast(pa.int64())
    if kind in (pa.string_view(), pa.binary_view()):
        return column.cast(pa.large_binary())
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return column.cast(pa.int32()).cast(pa.int64())
    is_whole = any(is_kind(kind) for is_kind in _WHOLE)
    if is_whole and kind != pa.uint64():
        return column.cast(pa.int64())
    if is_whole or any(is_kind(kind) for is_kind in _BYTES) or _is_list(kind):
        return column
    raise TypeError(
        f"column {name!r} has the type {kind}, whose values cannot be compared; leave it out or make it text"
    )


_WHOLE = (
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
)
_BYTES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_decimal,
)


def _is_list(kind: pa.DataType) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(is_list and pa.types.is_floating(kind.value_type))


def _mark_nulls(columns: list[pa.Array]) -> Words:
    """A word per row with a bit for each of at most 64 columns."""
    words = np.zeros(len(columns[0]), np.uint64)
    for place, column in enumerate(columns):
        if column.null_count:
            words |= _is_null(column).astype(np.uint64) << np.uint64(place)
    return words


def _is_null(column: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def _to_field(column: pa.Array) -> Words | Pieces:
    kind = column.type
    if pa.types.is_float64(kind):
        return _number_words(column, np.uint64(0))
    if pa.types.is_integer(kind):
        return _without_nulls(column, 0).view(np.uint64)
    if _is_list(kind):
        starts, lengths = _places_in_list(column)
        first, last = (int(starts.min()), int((starts + lengths).max())) if len(starts) else (0, 0)
        values = column.values.slice(first, last - first).cast(pa.float64())
        data = _number_words(values, _NULL_IN_LIST).view(np.uint8)
        starts, lengths = 8 * (starts - first), 8 * lengths
    else:
        starts, lengths = _places_of_bytes(column)
        found = column.buffers()[-1]
        data = np.zeros(0, np.uint8) if found is None else np.frombuffer(found, np.uint8)
    if column.null_count:
        lengths = np.where(_is_null(column), 0, lengths)  # Arrow says nothing about what lies below a null
    return Pieces(data, starts, lengths)


def _without_nulls(column: pa.Array, instead: float) -> NDArray[Any]:
    """The values of a column of numbers, which may be Arrow's own memory."""
    filled = pc.fill_null(column, instead) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _number_words(column: pa.Array, null: np.uint64) -> Words:
    """Numbers as 64 bits each, with one zero and one NaN."""
    values = _without_nulls(column, 0.0) + 0.0  # of -0.0 makes 0.0
    words: Words = values.view(np.uint64)
    is_nan = np.isnan(values)
    if is_nan.any():
        words[is_nan] = _NAN
    if column.null_count:
        words[_is_null(column)] = null
    return words


def _places_of_bytes(column: pa.Array) -> tuple[Ints, Ints]:
    """Where the bytes of each row begin in the column's last buffer, and how many they are."""
    kind = column.type
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind):
        width = kind.byte_width
        return (column.offset + np.arange(len(column))) * width, np.full(len(column), width)
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    offsets = np.frombuffer(column.buffers()[1], np.int64 if is_large else np.int32)
    return _between(offsets[column.offset : column.offset + len(column) + 1])


def _places_in_list(column: pa.Array) -> tuple[Ints, Ints]:
    """Where the values of each row begin in the list's values, and how many they are."""
    if pa.types.is_fixed_size_list(column.type):
        size = column.type.list_size
        return (column.offset + np.arange(len(column))) * size, np.full(len(column), size)
    return _between(column.offsets.to_numpy())


def _between(offsets: NDArray[Any]) -> tuple[Ints, Ints]:
    return offsets[:-1].astype(np.int64), np.subtract(offsets[1:], offsets[:-1], dtype=np.int64)
