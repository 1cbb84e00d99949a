"""The trends of a report: a row of a few numbers for each of the last runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from epsjoin.findings import Findings, Row
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake
from epsjoin.lake.runs import Counters, list_runs_before, read_counters, read_quality

MAX_RUNS = 12
"""Maximum number of runs in the trends, the reported run included."""


def read_own_counters(lake: Lake, run: str) -> Counters:
    """Read what the jobs of a run counted, without the report, which cannot know its own counters."""
    return {job: of_job for job, of_job in read_counters(lake, run).items() if job != "report"}


def select_seconds(counters: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Select the wall-clock time of every job whose time was taken."""
    return {job: of_job["seconds"] for job, of_job in counters.items() if "seconds" in of_job}


def make_trends_before(lake: Lake, run: str) -> list[dict[str, Any]]:
    """Make a row for each of the last runs before this one, oldest first, as ``findings`` describes it.

    Notes
    -----
    Read from the logs of ``points`` and ``pairs``, and from ``job_metrics`` and ``quality``: no large table
    is read, however many runs there are.
    """
    points, pairs = (slices.count_rows_by_run(lake, table) for table in ("points", "pairs"))
    rows = []
    for other in list_runs_before(lake, run)[-(MAX_RUNS - 1) :]:
        counters = read_own_counters(lake, other)
        clusters = counters.get("cluster", {})
        rows.append(
            {
                "run": other,
                "points": points[other],
                "pairs": pairs.get(other),
                "eps": counters.get("fit_epsilon", {}).get("eps"),
                "clusters": clusters.get("clusters"),
                "noise": clusters.get("noise"),
                "refused": counters.get("ingest", {}).get("rows_quarantined"),
                "errors": _count_errors(read_quality(lake, other)),
                "seconds": sum(select_seconds(counters).values()) or None,
            }
        )
    return rows


def make_trend(findings: Findings) -> dict[str, Any]:
    """Make the run's own row of the trends from what its page shows."""
    return {
        "run": findings.run,
        "points": findings.n_points,
        "pairs": findings.n_pairs,
        "clusters": findings.n_clusters,
        "noise": findings.n_noise,
        "eps": findings.epsilon["eps"],
        "refused": findings.n_quarantined,
        "errors": _count_errors(findings.quality),
        "seconds": sum(select_seconds(findings.counters).values()) or None,
    }


def _count_errors(quality: Sequence[Row]) -> int | None:
    """Count the broken expectations of severity error; ``None`` if nothing was checked."""
    return sum(not row["success"] and row["severity"] == "error" for row in quality) if quality else None
