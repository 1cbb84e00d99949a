"""A drafted contract: what is guessed, and that the jobs take it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin.commands import cli, contract
from epsjoin.commands.contract import draft
from epsjoin.contracts.odcs import SourceContract, load_source
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.source import bounds
from epsjoin.source.records import open_records

DATA = Path(__file__).parents[1] / "data"


def drafted(file: Path, tmp_path: Path, name: str = "mine") -> tuple[SourceContract, str]:
    text = draft(file, name)
    (tmp_path / f"{name}.odcs.yaml").write_text(text)
    return load_source(tmp_path, name), text


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


def test_draft__of_numbers_without_a_key(tmp_path: Path) -> None:
    file = tmp_path / "vectors.jsonl"
    file.write_text("".join(json.dumps({"x": i / 4, "y": 0.5, "label": "a"}) + "\n" for i in range(9)))
    source, text = drafted(file, tmp_path)
    assert (source.key, source.coordinates, source.metric) == ((), ("x", "y"), "euclidean")
    assert source.format == "json"
    assert "# - key: none" in text
    assert "# - coordinates: x, y" in text


def test_draft__of_parquet_with_whole_numbers_and_names_that_cannot_be(tmp_path: Path) -> None:
    file = tmp_path / "d.parquet"
    pq.write_table(
        pa.table({"code": ["a", "b"], "n": [1, 2], "m": [3, None], "Sepal.Length": [1.0, 2.0]}), file
    )
    source, text = drafted(file, tmp_path)
    assert (source.key, source.coordinates) == (("code",), ("n", "m"))
    assert [column.name for column in source.columns if column.required] == ["code", "n", "m"]
    assert "left out, their names cannot be columns here: 'Sepal.Length'" in text


def test_draft__takes_no_key_that_comes_twice_or_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "k.csv"
    file.write_text("a_id,b_id,c,x\n1,,p,0.5\n1,2,q,1.5\n")
    assert drafted(file, tmp_path)[0].key == ("c",)


@pytest.mark.parametrize(
    ("name", "content", "error", "sentence"),
    [
        ("a.txt", b"x\n1\n", ArgumentError, "must end with one of .csv"),
        ("gone.csv", None, ArgumentError, "no such file"),
        ("words.csv", b"a,b\nx,y\n", DataRefusedError, "no column holds numbers"),
        ("broken.parquet", b"PAR1", DataRefusedError, "cannot be read"),
        ("broken.csv.gz", gzip.compress(b"x\n1\n")[:-9], DataRefusedError, "cannot be read"),
    ],
)
def test_draft__says_what_is_wrong_with_a_file(
    tmp_path: Path, name: str, content: bytes | None, error: type[Exception], sentence: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=sentence):
        draft(tmp_path / name, "mine")


def test_command__prints_or_writes_and_never_over_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "My Points-2024-01-01.csv"
    file.write_text("id,x\n1,0.5\n2,1.5\n")
    assert cli.main(["contract", "new", str(file)]) == 0
    printed = capsys.readouterr().out
    assert cli.main(["contract", "new", str(file), "--to", str(tmp_path)]) == 0
    assert (tmp_path / "my_points.odcs.yaml").read_text() == printed
    assert cli.main(["contract", "new", str(file), "--to", str(tmp_path)]) == 2
    assert "is not written: File exists" in capsys.readouterr().err
    assert cli.main(["contract", "new", str(file), "--name", "No"]) == 2
    assert "lower-case letters" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "line"),
    [("a.csv", b"1,2.5,x\n"), ("a.csv.gz", b"1,2.5,x\n"), ("a.jsonl.gz", b'{"a":1,"b":2.5}\n')],
)
def test_draft__reads_no_more_than_it_looks_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: bytes
) -> None:
    text = (b"a,b,c\n" if "csv" in name else b"") + line * 200 + b"broken\x00\n" * 2000
    file = tmp_path / name
    file.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    monkeypatch.setattr(contract, "MAX_BYTES", 1000)
    assert "coordinates: b" in draft(file, "a")
    file.write_bytes(gzip.compress(b"x" * 5000) if name.endswith("gz") else b"x" * 5000)
    with pytest.raises(DataRefusedError, match="the first line is longer than 1,000 bytes"):
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
