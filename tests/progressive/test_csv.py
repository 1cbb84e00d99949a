"""Progressive joins of CSV files: what separates their fields."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin import Band, progressive_join
from epsjoin.errors import ArgumentError, DataRefusedError
from tests.local.progressive.cases import gathered

SPLIT = [(",", None), (";", None), ("\t", None), ("|", None), (";", ";"), ("^", "^"), ("$", "$")]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize(("delimiter", "given"), SPLIT)
def test_progressive_join__of_a_csv_file_by_any_delimiter_is_that_of_its_rows(
    tmp_path, name, delimiter, given
):
    """By the only one that the first records allow, or by the one that is said."""
    lines = [["n", "x", "a name"], ["3", "0.0", '"a, b"'], ["4", "0.5", "c"], ["5", "9.0", '"d"']]
    data = "".join(delimiter.join(line) + "\n" for line in lines).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    (tmp_path / "b.csv").write_text("x\n0.75\n")
    (tmp_path / "c.csv").write_text("x;y\n0.75;8\n")
    file, chosen = tmp_path / name, {"columns": ["x"], "id": "n", "delimiter": given}
    assert gathered(list(progressive_join(file, on=Band(0.6), **chosen))) == [(3, 4)]
    chosen["id"] = None
    assert gathered(list(progressive_join(file, tmp_path / "b.csv", on=Band(0.6), **chosen))) == [(1, 0)]
    if given in (None, ";"):
        assert gathered(list(progressive_join(file, tmp_path / "c.csv", on=Band(0.6), **chosen))) == [(1, 0)]
    pq.write_table(pa.table({"x": [0.75]}), tmp_path / "b.parquet")
    other = progressive_join(tmp_path / "b.parquet", file, on=Band(0.6), **chosen)
    assert gathered(list(other)) == [(0, 1)], "a delimiter is for those of the tables that are CSV"


def test_progressive_join__of_a_csv_file_that_two_delimiters_allow_splits_it_at_commas(tmp_path):
    (tmp_path / "a.csv").write_text("x;y,z\n1;2,3\n")
    with pytest.raises(ArgumentError, match="a.csv has no column 'x'; it has x;y, z"):
        progressive_join(tmp_path / "a.csv", on=Band(1.0), columns=["x"])
    assert list(progressive_join(tmp_path / "a.csv", on=Band(1.0), columns=["x"], delimiter=";")) == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("n", [1, 200])
def test_progressive_join__says_that_a_csv_file_has_another_encoding(tmp_path, name, encoding, n):
    data = ("id,x\n" + "".join(f"{i},{i}.5\n" for i in range(n))).encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    with pytest.raises(DataRefusedError, match=r"a\.csv.* cannot be read; it seems to be UTF-16 or UTF-32"):
        progressive_join(tmp_path / name, on=Band(1.0), columns=["x"])


@pytest.mark.parametrize("delimiter", ["", ";;", "x", ".", 5, ["^"]])
def test_progressive_join__refuses_a_delimiter_that_no_file_has(tmp_path, delimiter):
    (tmp_path / "a.csv").write_text("x\n1\n")
    with pytest.raises(ArgumentError, match=r"delimiter must be one of ',', ';', '\|', '\\t', .*, not "):
        progressive_join(tmp_path / "a.csv", on=Band(1.0), delimiter=delimiter)


def test_progressive_join__refuses_a_delimiter_where_no_table_is_csv(tmp_path):
    pq.write_table(pa.table({"x": [0.75]}), tmp_path / "a.parquet")
    for table in (tmp_path / "a.parquet", [[1.0]], iter([])):
        with pytest.raises(ArgumentError, match="delimiter is for CSV files, and no table is one"):
            progressive_join(table, on=Band(1.0), delimiter=";")
