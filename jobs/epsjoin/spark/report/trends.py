"""Counters of a run beside those of the last runs before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from epsjoin.errors import UnfitTableError
from epsjoin.findings import Findings, Row
from epsjoin.lake import slices
from epsjoin.lake.cluster_names import count_names
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake

MAX_RUNS = 12
"""Maximum number of runs in the trends and the lives of clusters, the reported run included."""


Counters = Mapping[str, Mapping[str, float]]
"""Job to counter to value."""


def read_own_counters(lake: Lake, run: str) -> Counters:
    """Read what the jobs of a run counted, without the report, which cannot know its own counters.

    It also leaves out ``verify``, which is not part of a run: its costs would be taken for the run's.
    """
    found = slices.read_counters(lake, run)
    return {job: of_job for job, of_job in found.items() if job not in ("report", "verify")}


def select_seconds(counters: Counters, beside: Counters) -> dict[str, float]:
    """Select the wall-clock time of every job that was timed in the same way as the same job of ``beside``.

    Jobs of earlier versions counted from the start of the step; today's count from the start of their
    process, and also have ``seconds_start``. The two are not compared.
    """
    return {
        job: of_job["seconds"]
        for job, of_job in counters.items()
        if "seconds" in of_job and ("seconds_start" in of_job) == ("seconds_start" in beside.get(job, of_job))
    }


def make_trends_before(lake: Lake, run: str, beside: Counters) -> list[dict[str, Any]]:
    """Make a row for each of the last runs before this one, oldest first, as ``findings`` describes it.

    Parameters
    ----------
    beside : counters of this run; a run that lacks a job of this one, as it was stopped, or has a job
        that was timed in another way, has no ``seconds``.

    Notes
    -----
    Read from the logs of ``points`` and ``pairs``, and from ``job_metrics`` and ``quality``: no large table
    is read, however many runs there are.
    """
    points, pairs = (slices.count_rows_by_run(lake, table) for table in ("points", "pairs"))
    rows = []
    for other in slices.list_runs_before(lake, run)[-(MAX_RUNS - 1) :]:
        counters = read_own_counters(lake, other)
        clusters = counters.get("cluster", {})
        try:
            born, ended = count_names(Fingerprints(lake, other))
        except UnfitTableError:  # replaced since: the counts are of other clusters
            born = ended = None
        rows.append(
            {
                "run": other,
                "points": points[other],
                "pairs": pairs.get(other),
                "eps": counters.get("fit_epsilon", {}).get("eps"),
                "min_pts": clusters.get("min_pts"),
                "clusters": clusters.get("clusters"),
                "noise": clusters.get("noise"),
                "refused": counters.get("ingest", {}).get("rows_quarantined"),
                "errors": count_errors(slices.read_quality(lake, other)),
                "born": born,
                "ended": ended,
                "seconds": add_seconds(counters, beside),
            }
        )
    return rows


def make_trend(findings: Findings, born: int | None, ended: int | None) -> dict[str, Any]:
    """Make the run's own row of the trends from what its page shows."""
    return {
        "run": findings.run,
        "points": findings.n_points,
        "pairs": findings.n_pairs,
        "clusters": findings.n_clusters,
        "noise": findings.n_noise,
        "eps": findings.epsilon["eps"],
        "min_pts": findings.params.get("min_pts"),
        "refused": findings.n_quarantined,
        "errors": count_errors(findings.quality),
        "born": born,
        "ended": ended,
        "seconds": add_seconds(findings.counters, findings.counters),
    }


def add_seconds(counters: Counters, beside: Counters) -> float | None:
    """Add up the times of all jobs.

    ``None`` if there is none, if one was timed in another way, or if a job of ``beside`` is missing: a run
    that was stopped seems fast.
    """
    timed, expected = (
        {job for job, of_job in each.items() if "seconds" in of_job} for each in (counters, beside)
    )
    selected = select_seconds(counters, beside)
    return sum(selected.values()) or None if expected <= timed == selected.keys() else None


def count_errors(quality: Sequence[Row]) -> int | None:
    """Count the broken expectations of severity error; ``None`` if nothing was checked."""
    return sum(not row["success"] and row["severity"] == "error" for row in quality) if quality else None
