"""The runs of a data set and what the small tables say of each, read without Spark."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from epsjoin.errors import TableError
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake, Slice

Counters = dict[str, dict[str, float]]
"""Job to counter to value."""


def list_runs_before(lake: Lake, run: str) -> list[str]:
    """List the runs with an earlier date whose points are in the lake now, the latest last.

    Notes
    -----
    Read from the log of ``points`` alone. A run that is filled in later is missing from lists made before it.
    """
    return [other for other in slices.count_rows_by_run(lake, "points") if other < run]


def read_counters(lake: Lake, run: str) -> Counters:
    """Read what the jobs of a run counted; empty if none has stored any."""
    counters: Counters = {}
    with suppress(TableError):
        for row in slices.read_slice(lake, Slice("job_metrics", run)).to_pylist():
            counters.setdefault(row["job"], {})[row["counter"]] = row["value"]
    return counters


def read_quality(lake: Lake, run: str) -> list[dict[str, Any]]:
    """Read what the gates found, ordered by table and expectation; empty if the run has passed no gate."""
    with suppress(TableError):
        rows = slices.read_slice(lake, Slice("quality", run)).drop_columns(["run"])
        return [
            dict(row)
            for row in rows.sort_by([("table", "ascending"), ("expectation", "ascending")]).to_pylist()
        ]
    return []
