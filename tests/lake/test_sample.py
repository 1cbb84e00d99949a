"""Samples of stored points, and the row groups that they are read from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin.errors import TableError
from epsjoin.lake import parquet, sample, slices, targets
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.schemas import parse_ddl
from tests.lake.landmarks import small_lake, square


def test_sample_stored__is_uniform_and_reads_only_the_row_groups_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "ROW_GROUP_BYTES", 1)  # a row group for each batch of 300 rows
    lake = small_lake(tmp_path)
    taken = np.zeros(3000)
    for seed in range(60):
        ids, points = sample.sample_stored(lake, "2023-01-01", 300, seed)
        np.testing.assert_array_equal(points, square(3000)[ids])
        assert (np.diff(ids) > 0).all()
        assert len(ids) == 300
        taken[ids] += 1
    assert abs(taken.reshape(10, 300).mean(axis=1) - 6).max() < 1
    np.testing.assert_array_equal(sample.sample_stored(lake, "2023-01-01", 5000, 0)[0], np.arange(3000))

    read: list[int] = []
    read_row_group = pq.ParquetFile.read_row_group

    def counted(self: pq.ParquetFile, i: int, **options: Any) -> pa.Table:
        read.append(i)
        return read_row_group(self, i, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted)
    ids, _ = sample.sample_stored(lake, "2023-01-01", 3, 1)
    assert len(read) == len(np.unique(ids // 300)) <= 3


def test_batches__are_brought_together_in_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def row_groups(lake: Lake) -> list[int]:
        folder = Path(lake.location("points").removeprefix("file://"))
        files = slices.files_of(lake, Slice("points", "2023-01-01"))
        return [pq.read_metadata(folder / file.path).num_row_groups for file in files]

    (tmp_path / "small").mkdir()
    (tmp_path / "large").mkdir()
    monkeypatch.setattr(targets, "ROW_GROUP_BYTES", 1)
    assert row_groups(small_lake(tmp_path / "small")) == [5, 5]
    monkeypatch.undo()
    assert row_groups(small_lake(tmp_path / "large")) == [1, 1]


def test_take_rows__notices_a_file_that_is_not_as_the_log_says(tmp_path: Path) -> None:
    lake = small_lake(tmp_path)
    (file, *_) = slices.files_of(lake, Slice("points", "2023-01-01"))
    other = replace(file, rows=1501)
    with pytest.raises(TableError, match="has 1,500 rows, its table's log says 1,501; run ingest again"):
        parquet.take_rows(lake.location("points"), other, parse_ddl("id long"), np.array([1500]))
