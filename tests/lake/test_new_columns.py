"""Tables that are older than a column of their contract: read and written as if it had always been there."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable

from epsjoin.errors import TableError
from epsjoin.lake import delta_log, parquet, slices
from epsjoin.lake.lake import Lake, Slice
from tests.tiny import RUN, coordinate, key, new_lake

BEFORE = "2023-05-01"
NEW = ("rows_left_out", "taken_where")
ROW = {
    "source": "a",
    "bytes": 1,
    "sha256": "x",
    "rows_read": 3,
    "rows_ok": 2,
    "rows_quarantined": 1,
    "columns": "[]",
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake whose table ``snapshots`` was made under a contract without two of its columns."""
    lake = new_lake(tmp_path, [key(), coordinate("x")])
    old = replace(lake, contracts=Path(shutil.copytree(lake.contracts, tmp_path / "old")))
    file = old.contracts / "tables" / "snapshots.odcs.yaml"
    body = yaml.safe_load(file.read_text())
    table = body["schema"][0]
    table["properties"] = [column for column in table["properties"] if column["name"] not in NEW]
    rule = next(rule for rule in table["quality"] if rule["name"] == "rows_add_up")
    rule["query"] = "SELECT COUNT(*) FROM ${object} WHERE rows_read <> rows_ok + rows_quarantined"
    file.write_text(yaml.safe_dump(body))
    write(old, BEFORE, ROW)
    assert len(old.schema("snapshots")) == len(lake.schema("snapshots")) - len(NEW)
    return lake


def write(lake: Lake, run: str, row: dict[str, Any]) -> None:
    slices.write_slice(lake, Slice("snapshots", run), slices.table_of(lake, "snapshots", [row]))


def test_read_slice__of_an_older_table_has_null_in_a_new_column(lake: Lake) -> None:
    found = slices.read_row(lake, Slice("snapshots", BEFORE))
    assert found == ROW | {"run": BEFORE, "rows_left_out": None, "taken_where": None}


def test_stream_and_take__of_an_older_table_have_null_in_a_new_column(lake: Lake) -> None:
    location, whole = lake.location("snapshots"), lake.schema("snapshots")
    (file,) = slices.files_of(lake, Slice("snapshots", BEFORE))
    columns = pa.schema([whole.field(name) for name in ("taken_where", "source", "rows_left_out")])
    expected = {"taken_where": None, "source": "a", "rows_left_out": None}
    (batch,) = parquet.stream_file(location, file, columns, 10, whole=whole)
    assert batch.to_pylist() == [expected]
    assert parquet.take_rows(location, file, columns, np.array([0]), whole).to_pylist() == [expected]
    required = pa.schema([*whole, pa.field("other", pa.int64(), nullable=False)])
    with pytest.raises(TableError, match="it has no column other"):
        list(parquet.stream_file(location, file, columns, 10, whole=required))


def test_commit__brings_an_older_table_up_to_its_contract(lake: Lake) -> None:
    pinned = delta_log.pin_versions(lake, "ingest")
    now = ROW | {"rows_read": 10, "rows_left_out": 7, "taken_where": "x > 0"}
    write(pinned, RUN, now)
    assert slices.read_row(lake, Slice("snapshots", RUN)) == now | {"run": RUN}
    assert slices.read_row(lake, Slice("snapshots", BEFORE))["rows_left_out"] is None
    table = DeltaTable(lake.location("snapshots")).to_pyarrow_table().to_pylist()
    assert sorted((row["run"], row["rows_left_out"]) for row in table) == [(BEFORE, None), (RUN, 7)]
    with pytest.raises(TableError, match="rows_add_up does not hold"):
        write(lake, RUN, now | {"rows_left_out": 6})
    version = DeltaTable(lake.location("snapshots")).version()
    delta_log.pin_versions(lake, "ingest")
    assert DeltaTable(lake.location("snapshots")).version() == version, "and then nothing is left to do"
