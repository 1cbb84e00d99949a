"""What a report is made from: the runs before, k-distances, nearest points; the page, from table to byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from epsjoin.findings import Findings
from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.report.page import render
from epsjoin.report.publish import publish
from epsjoin.spark.report.difference import find_difference
from epsjoin.spark.report.gather import gather, make_trends_before
from tests.spark.conftest import STEPS, JobMaker
from tests.spark.two_runs import BEFORE, LATER, Rows, changed, job_on, run_steps, snapshot, some_rows
from tests.tiny import RUN


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
