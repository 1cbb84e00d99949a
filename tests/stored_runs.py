"""Stored tables of a few runs, made without Spark, for tests of what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from epsjoin.contracts.load_source import load_source
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.paths import CONTRACTS


def new_lake(folder: Path) -> Lake:
    """The lake of the data set navaids in this folder, without a table."""
    return Lake((folder / "lake").as_uri(), CONTRACTS, load_source(CONTRACTS, "navaids"))


def row(lake: Lake, table: str, **values: Any) -> dict[str, Any]:
    """A row of a table in which all columns have a value."""
    kinds = {"string": "x", "double": 0.5, "int64": 1, "bool": True, "int32": 1, "binary": b"x"}
    return {field.name: kinds.get(str(field.type)) for field in lake.schema(table)} | values


def write(lake: Lake, table: str, run: str, rows: list[dict[str, Any]]) -> None:
    slices.write_slice(lake, Fingerprints(lake, run).slice(table), slices.table_of(lake, table, rows))


def write_run(lake: Lake, run: str, points: int, pairs: int, clusters: int, eps: float) -> None:
    rows = [row(lake, "points", id=i, run=run) for i in range(points)]
    slices.write_slice(lake, Slice("points", run), slices.table_of(lake, "points", rows))
    write(lake, "epsilon", run, [row(lake, "epsilon", eps=eps, method="given", run=run)])
    plan = {"eps": eps, "kind": "planned", "plan": "{}", "run": run, "base": None}
    why = "there is no earlier run with pairs"
    write(lake, "join_plan", run, [row(lake, "join_plan", **plan, why=why)])
    write(lake, "pairs", run, [row(lake, "pairs", left_id=0, run=run)] * pairs)
    members = [row(lake, "clusters", id=i, cluster_id=i, role="core", run=run) for i in range(clusters)]
    members += [
        row(lake, "clusters", id=i, cluster_id=-1, role="noise", run=run) for i in range(clusters, points)
    ]
    write(lake, "clusters", run, members)
