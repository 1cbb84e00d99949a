"""Rows of the table pairs, written and read by tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from epsjoin.lake import slices
from epsjoin.lake.lake import Lake, Slice
from tests.tiny import RUN, coordinate, key, new_lake


def lake_of_pairs(folder: Path) -> Lake:
    """An empty lake; its data set has one coordinate, of -1 to 1."""
    within = {**coordinate("x"), "logicalTypeOptions": {"minimum": -1, "maximum": 1}}
    return new_lake(folder, [key(), within])


def pairs(*rows: tuple[int, int, float]) -> pa.Table:
    return pa.table(
        {
            "left_id": pa.array([row[0] for row in rows], pa.int64()),
            "right_id": pa.array([row[1] for row in rows], pa.int64()),
            "distance": pa.array([row[2] for row in rows], pa.float64()),
        }
    )


def read(lake: Lake, run: str = RUN, table: str = "pairs") -> list[dict[str, Any]]:
    return slices.read_slice(lake, Slice(table, run)).drop_columns(["run"]).to_pylist()


def checks_of(lake: Lake, table: str = "pairs") -> dict[str, str]:
    """The constraints in a table's log."""
    known = DeltaTable(lake.location(table)).metadata().configuration
    names = (name for name in known if name.startswith("delta.constraints."))
    return {name.removeprefix("delta.constraints."): known[name] for name in names}
