"""Runs that are compared: their points, their steps, and the tables that compare writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from epsjoin.lake import delta_log, slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.spark.job.job import Job
from epsjoin.spark.startup.rehearse import STEPS
from tests import planted
from tests.spark.ingest.here import reading_here
from tests.tiny import coordinate, key

TABLES = ("changes", "cluster_flows", "cluster_names", "cluster_events")
COLUMNS = [key(), coordinate("x"), coordinate("y"), {"name": "kind", "logicalType": "string"}]
GUARD = {"lost": 0.2}  # in a history so small, a cluster that is deleted is a twelfth of all records
PARAMS = {"eps": planted.EPS, "min_pts": planted.MIN_PTS, "n_parts": 2}


def write(folder: Path, run: str, places: planted.Places, kinds: dict[int, str] | None = None) -> None:
    lines = [f"{i},{x!r},{y!r},{(kinds or {}).get(i, '')}" for i, (x, y) in places.items()]
    (folder / f"{run}.csv").write_text("\n".join(["id,x,y,kind", *lines]) + "\n")


def process(job: Job, run: str, steps: Iterable[str] = STEPS) -> None:
    """Run the steps of a run, each with the versions of its own start, as jobs do; ingest without Spark."""
    with reading_here():
        for name in steps:
            lake = delta_log.pin_versions(job.lake, name)
            STEPS[name](replace(job, lake=lake, run=run))


def content(job: Job, runs: Iterable[str], table: str) -> list[str]:
    return [
        repr(row)
        for run in runs
        for row in sorted(slices.read_slice(job.lake, Slice(table, run)).to_pylist(), key=repr)
    ]


def contents(job: Job, runs: Iterable[str] = planted.RUNS) -> dict[str, list[str]]:
    return {table: content(job, runs, table) for table in TABLES}


def rows(job: Job, run: str, table: str) -> list[dict[str, Any]]:
    return list(slices.read_slice(job.lake, Fingerprints(job.lake, run).slice(table)).to_pylist())


def events(job: Job, run: str) -> list[tuple[Any, ...]]:
    names = ("event", "name", "other", "members", "ends")
    return [tuple(row[name] for name in names) for row in rows(job, run, "cluster_events")]
