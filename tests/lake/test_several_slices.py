"""Transactions of several slices."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from epsjoin.errors import TableError
from epsjoin.lake import delta_log, slices, targets, transactions
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File
from tests.stored_runs import new_lake

MAY, JUNE, JULY = (Slice("pairs", f"2023-0{month}-01") for month in (5, 6, 7))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = new_lake(tmp_path)
    for number, where in enumerate((MAY, JUNE, JULY)):
        slices.write_slice(lake, where, pairs(number))
    return lake


def pairs(left: int) -> pa.Table:
    ids = pa.array([left], pa.int64())
    return pa.table({"left_id": ids, "right_id": pa.array([99], pa.int64()), "distance": [0.5]})


def write(lake: Lake, where: Slice, left: int) -> list[File]:
    file = targets.target_of(lake, where).write([pairs(left)])
    assert file is not None
    return [file]


def lefts(lake: Lake) -> list[list[int]]:
    return [slices.read_slice(lake, where)["left_id"].to_pylist() for where in (MAY, JUNE, JULY)]


def test_commit__replaces_slices_of_several_runs_in_one_version_and_no_others(lake: Lake) -> None:
    before = DeltaTable(lake.location("pairs")).version()
    transactions.commit(lake, {MAY: write(lake, MAY, 10), JULY: write(lake, JULY, 30)})
    assert lefts(lake) == [[10], [1], [30]]
    assert DeltaTable(lake.location("pairs")).version() == before + 1


def test_commit__leaves_few_commits_to_read_since_the_last_checkpoint(lake: Lake) -> None:
    for number in range(20):
        slices.write_slice(lake, MAY, pairs(number))
    logs = Path(unquote(urlsplit(lake.location("pairs")).path), "_delta_log")
    last = json.loads((logs / "_last_checkpoint").read_text())["version"]
    for commit in logs.glob("*.json"):
        if int(commit.stem) <= last:
            commit.unlink()
    assert len(list(logs.glob("*.json"))) < 10
    assert lefts(lake) == [[19], [1], [2]]
    log = DeltaTable(lake.location("pairs"))
    assert [transactions.rows_committed(log, where.partition) for where in (MAY, JUNE, JULY)] == [1, 1, 1]


def test_commit__of_several_slices_makes_the_empty_ones_empty(lake: Lake) -> None:
    transactions.commit(lake, {MAY: [], JUNE: write(lake, JUNE, 20)})
    assert lefts(lake) == [[], [20], [2]]


def test_commit__of_several_slices_is_refused_whole_where_one_has_changed(lake: Lake) -> None:
    pinned = delta_log.pin_versions(lake, "merge_join")
    slices.write_slice(lake, JULY, pairs(7))
    with pytest.raises(TableError, match="another job changed pairs of run 2023-05-01, 2023-07-01 while"):
        transactions.commit(pinned, {MAY: write(lake, MAY, 10), JULY: write(lake, JULY, 30)})
    assert lefts(lake) == [[0], [1], [7]]


def test_commit__of_several_slices_goes_through_where_another_has_changed(lake: Lake) -> None:
    pinned = delta_log.pin_versions(lake, "merge_join")
    slices.write_slice(lake, JUNE, pairs(7))
    transactions.commit(pinned, {MAY: write(lake, MAY, 10), JULY: write(lake, JULY, 30)})
    assert lefts(lake) == [[10], [7], [30]]
