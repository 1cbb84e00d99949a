"""Digests of rows of Arrow columns: equal for equal rows wherever they are, different for all others."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from epsjoin.digests import UNKEYED, digest_table
from oracles.siphash import siphash_128

TEXTS = ["", "a", "a\0", "b", "ab", "1234567", "12345678", "123456789", "ä" * 9, "x" * 4097, "x" * 4098]
BYTES = [text.encode() for text in TEXTS]
LISTS = [[], [0.0], [1.0], [0.0, 0.0], [0.0, 1.0], [np.nan], [None], [None, 0.0], [0.0, None], [np.inf]]
WHOLE = [0, 1, -1, 100]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), TEXTS),
    "long text": (pa.large_string(), TEXTS),
    "text view": (pa.string_view(), TEXTS),
    "category": (pa.dictionary(pa.int8(), pa.string()), TEXTS),
    "bytes": (pa.binary(), BYTES),
    "bytes of one length": (pa.binary(3), [b"abc", b"abd", b"\0\0\0"]),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-1.50"), Decimal("0.00")]),
    "double": (pa.float64(), [0.0, 1.0, -1.0, 1e-300, np.nan, np.inf, 5e-324]),
    "float": (pa.float32(), [0.0, 1.0, -1.0, np.nan, np.inf]),
    "long": (pa.int64(), [0, 1, -1, 2**62, -(2**63)]),
    "unsigned": (pa.uint64(), [0, 1, 2**64 - 1, 2**63]),
    "integer": (pa.int32(), WHOLE),
    "boolean": (pa.bool_(), [False, True]),
    "date": (pa.date32(), [date(1970, 1, 1), date(2023, 6, 4)]),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        [datetime(1970, 1, 1, tzinfo=UTC), datetime(2023, 6, 4, tzinfo=UTC)],
    ),
    "list": (pa.list_(pa.float64()), LISTS),
    "vector": (pa.list_(pa.float64(), 2), [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [None, 0.0]]),
}


def _digest(rows: list[tuple[Any, ...]], *types: pa.DataType, key: bytes = UNKEYED) -> list[bytes]:
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]
    return _bytes(pa.record_batch(columns, [f"c{i}" for i in range(len(types))]), key)


def _bytes(table: pa.Table | pa.RecordBatch, key: bytes = UNKEYED) -> list[bytes]:
    return [row.astype("<u8").tobytes() for row in digest_table(table, key)]


@pytest.mark.parametrize("kind", VALUES)
def test_digest_table__differs_for_every_two_values_and_null(kind: str) -> None:
    type_, values = VALUES[kind]
    found = _digest([(value,) for value in [*values, None]], type_)
    for one, other in combinations(range(len(found)), 2):
        assert found[one] != found[other], ([*values, None][one], [*values, None][other])


@pytest.mark.parametrize("kind", VALUES)
def test_digest_table__is_the_rows_own_whatever_it_is_cut_from(kind: str) -> None:
    type_, values = VALUES[kind]
    column = pa.array([*values, None, *values], type_)
    whole = _bytes(pa.record_batch({"a": column}))
    for begin in range(len(column)):
        part = pa.record_batch({"a": column}).slice(begin, 2)
        assert _bytes(part) == whole[begin : begin + 2]
    chunked = pa.table({"a": pa.chunked_array([column.slice(0, 1), column.slice(1, 0), column.slice(1)])})
    assert _bytes(chunked) == whole
    assert _bytes(chunked.slice(0, 0)) == []


def test_digest_table__tells_columns_apart() -> None:
    text = pa.string()
    rows = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("a", None), (None, "a"), (None, None), ("", "")]
    assert len(set(_digest(rows, text, text))) == len(rows)
    assert len(set(_digest([("1", "11"), ("11", "1"), ("ab", "c"), ("a", "bc")], text, text))) == 4
    assert len(set(_digest([(0, None), (None, 0), (None, None), (0, 0)], pa.int64(), pa.int64()))) == 4


def test_digest_table__takes_numbers_that_compare_equal_for_equal() -> None:
    zero, minus_zero, nan, other_nan = _digest([(0.0,), (-0.0,), (np.nan,), (-np.nan,)], pa.float64())
    assert zero == minus_zero
    assert nan == other_nan
    zero, minus_zero = _digest([([0.0],), ([-0.0],)], pa.list_(pa.float64()))
    assert zero == minus_zero


def test_digest_table__does_not_see_what_lies_below_a_null() -> None:
    for kind, one, other in (
        (pa.float64(), b"\1" * 16, bytes(16)),
        (pa.string(), struct.pack("<3i", 0, 2, 3), struct.pack("<3i", 0, 0, 3)),
    ):
        rest = [pa.py_buffer(b"abc")] if kind == pa.string() else []
        arrays = [
            pa.Array.from_buffers(kind, 2, [pa.py_buffer(b"\2"), pa.py_buffer(part), *rest])
            for part in (one, other)
        ]
        found = [_bytes(pa.record_batch({"a": array})) for array in arrays]
        assert found[0][0] == found[1][0]


def test_digest_table__is_siphash_of_the_message_that_it_promises() -> None:
    key = bytes(range(16))
    found = _digest(
        [(7, "ab", None, [1.5])], pa.int64(), pa.string(), pa.string(), pa.list_(pa.float64()), key=key
    )
    message = struct.pack("<Qqq8sqqd", 0b0100, 7, 2, b"ab", 0, 8, 1.5)
    assert found == [siphash_128(message, key)]


def test_digest_table__marks_nulls_of_more_than_64_columns() -> None:
    rows = [tuple(None if column == row else 0 for column in range(130)) for row in range(130)]
    assert len(set(_digest(rows, *[pa.int64()] * 130))) == 130


def test_digest_table__depends_on_the_key() -> None:
    assert _digest([(1,)], pa.int64()) != _digest([(1,)], pa.int64(), key=bytes(range(16)))


@pytest.mark.parametrize(
    "kind", [pa.struct([("a", pa.int64())]), pa.list_(pa.string()), pa.map_(pa.string(), pa.int8())]
)
def test_digest_table__refuses_types_that_cannot_be_compared(kind: pa.DataType) -> None:
    with pytest.raises(TypeError, match="column 'a' has the type"):
        digest_table(pa.table({"a": pa.nulls(1, kind)}), UNKEYED)


def test_digest_table__of_rows_without_a_column_is_one_for_all() -> None:
    batch = pa.record_batch({"a": [1, 2]}).select([])
    assert len(set(_bytes(batch))) <= 1
