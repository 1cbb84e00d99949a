"""What a report is made from: the runs before, k-distances, nearest points; the page, from table to byte."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from epsjoin.commands.clusters import find_deviations
from epsjoin.errors import ArgumentError, EpsjoinError
from epsjoin.findings import Comparison, Findings
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.schemas import parse_ddl
from epsjoin.report.page import render
from epsjoin.report.publish import publish
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from epsjoin.spark.points import buckets
from epsjoin.spark.points.hashes import hash_ids
from epsjoin.spark.report import members
from epsjoin.spark.report.gather import find_ties, gather
from epsjoin.spark.report.intake import gather_intake
from epsjoin.spark.report.trends import make_trends_before
from epsjoin.spark.rows import stored
from epsjoin.spark.tasks.arrow import Task
from epsjoin.vocabulary import NOISE
from oracles.deviations import z_score
from tests.html_reader import Reader
from tests.spark.conftest import STEPS, JobMaker
from tests.spark.ingest.here import reading_here
from tests.spark.two_runs import BEFORE, LATER, Rows, changed, job_on, run_steps, snapshot, some_rows
from tests.tiny import RUN, coordinate, key


def test_gather_intake__knows_what_numbers_the_records_of_parquet(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job([key(), coordinate("x")], path="a.parquet", format="parquet", max_quarantine_share=0.9)
    pq.write_table(pa.table({"id": [1, 2], "x": [0.5, None]}), tmp_path / "a.parquet")
    with reading_here():
        ingest.run(job)
    found = gather_intake(job, Slice("snapshots", RUN), Slice("quarantine", RUN))
    assert (found.numbered_by, found.quarantine_examples[0]["line"]) == ("row", 2)


def test_report__of_a_second_run(make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = some_rows()
    snapshot(tmp_path, BEFORE, rows)
    snapshot(tmp_path, RUN, changed(rows))
    snapshot(tmp_path, LATER, rows)
    run_steps(job_on(make_job, LATER), ["ingest"])  # a later run is no run before
    run_steps(job_on(make_job, BEFORE))
    job = run_steps(job_on(make_job, RUN))
    found = gather(job)

    told = found.comparison
    assert told is not None
    assert found.run_before == told.against == BEFORE
    assert (told.inserted, told.deleted, told.updated, told.moved) == (3, 2, 2, 1)
    assert [row["key"] for row in told.examples] == [[row["id"]] for row in told.examples]
    assert [(row["what"], row["id"], row["label"]) for row in told.examples] == [
        *[("inserted", 1000, "new"), ("inserted", 1001, None), ("inserted", 1002, "far")],
        *[("updated", 7, "<script>alert(1)</script>"), ("updated", 8, "n8")],
        *[("deleted", 3, "n3"), ("deleted", 200, "n200")],
    ]
    y = rows[8][2]
    assert [row["columns"] for row in told.examples if row["what"] == "updated"] == [
        [("name", "n7", "<script>alert(1)</script>")],
        [("y", y, y + 0.25)],
    ]
    assert [row["run"] for row in found.trends] == [BEFORE, RUN]
    assert [row["points"] for row in found.trends] == [len(rows), len(rows) + 1]
    assert found.trends[0]["clusters"] == 2
    assert found.trends[1]["min_pts"] == job.params.min_pts
    assert found.trends[0].keys() == found.trends[1].keys()
    assert [row["seconds"] for row in found.trends] == [24.5, 24.5], "of seven steps"
    assert found.seconds_before == {name: number + 0.5 for number, name in enumerate(STEPS)}
    names = {cluster_id: name for name, cluster_id in told.cluster_ids.items()}
    assert [row["called"] for row in found.largest_clusters] == [
        told.labels[names[row["cluster_id"]]] for row in found.largest_clusters
    ]
    check_outliers(found, changed(rows))
    check_places(found, changed(rows), job)
    check_everywhere(found, job, monkeypatch)
    check_sampled_deviations(job, monkeypatch)

    publish(job)
    first = (tmp_path / "lake" / "tiny" / "reports" / f"run={RUN}" / "report.html").read_bytes()
    words = Reader(first.decode()).words
    assert "random points" not in words
    check_deviations(found, words, changed(rows), job)
    slices.write_counters(job.lake, RUN, "report", {"seconds": 7.0})
    assert render(gather(job)).encode() == first, "the page of a page must be the same"
    assert b"<script" not in first
    assert b"&lt;script&gt;" in first

    folder = tmp_path / "lake" / "tiny" / "reports" / f"run={RUN}"
    shutil.rmtree(folder)
    folder.touch()
    with pytest.raises(EpsjoinError, match=f"{folder} cannot be written .* make room or mend what is wrong"):
        publish(job)


def check_places(found: Findings, rows: Rows, job: Job) -> None:
    """Every point is on the map; a cluster's numbers are those of its points on it."""
    assert sorted(map(tuple, found.map_points.tolist())) == sorted(row[1:] for row in rows.values())
    assert found.n_core + found.n_border + found.n_noise == len(rows)
    sizes = np.repeat(found.cluster_sizes, found.cluster_size_counts)
    assert [row["size"] for row in found.largest_clusters] == sorted(sizes.tolist(), reverse=True)
    clusters = slices.read_slice(job.lake, Slice("clusters", RUN)).to_pylist()
    for row in found.largest_clusters:
        mine = found.map_cluster_ids == row["cluster_id"]
        assert row["size"] == mine.sum()
        for role in ("core", "border"):
            assert row[role] == sum(
                each["role"] == role and each["cluster_id"] == row["cluster_id"] for each in clusters
            )
        assert row["centre"] == pytest.approx(found.map_points[mine].mean(axis=0).tolist(), rel=1e-12)
    assert (found.map_cluster_ids == NOISE).sum() == found.n_noise


def check_deviations(
    found: Findings, words: str, rows: Rows, job: Job, n_usual: int = 10**6, limit: int = 10**6
) -> None:
    """The words about a cluster are those of medians by hand, on the page and by ``epsjoin clusters``."""
    told = slices.read_slice(job.lake, Slice("clusters", RUN))
    ids, hashes = told["id"].to_numpy(), hash_ids(job.params.seed, told["id"].to_numpy())
    places, of = np.array([rows[each][1:] for each in ids.tolist()]), told["cluster_id"].to_numpy()
    usual = np.argsort(hashes)[:n_usual]
    assert len(found.largest_clusters) == 2
    for row in found.largest_clusters:
        mine = np.flatnonzero(of == row["cluster_id"])
        mine = mine[np.argsort(hashes[mine])[:limit]]
        points = np.concatenate([places[usual], np.median(places[mine], axis=0)[None]])
        z = [z_score(column[-1], column[:-1].tolist()) for column in points.T]
        order = sorted((0, 1), key=lambda axis: -abs(z[axis]))
        assert row["dimensions"] == ", ".join(
            f"{'xy'[axis]} {round(z[axis], 1) + 0.0:+.1f}" for axis in order
        )
        assert row["dimensions"] in words
    ids = [row["cluster_id"] for row in found.largest_clusters]
    assert find_deviations(Fingerprints(job.lake, RUN), ids) == [
        row["dimensions"] for row in found.largest_clusters
    ]


def check_sampled_deviations(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many points those with the smallest hashes are looked at, wherever, and the page says so."""
    by_hash = np.sort(
        hash_ids(job.params.seed, slices.read_slice(job.lake, Slice("points", RUN))["id"].to_numpy())
    )
    drawn = "Medians are those of random points: 9 of all points and at most 7 of each cluster."
    with monkeypatch.context() as few:
        few.setattr(members, "_MAX_NUMBERS", 10)
        few.setattr(members, "MIN_USUAL", 9)
        few.setattr(members, "MIN_MEMBERS", 7)
        few.setattr(members, "bound_hashes", lambda rows, _: int(by_hash[rows + 3]))
        found = gather(job)
        words = Reader(render(found)).words
        check_deviations(found, words, changed(some_rows()), job, 9, 7)
        assert drawn in words
        few.setattr(buckets, "MAX_ROWS", 40)
        check_equal(gather(job), found)
        few.setattr(stored, "MAX_HERE_BYTES", -1)
        check_equal(gather(job), found)


def check_everywhere(found: Findings, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Driver and tasks gather the same, in any batches and buckets; the driver needs no session for it."""

    def no_session() -> SparkSession:
        raise AssertionError("a session was started for a few rows")

    with monkeypatch.context() as few:
        few.setattr(stored, "MAX_BATCH_ROWS", 29)
        check_equal(gather(replace(job, session=no_session)), found)
        few.setattr(buckets, "MAX_ROWS", 40)
        check_equal(gather(replace(job, session=no_session)), found)
        few.setattr(stored, "scan_files", scanned := Mock(wraps=stored.scan_files))
        check_equal(gather(replace(job, session=no_session)), found)
        whole_points = [call for call in scanned.call_args_list if "point" in call.args[3].names]
        assert [call.kwargs["threads"] for call in whole_points] == [stored.MAX_THREADS] * 2
        few.setattr(stored, "MAX_HERE_BYTES", -1)
        check_equal(gather(job), found)
        with pytest.raises(AssertionError, match="a session was started"):
            gather(replace(job, session=no_session))


def check_equal(found: Findings | Comparison, expected: Findings | Comparison) -> None:
    for field in fields(expected):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=field.name)
        elif isinstance(other, Comparison):
            check_equal(one, other)
        else:
            assert one == other, field.name


def check_outliers(found: Findings, rows: Rows) -> None:
    """Every listed point has its three nearest of all, by brute force, ties by id."""
    ids, places = np.array(list(rows)), np.array([row[1:] for row in rows.values()])
    assert len(found.outliers) == 20
    for row in found.outliers:
        distance = np.sqrt(((places - (row["columns"]["x"], row["columns"]["y"])) ** 2).sum(axis=1))
        order = [i for i in np.lexsort((ids, distance)) if ids[i] != row["id"]][:3]
        assert [near["id"] for near in row["nearest"]] == ids[order].tolist()
        assert [near["key"] for near in row["nearest"]] == [[id_] for id_ in ids[order].tolist()]
        assert row["key"] == [row["id"]]
        assert row["columns"].keys() == {"id", "name", "x", "y"}
        assert [near["distance"] for near in row["nearest"]] == pytest.approx(distance[order])
        assert [near["label"] for near in row["nearest"]] == [rows[ids[i]][0] or None for i in order]


def test_report__names_points_by_their_key_and_says_which_are_tied(
    make_job: JobMaker, tmp_path: Path
) -> None:
    """Columns of the source may have the names of columns of ours."""
    names = ("code", "rank", "degree", "nearest")
    columns = [
        {"name": "code", "logicalType": "string", "primaryKey": True, "required": True},
        *({"name": name, "logicalType": "string"} for name in names[1:]),
        *(coordinate(axis) for axis in ("x", "y")),
    ]
    places = [(0.125 * i, 0.0) for i in range(8)] + [(100.0 * i, 900.0) for i in range(1, 31)]
    lines = [f"c{i},r,d,n,{x!r},{y!r}\n" for i, (x, y) in enumerate(places)]
    (tmp_path / f"{RUN}.csv").write_text("code,rank,degree,nearest,x,y\n" + "".join(lines), encoding="utf-8")
    params = {"eps": 1.5, "min_pts": 5, "lof_k": 1}
    found = gather(run_steps(make_job(columns, path="{date}.csv", run=RUN, params=params)))
    assert found.key == ("code",)
    (cluster,) = found.largest_clusters
    assert cluster["key"] == [cluster["label"]]
    assert cluster["label"] in {f"c{i}" for i in range(8)}
    assert len(found.outliers) == 20
    for row in found.outliers:
        assert row["tied"] == (1, 30), "all factors are 1, and thirty points have their neighbour at 100"
        x = places[int(row["columns"]["code"][1:])][0]
        assert row["key"] == [row["columns"]["code"]]
        assert {name: row["columns"][name] for name in (*names[1:], "x")} == {
            **{"rank": "r", "degree": "d", "nearest": "n"},
            "x": x,
        }
        assert {near["distance"] for near in row["nearest"]} <= {100.0, 200.0, 300.0}
        for near in row["nearest"]:
            other = places[int(near["key"][0][1:])]
            assert np.hypot(other[0] - x, other[1] - 900.0) == near["distance"]


def test_find_ties__are_of_both_numbers_that_decide_on_the_rank() -> None:
    rows = [
        *[(1, 9.0, 3.0), (2, 8.0, 3.0), (3, 8.0, 3.0)],  # of one LOF the k-distance decides
        *[(4, 2.0, 2.5), (5, 2.0, 2.5), (6, 2.0, 2.5), (7, 1.0, 2.5)],
        (8, 1.0, 1.0),
    ]
    assert _ties(rows, 5) == [(1, 1), (2, 3), (2, 3), (4, 6), (4, 6)]
    as_few_points_as_neighbours = [(rank, None, None) for rank in (1, 2, 3)]
    assert _ties(as_few_points_as_neighbours, 2) == [(1, 3), (1, 3)]


def _ties(rows: Sequence[tuple[int, float | None, float | None]], n_first: int) -> list[tuple[int, int]]:
    columns = parse_ddl("rank long, k_distance double, lof double")
    outliers = pa.Table.from_pylist([dict(zip(columns.names, row, strict=True)) for row in rows], columns)

    def scan(names: Sequence[str], work: Task) -> list[pa.RecordBatch]:
        return list(work(outliers.select(names).to_batches(max_chunksize=4)))

    return find_ties(outliers.to_pylist()[:n_first], scan)


def test_report__of_a_first_run_has_nothing_before(make_job: JobMaker, tmp_path: Path) -> None:
    snapshot(tmp_path, RUN, some_rows())
    job = run_steps(job_on(make_job, RUN), ["ingest"])
    assert make_trends_before(job.lake, job.run, {}) == []


def test_report__of_degrees_beside_a_height_has_plain_means_as_centres(
    make_job: JobMaker, tmp_path: Path
) -> None:
    columns = [key(), coordinate("lat", "latitude"), coordinate("lon", "longitude"), coordinate("alt")]
    lines = [f"{i},{i / 8},{i / 4},{100 + i}" for i in range(5)]
    (tmp_path / "snapshot.csv").write_text("\n".join(["id,lat,lon,alt", *lines]) + "\n")
    job = run_steps(make_job(columns, params={"eps": 5.0, "min_pts": 2}))
    (cluster,) = gather(job).largest_clusters
    assert cluster["centre"] == [0.25, 0.5, 102.0]


def test_report__with_other_parameters_than_the_run_had_is_refused(
    make_job: JobMaker, tmp_path: Path
) -> None:
    snapshot(tmp_path, RUN, some_rows())
    job = run_steps(job_on(make_job, RUN))
    told = [{"job": "cluster", "counter": "min_pts", "value": 10.0}]
    table = slices.table_of(job.lake, "job_metrics", told)
    slices.write_slice(job.lake, Slice("job_metrics", RUN, also=(("job", "cluster"),)), table)
    with pytest.raises(ArgumentError, match="made with min_pts 10.*; give report the same: --params"):
        gather(job)
