"""Small tables as the chain leaves them, written by hand, and how to change them behind the jobs' back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from numpy.typing import NDArray

from epsjoin.lake import slices, targets, transactions
from epsjoin.lake.arrow import to_binary
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.local.join.arrays import self_join
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.spark.job.job import Job
from oracles.cluster import dbscan_of_rows
from tests.spark.conftest import JobMaker
from tests.tiny import RUN, coordinate, key

MIN_PTS = 4
EPS = {"euclidean": 3.0, "manhattan": 4.0, "chebyshev": 2.0, "haversine": 300.0}


RightLake = tuple[Job, Pairs]
"""A job whose tables are right, and its pairs."""


def grid_points() -> NDArray[np.float64]:
    """Whole numbers, so that there are ties at eps and equal points; ids are row numbers."""
    return np.random.default_rng(3).integers(-40, 40, (700, 2)).astype(np.float64)


def right_lake(make_job: JobMaker, metric: str = "euclidean") -> RightLake:
    """Tables as the chain leaves them, written by hand: points in three files, pairs in four."""
    role = ("latitude", "longitude") if metric == "haversine" else ("coordinate", "coordinate")
    unit = {"unit": "km"} if metric == "haversine" else {}
    columns = [key(), coordinate("f0", role[0]), coordinate("f1", role[1])]
    job = make_job(columns, metric=metric, **unit, params={"min_pts": MIN_PTS})
    points, ids = grid_points(), np.arange(700)
    into = targets.target_of(job.lake, Slice("points", RUN))
    written = [
        into.write([pa.table({"id": i, "f0": p[:, 0], "f1": p[:, 1], "point": to_binary(p)})])
        for i, p in zip(np.array_split(ids, 3), np.array_split(points, 3), strict=True)
    ]
    transactions.commit(job.lake, {Slice("points", RUN): [file for file in written if file is not None]})
    eps = EPS[metric]
    plan = plan_join(points, ids, 700, eps, get_metric(metric), Cuts(n_parts=4))
    epsilon = {"eps": eps, "method": "given", "n_points": 700, "n_sample": 700}
    row = {name: getattr(plan, name) for name in ("kind", "metric", "n_parts", "sample_rows")}
    row |= {name: getattr(plan, name) for name in ("expected_rows", "expected_candidates", "expected_pairs")}
    row |= {"eps": eps, "n_points": 700, "plan": plan.to_json()}
    inputs = Fingerprints(job.lake, RUN)
    slices.write_slice(job.lake, inputs.slice("epsilon"), slices.table_of(job.lake, "epsilon", [epsilon]))
    slices.write_slice(job.lake, Slice("join_plan", RUN), slices.table_of(job.lake, "join_plan", [row]))
    pairs = self_join(points, eps, metric)
    write_pairs(job, pairs)
    labels = pa.table({"id": ids, **dbscan_of_rows(700, *pairs, MIN_PTS)._asdict()})
    slices.write_slice(job.lake, Slice("clusters", RUN), labels)
    return job, pairs


def write_pairs(job: Job, pairs: Pairs, keep: Sequence[int] = range(4)) -> None:
    """Pairs in four files by left id, as four parts might leave them; some of them committed."""
    where = Fingerprints(job.lake, RUN).slice("pairs")
    into = replace(targets.target_of(job.lake, where), constraints=())  # wrong ones, too
    files = []
    for part in keep:
        rows = pairs.left // 175 == part
        columns = {"left_id": pairs.left, "right_id": pairs.right, "distance": pairs.distance}
        files.append(into.write([pa.table({name: values[rows] for name, values in columns.items()})]))
    transactions.commit(job.lake, {where: [file for file in files if file is not None]})


def change_labels(job: Job, point: int, **values: object) -> None:
    """Change a point's row in ``clusters`` with deltalake, behind the back of the jobs and the contract."""
    location = job.lake.location("clusters")
    log = DeltaTable(location)
    for name in log.metadata().configuration:
        if name.startswith("delta.constraints."):
            log.alter.drop_constraint(name.removeprefix("delta.constraints."))
    rows = pa.table(log.to_pyarrow_table())
    changed = [row | values if row["id"] == point else row for row in rows.to_pylist()]
    write_deltalake(location, pa.Table.from_pylist(changed, rows.schema), mode="overwrite")
