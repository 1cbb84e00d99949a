"""Differences between snapshots, by every method, against two dictionaries."""

from __future__ import annotations

import csv
import gzip
import io
import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin import ArgumentError, DataRefusedError, Similarity, SnapshotDiff, progressive_join, snapshot_diff
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
        "delimiter": st.sampled_from([",", ",", ";", "\t", "|"]),
    }
)


def write_csv(path: Path, rows: list[tuple[tuple[str, str], tuple[str, str]]], shape: dict[str, Any]) -> Path:
    text = io.StringIO()
    end, delimiter = shape["end"], shape["delimiter"]
    writer = csv.writer(text, lineterminator=end, delimiter=delimiter, quoting=csv.QUOTE_ALL)
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


def test_snapshot_diff__reads_each_file_by_the_delimiter_that_is_certain(tmp_path: Path) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("id;name;x\n1;a,b;0.5\n2;b;1.5\n")
    new.write_text("id\tname\tx\n1\ta,b\t0.5\n2\tb\t1.75\n")
    found = snapshot_diff(old, new, key="id")
    assert [row["id"] for row in found.updated.to_pylist()] == ["2"]
    assert found.n_same == 1
    new.write_text("id;name;x\n1;a;2;3\n2;b;1.5\n")
    with pytest.raises(ArgumentError, match="id;name;x"):
        snapshot_diff(old, new, key="id")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", "^", "~", "#", "$"])
def test_snapshot_diff__splits_each_csv_file_at_the_delimiter_that_is_said(
    tmp_path: Path, delimiter: str
) -> None:
    old, new, other = (tmp_path / name for name in ("old.csv", "new.csv", "other.jsonl"))
    for file, x in ((old, "0.5"), (new, "0.75")):
        lines = [["id", "name", "x"], ["1", f'"{delimiter}"', x], ["2", "a.b c", "1.5"]]
        file.write_text("".join(delimiter.join(line) + "\n" for line in lines))
    found = snapshot_diff(old, new, key="id", delimiter=delimiter)
    assert [row["id"] for row in found.updated.to_pylist()] == ["1"]
    assert (found.updated["columns"].to_pylist(), found.n_same) == ([["x"]], 1)
    other.write_text('{"id": 2, "name": "a.b c", "x": 1.5}\n')
    for sides in ((old, other), (other, old), (pa.table({"id": ["2"], "x": ["1.5"]}), new)):
        found = snapshot_diff(*sides, key="id", delimiter=delimiter)
        assert found.n_same == 1, "it is for those of the two that are CSV"


def test_snapshot_diff__refuses_a_delimiter_that_no_file_has_or_needs(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;x,y\n1;2,3\n")
    with pytest.raises(ArgumentError, match="no column 'id'"):
        snapshot_diff(tmp_path / "a.csv", tmp_path / "a.csv", key="id")
    assert snapshot_diff(tmp_path / "a.csv", tmp_path / "a.csv", key="id", delimiter=";").n_same == 1
    with pytest.raises(ArgumentError, match=r"delimiter must be one of ',', ';', .*, not 'x'"):
        snapshot_diff(tmp_path / "a.csv", tmp_path / "a.csv", key="id", delimiter="x")
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n')
    for other in (pa.table({"id": [1]}), tmp_path / "a.jsonl"):
        with pytest.raises(ArgumentError, match="delimiter is for CSV files, and neither snapshot is one"):
            snapshot_diff(other, tmp_path / "a.jsonl", key="id", delimiter=";")


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


def test_snapshot_diff__takes_one_name_as_columns() -> None:
    old, new = (pa.table({"id": [1], "name": [name], "n": [name], "x": [name]}) for name in "ab")
    assert snapshot_diff(old, new, key="id", columns="name").updated["columns"].to_pylist() == [["name"]]
