"""Samples of files: uniform, the same for the same seed, bad rows counted and left out."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.source import bounds, parquet, sampling
from epsjoin.source.batches import Batch
from epsjoin.source.sampling import sample_files

BAD = """\ufeffid,x,"y"
1,0.5,1
2, -1e2 ,+.5
3,,1
4,nan,1
5,inf,1
6,1e999,1
7,one,1
8,0x10,1
9,1
10,1,2,3
11,"3",4
12,"4
",5
"""


def write(file: Path, text: str | bytes) -> Path:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize("is_zipped", [False, True])
def test_sample__counts_bad_rows_of_csv_and_leaves_them_out(tmp_path: Path, is_zipped: bool) -> None:
    data = BAD.encode().replace(b"one", b"\xff")
    file = write(tmp_path / f"a.csv{'.gz' * is_zipped}", gzip.compress(data) if is_zipped else data)
    found = sample_files([file], ["y", "x"], 100)
    assert found.points.tolist() == [[1.0, 0.5], [0.5, -100.0], [4.0, 3.0], [5.0, 4.0]]
    assert (found.n_rows, found.n_left_out, found.n_bad) == (4, 1, 7)


def test_sample__reads_numbers_of_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {"a": [1, 2, None, 4], "b": pa.array([0.5, np.nan, 1.0, 2.0], pa.float32()), "c": list("wxyz")}
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    found = sample_files([tmp_path / "a.parquet"] * 2, ["b", "a"], 100)
    assert found.points.tolist() == [[0.5, 1.0], [2.0, 4.0]] * 2
    assert (found.n_rows, found.n_left_out, found.n_bad) == (4, 2, 2)
    texts = sample_files([tmp_path / "a.parquet"], ["c"], 100)
    assert (texts.n_rows, texts.n_left_out, texts.n_bad) == (0, 0, 4), "as ingest would take them"


def test_sample__reads_json_lines_and_names_the_first_bad_row(tmp_path: Path) -> None:
    lines = ['{"x": 1, "odd `name`": 2.5}', '{"x": 3}', '{"x": "4", "odd `name`": true}', "[5]"]
    file = write(tmp_path / "a.jsonl", "\n".join(lines))
    found = sample_files([file], ["odd `name`", "x"], 100)
    assert found.points.tolist() == [[2.5, 1.0]]
    assert (found.n_rows, found.n_left_out, found.n_bad) == (1, 1, 2)
    assert found.first_bad == f"{file}: line 3: odd `name`: not of type number: 'True'"


def test_sample__is_uniform_bounded_and_that_of_its_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "BATCH_ROWS", 64)
    for name, begin in (("a", 0), ("b", 600)):
        pq.write_table(pa.table({"x": np.arange(begin, begin + 600.0)}), tmp_path / f"{name}.parquet")
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    taken = np.zeros(1200)
    for seed in range(300):
        found = sample_files(files, ["x"], 120, seed)
        x = found.points[:, 0].astype(int)
        assert len(np.unique(x)) == 120
        assert (np.diff(x) > 0).all()
        taken[x] += 1
    # each row is in 30 of 300 samples; blocks of 100 rows, batches and files alike
    assert abs(taken.reshape(12, 100).mean(axis=1) - 30).max() < 2
    again = sample_files(files, ["x"], 120, 299).points
    monkeypatch.setattr(parquet, "BATCH_ROWS", 1000)
    np.testing.assert_array_equal(sample_files(files, ["x"], 120, 299).points, again)


@pytest.mark.parametrize(
    ("name", "content", "error", "sentence"),
    [
        (
            "a.txt",
            "x\n1\n",
            ArgumentError,
            "a.txt: a name must end in .csv, .json, .jsonl, .ndjson, .parquet",
        ),
        ("a.csv", "", DataRefusedError, "a.csv: the file has nothing in it"),
        ("a.csv", "y\n1\n", DataRefusedError, "a.csv: column 'x' is missing; the file has y"),
        (
            "a.csv",
            "id;x\n1;2\n3;4;5\n",
            DataRefusedError,
            "the file has id;x; its fields seem to be separated by ';', and the delimiter is ','",
        ),
        ("a.csv", "id;y\n1;2\n", DataRefusedError, "column 'x' is missing; the file has id, y"),
        ("a.csv", "x\n1\n".encode("utf-16"), DataRefusedError, "seems to be UTF-16 or UTF-32: store it as"),
        (
            "a.csv",
            gzip.compress(b"x\n" * 99, mtime=0),
            DataRefusedError,
            "by gzip: its name must end in .gz$",
        ),
        ("a.jsonl", gzip.compress(b"{}\n", mtime=0), DataRefusedError, "by gzip: its name must end in .gz$"),
        (
            "a.csv",
            b"PK\x03\x04\x14\0\0\n",
            DataRefusedError,
            "a zip archive or a workbook: store what is in it",
        ),
        ("a.csv", b"PAR1\x15\0\n1\n", DataRefusedError, "is a Parquet file: its name must end in .parquet"),
        ("a.csv", "PAR1,y\n1,2\n", DataRefusedError, "column 'x' is missing; the file has PAR1, y"),
        ("a.csv", "\n\n", DataRefusedError, "line 1 is blank; the names of the columns must stand there$"),
        ("a.csv", "\r\nx\r\n1\r\n", DataRefusedError, "line 1 is blank; the names of the columns must"),
        ("a.csv", "sep=,\nx\n1\n", DataRefusedError, "its first line is for spreadsheets alone: delete it$"),
        ("a.jsonl", '{"id;x": 1}\n', DataRefusedError, "the file has id;x$"),
        ("a.csv", "id, x\n1, 2\n", DataRefusedError, "has id,  x; blanks belong to the name, as in ' x'$"),
        ("a.csv.gz", gzip.compress(b"x\n" + b"1\n" * 9999, mtime=0)[:-12], DataRefusedError, "a.csv.gz: "),
        ("a.parquet", "PAR1", DataRefusedError, "a.parquet: "),
    ],
)
def test_sample__refuses_files_that_it_cannot_read(
    tmp_path: Path, name: str, content: str | bytes, error: type[Exception], sentence: str
) -> None:
    file = write(tmp_path / name, content)
    with pytest.raises(error, match=sentence):
        sample_files([file], ["x"], 10)


def test_sample__refuses_a_parquet_file_without_the_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "a.parquet")
    with pytest.raises(DataRefusedError, match=r"a.parquet: column 'z' is missing; the file has x"):
        sample_files([tmp_path / "a.parquet"], ["x", "z"], 10)


def test_sample__refuses_what_becomes_much_longer_than_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = write(tmp_path / "bomb.csv.gz", gzip.compress(b"x\n" + b"1\n" * 200_000))
    rows = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"x": np.zeros(1 << 17), "y": np.arange(1 << 17)}), rows)
    assert [sample_files([file], ["x"], 10).n_rows for file in (text, rows)] == [200_000, 1 << 17]
    monkeypatch.setattr(bounds, "FREE_EXPANSION", 1 << 16)
    monkeypatch.setattr(bounds, "MAX_EXPANSION", 1)
    with pytest.raises(DataRefusedError, match=r"bomb.csv.gz: [\d,]+ bytes became [\d,]+, over 1 times"):
        sample_files([text], ["x"], 10)
    with pytest.raises(DataRefusedError, match=r"bomb.parquet: [\d,]+ bytes become 1,048,576 or more"):
        sample_files([rows], ["x"], 10)


def test_sample__refuses_an_endless_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_LINE", 1 << 16)
    file = write(tmp_path / "line.csv", "x\n" + "1" * (1 << 17))
    with pytest.raises(DataRefusedError, match=r"line.csv: a line is longer than 65,536 bytes"):
        sample_files([file], ["x"], 10)


def test_sample__says_that_a_file_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"a.csv is no file"):
        sample_files([tmp_path / "a.csv"], ["x"], 10)


def test_sample__counts_bad_rows_where_there_are_no_others(tmp_path: Path) -> None:
    found = sample_files([write(tmp_path / "a.csv", "x,y\n1\n1,2,3\n")], ["x"], 10)
    assert (found.n_rows, found.n_left_out + found.n_bad) == (0, 2)


def test_sample__of_a_header_alone_is_empty(tmp_path: Path) -> None:
    found = sample_files([write(tmp_path / "a.csv", "x\n")], ["x"], 10)
    assert (found.n_rows, found.n_left_out, found.points.shape) == (0, 0, (0, 1))


def test_sample__gives_up_where_nothing_is_a_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MAX_BAD", 100)
    monkeypatch.setattr(parquet, "BATCH_ROWS", 64)
    read = []
    batches = sampling.open_batches
    monkeypatch.setattr(
        sampling, "open_batches", lambda *given, **more: map(counted(read), batches(*given, **more))
    )
    pq.write_table(pa.table({"x": ["a"] * 10_000}), tmp_path / "a.parquet")
    with pytest.raises(
        DataRefusedError, match=r"the first 128 rows are bad: .*a.parquet: row 1: x: not of type"
    ):
        sample_files([tmp_path / "a.parquet"], ["x"], 10)
    assert len(read) == 2


def counted(read: list[Batch]) -> Callable[[Batch], Batch]:
    def note(batch: Batch) -> Batch:
        read.append(batch)
        return batch

    return note
