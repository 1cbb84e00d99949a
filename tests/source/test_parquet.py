"""Parquet sources: typed values, bad rows, and files that would become enormous."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin.contracts.odcs import Column
from epsjoin.errors import DataRefusedError
from epsjoin.source import bounds
from epsjoin.source import parquet as parquet_format
from epsjoin.source.records import open_records
from tests.source.tiny_source import SOURCE, read


def parquet(columns: dict[str, Any], names: list[str] | None = None) -> bytes:
    table = pa.table(columns)
    file = io.BytesIO()
    pq.write_table(table.rename_columns(names) if names else table, file)
    return file.getvalue()


def unchecked_texts(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary()).view(pa.string())


def test_records__a_parquet_value_that_python_cannot_hold_costs_one_row() -> None:
    columns = (*SOURCE.columns, Column("name", "string"), Column("t", "timestamp"), Column("n", "timestamp"))
    source = replace(SOURCE, format="parquet", columns=columns)
    data = parquet(
        {
            "t": pa.array([0, 0, 2**62, 0], pa.timestamp("us")),
            "id": [1, 2, 3, 4],
            "x": [0.0, 0.0, 0.5, 1.0],
            "name": unchecked_texts(b"a", b"\xff\xfe", b"b", b"c"),
            "n": pa.array([1, 1, 1, -(2**63)], pa.timestamp("ns")),
        }
    )
    records = read(data, source)
    assert [(record.line, record.reason) for record in records] == [
        (1, None),
        (2, r"name: not UTF-8: '\\xff\\xfe'"),
        (3, "t: out of range: '[<value out of range: 4611686018427387904>]'"),
        (4, "n: out of range: '[<value out of range: -9223372036854775808>]'"),
    ]
    assert json.loads(records[1].raw)["name"] == r"\xff\xfe"
    assert json.loads(records[2].raw)["id"] == 3


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (
            pa.DictionaryArray.from_arrays(pa.array([1], pa.int32()), unchecked_texts(b"a", b"\xff")),
            r"not UTF-8: '\\xff'",
        ),
        (pa.array([0], pa.timestamp("us", "No/Where")), "cannot be read: '[1970-01-01 00:00:00.000000Z]'"),
    ],
)
def test_records__shows_only_the_parquet_value_that_is_bad(column: pa.Array, reason: str) -> None:
    source = replace(SOURCE, format="parquet", columns=(*SOURCE.columns, Column("v", "string")))
    assert read(parquet({"id": [1], "x": [0.0], "v": column}), source)[0].reason == f"v: {reason}"


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("is_coded", [False, True])
def test_records__parquet_times_of_nanoseconds_are_of_the_microsecond_in_which_they_lie(
    zone: str | None, is_coded: bool
) -> None:
    """Python's own objects, which any process can have: pandas' are not in those that jobs read in."""
    columns = (*SOURCE.columns, Column("at", "timestamp"), Column("t", "time"))
    source = replace(SOURCE, format="parquet", columns=columns)
    counts = [0, 1_999, -1, None, 1_700_000_000_123_456_789, -1_000]
    at = pa.array(counts, pa.timestamp("ns", zone))
    data = parquet(
        {
            "id": list(range(6)),
            "x": [0.0] * 6,
            "at": at.dictionary_encode() if is_coded else at,
            "t": pa.array([0, 1_999, 999, None, 86_399_999_999_999, 1_000], pa.time64("ns")),
        }
    )
    records = read(data, source)
    assert [record.reason for record in records] == [None] * 6
    found = [record.values[2:] for record in records if record.values is not None]
    assert {type(each) for each, _ in found if each is not None} == {datetime}
    assert [None if each is None else each.replace(tzinfo=each.tzinfo or UTC) for each, _ in found] == [
        None if count is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=count // 1000)
        for count in counts
    ]
    assert [seconds for _, seconds in found] == [0.0, 1e-6, 0.0, None, 86_399.999999, 1e-6]


def test_records__a_parquet_column_without_contract_is_not_read() -> None:
    data = parquet(
        {
            "id": [1],
            "x": [0.0],
            "t": pa.array([2**62], pa.timestamp("us")),
            "s": unchecked_texts(b"\xff"),
        }
    )
    records = open_records(io.BytesIO(data), "tiny.parquet", replace(SOURCE, format="parquet"))
    assert [record.values for record in records] == [(1, 0.0)]
    assert records.found_columns == ["id", "x", "t", "s"]


def test_records__refuses_a_parquet_file_with_two_columns_of_a_name() -> None:
    data = parquet({"id": [1], "x": [0.0], "y": [1.0]}, ["id", "x", "x"])
    with pytest.raises(DataRefusedError, match="column 'x' occurs more than once"):
        read(data, replace(SOURCE, format="parquet"))


def test_records__refuses_a_parquet_file_of_a_kind_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise pa.ArrowNotImplementedError("lzo")

    data = stored(pa.table({"id": [1], "x": [0.0], "v": ["a"]}))
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", fail)
    with pytest.raises(DataRefusedError, match=r"^a.parquet: broken after 0 rows: lzo"):
        read(data, PARQUET, "a.parquet")


def stored(table: pa.Table, **how: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **how)
    return file.getvalue()


PARQUET = replace(SOURCE, format="parquet", columns=(*SOURCE.columns, Column("v", "string")))


def test_records__refuses_a_parquet_file_of_endless_equal_rows_by_its_footer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(pq.ParquetFile, "iter_batches")  # it is refused before any row is read
    rows = pa.table({"id": np.zeros(1 << 20, np.int64), "x": np.full(1 << 20, 0.5)})
    file = io.BytesIO()
    with pq.ParquetWriter(file, rows.schema, compression="zstd", max_rows_per_page=1 << 20) as writer:
        for _ in range(40):
            writer.write_table(rows)
    size = len(file.getvalue())
    assert size < 30_000, "41,943,040 rows"
    source = replace(SOURCE, format="parquet")
    with pytest.raises(
        DataRefusedError,
        match=rf"^bomb.parquet: {size:,} bytes become 671,088,640 or more, over 500 times as many; if "
        "the file is right, split it into smaller ones$",
    ):
        next(iter(open_records(io.BytesIO(file.getvalue()), "bomb.parquet", source)))
    source = replace(source, columns=source.columns[:1], coordinates=("id",))
    with pytest.raises(DataRefusedError, match="become 335,544,320 or more"):  # only what is read counts
        next(iter(open_records(io.BytesIO(file.getvalue()), "bomb.parquet", source)))


def test_records__refuses_a_parquet_file_of_endless_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "FREE_EXPANSION", 1 << 16)
    endless = pa.ListArray.from_arrays([0, 1 << 20], np.full(1 << 20, 0.5))
    data = stored(pa.table({"id": [1], "x": endless, "v": ["a"]}), compression="zstd")
    with pytest.raises(DataRefusedError, match=r"become 8,388,\d+ or more"):
        next(iter(open_records(io.BytesIO(data), "bomb.parquet", PARQUET)))


@pytest.mark.parametrize("as_dictionary", [True, False])
def test_records__a_text_that_is_stored_once_is_not_decoded_for_every_row(
    monkeypatch: pytest.MonkeyPatch, as_dictionary: bool
) -> None:
    monkeypatch.setattr(bounds, "FREE_EXPANSION", 1 << 22)
    n = 200  # of 10,000 it would be 10 GB
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["x" * (1 << 20)]))
    rows = pa.table({"id": np.arange(n), "x": np.zeros(n), "v": texts})
    data = stored(rows, compression="zstd", store_schema=as_dictionary)
    assert len(data) < 5000
    monkeypatch.delattr(parquet_format, "decode_texts")
    with pytest.raises(DataRefusedError, match=r"become 210,\d+,\d+ or more, over 500 times"):
        next(iter(open_records(io.BytesIO(data), "bomb.parquet", PARQUET)))


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view(), pa.json_()])
def test_records__a_view_or_json_that_is_stored_once_is_not_decoded_for_every_row(
    monkeypatch: pytest.MonkeyPatch, kind: pa.DataType
) -> None:
    monkeypatch.setattr(bounds, "FREE_EXPANSION", 1 << 20)
    texts = pa.array(["x" * (1 << 17)] * 100, kind)
    data = stored(pa.table({"id": np.arange(100), "x": np.zeros(100), "v": texts}), compression="zstd")
    assert len(data) < 5000
    assert pq.read_schema(io.BytesIO(data)).field("v").type == kind
    monkeypatch.delattr(parquet_format, "decode_texts")
    with pytest.raises(DataRefusedError, match=r"become 13,\d+,\d+ or more, over 500 times"):
        next(iter(open_records(io.BytesIO(data), "bomb.parquet", PARQUET)))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.string_view()])
@pytest.mark.parametrize(
    ("within", "wrap"),
    [
        (pa.list_, lambda text: [text]),
        (pa.list_view, lambda text: [text]),
        (lambda kind: pa.list_(kind, 1), lambda text: [text]),
        (lambda kind: pa.struct([("a", kind)]), lambda text: {"a": text}),
        (lambda kind: pa.map_(pa.int8(), kind), lambda text: [(1, text)]),
        (lambda kind: pa.large_list(pa.struct([("a", pa.list_(kind))])), lambda text: [{"a": [text]}]),
    ],
)
def test_records__a_text_within_other_values_is_not_decoded_for_every_row(
    monkeypatch: pytest.MonkeyPatch, kind: pa.DataType, within: Any, wrap: Any
) -> None:
    monkeypatch.setattr(bounds, "FREE_EXPANSION", 1 << 20)
    text = "x" * (1 << 17)
    values = pa.array([wrap(text)] * 100, within(kind))
    data = stored(pa.table({"id": np.arange(100), "x": np.zeros(100), "v": values}), compression="zstd")
    assert len(data) < 5000
    monkeypatch.delattr(parquet_format, "decode_texts")
    with pytest.raises(DataRefusedError, match=r"become 13,\d+,\d+ or more, over 500 times"):
        next(iter(open_records(io.BytesIO(data), "bomb.parquet", PARQUET)))


@pytest.mark.parametrize("name", ["v.1", "v.", ".v", "v.list.element"])
def test_records__a_column_with_dots_in_its_name_is_counted_as_any(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """In a Parquet file the paths of nested columns have dots, too."""
    monkeypatch.setattr(bounds, "FREE_EXPANSION", 1 << 20)
    endless = pa.ListArray.from_arrays([0, 1 << 20], np.full(1 << 20, 0.5))
    rows = pa.table({"id": [1], "x": [0.5], name: endless, "v": [["a"]]})
    dotted = replace(PARQUET, columns=(*PARQUET.columns[:2], Column("v", "string", physical_name=name)))
    with pytest.raises(DataRefusedError, match=r"become 8,388,\d+ or more"):
        read(stored(rows, compression="zstd"), dotted, "bomb.parquet")
    assert [each.reason for each in read(stored(rows, compression="zstd"), PARQUET)] == [
        "v: not of type string: \"['a']\""
    ]


@pytest.mark.parametrize("name", ["v.list", "v.list.element"])
def test_records__what_is_read_beside_a_column_with_dots_in_its_name_is_counted(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The name is the path of what a list has within it, which is read, too."""
    monkeypatch.setattr(bounds, "FREE_EXPANSION", 1 << 20)
    endless = pa.ListArray.from_arrays([0, 1 << 20], np.full(1 << 20, 0.5))
    dotted = replace(PARQUET, columns=(*PARQUET.columns[:2], Column("v", "string", physical_name=name)))
    rows = pa.table({"id": [1], "x": [0.5], "v": endless, name: ["a"]})
    assert pq.ParquetFile(io.BytesIO(stored(rows))).read(columns=[name]).column_names == ["v", name]
    with pytest.raises(DataRefusedError, match=r"become 8,388,\d+ or more"):
        read(stored(rows, compression="zstd"), dotted, "bomb.parquet")
    (record,) = read(stored(rows.set_column(2, "v", [[[0.5]]])), dotted)
    assert record.values == (1, 0.5, "a")


class Interval(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """As pandas registers one."""

    def __init__(self) -> None:
        super().__init__(pa.struct([("from", pa.string()), ("to", pa.string())]), "tests.interval")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, told: bytes) -> Interval:
        return cls()


@pytest.mark.parametrize("physical_name", ["v", "w"])
def test_records__stand_beside_a_column_of_a_type_that_is_registered(physical_name: str) -> None:
    values = pa.array([{"from": "a", "to": "b"}, None], Interval().storage_type)
    table = pa.table({"id": [1, 2], "v": pa.ExtensionArray.from_storage(Interval(), values), "x": [0.5, 1]})
    columns = (*PARQUET.columns[:2], Column("v", "string", physical_name=physical_name))
    pa.register_extension_type(Interval())
    try:
        records = read(stored(table.append_column("w", [["c", "d"]])), replace(PARQUET, columns=columns))
    finally:
        pa.unregister_extension_type("tests.interval")
    if physical_name == "v":
        assert records[0].reason == "v: not of type string: \"{'from': 'a', 'to': 'b'}\""
        assert records[1].values == (2, 1.0, None)
    else:
        assert [record.values for record in records] == [(1, 0.5, "c"), (2, 1.0, "d")]


def test_records__decodes_long_texts_of_parquet_a_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [10, None, 90, 100, 1, 99, 1, 60, 50, None]
    texts = [None if length is None else "x" * length for length in lengths]
    data = stored(pa.table({"id": range(10), "x": [0.0] * 10, "v": texts}))
    decoded: list[int] = []

    def counting(batch: pa.RecordBatch) -> Any:
        decoded.append(batch.num_rows)
        return to_rows(batch)

    to_rows = parquet_format.to_rows
    monkeypatch.setattr(parquet_format, "to_rows", counting)
    monkeypatch.setattr(bounds, "MAX_LINE", 100)
    found = read(data, PARQUET, "long.parquet")
    assert [record.values and record.values[2] for record in found] == texts
    assert [record.line for record in found] == list(range(1, 11))
    assert decoded == [3, 1, 2, 2, 2]
    monkeypatch.setattr(bounds, "MAX_LINE", 99)
    with pytest.raises(DataRefusedError, match="row 3: its texts are longer than 99 bytes"):
        read(stored(pa.table({"id": [1, 2, 3], "x": [0.0] * 3, "v": ["", "a", "x" * 100]})), PARQUET)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
@pytest.mark.parametrize("store_schema", [True, False])
def test_records__a_text_of_parquet_is_the_same_however_it_is_stored(
    kind: pa.DataType, store_schema: bool
) -> None:
    texts = pa.array(["a", None, "", "ä", "a"]).cast(kind)
    data = stored(pa.table({"id": range(5), "x": [0.0] * 5, "v": texts}), store_schema=store_schema)
    values = [record.values and record.values[2] for record in read(data, PARQUET)]
    assert values == ["a", None, None, "ä", "a"]


def test_records__a_decimal_of_parquet_is_a_number() -> None:
    table = pa.table(
        {"id": [1, 2], "x": pa.array([None, "0.25"], pa.string()).cast(pa.decimal128(9, 3)), "v": ["a", "b"]}
    )
    assert [record.values for record in read(stored(table), PARQUET)] == [None, (2, 0.25, "b")]
