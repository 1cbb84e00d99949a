"""The chain of steps on real data, equal to results that scikit-learn and SciPy computed."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.cluster import DBSCAN

from epsjoin.errors import BudgetError, DataRefusedError, TableError
from epsjoin.lake import delta_log, parquet, slices
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import Target
from epsjoin.local.neighbours.from_pairs import lof_from_neighbours, nearest_within
from epsjoin.local.neighbours.rank import rank
from epsjoin.spark import splits, tasks
from epsjoin.spark.cluster import cluster
from epsjoin.spark.cluster.cluster import stored_pairs
from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job import Job
from epsjoin.spark.join import merge_join, replicate
from epsjoin.spark.neighbours import outliers
from epsjoin.spark.rows import StoredRows
from oracles.cluster import dbscan_of_rows
from tests.spark.conftest import REPO, RUN, STEPS, JobMaker, coordinate, has_slice, key

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


@pytest.mark.parametrize("name", [pytest.param("landmarks", marks=pytest.mark.long), "pendigits", "digits"])
def test_chain__equals_scikit_learn_and_scipy(make_job: JobMaker, tmp_path: Path, name: str) -> None:
    points = {"landmarks": landmarks, "pendigits": pendigits, "digits": digits}[name]()
    expected = next(join for join in EXPECTED[name]["joins"] if join["metric"] == "euclidean")
    dbscan = expected["dbscan"]
    job = job_on(make_job, tmp_path, points, {"eps": expected["eps"], "min_pts": dbscan["min_pts"]})
    counters = {job_name: step(job) for job_name, step in STEPS.items()}

    assert counters["merge_join"]["pairs"] == expected["self_pairs_i_lt_j"]
    by_scipy = cKDTree(points).query_pairs(expected["eps"], output_type="ndarray")
    np.testing.assert_array_equal(pair_set(job), by_scipy[np.lexsort((by_scipy[:, 1], by_scipy[:, 0]))])
    found = counters["cluster"]
    for role in ("core", "border", "noise", "clusters"):
        assert found[role] == dbscan[role], role
    cluster_id, role = column(job, "clusters", "id", "cluster_id", "role")
    peer = DBSCAN(eps=expected["eps"], min_samples=dbscan["min_pts"]).fit(points)
    np.testing.assert_array_equal(np.flatnonzero(role == "core"), peer.core_sample_indices_)
    np.testing.assert_array_equal(role == "noise", peer.labels_ == -1)
    # a border point may be in another cluster there (the first found, not the nearest core's): cores decide
    both = np.unique(np.column_stack([cluster_id, peer.labels_])[role == "core"], axis=0)
    assert len(both) == dbscan["clusters"]


@pytest.mark.parametrize(
    ("name", "split_bytes"),
    [("landmarks", None), ("landmarks", 1 << 12), pytest.param("pendigits", None, marks=pytest.mark.long)],
)
def test_chain__clusters_and_outliers_are_those_of_the_library(
    make_job: JobMaker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    split_bytes: int | None,
) -> None:
    """Little data is one split; of small splits some hold several files, some a few row groups of one."""
    if split_bytes is not None:
        monkeypatch.setattr(splits, "MIN_SPLIT_BYTES", split_bytes)
        monkeypatch.setattr(splits, "MAX_SPLIT_BYTES", split_bytes)
        monkeypatch.setattr(splits, "OPEN_COST_BYTES", split_bytes // 8)
        monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", 1 << 12)
    points = {"landmarks": lambda: landmarks()[::10], "pendigits": pendigits}[name]()
    eps = {"landmarks": 0.05, "pendigits": 0.35}[name]
    job = job_on(make_job, tmp_path, points, {"eps": eps, "min_pts": 6})
    for step in STEPS.values():
        step(job)
    for rows in (StoredRows.of(job, Slice("points", job.run), "id long"), stored_pairs(job, Slice("pairs", job.run))):
        several = [len(split) for split in rows.splits()] if split_bytes else []
        assert not split_bytes or len(several) > 2
    ids = np.arange(len(points))
    left, right, distance = column(job, "pairs", "left_id", "left_id", "right_id", "distance")
    expected = dbscan_of_rows(len(points), left, right, distance, 6)
    cluster_id, role, degree = column(job, "clusters", "id", "cluster_id", "role", "degree")
    np.testing.assert_array_equal(cluster_id, expected.cluster_id)
    np.testing.assert_array_equal(role, expected.role)
    np.testing.assert_array_equal(degree, expected.degree)

    scores = lof_from_neighbours(ids, nearest_within(left, right, distance, 5), 5, job.params.eps or 0)
    lof, k_distance, ranks, noise = column(job, "outliers", "id", "lof", "k_distance", "rank", "is_noise")
    np.testing.assert_array_equal(lof, scores.lof)
    np.testing.assert_array_equal(k_distance, scores.k_distance)
    np.testing.assert_array_equal(ranks, rank(ids, scores.k_distance, scores.lof, degree))
    np.testing.assert_array_equal(noise, role == "noise")
    assert np.isfinite(lof).sum() > 100


@pytest.mark.long
def test_merge_join__joins_heavy_duplicates(make_job: JobMaker, tmp_path: Path) -> None:
    """21 million pairs of equal rows: no part and no batch may grow with them."""
    expected = EXPECTED["skin"]["joins"][1]
    job = job_on(make_job, tmp_path, skin(), {"eps": expected["eps"]})
    for step in JOIN_STEPS:
        step(job)
    assert slices.count_rows(job.lake, Slice("pairs", RUN)) == expected["self_pairs_i_lt_j"]


@pytest.mark.parametrize(
    "params",
    [
        {"n_parts": 1},
        {"n_parts": 7},
        {"n_parts": 64, "replication_budget": 50.0},
        {"cuts": "regular", "k": 0},
        {"cuts": "regular", "k": 3, "msl": 2, "n_parts": 7},
        {"cuts": "regular", "n_parts": 7},
        {"cuts": "regular", "k": 2, "msl": 62, "n_parts": 64, "replication_budget": 50.0},
    ],
)
def test_merge_join__finds_the_same_pairs_however_the_space_is_cut(
    make_job: JobMaker, tmp_path: Path, params: dict[str, Any]
) -> None:
    points = pendigits()[:3000, :5]
    job = job_on(make_job, tmp_path, points, {"eps": 0.11, **params})
    for step in JOIN_STEPS:
        step(job)
    by_scipy = cKDTree(points).query_pairs(0.11, output_type="ndarray")
    np.testing.assert_array_equal(pair_set(job), by_scipy[np.lexsort((by_scipy[:, 1], by_scipy[:, 0]))])


def content(job: Job, table: str) -> pa.Table:
    rows = slices.read_slice(job.lake, Slice(table, job.run))
    return rows.sort_by([(name, "ascending") for name in rows.column_names if rows[name].type != pa.bool_()])


def test_chain__again_gives_the_same_tables_and_leaves_other_runs_alone(
    make_job: JobMaker, tmp_path: Path
) -> None:
    points = pendigits()[:2000]
    earlier = job_on(make_job, tmp_path, points[:500], {"min_pts": 6})
    earlier = replace(earlier, run="2022-01-01")
    for step in STEPS.values():
        step(earlier)
    written = ("points", "epsilon", "epsilon_curve", "join_plan", "replicas", "pairs", "clusters", "outliers")
    of_earlier = {table: slices.files_of(earlier.lake, Slice(table, earlier.run)) for table in written}

    job = job_on(make_job, tmp_path, points, {"min_pts": 6})
    for step in STEPS.values():
        step(job)
    once = {table: content(job, table) for table in written}
    other = {"spark.sql.shuffle.partitions": "5", "spark.sql.execution.arrow.maxRecordsPerBatch": "77"}
    usual = {name: str(job.spark.conf.get(name)) for name in other}
    try:
        for name, value in other.items():
            job.spark.conf.set(name, value)
        for step in STEPS.values():
            step(job)
    finally:
        for name, value in usual.items():
            job.spark.conf.set(name, value)
    for table in written:
        assert content(job, table).equals(once[table]), table
        assert slices.files_of(earlier.lake, Slice(table, earlier.run)) == of_earlier[table], table


def test_replicate__makes_replicas_and_keeps_to_the_budget(make_job: JobMaker, tmp_path: Path) -> None:
    job = job_on(make_job, tmp_path, pendigits()[:, :3], {"eps": 0.05, "n_parts": 16})
    for step in JOIN_STEPS[:2]:
        step(job)
    counters = replicate.run(job)
    n_points = slices.count_rows(job.lake, Slice("points", RUN))
    assert counters["replicated_points"] > 100
    assert (
        n_points + counters["replicated_points"]
        <= counters["rows"]
        <= job.params.replication_budget * n_points
    )
    assert counters["rows"] == slices.count_rows(job.lake, Slice("replicas", RUN))


def test_replicate__brings_parts_together_before_it_writes_many_files(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file a part, the same rows; a budget that does not suffice is refused, lost rows are noticed."""
    job = job_on(make_job, tmp_path, pendigits()[:, :3], {"eps": 0.05, "n_parts": 16})
    for step in JOIN_STEPS[:2]:
        step(job)

    def rows() -> list[dict[str, Any]]:
        found = slices.read_slice(job.lake, Slice("replicas", RUN))
        return found.sort_by([("part", "ascending"), ("id", "ascending")]).to_pylist()

    counted = ("points", "rows", "replicated_points")
    many = replicate.run(job)
    by_many = rows()
    few = replicate.run(job, most_files=0)
    assert [few[name] for name in counted] == [many[name] for name in counted]
    assert rows() == by_many
    files = slices.files_of(job.lake, Slice("replicas", RUN))
    assert len(files) == len({file.partition["part"] for file in files}) == many["parts"]

    tight = replace(job, params=replace(job.params, cuts="regular", k=3, msl=4, replication_budget=1.0))
    with pytest.raises(BudgetError, match="replication_budget"):
        replicate.run(tight, most_files=0)
    read = tasks.reports_of

    def one_file_less(batches: Any) -> list[tasks.TaskReport]:
        first, *others = read(batches)
        return [replace(first, files=[]), *others]

    monkeypatch.setattr(tasks, "reports_of", one_file_less)
    with pytest.raises(TableError, match="rows were made, another number was written"):
        replicate.run(job, most_files=0)


def test_replicate__again_writes_files_of_the_same_bytes_whatever_those_of_the_points_are_called(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_on(make_job, tmp_path, pendigits()[:, :3], {"eps": 0.05, "n_parts": 4})
    ingest.run(job)
    points = slices.read_slice(job.lake, Slice("points", RUN)).drop_columns("run")
    into, found = parquet.target_of(job.lake, Slice("points", RUN)), []
    for order in ("ab", "ba"):
        names = iter(order)
        with monkeypatch.context() as patched:
            patched.setattr(Target, "new_name", lambda *_, names=names: f"{next(names)}.parquet")
            files = [into.write([points.slice(0, 2000)]), into.write([points.slice(2000)])]
        delta_log.commit(job.lake, {Slice("points", RUN): files})
        fit_epsilon.run(job)
        counters = replicate.run(job)
        rows = [
            parquet.read_file(job.lake.location("replicas"), file, ["id", "point"]).to_pylist()
            for file in sorted(
                slices.files_of(job.lake, Slice("replicas", RUN)), key=lambda f: f.partition["part"]
            )
        ]
        found.append((counters["bytes"], rows))
    assert found[0] == found[1]


def test_replicate__reads_one_large_file_by_many_tasks(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_on(make_job, tmp_path, pendigits()[:, :3], {"eps": 0.05, "n_parts": 4})
    ingest.run(job)
    points = slices.read_slice(job.lake, Slice("points", RUN)).drop_columns("run")
    monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", 1)
    groups = [points.slice(begin, 500) for begin in range(0, len(points), 500)]
    file = parquet.target_of(job.lake, Slice("points", RUN)).write(groups)
    delta_log.commit(job.lake, {Slice("points", RUN): [file]})
    fit_epsilon.run(job)

    read, n_tasks = tasks.reports_of, []

    def counted(batches: Any) -> list[tasks.TaskReport]:
        reports = read(batches)
        n_tasks.append(sum(report.counters["points"] > 0 for report in reports))
        return reports

    monkeypatch.setattr(tasks, "reports_of", counted)
    replicate.run(job)
    by_one = content(job, "replicas")
    for bound in ("MIN_SPLIT_BYTES", "MAX_SPLIT_BYTES"):
        monkeypatch.setattr(splits, bound, 1 << 14)
    monkeypatch.setattr(splits, "OPEN_COST_BYTES", 1 << 10)
    monkeypatch.setattr("epsjoin.spark.points.MAX_BATCH_ROWS", 77)
    replicate.run(job)
    assert n_tasks[0] == 1
    assert n_tasks[1] > 3
    assert content(job, "replicas").equals(by_one)


def test_merge_join__takes_no_replicas_of_another_plan(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if replicate had been killed between its two tables."""
    job = job_on(make_job, tmp_path, pendigits()[:500], {"eps": 0.3})
    for step in JOIN_STEPS:
        step(job)

    def killed(lake: Lake, table: str, *rest: object, **also: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(slices, "write_slice", killed)
    with pytest.raises(KeyboardInterrupt):
        replicate.run(replace(job, params=replace(job.params, n_parts=3)))
    monkeypatch.undo()
    with pytest.raises(
        TableError, match="replicas of run 2023-06-01 was made from other tables .* run replicate again"
    ):
        merge_join.run(job)


def test_cluster__takes_no_pairs_of_points_that_are_gone(make_job: JobMaker, tmp_path: Path) -> None:
    job = job_on(make_job, tmp_path, pendigits()[:500], {"eps": 0.3})
    for step in (*JOIN_STEPS, ingest.run):
        step(job)
    for step in (replicate.run, merge_join.run, cluster.run):
        with pytest.raises(TableError, match="epsilon of run 2023-06-01 .* run fit_epsilon again"):
            step(job)
    fit_epsilon.run(job)
    for step, table in ((merge_join.run, "replicas"), (cluster.run, "pairs")):
        with pytest.raises(TableError, match=f"{table} of run 2023-06-01 was made from other tables"):
            step(job)


def test_fit_epsilon__refuses_too_many_pairs_and_names_the_eps_that_fits(
    make_job: JobMaker, tmp_path: Path
) -> None:
    job = job_on(make_job, tmp_path, pendigits(), {"eps": 2.0, "max_pairs": 10_000})
    ingest.run(job)
    with pytest.raises(
        BudgetError, match=r"would give about .* 10,000 are allowed .* largest eps that fits is about 0\.\d+"
    ):
        fit_epsilon.run(job)


def test_cluster__min_pts_of_one_makes_every_point_core(make_job: JobMaker, tmp_path: Path) -> None:
    job = job_on(make_job, tmp_path, np.array([[0.0], [1.0], [5.0]]), {"eps": 1.5, "min_pts": 1})
    for step in STEPS.values():
        step(job)
    cluster_id, role, degree = column(job, "clusters", "id", "cluster_id", "role", "degree")
    assert cluster_id.tolist() == [0, 0, 2]
    assert role.tolist() == ["core"] * 3
    assert degree.tolist() == [2, 2, 1]


def test_replicate_and_merge_join__notice_rows_lost_on_the_way(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a task's report had not arrived, or a file had been read twice."""
    job = job_on(make_job, tmp_path, pendigits()[:500], {"eps": 0.3})
    for step in JOIN_STEPS[:3]:
        step(job)
    read = tasks.reports_of
    monkeypatch.setattr(tasks, "reports_of", lambda batches: read(batches)[1:])
    with pytest.raises(TableError, match="the parts joined another number of rows than replicas have"):
        merge_join.run(job)
    monkeypatch.setattr(tasks, "reports_of", lambda batches: read(batches) * 2)
    with pytest.raises(TableError, match="1,000 points were read, the log says 500"):
        replicate.run(job)


def test_cluster_and_outliers__notice_pairs_lost_on_the_way(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a task had not read its file, or two had read one."""
    job = job_on(make_job, tmp_path, pendigits()[:500], {"eps": 0.3, "n_parts": 2})
    for step in [*JOIN_STEPS, cluster.run]:
        step(job)
    versions = [delta_log.pin_versions(job.lake, name).versions for name in ("cluster", "outliers")]
    run = tasks.run_tasks
    for change in (lambda files: files[1:], lambda files: [*files, files[0]]):

        def lossy(spark: Any, items: Any, work: Any, change: Any = change) -> Any:
            of_pairs = all(isinstance(item, list) and item[0].file.table == "pairs" for item in items)
            return run(spark, change(list(items)) if of_pairs else items, work)

        monkeypatch.setattr(tasks, "run_tasks", lossy)
        with pytest.raises(TableError, match=r"neighbours together, not two for each of"):
            cluster.run(job)
        with pytest.raises(TableError, match=r"nearest neighbours were found in the pairs"):
            outliers.run(job)
    assert [delta_log.pin_versions(job.lake, name).versions for name in ("cluster", "outliers")] == versions


def test_replicate__refuses_too_many_pairs_where_no_power_law_does(
    make_job: JobMaker, tmp_path: Path
) -> None:
    job = job_on(make_job, tmp_path, np.zeros((200, 2)), {"eps": 1.0, "max_pairs": 1000})
    for step in JOIN_STEPS[:2]:
        step(job)
    with pytest.raises(
        BudgetError, match="19,900 pairs are expected within eps 1, 1,000 are allowed .* cannot be told"
    ):
        replicate.run(job)


def test_merge_join__stops_when_more_pairs_appear_than_allowed(make_job: JobMaker, tmp_path: Path) -> None:
    job = job_on(make_job, tmp_path, pendigits()[:1000], {"eps": 0.3})
    for step in JOIN_STEPS[:3]:
        step(job)
    small = replace(job, params=replace(job.params, max_pairs=100))
    with pytest.raises(
        BudgetError,
        match=r"100 pairs are allowed .* [\d,]+ are expected; the largest eps that fits is about 0.17",
    ):
        merge_join.run(small)
    plan = slices.read_row(job.lake, Slice("join_plan", RUN)) | {"expected_pairs": 99.0}
    slices.write_slice(job.lake, Slice("join_plan", RUN), slices.table_of(job.lake, "join_plan", [plan]))
    with pytest.raises(
        BudgetError, match=r"more than 100 pairs lie within eps 0.3 \(max_pairs\), 99 are expected"
    ):
        merge_join.run(small)
    assert not has_slice(job.lake, "pairs", RUN)


def test_fit_epsilon__refuses_to_choose_where_there_is_no_power_law(
    make_job: JobMaker, tmp_path: Path
) -> None:
    job = job_on(make_job, tmp_path, np.zeros((50, 2)), {})
    ingest.run(job)
    with pytest.raises(DataRefusedError, match="eps cannot be chosen from these points"):
        fit_epsilon.run(job)


@pytest.mark.parametrize(
    "points",
    [
        np.zeros((1, 2)),
        pytest.param(np.zeros((40, 2)), marks=pytest.mark.long),
        pytest.param(np.c_[np.arange(50.0), np.full(50, 3.0)], marks=pytest.mark.long),
    ],
)
def test_chain__copes_with_degenerate_points_when_eps_is_given(
    make_job: JobMaker, tmp_path: Path, points: NDArray[np.float64]
) -> None:
    job = job_on(make_job, tmp_path, points, {"eps": 1.0, "min_pts": 3})
    for step in STEPS.values():
        step(job)
    expected = cKDTree(points).query_pairs(1.0, output_type="ndarray")
    assert slices.count_rows(job.lake, Slice("pairs", RUN)) == len(expected)
    assert (
        slices.count_rows(job.lake, Slice("clusters", RUN))
        == slices.count_rows(job.lake, Slice("outliers", RUN))
        == len(points)
    )
