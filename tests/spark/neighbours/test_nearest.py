"""The nearest points of a few: those of all points, whatever the batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from epsjoin.lake.arrow import to_binary
from epsjoin.lake.lake import Slice
from epsjoin.local.metric import get_metric
from epsjoin.spark.ingest import ingest
from epsjoin.spark.neighbours import nearest
from epsjoin.spark.points.points import stored_reading
from epsjoin.spark.points.reading import Reading
from epsjoin.spark.rows import stored
from epsjoin.spark.rows.stored import StoredSlice
from tests.spark.conftest import JobMaker
from tests.spark.two_runs import job_on, snapshot
from tests.tiny import RUN


@pytest.mark.parametrize("metric", ["euclidean", "haversine"])
def test_nearest_of__is_that_of_all_points_whatever_the_batches(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metric: str
) -> None:
    rng = np.random.default_rng(3)
    places = rng.integers(-40, 40, (300, 2)).astype(float)  # ties, and equal points
    job = job_on(make_job, RUN)
    snapshot(tmp_path, RUN, {i: ("a", float(x), float(y)) for i, (x, y) in enumerate(places)})
    ingest.run(job)
    points = StoredSlice.of(job, Slice("points", RUN))
    monkeypatch.setattr(stored, "MAX_BATCH_ROWS", 23)
    few = [5, 299, 0]
    reading = stored_reading(job.lake)
    queries = reading.arrays(points.take_ids(np.array(few), ["id", "point"]))
    found = nearest.nearest_of(points.scan, reading, queries, get_metric(metric), 4)
    for id_ in few:
        distance = _distances(places[id_], places, metric)
        order = [i for i in np.lexsort((np.arange(300), distance.round(9))) if i != id_][:4]
        mine = found.id == id_
        assert found.neighbour[mine].tolist() == order
        assert found.distance[mine] == pytest.approx(distance[order])


def test_scan_task__takes_the_smaller_id_of_equally_near_points_in_any_order_of_rows() -> None:
    rng = np.random.default_rng(4)
    ids, places = rng.permutation(900), rng.integers(0, 6, (900, 2)).astype(float)
    few, reading = np.array([3, 700]), Reading(("x", "y"), 2, is_checked=True)
    where = np.array([np.flatnonzero(ids == each)[0] for each in few])
    task = nearest.scan_task(few, places[where], reading, get_metric("euclidean"), 5)
    rows = [slice(0, 400), slice(400, 400), slice(400, 900)]
    batches = [pa.record_batch({"id": ids[some], "point": to_binary(places[some])}) for some in rows]
    found = pa.Table.from_batches(task(batches))
    for id_, row in zip(few.tolist(), where, strict=True):
        distance = _distances(places[row], places, "euclidean")
        order = [ids[i] for i in np.lexsort((ids, distance)) if ids[i] != id_][:5]
        assert found.filter(pc.field("id") == id_)["neighbour"].to_pylist() == order


def _distances(one: Any, places: Any, metric: str) -> Any:
    if metric == "euclidean":
        return np.sqrt(((places - one) ** 2).sum(axis=1))
    one, places = np.radians(one), np.radians(places)
    half = np.sin((places - one) / 2) ** 2
    return 2 * 6371.0088 * np.arcsin(np.sqrt(half[:, 0] + np.cos(one[0]) * np.cos(places[:, 0]) * half[:, 1]))


def test_nearest_of__gives_fewer_where_there_are_fewer(make_job: JobMaker, tmp_path: Path) -> None:
    snapshot(tmp_path, RUN, {4: ("a", 0.0, 0.0), 9: ("b", 3.0, 4.0)})
    job = job_on(make_job, RUN)
    ingest.run(job)
    points = StoredSlice.of(job, Slice("points", RUN))
    query = np.array([9]), np.array([[3.0, 4.0]])
    found = nearest.nearest_of(points.scan, stored_reading(job.lake), query, get_metric("euclidean"), 3)
    assert (found.id.tolist(), found.neighbour.tolist(), found.distance.tolist()) == ([9], [4], [5.0])
