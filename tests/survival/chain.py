"""The chain of jobs as Airflow submits it, and what the tables of its lake hold."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from deltalake import DeltaTable

from epsjoin.pipeline import jobs_of

REPO = Path(__file__).resolve().parents[2]
DATASET = "navaids"
RUN = "2023-06-01"
JOBS = jobs_of("join")
MEMORY = ("largest_worker_bytes", "largest_driver_bytes")
NOT_COUNTED = {("report", "bytes"), *((job, name) for job in JOBS for name in MEMORY)}
"""Besides seconds, the counters of ``job_metrics`` that differ from run to run: the page shows seconds."""


def arguments(lake: Path, run: str = RUN, params: Mapping[str, Any] | None = None) -> list[str]:
    """A job's arguments, as Airflow gives them."""
    given = json.dumps(params or {})
    return ["--lake", lake.as_uri(), "--dataset", DATASET, "--run", run, "--params", given]


def command(job: str, lake: Path, master: str = "local[2]", run: str = RUN) -> list[str]:
    """The command of a job, as Airflow's operator makes it."""
    script, _, stage = job.partition("quality_")
    script = str(REPO / "jobs" / f"{script or 'quality'}.py")
    own = ["--stage", stage] if stage else []
    return [str(REPO / "bin" / "spark-submit"), "--master", master, script, *own, *arguments(lake, run)]


def submit(
    job: str, lake: Path, master: str = "local[2]", run: str = RUN
) -> subprocess.CompletedProcess[str]:
    """Run a job to its end."""
    return subprocess.run(command(job, lake, master, run), capture_output=True, text=True, check=False)


def submit_several(jobs: Sequence[str], lake: Path, run: str, params: Mapping[str, Any]) -> None:
    """Run jobs in one session, which saves the start of Spark; all must end well."""
    script = str(REPO / "tests" / "survival" / "several.py")
    done = subprocess.run(
        [
            *(str(REPO / "bin" / "spark-submit"), "--master", "local[2]", script),
            *(json.dumps(jobs), *arguments(lake, run, params)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-3000:]}"


def timed(job: str, lake: Path) -> float:
    """Run a job that must end well; its seconds."""
    began = time.monotonic()
    done = submit(job, lake)
    assert done.returncode == 0, f"{job}: exit code {done.returncode}\n{done.stdout[-3000:]}"
    return time.monotonic() - began


SECOND = {"job_metrics": "job", "quality": "table"}
"""Columns that partition a table besides ``run``."""

Content = dict[tuple[str, ...], str]
"""Of every slice, named by its table and its partition values, the digest of its sorted rows."""


def versions(lake: Path) -> dict[str, int]:
    """The version of every table."""
    return {table.name: DeltaTable(table).version() for table in tables(lake)}


def tables(lake: Path, dataset: str = DATASET) -> list[Path]:
    """The folders of all tables."""
    return sorted(log.parent for log in (lake / dataset).glob("*/_delta_log"))


def content(lake: Path, dataset: str = DATASET) -> Content:
    """All rows of all tables as they are now, whatever the files are called."""
    found: Content = {}
    for table in tables(lake, dataset):
        found |= content_of(DeltaTable(table), table.name)
    return found


def content_of(log: DeltaTable, name: str) -> Content:
    """All rows of one version of a table: every column, every bit of every float, times left out."""
    rows = log.to_pyarrow_table()
    if name == "job_metrics":
        rows = rows.filter(pc.invert(pc.match_substring(rows["counter"], "seconds")))
    slices: dict[tuple[str, ...], list[str]] = {}
    for action in log.get_add_actions(flatten=True).to_struct_array().to_pylist():  # empty slices, too
        second = {column: action.get(f"partition.{column}") for column in SECOND.values()}
        slices[name, *_place(name, {"run": action["partition.run"], **second})] = []
    for row in rows.to_pylist():
        if (row.get("job"), row.get("counter")) not in NOT_COUNTED:
            slices[name, *_place(name, row)].append(repr(sorted(row.items())))
    return {
        place: hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()
        for place, found in slices.items()
    }


def _place(table: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    return (row["run"], row[SECOND[table]]) if table in SECOND else (row["run"],)
