"""When two values of snapshots are the same, in whatever types and formats, and files that are broken."""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin import ArgumentError, DataRefusedError, snapshot_diff
from epsjoin.differ.columns import without_infinities


@pytest.mark.parametrize(
    ("one", "other", "is_reformatted"),
    [
        ("1.5", "1.50", True),
        ("1.5", "1.6", False),
        ("100", "1e2", True),
        ("true", "TRUE", True),
        ("2023-06-04", "20230604", True),
        ("2023-06-04T10:00:00Z", "2023-06-04T12:00:00+02:00", True),
        ("9007199254740993", "9007199254740992", False),
        ("9007199254740993", "9007199254740993.0", True),
        ("18446744073709551616", "18446744073709551617", False),
        ("1e400", "1e500", False),
        ("0.1", "0.1000000000000000055", True),
        ("2023-06-04T10:00:00.123456", "2023-06-04T10:00:00,123456", True),
        ("2023-06-04T10:00:00.1234567", "2023-06-04T10:00:00.1234568", False),
        ("", "0", False),
        ("a", "A", False),
    ],
)
def test_snapshot_diff__tells_another_text_of_one_value_from_a_change(
    tmp_path: Path, one: str, other: str, is_reformatted: bool
) -> None:
    files = [tmp_path / name for name in ("old.csv", "new.csv")]
    for file, text in zip(files, (one, other), strict=True):
        file.write_text(f'id,x\n1,"{text}"\n')
    found = snapshot_diff(*files, key="id")
    assert (found.n_reformatted, len(found.updated)) == ((1, 0) if is_reformatted else (0, 1))
    for file, text in zip(files, (one, other), strict=True):
        file.write_text(f'id,x\n1,"{text}"\n2,2A\n')
    assert snapshot_diff(*files, key="id").n_reformatted == 0  # 2A: the column holds codes, not numbers


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("is_coded", [False, True])
def test_snapshot_diff__tells_another_text_of_one_value_from_a_change_in_any_type_of_texts(
    kind: pa.DataType, is_coded: bool
) -> None:
    """Polars writes large texts, and pandas categories as numbers of texts."""

    def table(texts: list[str]) -> pa.Table:
        column = pa.array(texts, kind)
        return pa.table({"id": [1, 2, 3], "x": column.dictionary_encode() if is_coded else column})

    found = snapshot_diff(table(["1.5", "2", "3"]), table(["1.50", "2.5", "3"]), key="id")
    assert (found.n_reformatted, found.updated["id"].to_pylist()) == (1, [2])
    found = snapshot_diff(table(["1.5", "2", "3A"]), table(["1.50", "2.5", "3A"]), key="id")
    assert (found.n_reformatted, found.updated["id"].to_pylist()) == (0, [1, 2])


def test_snapshot_diff__tells_null_from_empty_and_takes_nan_for_nan(tmp_path: Path) -> None:
    old = pa.table({"id": [1, 2, 3], "t": [None, "", "a"], "x": [float("nan"), 0.0, 1.0]})
    new = pa.table({"id": [1, 2, 3], "t": ["", "", "a"], "x": [float("nan"), -0.0, None]})
    updated = snapshot_diff(old, new, key="id").updated
    assert list(zip(updated["id"].to_pylist(), updated["columns"].to_pylist(), strict=True)) == [
        (1, ["t"]),
        (3, ["x"]),
    ]


@pytest.mark.parametrize(
    ("kind", "plain"), [(pa.string_view(), pa.string()), (pa.binary_view(), pa.binary())]
)
def test_snapshot_diff__takes_views_for_the_texts_and_bytes_they_are(
    tmp_path: Path, kind: pa.DataType, plain: pa.DataType
) -> None:
    texts = ["a", "1.50", "c" * 20], ["a", "1.5", "d" * 20, None]

    def answer(to_column: Callable[[pa.Array], pa.Array]) -> list[Any]:
        columns = [to_column(pa.array(values, plain)) for values in texts]
        old, new = (pa.table({"id": range(len(column)), "x": column}) for column in columns)
        found = snapshot_diff(old, new, key="id")
        return [found.updated.to_pylist(), found.inserted.to_pylist(), found.n_reformatted]

    expected = answer(lambda column: column)
    assert [len(rows) for rows in expected[:2]] == [2, 1]
    assert answer(lambda column: column.cast(kind)) == expected
    coded = pa.dictionary(pa.int32(), kind)
    assert answer(lambda column: column.dictionary_encode().cast(coded)) == expected
    table = pa.table({"id": [1, 2], "x": pa.array([["a"], None], pa.list_(plain)).cast(pa.list_(kind))})
    pq.write_table(table, tmp_path / "old.parquet")
    found = snapshot_diff(tmp_path / "old.parquet", table.slice(1), key="id", columns=[])
    assert found.deleted["x"].to_pylist() == pa.array([["a"]], pa.list_(plain)).to_pylist()


@pytest.mark.parametrize("view", [pa.string_view(), pa.binary_view()])
@pytest.mark.parametrize(
    ("within", "value"),
    [
        (pa.list_, ["a", None]),
        (pa.large_list, ["a", None]),
        (pa.list_view, ["a", None]),
        (lambda kind: pa.list_(kind, 2), ["a", None]),
        (lambda kind: pa.struct([("name", kind), ("n", pa.int64())]), {"name": "a", "n": 1}),
        (lambda kind: pa.map_(kind, kind), [("a", "b")]),
        (lambda kind: pa.large_list(pa.struct([("names", pa.list_(kind))])), [{"names": ["a"]}]),
    ],
)
def test_snapshot_diff__shows_rows_that_have_views_within_other_values(
    view: pa.DataType, within: Callable[[pa.DataType], pa.DataType], value: Any
) -> None:
    """Of such a column no value is compared, but it stands beside those that are."""
    column = pa.array([value, None, value], within(view))
    tables = [pa.table({"id": ids, "x": column}) for ids in ([1, 2, 3], [2, 3, 4])]
    found = snapshot_diff(*tables, key="id", columns=[])
    assert found.deleted["x"].to_pylist() == column[:1].to_pylist()
    assert found.inserted["x"].to_pylist() == column[2:].to_pylist()
    with pytest.raises(ArgumentError, match="column 'x' has the type .*, whose values cannot be compared"):
        snapshot_diff(*tables, key="id")


@pytest.mark.parametrize(("old", "new"), [("s", "us"), ("us", "ms"), ("s", "ms"), ("ms", "ms")])
def test_snapshot_diff__compares_times_in_the_finer_of_two_units(old: str, new: str) -> None:
    times = [datetime(9999, 1, 1), datetime(1, 1, 1), None]  # neither is within the nanoseconds of 64 bits
    tables = [
        pa.table({"id": [1, 2, 3], "t": pa.array(times[:2] + last, pa.timestamp(unit))})
        for unit, last in ((old, times[2:]), (new, [datetime(2024, 1, 1)]))
    ]
    changed = snapshot_diff(*tables, key="id").updated
    assert [row["id"] for row in changed.to_pylist()] == [3]
    assert changed.schema.field("now").type.field("t").type == pa.timestamp(
        max(old, new, key=["s", "ms", "us"].index)
    )


DECIMALS = [Decimal("1.10"), Decimal(2), Decimal("-3.50")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.array(DECIMALS, pa.decimal128(9, 2)), pa.array(DECIMALS, pa.decimal128(5, 3))),
        (pa.array(DECIMALS, pa.decimal128(38, 30)), pa.array(DECIMALS, pa.decimal32(9, 1))),
        (pa.array(DECIMALS, pa.decimal128(15, 2)), pa.array(map(float, DECIMALS))),
        (pa.array([1, 2, 2**64 - 1], pa.uint64()), pa.array([1, 2, 2**64 - 1], pa.decimal128(30, 5))),
        (pa.array([1, 2, 3], pa.time32("s")), pa.array([1_000_000, 2_000_000, 3_000_000], pa.time64("us"))),
        (pa.array([1, 2, 3], pa.duration("s")), pa.array([1000, 2000, 3000], pa.duration("ms"))),
        (pa.array([1, 2, 3], pa.timestamp("s", "UTC")), pa.array([1, 2, 3], pa.timestamp("s", "Asia/Tokyo"))),
    ],
)
def test_snapshot_diff__takes_a_value_for_itself_in_another_type_of_its_kind(
    old: pa.Array, new: pa.Array
) -> None:
    changed = pa.concat_arrays([new[:2], new[:1]])  # the third value is the first one
    tables = [
        pa.table({"key": key, "x": x, "y": y})
        for key, x, y in ((old, old, [0, 0, 0]), (new[::-1], changed[::-1], [0, 0, 9]))
    ]
    found = snapshot_diff(*tables, key="key")
    assert (len(found.inserted), len(found.deleted), len(found.rekeyed)) == (0, 0, 0)
    assert (found.n_same, found.n_reformatted) == (1, 0)
    assert [row["columns"] for row in found.updated.to_pylist()] == [["x"], ["y"]]


def test_snapshot_diff__tells_apart_durations_of_one_number_in_two_units() -> None:
    tables = [pa.table({"id": [1], "took": pa.array([5], pa.duration(unit))}) for unit in ("s", "ms")]
    assert snapshot_diff(*tables, key="id").updated["columns"].to_pylist() == [["took"]]


def test_snapshot_diff__tells_apart_decimals_beside_floats_to_their_last_digit() -> None:
    old = pa.table({"id": [1], "x": pa.array([Decimal(2**53 + 1)], pa.decimal128(20, 0))})
    new = pa.table({"id": [1], "x": [float(2**53)]})
    assert snapshot_diff(old, new, key="id").updated["columns"].to_pylist() == [["x"]]


def test_snapshot_diff__takes_a_time_in_nanoseconds_for_its_text(tmp_path: Path) -> None:
    """As pandas writes times."""
    times = pa.array([datetime(2024, 1, 1), datetime(2024, 1, 2)], pa.timestamp("ns"))
    (tmp_path / "new.csv").write_text("id,t\n1,2024-01-01T00:00:00\n2,2024-01-02T00:00:00\n")
    pq.write_table(pa.table({"id": [1, 2], "t": times}), tmp_path / "old.parquet")
    found = snapshot_diff(tmp_path / "old.parquet", tmp_path / "new.csv", key="id")
    assert (found.n_reformatted, len(found.updated)) == (2, 0)


def test_snapshot_diff__names_a_list_only_where_it_differs() -> None:
    """In a row that differs elsewhere, a NaN within a list is the same as another."""
    nan, lists = float("nan"), pa.list_(pa.float64())
    old = pa.table({"id": [1, 2], "x": [1, 2], "l": pa.array([[nan, -0.0], [1.0]], lists)})
    new = pa.table({"id": [1, 2], "x": [9, 9], "l": pa.array([[nan, 0.0], [1.0, None]], lists)})
    assert snapshot_diff(old, new, key="id").updated["columns"].to_pylist() == [["x"], ["x", "l"]]


def test_snapshot_diff__compares_json_as_texts(tmp_path: Path) -> None:
    """A value is what it is written as, without quotes; of numbers and objects that which they mean."""
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text(
        '{"id": 1, "x": 1.5, "y": 1, "z": true, "o": {"a": 1, "b": [2, 3]}, "n": null}\n'
        '{"id": 2, "x": 1.0, "y": "02", "z": "", "o": [1, 2], "n": "null"}\n'
    )
    new.write_text(
        '{"id": 1, "x": 1.50, "y": "1", "z": "true", "o": {"b": [2, 3], "a": 1}}\n'
        '{"id": 2, "x": 1, "y": 2, "z": null, "o": [2, 1], "n": null}\n'
    )
    found = snapshot_diff(old, new, key="id")
    assert (found.n_same, found.n_reformatted) == (1, 0)
    assert [(row["id"], row["columns"]) for row in found.updated.to_pylist()] == [("2", ["z", "o", "n"])]


def test_snapshot_diff__compares_formats_with_one_another(tmp_path: Path) -> None:
    rows = [{"id": i, "name": f"n{i}", "x": i / 4} for i in range(9)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows[1:])).encode()))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "c.parquet")
    (tmp_path / "d.csv").write_text(
        "\n".join(["id,name,x", *(f"{r['id']},{r['name']},{r['x']:.3f}" for r in rows)])
    )
    a, b, c, d = (tmp_path / name for name in ("a.jsonl", "b.json.gz", "c.parquet", "d.csv"))
    assert snapshot_diff(a, b, key="id").deleted["name"].to_pylist() == ["n0"]
    for one, other in ((a, c), (c, a), (c, d), (d, c), (a, d), (c, pa.Table.from_pylist(rows))):
        found = snapshot_diff(one, other, key="id")
        assert (found.n_same, len(found.updated), len(found.inserted)) == (9, 0, 0), (one, other)
    assert snapshot_diff(a, d, key="id").n_reformatted == 9


def test_snapshot_diff__of_a_header_alone_finds_all_gone(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id\n")
    found = snapshot_diff(pa.table({"id": [1, 2]}), tmp_path / "new.csv", key="id")
    assert (len(found.deleted), found.n_same, found.distance) == (2, 0, 0)


def parquet_of(text: bytes) -> bytes:
    """A file with such bytes in a column of texts."""
    stream = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([text]).view(pa.string())}), stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.csv", b"id,x\n1,2\n2\n", "line 3: "),
        ("a.csv", b"id,x\n1,2\n,3\n", "record 2 has no id"),
        ("a.csv", b"", "nothing in it"),
        ("a.csv", b"id,x\0y\n1,2\n", r"the name of the column 'x\\x00y' has a NUL"),
        ("a.csv", "id,x\n1,2\n".encode("utf-16"), "it seems to be UTF-16 or UTF-32: store it as UTF-8$"),
        ("a.csv.gz", b"no gzip", "broken gzip|cannot be read"),
        ("a.jsonl", b'{"id": 1}\nnonsense\n', "line 2: "),
        ("a.jsonl", rb'{"id": "\ud800"}', r"a text has '\\ud800', half of a character; mend the record"),
        ("a.parquet", b"nonsense", "cannot be read"),
        ("a.parquet", parquet_of(b"\xff"), "cannot be read: .* UTF8"),
    ],
)
def test_snapshot_diff__says_where_a_file_is_broken(
    tmp_path: Path, name: str, text: bytes, sentence: str
) -> None:
    (tmp_path / name).write_bytes(text)
    with pytest.raises(DataRefusedError, match=sentence):
        snapshot_diff(tmp_path / name, pa.table({"id": ["1"]}), key="id")


def test_snapshot_diff__of_whole_numbers_that_the_other_type_has_not_says_what_to_do() -> None:
    small, large = pa.array([1, 2]), pa.array([1, 2**63 + 5], pa.uint64())
    sentence = "column 'id' cannot be compared as int64, as both snapshots must be .*; make it of one type"
    with pytest.raises(DataRefusedError, match=sentence):
        snapshot_diff(pa.table({"id": small}), pa.table({"id": large}), key="id")
    found = snapshot_diff(
        *(pa.table({"id": ids.cast(pa.decimal128(20, 0))}) for ids in (small, large)), key="id"
    )
    assert found.inserted["id"].to_pylist() == [2**63 + 5]


def test_snapshot_diff__wants_files_it_knows(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("id\n1\n")
    for source, sentence in (
        (tmp_path / "a.txt", "must end in .csv"),
        (tmp_path / "b.csv", "is no file"),
        (3, "not int"),
    ):
        with pytest.raises(ArgumentError, match=sentence):
            snapshot_diff(source, pa.table({"id": ["1"]}), key="id")


def test_without_infinities__looks_into_structs_lists_and_the_items_of_maps() -> None:
    kind = pa.struct([("x", pa.list_(pa.float64())), ("m", pa.map_(pa.string(), pa.float64()))])
    value = pa.scalar({"x": [math.inf, 1.5], "m": {"a": math.nan, "b": -math.inf}}, kind).as_py()
    text = json.dumps(without_infinities(value), allow_nan=False)
    assert json.loads(text) == {"x": ["inf", 1.5], "m": [["a", "nan"], ["b", "-inf"]]}
