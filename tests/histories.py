"""Twelve runs of a small data set, with all that a history is made of; written to a lake without Spark."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from epsjoin.vocabulary import NOISE
from tests.tiny import coordinate, key, new_lake

RUNS = tuple(f"2022-{month:02}-01" for month in range(1, 13))
COLUMNS = (
    key(),
    coordinate("x"),
    coordinate("y"),
    {"name": "a-value", "logicalType": "number"},
    {"name": "text", "logicalType": "string"},
)
"""Columns of the source; one has a name that SQL must quote."""

Rows = dict[str, dict[str, list[dict[str, Any]]]]
"""Rows by table and run."""


class State(NamedTuple):
    """What a run holds: rows by key, in the columns of the view.

    Parameters
    ----------
    points : id to (x, y, a-value, text, point).
    pairs : (left, right) to distance.
    clusters : id to (name, role, degree).
    """

    points: dict[int, tuple[Any, ...]]
    pairs: dict[tuple[int, int], tuple[Any, ...]]
    clusters: dict[int, tuple[Any, ...]]


def draw_states(seed: int) -> dict[str, State]:
    """Draw twelve states in which rows come, go, come again, change and change back."""
    rng = np.random.default_rng(seed)
    states: dict[str, State] = {}
    before: dict[int, tuple[Any, ...]] = {}
    for run in RUNS:
        there = np.flatnonzero(rng.random(12) < 0.7)
        points = {}
        for i in there.tolist():
            if i in before and rng.random() < 0.7:
                points[i] = before[i]
                continue
            x, y = float(rng.integers(2)), 0.5
            value = (None, float("nan"), 1.5)[rng.integers(3)]
            text = (None, "", "ä")[rng.integers(3)]
            points[i] = (x, y, value, text, struct.pack("<2d", x, y))
        before = {**before, **points}
        pairs = {
            (a, b): (float(rng.integers(1, 3)) / 10,)
            for a in points
            for b in points
            if a < b and rng.random() < 0.2
        }
        clusters = {}
        for i in points:
            name = (NOISE, 100, 200)[rng.integers(3)]
            clusters[i] = (name, "noise" if name == NOISE else "core", int(rng.integers(1, 3)))
        states[run] = State(points, pairs, clusters)
    return states


def write_states(folder: Path, states: dict[str, State], order: Sequence[str]) -> Lake:
    """Write the runs in this order, up to four at once; a run may be named twice."""
    lake = new_lake(folder, COLUMNS)
    group: dict[str, State] = {}
    for run in order:
        if run in group or len(group) == 4:
            write_group(lake, group)
            group = {}
        group[run] = states[run]
    write_group(lake, group)
    write_names(lake, states)
    return lake


def write_retyped(folder: Path, before: Sequence[str], now: Sequence[int]) -> Lake:
    """Write points of two runs whose column ``n`` was of texts, and is of integers."""
    for run, kind, values in zip(RUNS, ("string", "integer"), (before, now), strict=False):
        lake = new_lake(folder, [key(), coordinate("x"), {"name": "n", "logicalType": kind}])
        rows = [
            {"id": i, "x": 0.5, "n": value, "point": struct.pack("<d", 0.5)} for i, value in enumerate(values)
        ]
        slices.write_slice(lake, Slice("points", run), slices.table_of(lake, "points", rows))
    return lake


def write_group(lake: Lake, states: dict[str, State]) -> None:
    """Write the slices of some runs; clusters have other ids in every run, as they have in life."""
    names = ("x", "y", "a-value", "text", "point")
    rows: Rows = {"points": {}, "epsilon": {}, "join_plan": {}, "pairs": {}, "clusters": {}}
    filled = {"string": "x", "double": 0.5, "int64": 1, "bool": True, "int32": 1}
    for run, state in states.items():
        rows["points"][run] = [
            {"id": i, **dict(zip(names, row, strict=True))} for i, row in state.points.items()
        ]
        for table in ("epsilon", "join_plan"):
            row = {c.name: filled.get(str(c.type)) for c in lake.schema(table) if not c.nullable}
            rows[table][run] = [{**row, "eps": 0.5, "method": "given", "kind": "planned", "plan": "{}"}]
        rows["pairs"][run] = [
            {"left_id": a, "right_id": b, "distance": row[0]} for (a, b), row in state.pairs.items()
        ]
        ids = {name: name if name == NOISE else name + _shift(run) for name, _, _ in state.clusters.values()}
        rows["clusters"][run] = [
            {"id": i, "cluster_id": ids[name], "role": role, "degree": degree}
            for i, (name, role, degree) in state.clusters.items()
        ]
    _write(lake, rows)


def write_names(lake: Lake, states: dict[str, State]) -> None:
    """Name the clusters of all runs in the order of their dates: names go on from those of the run before."""
    filled = {"string": "x", "int64": 1}
    row = {c.name: filled.get(str(c.type)) for c in lake.schema("cluster_names") if not c.nullable}
    runs = slices.list_runs(lake, "clusters")
    _write(lake, {"cluster_flows": {run: [] for run in runs}})
    for run in runs:
        names = {name for name, _, _ in states[run].clusters.values()} - {NOISE}
        rows = [{**row, "size": 4, "cluster_id": name + _shift(run), "name": name} for name in names]
        _write(lake, {"cluster_names": {run: rows}})


def _shift(run: str) -> int:
    """What a run adds to the ids of its clusters."""
    return int(run[5:7]) * 1000


def _write(lake: Lake, rows: Rows) -> None:
    """Write slices, those of a table at once; each table is made from those before it."""
    for table, by_run in rows.items():
        now = slices.as_now(lake)
        where = {
            run: Slice(table, run) if table == "points" else Fingerprints(now, run).slice(table)
            for run in by_run
        }
        slices.write_slices(
            lake, {where[run]: slices.table_of(lake, table, found) for run, found in by_run.items()}
        )


def states_of(states: dict[str, State], table: str) -> dict[str, dict[Any, str]]:
    """Run to key to the text of the row, for the oracle, to which one NaN is as good as another."""
    return {
        run: {key: repr(row) for key, row in getattr(state, table).items()} for run, state in states.items()
    }


def as_oracle(table: str, rows: Sequence[dict[str, Any]]) -> list[tuple[Any, str, str, str | None]]:
    """Rows of ranges as the oracle has them."""
    found = []
    for row in rows:
        first, end = row.pop("from_run"), row.pop("to_run")
        key, values = split(table, row)
        found.append((key, repr(values), first, end))
    return found


def split(table: str, row: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Key and values of a row of a view."""
    values = [bytes(value) if isinstance(value, bytearray) else value for value in row.values()]
    n_keys = 2 if table == "pairs" else 1
    return (tuple(values[:2]) if n_keys == 2 else values[0]), tuple(values[n_keys:])
