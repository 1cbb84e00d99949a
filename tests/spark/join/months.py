"""Months of real points, from one to the next by few changes; what the steps make of them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark.job.job import Job
from oracles import increment as twin
from tests import open_sets
from tests.spark.conftest import STEPS, JobMaker
from tests.spark.ingest.here import reading_here
from tests.spark.real_data import JOIN_STEPS, content
from tests.tiny import coordinate, key

MONTHS = ("2023-01-01", "2023-02-01", "2023-03-01", "2023-04-01", "2023-05-01")
N_POINTS, DIMENSIONS, EPS = 500, 16, 0.5
NAMES = [f"f{axis}" for axis in range(DIMENSIONS)]
COMPARED = ("points", "digests", "pairs", "clusters", "outliers")
"""The tables that do not tell how they were made; by ``increment`` differ only epsilon's and the plan's."""


def states() -> list[twin.State]:
    """Real points; from month to month some are new, some deleted, some move, one onto another."""
    random = np.random.default_rng(5)
    real = open_sets.read("pendigits")
    state = {id_: tuple(real[id_].tolist()) for id_ in range(N_POINTS)}
    made = [state]
    for month in range(1, len(MONTHS)):
        ids = random.permutation(sorted(state)).tolist()
        state = {id_: point for id_, point in state.items() if id_ not in ids[:5]}
        for number, id_ in enumerate(ids[5:15]):
            state[id_] = state[ids[20]] if not number else tuple(real[1000 * (month + 1) + number].tolist())
        state |= {
            N_POINTS * month + each: tuple(real[1000 * (month + 1) + 500 + each].tolist())
            for each in range(7)
        }
        if month == 3:  # only a value that is no coordinate changes
            state = made[-1]
        made.append(state)
    return made


def write_snapshot(folder: Path, run: str, state: twin.State) -> None:
    with (folder / f"{run[:7]}-15.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "note", *NAMES])
        writer.writerows([id_, run, *map(repr, point)] for id_, point in sorted(state.items()))


def history_job(make_job: JobMaker, folder: Path) -> Job:
    """A job of the first month; its files are those of :func:`states`."""
    for run, state in zip(MONTHS, states(), strict=True):
        write_snapshot(folder, run, state)
    columns = [key(), {"name": "note", "logicalType": "string"}, *map(coordinate, NAMES)]
    return make_job(columns, path="{date}.csv", interval="month", run=MONTHS[0], params={"eps": EPS})


class Made(NamedTuple):
    """What a run wrote: the row of its plan, the counters of its steps, its tables."""

    plan: dict[str, Any]
    counters: dict[str, dict[str, float]]
    tables: dict[str, pa.Table]


def process(job: Job, run: str, steps: Mapping[str, Any] = STEPS) -> Made:
    """Run the steps of a run, ingest without Spark."""
    job = replace(job, run=run)
    with reading_here():
        counters = {name: step(job) for name, step in steps.items()}
    written = [
        name for name in COMPARED if name in ("points", "digests", "pairs") or len(steps) == len(STEPS)
    ]
    return Made(
        slices.read_row(job.lake, Slice("join_plan", run)),
        counters,
        {table: content(job, table) for table in written},
    )


JOINING = dict(zip(STEPS, JOIN_STEPS, strict=False))


def in_lake(job: Job, name: str, **params: Any) -> Job:
    """The job on an empty lake of its own."""
    lake = replace(job.lake, uri=f"{job.lake.uri}-{name}")
    return replace(job, lake=lake, params=replace(job.params, **params))
