"""Snapshots that the guard looks at, and what it found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.params import RunParams
from epsjoin.spark.job.job import Job

DATA = Path(__file__).parents[2] / "data"
LAST_YEAR, BEFORE, NOW, NEXT = "2022-06-01", "2023-05-01", "2023-06-01", "2023-07-01"
TEXT = {"logicalType": "string"}


def write(job: Job, run: str, text: str) -> None:
    (job.project / f"{run}.csv").write_text(text)


def findings(job: Job, run: str) -> dict[str, dict[str, Any]]:
    rows = slices.read_slice(job.lake, Slice("guard", run)).to_pylist()
    return {row["check"]: row for row in rows}


def verdicts(job: Job, run: str, verdict: str) -> set[str]:
    return {check for check, row in findings(job, run).items() if row["verdict"] == verdict}


def accepting(job: Job, *checks: str) -> Job:
    return replace(job, params=RunParams(accept=checks))
