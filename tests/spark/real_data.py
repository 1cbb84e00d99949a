"""Real points as a data set's snapshot, and what a run of the steps has stored, for tests."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark.job.job import Job
from tests.spark.conftest import STEPS, JobMaker
from tests.tiny import coordinate, key

JOIN_STEPS = tuple(STEPS.values())[:4]


def job_on(make_job: JobMaker, tmp_path: Path, points: NDArray[np.float64], params: Mapping[str, Any]) -> Job:
    """A job on a keyed CSV of these points; ids are their row numbers, floats are written in full."""
    names = [f"f{j}" for j in range(points.shape[1])]
    with (tmp_path / "snapshot.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *names])
        writer.writerows([i, *map(repr, row)] for i, row in enumerate(points.tolist()))
    return make_job([key(), *map(coordinate, names)], params=params)


def column(job: Job, table: str, order: str, *names: str) -> list[NDArray[Any]]:
    found = slices.read_slice(job.lake, Slice(table, job.run)).sort_by(order)
    return [found[name].to_numpy(zero_copy_only=False) for name in names]


def pair_set(job: Job) -> NDArray[np.int64]:
    pairs = slices.read_slice(job.lake, Slice("pairs", job.run))
    found = np.column_stack([pairs["left_id"].to_numpy(), pairs["right_id"].to_numpy()])
    return found[np.lexsort((found[:, 1], found[:, 0]))]


def content(job: Job, table: str) -> pa.Table:
    rows = slices.read_slice(job.lake, Slice(table, job.run))
    return rows.sort_by([(name, "ascending") for name in rows.column_names if rows[name].type != pa.bool_()])
