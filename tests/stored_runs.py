"""Stored tables of a few runs, made without Spark, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def write_run(
    lake: Lake,
    run: str,
    points: int,
    pairs: int,
    clusters: int,
    eps: float,
    places: NDArray[np.float64] | None = None,
    of: Sequence[int] | None = None,
) -> None:
    """Write what the jobs up to ``cluster`` do.

    Parameters
    ----------
    clusters : number of the points that are a cluster each, the others being noise.
    places : (points, 2) their places; by default all at one.
    of : the cluster of each point, or -1, instead of ``clusters``.
    """
    if places is None:
        places = np.full((points, 2), 0.5)
    if of is None:
        of = [i if i < clusters else -1 for i in range(points)]
    rows = [row(lake, "points", id=i, run=run, point=place.tobytes()) for i, place in enumerate(places)]
    slices.write_slice(lake, Slice("points", run), slices.table_of(lake, "points", rows))
    write(lake, "epsilon", run, [row(lake, "epsilon", eps=eps, method="given", run=run)])
    plan = {"eps": eps, "kind": "planned", "plan": "{}", "run": run, "base": None}
    why = "there is no earlier run with pairs"
    write(lake, "join_plan", run, [row(lake, "join_plan", **plan, why=why)])
    write(lake, "pairs", run, [row(lake, "pairs", left_id=0, run=run)] * pairs)
    roles = ["noise" if each < 0 else "core" for each in of]
    members = [
        row(lake, "clusters", id=i, cluster_id=each, role=role, run=run)
        for i, (each, role) in enumerate(zip(of, roles, strict=True))
    ]
    write(lake, "clusters", run, members)
