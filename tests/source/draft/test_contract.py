"""A drafted contract: what is guessed of the columns, and what is refused."""

from __future__ import annotations

import gzip
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.source import bounds
from epsjoin.source.draft import guess
from epsjoin.source.draft.contract import draft
from epsjoin.source.records import open_records
from tests.source.draft.drafts import DATA, drafted, reasons


def test_draft__of_real_places_on_the_map(tmp_path: Path) -> None:
    source, text = drafted(DATA / "navaids" / "2023-06-04.csv.gz", tmp_path)
    assert (source.metric, source.unit) == ("haversine", "km")
    assert source.coordinates == ("latitude_deg", "longitude_deg")
    assert source.key == ("id",)
    assert source.column("name").type == "string"
    assert source.path == "tests/data/navaids/{date}.csv.gz"
    assert "# - path: {date} stands for the date of a snapshot" in text
    with (DATA / "navaids" / "2023-06-04.csv.gz").open("rb") as stream:
        records = list(open_records(stream, "2023-06-04.csv.gz", source))
    assert len(records) == 11_020
    assert [record.reason for record in records if record.reason] == [], "every row fits the draft"


def test_draft__knows_no_type_for_texts_and_a_number_too_close_to_0(tmp_path: Path) -> None:
    """The jobs would refuse the number, in a column of texts as in one of numbers."""
    file = tmp_path / "a.jsonl"
    file.write_text("".join(f'{{"x": 0.5, "label": {label}}}\n' for label in ('"a"', "1e-400")))
    assert "'label' is left out: its values are of several types" in draft(file, "mine")


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        (["007", "7", "012"], "007"),
        (["7", " 00", "NA"], "00"),
        ([str(2**64 - 1), "5", str(2**64 - 2)], str(2**64 - 1)),
    ],
)
def test_draft__of_whole_numbers_that_no_number_tells_apart_is_of_texts(
    tmp_path: Path, codes: list[str], told: str
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("x,code\n" + "".join(f"{row}.5,{code}\n" for row, code in enumerate(codes)))
    source, text = drafted(file, tmp_path)
    assert (source.key, source.coordinates) == (("code",), ("x",))
    assert source.column("code").type == "string"
    assert f"# - code is a text, as no number keeps all digits of {told}\n" in text
    with file.open("rb") as stream:
        assert [each.values[1] for each in open_records(stream, file.name, source) if each.values] == codes
    file.write_text(file.read_text().replace(".5,", "a,"))
    with pytest.raises(DataRefusedError, match=f"'code' is a text, as no number keeps all digits of {told}"):
        draft(file, "mine")


def test_draft__of_measurements_with_zeros_before_them_or_very_large_is_of_numbers(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"x,y,z\n007,{10**30},0\n07.5,1.5,10\n")
    source, text = drafted(file, tmp_path)
    assert source.coordinates == ("x", "y")
    assert [source.column(name).type for name in "xyz"] == ["number", "number", "integer"]
    assert "no number keeps" not in text
    assert reasons(file, source) == []


def test_draft__of_parquet_leaves_out_numbers_that_take_more_than_64_bits(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    hashes = pa.array([5, 2**64 - 1], pa.uint64())
    pq.write_table(pa.table({"x": [1.0, 2.0], "hash": hashes}), file)
    source, text = drafted(file, tmp_path)
    assert source.coordinates == ("x",)
    left_out = f"'hash' is left out: its whole numbers take more than 64 bits, such as {2**64 - 1}; store"
    assert f"# - {left_out} them as texts\n" in text


def test_draft__of_parquet_with_whole_numbers_and_names_that_cannot_be(tmp_path: Path) -> None:
    file = tmp_path / "d.parquet"
    pq.write_table(
        pa.table({"code": ["a", "b"], "n": [1, 2], "m": [3, None], "Sepal.Shape": ["a", "a"]}), file
    )
    source, text = drafted(file, tmp_path)
    assert (source.key, source.coordinates) == (("code",), ("n", "m"))
    assert source.column("Sepal_Shape").in_file == "Sepal.Shape"
    assert reasons(file, source) == []
    assert source.optional == ("m",)
    assert "# - Sepal_Shape is what the file calls 'Sepal.Shape' (physicalName); choose its name" in text
    assert "# - m is missing in 1 row: left out, or with required: true bad" in text


def test_draft__gives_every_column_a_name_that_a_contract_can_have(tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    names = ["id", "run", "x y", "x_y", "X.Y", "2nd", "緯度", "", "a: 'b'"]
    rows = [[f"k{row}", *(str(row + place / 8) for place in range(1, len(names)))] for row in range(3)]
    lines = [names, *rows]
    file.write_text("".join(",".join(cells) + "\n" for cells in lines), encoding="utf-8")
    source, text = drafted(file, tmp_path)
    assert {column.name: column.in_file for column in source.columns} == {
        "id_2": "id",
        "run_2": "run",
        "x_y": "x y",
        "x_y_2": "x_y",
        "X_Y_3": "X.Y",
        "c_2nd": "2nd",
        "c_": "緯度",
    }
    assert source.key == ("id_2",)
    assert "physicalName: 緯度" in text, "as people write it"
    assert "# - '' is left out: it has no name" in text
    assert """# - "a: 'b'" is left out: its name has a sign that cannot be printed""" in text
    assert reasons(file, source) == []


@pytest.mark.parametrize(
    ("name", "content", "error", "sentence"),
    [
        ("a.txt", b"x\n1\n", ArgumentError, "must end in .csv"),
        ("gone.csv", None, ArgumentError, "is no file"),
        ("words.csv", b"a,b\nx,y\n", DataRefusedError, "no column holds numbers, so none can be a"),
        ("key.csv", b"id\n1\n", DataRefusedError, "no column holds numbers except the key id"),
        (
            "bare.csv",
            b"1,2.5,3\n2,3.5,4\n",
            DataRefusedError,
            r"nothing but numbers \(1, 2.5, 3\), so it is no header",
        ),
        (
            "odd.csv",
            b"k,a: 'b'\nx,2.5\n",
            DataRefusedError,
            """none of them can be .*"a: 'b'": its name has a sign that cannot be printed, or a quote""",
        ),
        (
            "twice.csv",
            b"id,x,x\n1,2.5,3.5\n",
            DataRefusedError,
            "no column holds numbers except the key id, .*; 'x' is left out: its name occurs more than once",
        ),
        (
            "large.csv",
            b"k,n\na,9007199254740993\n",
            DataRefusedError,
            r"can be a coordinate \('n': beyond 2\*\*53\)",
        ),
        ("none.csv", b"x,y\n", DataRefusedError, "it has no record$"),
        (
            "semicolons.csv",
            b"id;x;y\n1;1,5;2,5\n",
            DataRefusedError,
            "key id, so .*; 'x' has numbers with a comma in them as texts; with a decimal point .*; 'y' has",
        ),
        (
            "nothing.csv",
            b"id;x;y\n",
            DataRefusedError,
            "it has no record$",
        ),
        (
            "quoted.csv",
            b'"id";"x"\n1;2\n1;2;3\n',
            DataRefusedError,
            "the header is not CSV: .*; its fields seem to be separated by ';', and the delimiter is ','",
        ),
        (
            "ragged.csv",
            b"id\tx\n1\t2\n1\t2\t3\n",
            DataRefusedError,
            "no column holds numbers.*; its fields seem to be separated by tabs, and the delimiter is ','",
        ),
        (
            "documents.json",
            b'{"k": "a", "spec": null}\n{"k": "b", "spec": {"x": [1]}}\n',
            DataRefusedError,
            r"'spec' is left out: its values are objects, such as .*'x'.*; coordinates in them must be "
            "columns of their own, and to compare .* metric: tree_edit",
        ),
        ("array.json", b"[\n{}]\n", DataRefusedError, "an array begins here; each line must be one object"),
        (
            "u16.csv",
            "x,y\n1,2\n".encode("utf-16"),
            DataRefusedError,
            "it seems to be UTF-16 or UTF-32",
        ),
        ("cut.csv", b"x,y\n1,2\n3", DataRefusedError, "the file ends within this record"),
        ("broken.parquet", b"PAR1", DataRefusedError, "not a Parquet file"),
        (
            "broken.csv.gz",
            gzip.compress(b"x\n1\n", mtime=0)[:-9],
            DataRefusedError,
            "broken.csv.gz: cannot be read: Compressed file ended",
        ),
    ],
)
def test_draft__says_what_is_wrong_with_a_file(
    tmp_path: Path, name: str, content: bytes | None, error: type[Exception], sentence: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=sentence):
        draft(tmp_path / name, "mine")


@pytest.mark.parametrize(
    ("name", "line"),
    [("a.csv", b"1,2.5,x\n"), ("a.csv.gz", b"1,2.5,x\n"), ("a.jsonl.gz", b'{"a":1,"b":2.5}\n')],
)
def test_draft__reads_no_more_than_it_looks_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: bytes
) -> None:
    text = (b"a,b,c\n" if "csv" in name else b"") + line * 200 + b'{"broken' * 2000
    file = tmp_path / name
    file.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    monkeypatch.setattr(guess, "MAX_CHARACTERS", 1000)
    assert "coordinates: b" in draft(file, "a")
    monkeypatch.setattr(bounds, "MAX_LINE", 1000)
    file.write_bytes(gzip.compress(b"x" * 5000) if name.endswith("gz") else b"x" * 5000)
    with pytest.raises(DataRefusedError, match="a line is longer than 1,000 bytes"):
        draft(file, "a")


def test_draft__refuses_a_parquet_file_of_endless_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"a": np.zeros(100_000)}), tmp_path / "a.parquet")
    assert "coordinates: a" in draft(tmp_path / "a.parquet", "a")
    monkeypatch.setattr(bounds, "FREE_EXPANSION", 0)
    monkeypatch.setattr(bounds, "MAX_EXPANSION", 20)
    with pytest.raises(DataRefusedError, match=r"bytes become 800,000 or more, over \d+ times"):
        draft(tmp_path / "a.parquet", "a")


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_draft__has_the_delimiter_that_the_first_records_show(
    tmp_path: Path, delimiter: str, ending: str
) -> None:
    rows = [f'{i},{i % 7}.5,"a{delimiter}b"' for i in range(300)]
    data = "\n".join(["id,x,name", *rows, ""]).replace(",", delimiter).encode()
    file = tmp_path / f"a{ending}"
    file.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    source, text = drafted(file, tmp_path)
    assert source.delimiter == delimiter
    assert (source.key, source.coordinates) == (("id",), ("x",))
    said = "a tab" if delimiter == "\t" else f"'{delimiter}'"
    assert text.splitlines()[:2] == [
        "# Drafted from 300 rows. Check what was guessed:",
        f"# - delimiter: {said}",
    ]
    assert reasons(file, source) == []
    by_commas = tmp_path / "commas.csv"
    by_commas.write_bytes(data.replace(delimiter.encode(), b","))
    other, told = drafted(by_commas, tmp_path)
    assert replace(other, path=source.path, delimiter=delimiter) == source
    assert "- delimiter" not in told
    assert "property: delimiter" not in told


def test_draft__names_a_column_of_numbers_with_commas_beside_coordinates(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;x;y;z\n1;0.5;-1,5;a,b\n2;0.5;2;1,5\n")
    _, text = drafted(tmp_path / "a.csv", tmp_path)
    assert "# - y has numbers with a comma in them as texts; with a decimal point they could be" in text
    assert "# - z" not in text


def test_draft__takes_the_delimiter_that_it_is_given(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id;x\n" + "".join(f"{i};0.5\n" for i in range(200)) + "1;2;3\n")
    assert draft(file, "mine") == draft(file, "mine", ";")
    file.write_text("id;x\n1;2;3\n" + "".join(f"{i};0.5\n" for i in range(200)))
    with pytest.raises(DataRefusedError, match="separated by ';', and the delimiter is ','"):
        draft(file, "mine")
    assert "# - of these rows, points: 200, left out: 0, bad: 1" in draft(file, "mine", ";")
    (tmp_path / "a.jsonl").write_text('{"id": 1, "x": 0.5}\n')
    with pytest.raises(ArgumentError, match="--delimiter is for CSV"):
        draft(tmp_path / "a.jsonl", "mine", ";")


def test_draft__counts_the_lines_that_cannot_be_split_too(tmp_path: Path) -> None:
    rows = [f"{i},{i}.5" for i in range(300)]
    (tmp_path / "a.csv").write_text("\n".join(["id,x", *rows, "1,2,3,4", ""]))
    text = draft(tmp_path / "a.csv", "a")
    assert text.startswith("# Drafted from 301 rows. ")
    assert "# - of these rows, points: 300, left out: 0, bad: 1" in text


def test_draft__of_a_part_of_a_file_says_so_and_warns_of_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("\n".join(["id,x", *(f"{i},{i}.5" for i in range(300))]))
    for name, limit in (("MAX_ROWS", 40), ("MAX_CHARACTERS", 200)):
        with monkeypatch.context() as patch:
            patch.setattr(guess, name, limit)
            first, key, *_ = draft(tmp_path / "a.csv", "a").splitlines()
        assert re.match(r"# Drafted from the first \d\d rows; the file has more\. Check", first)
        assert key == "# - key: id, by these rows; a later one may have one of its values again"
    monkeypatch.setattr(guess, "MAX_ROWS", 300)
    first, key, *_ = draft(tmp_path / "a.csv", "a").splitlines()
    assert (first, key) == ("# Drafted from 300 rows. Check what was guessed:", "# - key: id")


def test_draft__of_texts_for_missing_numbers_and_of_some_bad_ones(tmp_path: Path) -> None:
    rows = [f"{i},{i % 7}.5,{i}" for i in range(197)]
    (tmp_path / "m.csv").write_text("\n".join(["k,x,n", *rows, "a,NA,NULL", "b,oops,0x10", "c,1.5,7", ""]))
    source, text = drafted(tmp_path / "m.csv", tmp_path)
    assert source.missing == ("NA", "NULL")
    assert [(column.name, column.type) for column in source.columns] == [
        ("k", "string"),
        ("x", "number"),
        ("n", "integer"),
    ]
    assert "# - x: 1 value of no number, such as 'oops'" in text
    assert "# - x: NA stands for no value (missing_values)" in text
    assert "# - of these rows, points: 198, left out: 1, bad: 1" in text
    assert "# - bad, most often (1): x: not a number" in text


def test_draft__of_parquet_leaves_out_what_no_contract_can_type(tmp_path: Path) -> None:
    table = {
        "x": pa.array(["1.5", "2.5"]).cast(pa.decimal128(5, 2)),
        "half": pa.array(np.array([1.5, 2.5], np.float16)),
        "u": pa.array([1, 2], pa.uint64()),
        "raw": [b"a", b"b"],
        "clock": pa.array([1, 2], pa.time32("s")),
        "long": pa.array([1, 2], pa.duration("s")),
        "list": [[1], [2]],
        "none": pa.nulls(2),
        "when": pa.array([0, 1], pa.timestamp("us", "UTC")),
        "day": pa.array([0, 1], pa.date32()),
        "word": pa.array(["a", "b"]).dictionary_encode(),
    }
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table(table), file)
    source, text = drafted(file, tmp_path)
    assert {column.name: column.type for column in source.columns} == {
        "x": "number",
        "half": "number",
        "u": "integer",
        "clock": "time",
        "none": "string",
        "when": "timestamp",
        "day": "date",
        "word": "string",
    }
    assert "# - list is left out: a list can only be the coordinates, which are other columns" in text
    assert reasons(file, source) == []


def test_draft__of_parquet_says_that_too_many_numbers_are_not_finite(tmp_path: Path) -> None:
    values = {"x": [1.5, 2.5, 3.5], "y": [1.5, math.inf, math.nan], "z": [1.5, math.inf, -math.inf]}
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table(values), file)
    text = draft(file, "mine")
    assert "'y' is left out: 1 of its 2 values is not finite, such as 'inf'; at most 1% may be" in text
    assert "'z' is left out: 2 of its 3 values are not finite, such as 'inf'; at most 1% may be" in text


def test_draft__says_of_a_compressed_file_what_its_name_must_be(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(DataRefusedError, match=r"a\.csv: the file is compressed by gzip: its name must end"):
        draft(tmp_path / "a.csv", "a")


def test_draft__tells_how_dates_are_written(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    rows = [f"{i}.5,{1 + i:02}.12.2023,{1 + i % 12:02}/{1 + i % 12:02}/2023,1/2/2023" for i in range(31)]
    file.write_text("\n".join(["x,day,either,other", *rows, "2.5,,,"]))
    source, text = drafted(file, tmp_path)
    assert (source.column("day").type, source.column("day").form) == ("date", "dd.MM.yyyy")
    assert [source.column(name).type for name in ("either", "other")] == ["string", "string"]
    assert "# - either has dates as MM/dd/yyyy or dd/MM/yyyy: set logicalType: date and that format" in text
    assert "# - other" not in text
    assert reasons(file, source) == []


def test_draft__leaves_out_lists_of_several_lengths(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(json.dumps({"x": i / 7, "tags": [1] * (1 + i % 3)}) for i in range(9)))
    _, text = drafted(file, tmp_path)
    told = "# - 'tags' is left out: 3 of its 9 values are lists of 1 numbers, and others of 2; all must be as"
    assert told in text


def test_draft__says_what_to_do_about_another_encoding(tmp_path: Path) -> None:
    """Spreadsheets save texts in the encoding of their country."""
    file = tmp_path / "a.csv"
    lines = ["id;x;name", "1;0.5;a", "2;1.5;b", "3;2.5;c", "4;3.5;Straße"]
    remedy = (
        "not UTF-8; convert the file from its encoding, such as by iconv -f ISO-8859-1 -t UTF-8 OLD > NEW"
    )
    file.write_text("\n".join(lines) + "\n", encoding="latin-1")
    text = draft(file, "mine")
    assert "# - delimiter: ';'" in text
    assert f"# - bad, most often (1): {remedy}\n" in text
    file.write_text("\n".join([lines[0], lines[-1]]) + "\n", encoding="latin-1")
    with pytest.raises(DataRefusedError, match=f"it has no record; the first one was refused: {remedy}$"):
        draft(file, "mine")
