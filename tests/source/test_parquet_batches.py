"""Batches of Parquet: column by column a file gives what the definition gives row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from epsjoin.contracts.odcs import Column
from epsjoin.contracts.sources import SourceContract
from epsjoin.source import batches, parquet
from tests.source.both_ways import COLUMNS, PLACES, SOURCES, WIDE, by_batches, by_definition, compare
from tests.source.test_parquet import stored, unchecked_texts

ODD_COLUMNS: dict[str, list[pa.Array]] = {
    "number": [
        pa.array([0.5, None, float("nan"), float("-inf"), -0.0, 1e-320]),
        pa.array([1, 2**53 + 1, -(2**63), None, 7, 2**63 - 1]),
        pa.array([1, 2, 3, None, 5, 6], pa.uint64()),
        pa.array([0.1, None, 3, 4, 5, 6], pa.float32()),
        pa.array([0.1, None, 3, 4, 5, 6], pa.float16()),
        pa.array([True, False, None, True, True, True]),
        pa.array(["1.5", "2", None, "", "nan", "x"]),
        pa.array(["1.5", "2", None, "-3", "4", "5"]).cast(pa.decimal128(9, 3)),
        pa.array([[1.0]] * 6),
        pa.nulls(6),
    ],
    "integer": [
        pa.array([1, None, -1, 2**63 - 1, -(2**63), 0]),
        pa.array([1, None, 2**64 - 1, 3, 4, 5], pa.uint64()),
        pa.array([1, None, 255, 3, 4, 5], pa.uint8()),
        pa.array([1.0, None, 2.5, 3, 4, 5]),
        pa.array([1, 1, None, 2, 2, 2]).dictionary_encode(),
        pa.array(["1", None, "x", "3", "4", ""]),
    ],
    "string": [
        unchecked_texts(b"a", None, b"", b"\xff\xfe", "é".encode(), b"a"),
        unchecked_texts(b"a", None, b"", b"b", "é".encode(), b"a").cast(pa.large_string()),
        unchecked_texts(b"a", None, b"", b"b", "é".encode(), b"a").dictionary_encode(),
        unchecked_texts(b"a", None, b"", b"b", "é".encode(), b"a" * 20).cast(pa.string_view()),
        pa.array([b"a", None, b"", b"\xff", b"b", b"c" * 20], pa.binary_view()),
        pa.array([b"a", None, b"", b"\xff", b"b", b"c"]),
        pa.array(["[1]", None, "{}", '"a"', "é", "a"], pa.json_()),
        pa.array([["a", None], None, [], ["b"], ["é"], ["a"]]),
        pa.array([{"a": "b"}, None, {"a": None}, {"a": "b"}, {"a": "é"}, {"a": "b"}]),
        pa.array([b"0" * 16, None, b"1" * 16, b"2" * 16, b"3" * 16, b"4" * 16], pa.uuid()),
        pa.array([1, None, 3, 4, 5, 6]),
    ],
    "boolean": [pa.array([True, None, False, True, True, False]), pa.array([1, 0, None, 1, 1, 1])],
    "date": [
        pa.array([0, None, -719162, -719163, 2932896, 2932897], pa.int32()).cast(pa.date32()),
        pa.array([0, None, 86_400_000, 0, 0, 0]).cast(pa.date64()),
        pa.array(["2023-06-04", None, "", "x", " ", "20230604"]),
        pa.array([0, None, 1, 2, 3, 4], pa.timestamp("us")),
    ],
    "timestamp": [
        pa.array(
            [0, None, -62135596800000000, -62135596800000001, 253402300799999999, 253402300800000000]
        ).cast(pa.timestamp("us", zone))
        for zone in (None, "UTC", "+00:00", "Europe/Berlin")
    ]
    + [
        pa.array([0, None, 1, -62135596801, 253402300800, 5]).cast(pa.timestamp("s")),
        pa.array([0, None, 1, -62135596800001, 253402300799999, 5]).cast(pa.timestamp("ms", "UTC")),
        pa.array([0, None, 1, 1999, -(2**63), 2**63 - 1]).cast(pa.timestamp("ns")),
        pa.array(["2023-06-04T10:00:00Z", None, "", "x", " ", "20230604"]),
        pa.array([0, None, 1, 2, 3, 4], pa.int32()).cast(pa.date32()),
    ],
}
"""Columns of Parquet, by the contract's type that they are read as."""


def odd_places() -> list[Any]:
    """Sources with the columns in which one stands that is odd: those of ``PLACES``; all in long tests."""
    found = []
    for name in (name for name in SOURCES if name != "one column"):
        everywhere = tuple(column.name for column in COLUMNS)
        found.append(pytest.param(name, PLACES[name], id=name))
        if set(PLACES[name]) != set(everywhere):
            found.append(pytest.param(name, everywhere, id=f"{name}-all", marks=pytest.mark.long))
    return found


@pytest.mark.parametrize(("name", "places"), odd_places())
def test_batches__of_parquet_are_what_the_definition_says(name: str, places: tuple[str, ...]) -> None:
    source = replace(SOURCES[name], format="parquet")
    good = pa.table(
        {
            "id": [1, 2, 3, 4, 5, 6],
            "x": [0.5, 1.0, -3.0, 4.0, 5.0, 6.0],
            "n": [1, 2, None, 3, -5, 7],
            "name": ["a", "b", "é", None, "", "a"],
            "ok": [True, False, None, True, True, True],
            "day": pa.array([19000, None, 1, 2, 3, 4], pa.int32()).cast(pa.date32()),
            "at": pa.array([10**15, None, 1, 2, 3, 4], pa.timestamp("us")),
            "more": ["?"] * 6,
        }
    )
    compare_parquet(good, source)
    for place in map([column.name for column in COLUMNS].index, places):
        column = source.columns[place]
        for values in ODD_COLUMNS[column.type]:
            table = good.set_column(place, column.in_file, values)
            compare_parquet(table, source)
            compare_parquet(table, source, (0, 4))
    compare_parquet(good.drop_columns(["x"]), source)
    compare_parquet(good.slice(0, 0), source)
    data = stored(good)
    for end in (0, len(data) // 2, len(data) - 3):
        compare(data[:end], source, "a.parquet")


def compare_parquet(table: pa.Table, source: SourceContract, aside: tuple[int, ...] = ()) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "BATCH_ROWS", 4)
        compare(stored(table), source, "a.parquet", aside)


@pytest.mark.parametrize("text", [pa.dictionary(pa.int32(), pa.string()), pa.string_view()])
def test_batches__of_good_parquet_rows_ask_the_definition_for_none(
    monkeypatch: pytest.MonkeyPatch, text: pa.DataType
) -> None:
    columns = (*COLUMNS[:4], Column("weight", "number"), *COLUMNS[4:])
    source = replace(WIDE, format="parquet", columns=columns)
    table = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int32()),
            "x": pa.array([0.5, 1, 2], pa.float32()),
            "n": [1, None, 3],
            "name": pa.array(["a", "", None]).cast(text),
            "weight": [float("nan"), None, 1.5],
            "ok": [True, None, False],
            "day": pa.array([0, None, 1], pa.int32()).cast(pa.date32()),
            "at": pa.array([0, None, 1]).cast(pa.timestamp("ms", "UTC")),
        }
    )
    data = stored(table)
    expected = by_definition(data, source, "a.parquet")
    assert len(expected.taken) == 3
    monkeypatch.setattr(batches, "to_records", None)
    assert by_batches(data, source, "a.parquet") == expected
