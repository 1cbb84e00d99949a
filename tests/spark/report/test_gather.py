"""What a report is made from: the runs before, k-distances, nearest points; the page, from table to byte."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsjoin.findings import Findings
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.local.metric import get_metric
from epsjoin.report.page import render
from epsjoin.report.publish import publish
from epsjoin.spark.epsilon.k_distances import FACTORS, k_distances, other_eps, refit
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job import Job
from epsjoin.spark.neighbours import nearest
from epsjoin.spark.points import stored_points
from epsjoin.spark.report.difference import find_difference
from epsjoin.spark.report.gather import gather
from epsjoin.spark.report.trends import make_trends_before
from tests.spark.conftest import RUN, STEPS, JobMaker, coordinate, key

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


def test_report__of_a_second_run(make_job: JobMaker, tmp_path: Path) -> None:
    rows = some_rows()
    snapshot(tmp_path, BEFORE, rows)
    snapshot(tmp_path, RUN, changed(rows))
    snapshot(tmp_path, LATER, rows)
    run_steps(job_on(make_job, LATER), ["ingest"])  # a later run is no run before
    run_steps(job_on(make_job, BEFORE))
    job = run_steps(job_on(make_job, RUN))
    found = gather(job)

    gone = found.difference
    assert {name: gone[name] for name in ("run", "added", "removed", "changed", "same")} == {
        **{"run": BEFORE, "added": 3, "removed": 2, "changed": 2},
        "same": len(rows) - 4,
    }
    assert [(row["what"], row["id"], row["label"]) for row in gone["examples"]] == [
        *[("added", 1000, "new"), ("added", 1001, None), ("added", 1002, "far")],
        *[("changed", 7, "<script>alert(1)</script>"), ("changed", 8, "n8")],
        *[("removed", 3, "n3"), ("removed", 200, "n200")],
    ]
    y = rows[8][2]
    assert [row["columns"] for row in gone["examples"] if row["what"] == "changed"] == [
        [("name", "n7", "<script>alert(1)</script>")],
        [("y", y, y + 0.25)],
    ]
    assert [row["run"] for row in found.trends] == [BEFORE, RUN]
    assert [row["points"] for row in found.trends] == [len(rows), len(rows) + 1]
    assert found.trends[0]["clusters"] == 2
    assert found.trends[0].keys() == found.trends[1].keys()
    assert [row["seconds"] for row in found.trends] == [18.0, 18.0]
    assert found.seconds_before == {name: number + 0.5 for number, name in enumerate(STEPS)}
    check_outliers(found, changed(rows))

    publish(job)
    first = (tmp_path / "lake" / "tiny" / "reports" / f"run={RUN}" / "report.html").read_bytes()
    counters = [{"job": "report", "counter": "seconds", "value": 7.0}]
    slices.write_slice(
        job.lake,
        Slice("job_metrics", RUN, also=(("job", "report"),)),
        slices.table_of(job.lake, "job_metrics", counters),
    )
    assert render(gather(job)).encode() == first, "the page of a page must be the same"
    assert b"<script" not in first
    assert b"&lt;script&gt;" in first


def check_outliers(found: Findings, rows: Rows) -> None:
    """Every listed point has its three nearest of all, by brute force, ties by id."""
    ids, places = np.array(list(rows)), np.array([row[1:] for row in rows.values()])
    assert len(found.outliers) == 20
    for row in found.outliers:
        distance = np.sqrt(((places - (row["x"], row["y"])) ** 2).sum(axis=1))
        order = [i for i in np.lexsort((ids, distance)) if ids[i] != row["id"]][:3]
        assert [near["id"] for near in row["nearest"]] == ids[order].tolist()
        assert [near["distance"] for near in row["nearest"]] == pytest.approx(distance[order])
        assert [near["label"] for near in row["nearest"]] == [rows[ids[i]][0] or None for i in order]


def test_report__of_a_first_run_has_nothing_before(make_job: JobMaker, tmp_path: Path) -> None:
    snapshot(tmp_path, RUN, some_rows())
    job = run_steps(job_on(make_job, RUN), ["ingest"])
    assert find_difference(job, "name") == {}
    assert make_trends_before(job.lake, job.run) == []


def test_difference__sees_a_value_that_moved_to_another_column(make_job: JobMaker, tmp_path: Path) -> None:
    """A hash that skips nulls would not."""
    columns = [key(), TEXT, {"name": "other", "logicalType": "string"}, coordinate("x")]
    for run, line in ((BEFORE, "1,a,,0\n2,b,b,0\n"), (RUN, "1,,a,0\n2,b,b,0\n")):
        (tmp_path / f"{run}.csv").write_text("id,name,other,x\n" + line, encoding="utf-8")
        job = make_job(columns, path="{date}.csv", run=run)
        ingest.run(job)
    found = find_difference(job, None)
    assert (found["changed"], found["same"]) == (1, 1)


def test_difference__without_a_key_counts_equal_rows(make_job: JobMaker, tmp_path: Path) -> None:
    rows: Rows = {i: ("a", 1.0, float(i // 2)) for i in range(10)}  # five rows, each twice
    for run, ids in ((BEFORE, [*range(10)]), (RUN, [9, 8, 7, 7, 7, 5, 5, 0, 11])):
        lines = [f"{id_ // 2},a,1.0,{float(id_ // 2)!r}\n" for id_ in ids]
        (tmp_path / f"{run}.csv").write_text("id_,name,x,y\n" + "".join(lines), encoding="utf-8")
        job = job_on(make_job, run, keyed=False)
        ingest.run(job)
    found = find_difference(job, "name")
    # now: 4 twice, 3 three times, 2 twice, 0 once, and a new one; before: 0 to 4 twice each
    assert (found["added"], found["removed"], found["same"]) == (2, 3, 7)
    assert (found["changed"], found["examples"]) == (None, [])
    assert len(rows) == found["removed"] + found["same"]


def test_trends__are_of_the_last_runs_and_have_gaps(make_job: JobMaker, tmp_path: Path) -> None:
    days = [f"2023-04-{day:02}" for day in range(1, 15)]
    for day in days:
        snapshot(tmp_path, day, {1: ("a", 0.0, 0.0), int(day[-2:]) + 1: ("b", 1.0, 0.0)})
        ingest.run(job_on(make_job, day))
    job = job_on(make_job, days[-1])
    broken = [
        {"table": "points", "expectation": "e", "severity": s, "success": False, "observed": ""}
        for s in ("error", "warning")
    ]
    slices.write_slice(
        job.lake,
        Slice("quality", days[5], also=(("table", "points"),)),
        slices.table_of(job.lake, "quality", broken),
    )
    found = make_trends_before(job.lake, job.run)
    assert [row["run"] for row in found] == days[2:13], "eleven before this one, the latest"
    assert {row["points"] for row in found} == {2}
    assert {row["clusters"] for row in found} == {None}
    assert [row["errors"] for row in found] == [None] * 3 + [1] + [None] * 7


def test_k_distances__are_counted_up_to_eps_and_the_samples_beyond(
    make_job: JobMaker, tmp_path: Path
) -> None:
    rows = some_rows()
    snapshot(tmp_path, RUN, rows)
    job = run_steps(job_on(make_job, RUN))
    points = stored_points(job)
    fit = refit(job, points)
    where = Fingerprints(job.lake, RUN).slice("outliers")
    curve = k_distances(job, where, len(rows), 1.5, fit)

    places = np.array([row[1:] for row in rows.values()])
    all_distances = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
    true = np.sort(np.sort(all_distances, axis=1)[:, 4])  # the point itself is first
    counted = curve.is_counted
    assert curve.distance[counted].max() == 1.5
    # a distance of the grid may differ by a rounding from one that a point has
    expected = np.searchsorted(true, curve.distance[counted] * (1 + 1e-12), "right") / len(rows)
    np.testing.assert_array_equal(curve.share[counted], expected)
    assert (np.diff(curve.distance) > 0).any()
    assert (np.diff(curve.share) >= 0).all()
    assert curve.share[-1] == 1
    # all points are in the sample, so beyond eps it is exact as well
    np.testing.assert_allclose(np.unique(curve.distance[~counted]), np.unique(true[true > 1.5]))

    others = other_eps(fit, curve, 1.5, 4)
    at = {row["eps"]: row for row in others}
    assert {factor * 1.5 for factor in (1, *FACTORS)} <= set(at)
    assert [row["eps"] for row in others if row["is_chosen"]] == [1.5]
    assert sum(row["is_knee"] for row in others) == 1
    for factor in (*FACTORS, 1.0):
        share = at[factor * 1.5]["share"]
        assert share == np.count_nonzero(true <= factor * 1.5) / len(rows), factor
    n_pairs = np.count_nonzero(np.triu(all_distances <= 1.5, 1))
    assert at[1.5]["pairs"] == pytest.approx(n_pairs, rel=0.1)
    assert at[1.5]["neighbours"] == 2 * at[1.5]["pairs"] / len(rows)


def test_k_distances__end_at_eps_without_a_fit(make_job: JobMaker, tmp_path: Path) -> None:
    snapshot(tmp_path, RUN, {i: ("a", float(10 * i), 0.0) for i in range(9)})  # no pairs, so no k-distances
    job = run_steps(job_on(make_job, RUN))
    found = gather(job)
    assert refit(job, stored_points(job)) is None
    assert found.k_share.max() == 0
    assert [row["pairs"] for row in found.other_eps] == [None] * 7
    assert [row["share"] for row in found.other_eps] == [0.0] * 4 + [None] * 3
    assert "None" not in render(found)


@pytest.mark.parametrize("metric", ["euclidean", "haversine"])
def test_nearest_of__is_that_of_all_points_whatever_the_batches(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metric: str
) -> None:
    rng = np.random.default_rng(3)
    places = rng.integers(-40, 40, (300, 2)).astype(float)  # ties, and equal points
    job = job_on(make_job, RUN)
    snapshot(tmp_path, RUN, {i: ("a", float(x), float(y)) for i, (x, y) in enumerate(places)})
    ingest.run(job)
    points = stored_points(job)
    points = dataclasses.replace(points, frame=points.frame.repartition(3), files=None)
    monkeypatch.setattr(nearest, "_BLOCK", 7)
    few = [5, 299, 0]
    found = nearest.nearest_of(points, few, get_metric(metric), 4)
    for id_ in few:
        distance = _distances(places[id_], places, metric)
        order = [i for i in np.lexsort((np.arange(300), distance.round(9))) if i != id_][:4]
        mine = found.id == id_
        assert found.neighbour[mine].tolist() == order
        assert found.distance[mine] == pytest.approx(distance[order])


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
    found = nearest.nearest_of(stored_points(job), [9], replace(get_metric("euclidean")), 3)
    assert (found.id.tolist(), found.neighbour.tolist(), found.distance.tolist()) == ([9], [4], [5.0])
