"""Differences between snapshots, by every method, against two dictionaries; rows with another key."""

from __future__ import annotations

import csv
import gzip
import io
import math
import tempfile
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin import (
    ArgumentError,
    DataRefusedError,
    Similarity,
    SnapshotDiff,
    progressive_join,
    snapshot_diff,
)
from epsjoin.differ import in_step, keyed, keys
from epsjoin.local.differ.methods import METHODS
from oracles import differ as oracle
from oracles import examples

EXACT = [method for method in METHODS if method != "window"]

TEXT = st.text(st.sampled_from("abc\"'\n\r, ;ä"), max_size=5)  # no number: it could be written otherwise

KEYS = st.tuples(st.sampled_from(["1", "11", "a", "ab"]), st.sampled_from(["1", "11", "", "b|"]).filter(bool))

FILE = st.dictionaries(KEYS, st.tuples(TEXT, TEXT), max_size=12).map(lambda rows: list(rows.items()))

SHAPE = st.fixed_dictionaries(
    {
        "end": st.sampled_from(["\n", "\r\n"]),
        "bom": st.booleans(),
        "gzip": st.booleans(),
        "reverse": st.booleans(),
    }
)


def write_csv(path: Path, rows: list[tuple[tuple[str, str], tuple[str, str]]], shape: dict[str, Any]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=shape["end"], quoting=csv.QUOTE_ALL)
    writer.writerow(["a", "b", "x", "y"])
    writer.writerows([*key, *rest] for key, rest in (rows[::-1] if shape["reverse"] else rows))
    data = (b"\xef\xbb\xbf" if shape["bom"] else b"") + text.getvalue().encode()
    path = path.with_suffix(".csv.gz" if shape["gzip"] else ".csv")
    path.write_bytes(gzip.compress(data) if shape["gzip"] else data)
    return path


def kinds(found: SnapshotDiff) -> dict[str, set[Any]]:
    """The keys of each kind; a row with another key went, and came."""
    before, now = (found.rekeyed[name].to_pylist() for name in ("before", "now"))
    return {
        name: {(row["a"], row["b"]) for row in rows}
        for name, rows in (
            ("deleted", [*found.deleted.to_pylist(), *before]),
            ("inserted", [*found.inserted.to_pylist(), *now]),
            ("updated", found.updated.to_pylist()),
        )
    }


@pytest.mark.parametrize("method", EXACT)
@examples(40)
@given(old=FILE, new=FILE, shapes=st.tuples(SHAPE, SHAPE), memory=st.sampled_from([1e-6, 1.0]))
def test_snapshot_diff__of_nasty_files_equals_two_dictionaries(
    tmp_path_factory: pytest.TempPathFactory, method: str, old: Any, new: Any, shapes: Any, memory: float
) -> None:
    folder = tmp_path_factory.mktemp("files")
    files = [write_csv(folder / str(i), rows, shapes[i]) for i, rows in enumerate((old, new))]
    found = snapshot_diff(*files, key=["a", "b"], method=method, memory_mb=memory)
    expected = oracle.difference(old, new)
    n_same = len(expected.pop("same"))
    assert found.n_reformatted == 0
    assert (kinds(found), found.n_same) == (expected, n_same)


def test_snapshot_diff__shows_rows_columns_and_values(tmp_path: Path) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("id,name,x\n1,a,0.5\n2,b,1.5\n3,,2\n")
    new.write_text("x,name,id,more\n1.50,B,2,7\n2,,3,7\n9,d,4,7\n")
    found = snapshot_diff(old, new, key="id")
    assert found.deleted.to_pylist() == [{"id": "1", "name": "a", "x": "0.5"}]
    assert found.inserted.to_pylist() == [{"x": "9", "name": "d", "id": "4", "more": "7"}]
    assert found.updated.to_pylist() == [
        {
            "id": "2",
            "columns": ["name"],  # x is written otherwise, and the same number
            "before": {"id": "2", "x": "1.5", "name": "b"},
            "now": {"id": "2", "x": "1.50", "name": "B"},
        }
    ]
    assert (found.n_same, found.only_old, found.only_new) == (1, [], ["more"])


def test_snapshot_diff__matches_rows_with_another_key_by_their_content_and_by_nearness() -> None:
    old = pa.table({"id": [1, 2, 3, 4, 5, 6], "x": [0.0, 1.0, 2.0, 3.0, 9.0, 9.0]})
    new = pa.table({"id": [1, 12, 13, 14, 15, 16], "x": [0.0, 1.0, 2.1, 3.4, 9.0, 9.0]})
    found = snapshot_diff(old, new, key="id")
    assert [(row["before"]["id"], row["now"]["id"]) for row in found.rekeyed.to_pylist()] == [(2, 12)]
    assert found.deleted["id"].to_pylist() == [3, 4, 5, 6]  # 5 and 6 are alike, so nobody knows which is 15
    found = snapshot_diff(old, new, key="id", near=0.35)
    rekeyed = [(row["before"]["id"], row["now"]["id"], row["distance"]) for row in found.rekeyed.to_pylist()]
    # of equally near ones the first: 5 and 15; what is left is not asked again
    assert rekeyed == [(2, 12, None), (3, 13, pytest.approx(0.1)), (5, 15, 0.0)]
    assert found.inserted["id"].to_pylist() == [14, 16]


def test_snapshot_diff__near_needs_mutual_nearest_rows() -> None:
    old = pa.table({"id": [1, 2], "x": [0.0, 1.0], "name": ["a", "b"]})
    new = pa.table({"id": [11], "x": [0.4], "name": ["c"]})
    found = snapshot_diff(old, new, key="id", near=0.7)
    assert [row["before"]["id"] for row in found.rekeyed.to_pylist()] == [1]
    with pytest.raises(ArgumentError, match="near needs columns of numbers; none of name is one"):
        snapshot_diff(old, new, key="id", columns=["name"], near=0.7)


def test_snapshot_diff__matches_rows_with_another_key_by_several_criteria(tmp_path: Path) -> None:
    old = pa.table(
        {
            "id": [1, 2, 3, 4, 5],
            "lat": [50.0, 50.0, -10.0, 0.0, 70.0],
            "lon": [8.0, 8.0, 179.99, 0.0, 0.0],
            "name": ["Frankfurt", "Mainz Finthen", "Fiji", "Null Island", None],
            "khz": [114.2, 114.2, 300.0, 100.0, 100.0],
        }
    )
    new = pa.table(
        {
            "id": [11, 12, 13, 14, 15],
            "lat": [50.001, 50.0, -10.0, 0.0, 70.001],
            "lon": [8.0, 8.0, -179.99, 0.0, 0.0],
            "name": ["MAINZ-FINTHEN", "Frankfurt Main", "Fiji VOR", "Elsewhere", None],
            "khz": ["114.2", "114.2", "300", "100", "100"],
        }
    )
    near: dict[Any, float] = {("lat", "lon"): 3.0, "name": 0.6, "khz": 0.05}
    found = snapshot_diff(old, new, key="id", near=near)
    rekeyed = {row["before"]["id"]: row["now"]["id"] for row in found.rekeyed.to_pylist()}
    # 2 lies nearer to 12, whose name is another one; 4 has no namesake, and no name is no name in common
    assert rekeyed == {1: 12, 2: 11, 3: 13}
    kilometres = 0.02 * 111.195 * math.cos(math.radians(10))
    (fiji,) = (row["distance"] for row in found.rekeyed.to_pylist() if row["before"]["id"] == 3)
    shared = {"  f", " fi", "fij", "iji", "ji "}, {"ji ", "i v", " vo", "vor", "or "}
    alike = len(shared[0]) / len(shared[0] | shared[1])
    assert fiji == pytest.approx(kilometres / 3.0 + (1 - alike) / 0.6, rel=1e-4)
    two = pa.concat_tables([new, pa.table({**new.slice(2, 1).to_pydict(), "id": [16], "lat": [-10.001]})])
    doubtful = snapshot_diff(
        old, two.set_column(3, "name", [[*new["name"].to_pylist(), "Fiji"]]), key="id", near=near
    )
    left = {row["before"]["id"]: row["now"]["id"] for row in doubtful.rekeyed.to_pylist()}
    assert left == {1: 12, 2: 11}, "13 is nearer to 3, 16 has the better name"
    by_place = snapshot_diff(old, new, key="id", near={("lat", "lon"): 3.0})
    assert {row["before"]["id"]: row["now"]["id"] for row in by_place.rekeyed.to_pylist()}[4] == 14


@pytest.mark.parametrize(
    ("near", "words"),
    [
        ({"name": 0.5}, "near needs a column of numbers or a place"),
        ({"color": 1.0}, "near: 'color' is no column that both snapshots have"),
        ({("name", "x"): 1.0}, "near: name and x are no place"),
        ({"x": -1.0}, "near must be a distance, at least 0, or several"),
        ({}, "near must be a distance, at least 0, or several"),
    ],
)
def test_snapshot_diff__refuses_criteria_that_say_nothing(near: Any, words: str) -> None:
    old = pa.table({"id": [1], "x": [0.0], "name": ["a"]})
    new = pa.table({"id": [11], "x": [0.4], "name": ["c"]})
    with pytest.raises(ArgumentError, match=words):
        snapshot_diff(old, new, key="id", near=near)


@pytest.mark.parametrize("kind", [pa.int64(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_snapshot_diff__near_takes_numbers_of_any_type(kind: pa.DataType) -> None:
    """Whole numbers that float64 rounds, too: near is a distance."""
    if kind == pa.int64():
        old, new = [2**60 + 1], [2**60 + 3]
    else:
        old, new = ["7.5"], ["8.0"]
    made = [pa.table({"id": [id_], "x": pa.array(x).cast(kind)}) for id_, x in ((1, old), (2, new))]
    found = snapshot_diff(*made, key="id", near={"x": 5.0})
    assert [row["now"]["id"] for row in found.rekeyed.to_pylist()] == [2]


def test_snapshot_diff__of_a_broken_file_refuses_it(tmp_path: Path) -> None:
    file = tmp_path / "old.parquet"
    pq.write_table(pa.table({"id": list(range(1000))}), file)
    column = pq.ParquetFile(file).metadata.row_group(0).column(0)
    with file.open("r+b") as opened:
        opened.seek(column.dictionary_page_offset or column.data_page_offset)
        opened.write(b"\xff" * 40)
    with pytest.raises(DataRefusedError, match="old.parquet: cannot be read: "):
        snapshot_diff(str(file), pa.table({"id": [1]}), key="id")
    with pytest.raises(DataRefusedError, match="old.parquet: cannot be read: "):
        progressive_join(file, on=Similarity(0.5), columns=["id"], memory="1MB")


def test_snapshot_diff__without_a_key_counts_whole_rows(tmp_path: Path) -> None:
    rows = [["a", "b", "a", "a"], ["c", "a", "b", "b"]]
    files = [tmp_path / "old.csv", tmp_path / "new.csv"]
    for file, names in zip(files, rows, strict=True):
        file.write_text("\n".join(["name", *names, ""]))
    found = snapshot_diff(*files, key=[])
    went, came = oracle.multiset_difference(*rows)
    assert Counter(found.deleted["name"].to_pylist()) == went
    assert Counter(found.inserted["name"].to_pylist()) == came
    assert (len(found.updated), len(found.rekeyed), found.n_same) == (0, 0, 2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("memory_mb", [1e-6, 1])
def test_snapshot_diff__refuses_a_key_that_comes_twice(method: str, side: int, memory_mb: float) -> None:
    good, bad = pa.table({"id": [1, 2, 3]}), pa.table({"id": [3, 1, 2, 1]})
    bad = pa.Table.from_batches([batch for i in range(4) for batch in bad.slice(i, 1).to_batches()])
    tables = [bad, good] if side == 0 else [good, bad]
    with pytest.raises(DataRefusedError, match="records 2 and 4 have one key, id 1; name more key columns"):
        snapshot_diff(*tables, key="id", method=method, memory_mb=memory_mb)


@pytest.mark.parametrize("method", METHODS)
def test_snapshot_diff__keeps_no_file_while_somebody_keeps_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, new = pa.table({"id": [1, 2]}), pa.table({"id": [2, 2]})
    with pytest.raises(DataRefusedError) as kept:
        snapshot_diff(old, new, key="id", method=method, memory_mb=1e-6)
    assert (list(tmp_path.iterdir()), kept.value.__traceback__ is None) == ([], False)


def test_snapshot_diff__sees_a_double_of_which_each_has_a_partner() -> None:
    """In both snapshots the key comes twice: every row has a partner, and still nobody knows which."""
    twice = pa.table({"id": [1, 2, 1]})
    with pytest.raises(DataRefusedError, match="old: records 1 and 3 have one key"):
        snapshot_diff(twice, twice, key="id", memory_mb=1e-6)


@pytest.mark.parametrize(
    ("method", "where"), [("auto", (in_step, "order_rows")), ("hash", (keyed, "differ"))]
)
def test_snapshot_diff__that_is_interrupted_reads_no_further(
    monkeypatch: pytest.MonkeyPatch, method: str, where: tuple[Any, str]
) -> None:
    old, new = pa.table({"id": [2, 1]}), pa.table({"id": [1, 2]})
    monkeypatch.setattr(*where, mock.Mock(side_effect=KeyboardInterrupt))
    monkeypatch.setattr(keys, "find_double", lambda _: pytest.fail("both files were read to the end"))
    with pytest.raises(KeyboardInterrupt):
        snapshot_diff(old, new, key="id", method=method)


@pytest.mark.parametrize("name", ["columns", "before", "now"])
def test_snapshot_diff__refuses_a_key_that_would_be_hidden_in_its_answer(name: str) -> None:
    table = pa.table({name: [1], "x": [1]})
    with pytest.raises(ArgumentError, match=f"a key column cannot be called '{name}'"):
        snapshot_diff(table, table, key=name)
    assert snapshot_diff(table, table, key="x").n_same == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"key": "id", "method": "best"}, "method must be one of auto, sort-merge"),
        ({"key": "id", "digest_bits": 12}, "digest_bits must be one of 8, 16"),
        ({"key": "id", "memory_mb": 0}, "memory_mb must be a number above 0, not 0"),
        ({"key": "id", "memory_mb": math.inf}, "memory_mb must be a number above 0, not inf"),
        ({"key": "id", "memory_mb": "a"}, "memory_mb must be a number above 0, not 'a'"),
        ({"key": "id", "near": "a"}, "near must be a distance"),
        ({"key": "id", "near": True}, "near must be a distance"),
        ({"key": "id", "near": {"x": "a"}}, "near must be a distance"),
        ({"key": ["id", "id"]}, "key names a column twice: id, id"),
        ({"key": "id", "near": 1, "near_columns": ["z"]}, "near_columns: z is no compared column; .* are x"),
        ({"key": "id", "near": 1, "near_columns": 5}, "near_columns must be a column's name or a list .* 5"),
        ({"key": "id", "columns": 5}, "columns must be a column's name or a list of names, not 5"),
        ({"key": "id", "near": -1}, "near must be a distance"),
        ({"key": [], "near": 1}, "near must be a distance"),
        ({"key": [], "method": "SMC1"}, "method 'SMC1' needs a key"),
        ({"key": "ID"}, "old has no column 'ID'; it has id, x"),
        ({"key": None}, "key must be a column's name or a list of names, not None"),
        ({"key": "id", "near": {5: 2}}, "near: 5 is no name of a column, nor a pair of names"),
        ({"key": "id", "near": {"z": 2}}, "near: 'z' is no column that both snapshots have"),
        ({"key": "id", "columns": ["z"]}, "old has no column 'z'"),
        ({"key": "id", "counters": []}, r"counters must be a dictionary, .* not \[\]"),
    ],
)
def test_snapshot_diff__refuses_wrong_arguments(arguments: dict[str, Any], sentence: str) -> None:
    table = pa.table({"id": [1], "x": [1]})
    with pytest.raises(ArgumentError, match=sentence):
        snapshot_diff(table, table, **arguments)


def test_snapshot_diff__adds_its_work_to_the_counters() -> None:
    counters = {"rows": 1}
    table = pa.table({"id": list(range(5000)), "x": [0.5] * 5000})
    found = snapshot_diff(table, table, key="id", counters=counters)
    assert counters == {"rows": 10_001, "blocks_read": found.blocks_read, "blocks_written": 0}
    assert found.blocks_read == -(-2 * 5000 * 40 // (16 << 10))


@pytest.mark.parametrize("y", [("1", "a"), (date(2024, 1, 1), date(2024, 1, 2))])
def test_snapshot_diff__measures_no_distance_of_what_is_no_number(y: tuple[Any, Any]) -> None:
    old, new = (pa.table({"id": [id_], "x": [f"1.{id_}"], "y": [y[id_]]}) for id_ in (0, 1))
    with pytest.raises(ArgumentError, match="near needs columns of numbers; not all values of y are numbers"):
        snapshot_diff(old, new, key="id", near=9, near_columns=["x", "y"])
    assert snapshot_diff(old, new, key="id", near=9, near_columns="x").rekeyed.num_rows == 1
    old, new = (pa.table({"id": [id_], "x": [id_], "y": pa.nulls(1, pa.string())}) for id_ in (0, 1))
    assert snapshot_diff(old, new, key="id", near=9, near_columns=["x", "y"]).inserted.num_rows == 1


def test_snapshot_diff__takes_one_name_as_columns() -> None:
    old, new = (pa.table({"id": [1], "name": [name], "n": [name], "x": [name]}) for name in "ab")
    assert snapshot_diff(old, new, key="id", columns="name").updated["columns"].to_pylist() == [["name"]]


NUMBER = st.none() | st.integers(-3, 3).map(lambda n: n / 10) | st.sampled_from([math.nan, math.inf, 1e30])


@given(
    st.lists(st.tuples(NUMBER, NUMBER, NUMBER, NUMBER), max_size=8),
    st.sampled_from([0.0, 0.1, 0.3]),
    st.booleans(),
)
@examples(200)
def test_snapshot_diff__with_a_tolerance_is_that_of_the_decimals(rows, most, is_text):
    def column(values):
        return pa.array([None if v is None else repr(v) for v in values] if is_text else values, type_)

    type_ = pa.string() if is_text else pa.float64()
    old, new = (
        pa.table(
            {"id": range(len(rows)), "x": column(row[a] for row in rows), "y": column(row[b] for row in rows)}
        )
        for a, b in ((0, 1), (2, 3))
    )
    found = snapshot_diff(old, new, key="id", tolerance={"x": most})
    expected, n_within = {}, 0
    for number, (x, y, x_now, y_now) in enumerate(rows):
        is_same = {"x": repr(x) == repr(x_now), "y": repr(y) == repr(y_now)}
        is_within = x is not None and x_now is not None and abs(x - x_now) <= most + 1e-9
        changed = [name for name in "xy" if not is_same[name] and not (name == "x" and is_within)]
        if changed:
            expected[number] = changed
        elif not is_same["x"]:
            n_within += 1
    assert (
        dict(zip(*(found.updated[name].to_pylist() for name in ("id", "columns")), strict=True)) == expected
    )
    assert (found.n_within, found.n_same) == (n_within, len(rows) - len(expected))
    assert found.n_by_column == Counter(name for names in expected.values() for name in names)


def test_snapshot_diff__measures_a_tolerance_to_the_last_digit():
    old = pa.table({"id": [1, 2, 3, 4], "x": ["1.1", "1" + "0" * 40, "9007199254740993", "a"]})
    new = pa.table({"id": [1, 2, 3, 4], "x": ["1.2", "1" + "0" * 39 + "1", "9007199254740992", "b"]})
    for most, ids in ((0.1, [2, 3, 4]), (0.9, [2, 3, 4]), (1, [4])):
        assert snapshot_diff(old, new, key="id", tolerance={"x": most}).updated["id"].to_pylist() == ids
    new = new.set_column(1, "x", pa.array(["1.2" + "0" * 40 + "1", *["0"] * 3]))
    assert snapshot_diff(old, new, key="id", tolerance={"x": 0.1}).updated["id"].to_pylist() == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("is_coded", [False, True])
def test_snapshot_diff__measures_a_tolerance_of_floats_of_few_bits_as_they_are_written(kind, is_coded):
    """As float64 the float32 nearest to 1.2 is more than 0.1 above that nearest to 1.1."""

    def table(values):
        column = pa.array(np.array(values, kind), mask=np.array([value is None for value in values]))
        return pa.table({"id": range(5), "x": column.dictionary_encode() if is_coded else column})

    old, new = table([1.1, 1.1, 0.5, math.nan, None]), table([1.2, 1.3, 0.5, 1.0, 1.0])
    found = snapshot_diff(old, new, key="id", tolerance={"x": 0.1})
    assert (found.n_within, found.n_same, found.updated["id"].to_pylist()) == (1, 2, [1, 3, 4])


def test_snapshot_diff__takes_for_a_number_what_a_contract_does():
    """Python's own would take more: 1_0 for 10, digits of other writings."""
    texts = ["1_0", "１", "1e9999999", "inf", "", "0x1"], ["10", "1.05", "1", "inf ", "0", "1"]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        old, new = (pa.table({"id": range(6), "x": pa.array(each).cast(kind)}) for each in texts)
        found = snapshot_diff(old, new, key="id", tolerance={"x": 0.1})
        assert (found.n_within, found.updated["id"].to_pylist()) == (0, [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"key": "id", "tolerance": {"z": 1}}, "tolerance: z is no compared column; those are x, day"),
        ({"key": "id", "tolerance": {"id": 1}}, "tolerance: id is no compared column"),
        ({"key": "id", "tolerance": {"day": 1}}, r"tolerance: column day holds date32\[day\], not numbers"),
        ({"key": "id", "tolerance": {"x": -1}}, "tolerance of x must be a finite number, at least 0, not -1"),
        ({"key": "id", "tolerance": {"x": math.nan}}, "tolerance of x must be a finite number"),
        ({"key": [], "tolerance": {"x": 1}}, "tolerance needs a key"),
        ({"key": "id", "tolerance": 0.1}, "tolerance must map columns to numbers, not 0.1"),
    ],
)
def test_snapshot_diff__refuses_a_tolerance_that_means_nothing(how, says):
    table = pa.table({"id": [1], "x": [1.0], "day": pa.array([0], pa.date32())})
    with pytest.raises(ArgumentError, match=says):
        snapshot_diff(table, table, **how)
