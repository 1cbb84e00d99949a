"""Two runs of one data set that differ a little, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark.job.job import Job
from tests.spark.conftest import STEPS, JobMaker
from tests.tiny import coordinate, key

BEFORE, LATER = "2023-05-01", "2023-07-01"
TEXT = {"name": "name", "logicalType": "string"}
Rows = dict[int, tuple[str, float, float]]


def some_rows() -> Rows:
    """Two clusters, some of their points equal, and points far out."""
    rng = np.random.default_rng(5)
    dense = np.concatenate([rng.normal(0, 1, (150, 2)), rng.normal((30, 0), 1, (100, 2))]).round(2)
    far = rng.uniform(100, 900, (12, 2)).round(2)
    places = np.concatenate([dense, dense[:20], far])
    return {i: (f"n{i}", float(x), float(y)) for i, (x, y) in enumerate(places)}


def snapshot(folder: Path, run: str, rows: Rows) -> None:
    lines = [f"{id_},{name},{x!r},{y!r}\n" for id_, (name, x, y) in rows.items()]
    (folder / f"{run}.csv").write_text("id,name,x,y\n" + "".join(lines), encoding="utf-8")


def job_on(make_job: JobMaker, run: str, keyed: bool = True) -> Job:
    columns = [key(), TEXT, coordinate("x"), coordinate("y")]
    if not keyed:
        columns[0] = {"name": "id_", "logicalType": "integer"}
    return make_job(columns, path="{date}.csv", run=run, params={"eps": 1.5, "min_pts": 5})


def run_steps(job: Job, names: Sequence[str] = tuple(STEPS)) -> Job:
    """The steps, and their counters as ``run_job`` writes them."""
    for number, name in enumerate(names):
        counters = {**STEPS[name](job), "seconds": number + 0.5}
        rows = [{"job": name, "counter": counter, "value": float(v)} for counter, v in counters.items()]
        found = slices.table_of(job.lake, "job_metrics", rows)
        slices.write_slice(job.lake, Slice("job_metrics", job.run, also=(("job", name),)), found)
    return job


def changed(rows: Rows) -> Rows:
    """The same without two rows, with another name and place for two, and with three new ones."""
    new = {id_: row for id_, row in rows.items() if id_ not in (3, 200)}
    new[7] = ("<script>alert(1)</script>", *rows[7][1:])
    new[8] = (rows[8][0], rows[8][1], rows[8][2] + 0.25)
    return {**new, 1000: ("new", 0.5, 0.5), 1001: ("", 1.5, 0.5), 1002: ("far", -500.0, 0.5)}
