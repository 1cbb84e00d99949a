"""Parts of a Parquet file as typed columns; :mod:`epsjoin.source.parquet` is the definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.contracts.conditions import SOURCE_TYPES
from epsjoin.contracts.odcs import Column
from epsjoin.contracts.sources import SourceContract
from epsjoin.source.lists import is_list_of_numbers, spread_columns
from epsjoin.source.parquet import read_parts, split_rows
from epsjoin.source.rules import Flags, Ints, typed_schema
from epsjoin.source.untyped import Block, FoundColumns, UntypedRecord

_DAYS = (date(1, 1, 1) - date(1970, 1, 1)).days, (date(9999, 12, 31) - date(1970, 1, 1)).days
"""First and last day that Python knows, as date32 counts them."""

_MICROSECONDS = _DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1


def read_parquet_blocks(
    stream: IO[bytes], name: str, source: SourceContract, columns: FoundColumns
) -> Iterator[Block | Iterator[UntypedRecord]]:
    """Yield a Parquet file as blocks, and as records by the definition if a column is of a rare type.

    Parameters
    ----------
    stream, name, source, columns : see :func:`epsjoin.source.parquet.read_parquet`.
    """
    row = 1
    for part in read_parts(stream, name, source, columns):
        yield _to_block(source, part, row)
        row += part.num_rows


def _to_block(source: SourceContract, part: pa.RecordBatch, row: int) -> Block | Iterator[UntypedRecord]:
    def read_again(rows: Ints) -> Iterator[UntypedRecord]:
        return split_rows(source, part.take(pa.array(rows)), (row + rows).tolist())

    found = dict(zip(part.schema.names, part.columns, strict=True))
    values, odd = spread_columns(source.columns, found, part.num_rows)
    are_split = all(
        is_list_of_numbers(found[column.in_file].type) for column in source.columns if column.item is not None
    )
    if not are_split or not all(_is_common(column, values[column.name].type) for column in source.columns):
        return split_rows(source, part, range(row, row + part.num_rows))
    for column in source.columns:
        odd |= _odd(column, values[column.name])
    kept = pa.array(~odd) if odd.any() else None
    arrays = [
        _typed(source, column, each if kept is None else each.filter(kept))
        for column, each in ((column, values[column.name]) for column in source.columns)
    ]
    return Block(odd, pa.table(arrays, schema=typed_schema(source)), read_again)


_COMMON: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "string": (pa.types.is_string, pa.types.is_large_string),
    "number": (pa.types.is_integer, pa.types.is_floating),
    "integer": (pa.types.is_signed_integer, pa.types.is_uint8, pa.types.is_uint16, pa.types.is_uint32),
    "boolean": (pa.types.is_boolean,),
    "date": (pa.types.is_date32,),
    "time": (),
    "timestamp": (
        lambda kind: pa.types.is_timestamp(kind) and kind.unit != "ns" and kind.tz in (None, "UTC"),
    ),
}
"""Types of Arrow whose values become those of a contract's type without a look at each."""


def _is_common(column: Column, kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in _COMMON[column.type])


def _odd(column: Column, values: pa.Array) -> Flags:
    """Rows whose value Python cannot hold: a text that is not UTF-8, a time before year 1 or after 9999."""
    if column.type == "string":
        return _is_bad_text(values)
    if column.type == "date":
        return _outside(values.cast(pa.int32()), *_DAYS)
    if column.type == "timestamp":
        factor = {"s": 1_000_000, "ms": 1000, "us": 1}[values.type.unit]
        return _outside(values.cast(pa.int64()), _MICROSECONDS[0] // factor, _MICROSECONDS[1] // factor)
    return np.zeros(len(values), bool)


def _outside(values: pa.Array, first: int, last: int) -> Flags:
    outside = pc.or_(pc.less(values, first), pc.greater(values, last))
    flags: Flags = pc.fill_null(outside, False).to_numpy(zero_copy_only=False)
    return flags


def _is_bad_text(values: pa.Array) -> Flags:
    bad = np.zeros(len(values), bool)
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        for place, data in enumerate(values.cast(pa.large_binary()).to_pylist()):
            try:
                (data or b"").decode()
            except UnicodeDecodeError:
                bad[place] = True
    return bad


def _typed(source: SourceContract, column: Column, values: pa.Array) -> pa.Array:
    if column.type == "string":
        texts = values.cast(pa.string())
        return pc.if_else(pc.equal(texts, ""), None, texts)
    if column.type == "timestamp":
        return values.cast(pa.timestamp("us", values.type.tz)).cast(SOURCE_TYPES["timestamp"])
    typed = values.cast(SOURCE_TYPES[column.type], safe=False)  # large integers are rounded as Python does
    if pa.types.is_floating(values.type) and "nan" in source.missing:
        typed = pc.if_else(pc.is_nan(typed), None, typed)
    return typed
