"""Parquet files are read whole or in pieces, every row once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin.lake import parquet
from epsjoin.lake.parquet import File


@pytest.mark.parametrize("of", [1, 2, 3, 5, 8, 100])
def test_stream_file__in_pieces_gives_every_row_once(of: int, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": np.arange(777)}), tmp_path / "a.parquet", row_group_size=100)
    file = File("points", "a.parquet", (tmp_path / "a.parquet").stat().st_size, 777, {})
    found = [
        [
            row
            for batch in parquet.stream_file(
                tmp_path.as_uri(), file, pa.schema([("id", pa.int64())]), 64, (number, of)
            )
            for row in batch["id"]
        ]
        for number in range(of)
    ]
    assert [row.as_py() for piece in found for row in piece] == list(range(777))
    assert sum(bool(piece) for piece in found) == min(of, 8), "a piece is whole row groups"


@pytest.mark.parametrize(("max_bytes", "reads_at_once"), [(300 * 8 + 200, True), (300 * 8 - 1, False)])
def test_stream_file__reads_a_row_group_at_once_unless_it_is_large(
    max_bytes: int, reads_at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = pa.table({"id": np.arange(300), "key": np.arange(300)})
    pq.write_table(columns, tmp_path / "a.parquet", use_dictionary=False, compression="none")
    file = File("points", "a.parquet", (tmp_path / "a.parquet").stat().st_size, 300, {})
    monkeypatch.setattr(parquet, "MAX_AT_ONCE_BYTES", max_bytes)
    if reads_at_once:
        monkeypatch.delattr(pq.ParquetFile, "iter_batches")
    else:
        monkeypatch.delattr(pq.ParquetFile, "read_row_group")
    found = list(parquet.stream_file(tmp_path.as_uri(), file, pa.schema([("id", pa.int64())]), 64))
    assert [len(batch) for batch in found] == [64] * 4 + [44], "never more rows than a batch may have"
    assert np.array_equal(pa.Table.from_batches(found)["id"], np.arange(300))
