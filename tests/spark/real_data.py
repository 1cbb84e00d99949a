"""Real points as a data set's snapshot, and what a run of the steps has stored, for tests."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark.job import Job
from tests.spark.conftest import REPO, STEPS, JobMaker
from tests.tiny import coordinate, key

DATA = REPO / "tests" / "data"
EXPECTED = json.loads((DATA / "expected.json").read_text())
JOIN_STEPS = tuple(STEPS.values())[:4]


def landmarks() -> NDArray[np.float64]:
    return _numbers("landmarks/tiger_arealm_points.csv.gz", header=True)


def pendigits() -> NDArray[np.float64]:
    values = _numbers("vectors/adbench_28_pendigits.csv.gz", header=True)[:, 1:-1]
    return (values - values.min(axis=0)) / (values.max(axis=0) - values.min(axis=0))


def digits() -> NDArray[np.float64]:
    return _numbers("vectors/sklearn_digits_64d.csv.gz", header=False)[:, :-1]


def skin() -> NDArray[np.float64]:
    return _numbers("vectors/adbench_33_skin.csv.gz", header=True)[:, 1:-1]


def _numbers(name: str, *, header: bool) -> NDArray[np.float64]:
    """A copy of the numbers, which the test may change."""
    return _read(name, header).copy()


@cache
def _read(name: str, header: bool) -> NDArray[np.float64]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as lines:
        return np.array([[float(field) for field in row] for row in list(csv.reader(lines))[header:]])


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
