"""The chain of steps on real data, equal to results that scikit-learn and SciPy computed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from scipy.spatial import cKDTree
from sklearn.cluster import DBSCAN
from sklearn.neighbors import LocalOutlierFactor

import epsjoin
from epsjoin.contracts.load_source import load_source
from epsjoin.errors import UnfitTableError
from epsjoin.lake import slices, targets
from epsjoin.lake.lake import Lake, Slice
from epsjoin.params import RunParams
from epsjoin.paths import CONTRACTS
from epsjoin.spark.checks.verify import Request, verify_tables
from epsjoin.spark.cluster.cluster import stored_pairs
from epsjoin.spark.job.job import Job
from epsjoin.spark.rows import splits
from epsjoin.spark.rows.rows import StoredRows
from oracles.cluster import dbscan_of_rows
from tests import open_sets
from tests.spark.conftest import REPO, STAGES, STEPS, JobMaker
from tests.spark.real_data import column, content, job_on, pair_set
from tests.tiny import RUN, key, list_of_coordinates


@pytest.mark.parametrize(
    "name", ["digits", *(pytest.param(other, marks=pytest.mark.long) for other in ("landmarks", "pendigits"))]
)
def test_chain__equals_scikit_learn_and_scipy(make_job: JobMaker, tmp_path: Path, name: str) -> None:
    points = open_sets.read(name)
    expected = next(join for join in open_sets.EXPECTED[name]["joins"] if join["metric"] == "euclidean")
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


def test_chain__of_embeddings_is_that_of_scikit_learn_and_leaves_out_what_has_no_direction(
    make_job: JobMaker, tmp_path: Path
) -> None:
    """The vectors are lists in one column of Parquet, in float32, as embeddings are."""
    random = np.random.default_rng(2)
    topics = random.random((12, 40))
    rows = topics[random.integers(0, 12, 900)] + random.normal(size=(900, 40)) * 0.05
    rows *= random.uniform(0.1, 50.0, (900, 1))  # of a vector its length says nothing
    rows[7] = 0.0
    rows = rows.astype(np.float32).astype(np.float64)
    lists = pa.array(rows.tolist(), pa.list_(pa.float32()))
    pq.write_table(pa.table({"id": range(900), "vector": lists}), tmp_path / "snapshot.parquet")
    columns = [key(), list_of_coordinates("vector", 40)]
    given = {"eps": 0.005, "min_pts": 5}
    files = {"path": "snapshot.parquet", "format": "parquet"}
    job = make_job(columns, **files, metric="cosine", max_quarantine_share=0.5, params=given)
    counters = {name: step(job) for name, step in STEPS.items()}
    ((reason, raw),) = zip(*column(job, "quarantine", "line", "reason", "raw"), strict=True)
    assert reason == "cosine needs coordinates with a length from 1e-149 to 1e149"
    assert raw.startswith('{"id": 7, "vector": [0.0, 0.0')

    ids, points = np.delete(np.arange(900), 7), np.delete(rows, 7, axis=0)
    assert column(job, "join_plan", "run", "kind")[0].tolist() == ["blocks"]
    expected = epsjoin.self_join(points, given["eps"], "cosine")
    assert len(expected.left) > 1000
    pairs = content(job, "pairs")
    np.testing.assert_array_equal(pairs["left_id"], ids[expected.left])
    np.testing.assert_array_equal(pairs["right_id"], ids[expected.right])
    np.testing.assert_array_equal(pairs["distance"], expected.distance)
    peer = DBSCAN(eps=given["eps"], min_samples=5, metric="cosine").fit(points)
    assert counters["cluster"]["clusters"] == peer.labels_.max() + 1 > 3
    assert counters["cluster"]["noise"] == (peer.labels_ == -1).sum()
    by_library = epsjoin.lof(points, 4, "cosine")
    for name, found in zip(
        ("lof", "k_distance"), column(job, "outliers", "id", "lof", "k_distance"), strict=True
    ):
        np.testing.assert_array_equal(found, getattr(by_library, name))
    for stage in STAGES.values():
        stage(job)
    assert verify_tables(job, Request(points=899, cells=5))["neighbours_checked"] == 2 * len(expected.left)


@pytest.mark.parametrize(
    ("name", "split_bytes"),
    [
        ("landmarks", 1 << 12),
        *(pytest.param(name, None, marks=pytest.mark.long) for name in ("landmarks", "pendigits")),
    ],
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
        monkeypatch.setattr(targets, "ROW_GROUP_BYTES", 1 << 12)
    every, eps = {"landmarks": (10, 0.05), "pendigits": (1, 0.35)}[name]
    points = open_sets.read(name)[::every]
    job = job_on(make_job, tmp_path, points, {"eps": eps, "min_pts": 6})
    for step in STEPS.values():
        step(job)
    for rows in (
        StoredRows.of(job, Slice("points", job.run), "id long"),
        stored_pairs(job, Slice("pairs", job.run)),
    ):
        several = [len(split) for split in rows.splits()] if split_bytes else []
        assert not split_bytes or len(several) > 2
    ids = np.arange(len(points))
    left, right, distance = column(job, "pairs", "left_id", "left_id", "right_id", "distance")
    expected = dbscan_of_rows(len(points), left, right, distance, 6)
    cluster_id, role, degree = column(job, "clusters", "id", "cluster_id", "role", "degree")
    np.testing.assert_array_equal(cluster_id, expected.cluster_id)
    np.testing.assert_array_equal(role, expected.role)
    np.testing.assert_array_equal(degree, expected.degree)

    expected_lof = epsjoin.lof(points, 5)
    lof, k_distance, ranks, noise = column(job, "outliers", "id", "lof", "k_distance", "rank", "is_noise")
    assert lof.tobytes() == expected_lof.lof.tobytes()
    assert k_distance.tobytes() == expected_lof.k_distance.tobytes()
    assert 0 < np.count_nonzero(k_distance > (job.params.eps or 0)) < len(points)
    by_rank = sorted(ids.tolist(), key=lambda i: (-lof[i], -k_distance[i], i))
    assert [ids[place] for place in np.argsort(ranks)] == by_rank
    np.testing.assert_array_equal(noise, role == "noise")


def test_chain__top_outliers_of_the_demo_are_those_of_scikit_learn(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The demo's data set by the real jobs, with its own parameters."""
    lake = Lake(tmp_path.as_uri(), CONTRACTS, load_source(CONTRACTS, "navaids"))
    job = Job(lambda: spark, lake, "2023-06-01", RunParams(**lake.source.defaults), REPO)
    for step in STEPS.values():
        step(job)
    places = ["latitude_deg", "longitude_deg"]
    points = np.column_stack(column(job, "points", "id", *places))
    ids, lof, rank = column(job, "outliers", "rank", "id", "lof", "rank")
    k = job.params.n_neighbours
    peer = LocalOutlierFactor(n_neighbors=k, metric="haversine", algorithm="ball_tree")
    peer.fit(np.radians(points))
    (by_id,) = column(job, "points", "id", "id")
    theirs = dict(zip(by_id.tolist(), -peer.negative_outlier_factor_, strict=True))
    scores = np.array([theirs[i] for i in ids.tolist()])
    first = 200
    np.testing.assert_allclose(lof[:first], scores[:first], rtol=1e-6)
    # in the same order but for ties, among which the k-distance and then the id decide
    assert (np.diff(scores[:first]) <= 1e-6 * scores[1:first]).all()
    assert scores[first:].max() <= scores[first - 1] * (1 + 1e-6)
    assert rank.tolist() == list(range(1, len(points) + 1))
    assert (np.diff(lof) <= 0).all()


def test_chain__again_gives_the_same_tables_and_leaves_other_runs_alone(
    make_job: JobMaker, tmp_path: Path
) -> None:
    points = open_sets.read("pendigits")[:2000]
    earlier = job_on(make_job, tmp_path, points[:1500], {"min_pts": 6})
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


def test_steps__of_a_run_that_another_contract_has_made_say_which_to_run_again(
    make_job: JobMaker, tmp_path: Path
) -> None:
    """Names of files do not tell by which coordinates and metric they were made."""
    points = np.random.default_rng(7).random((300, 2)) * 10
    job = job_on(make_job, tmp_path, points, {"eps": 0.7, "min_pts": 3})
    for step in STEPS.values():
        step(job)
    source = job.lake.source

    def under(**changed: Any) -> Job:
        return replace(job, lake=replace(job.lake, source=replace(source, **changed)))

    later = {name: step for name, step in {**STEPS, **STAGES}.items() if name != "ingest"}
    swapped, other = under(coordinates=source.coordinates[::-1]), under(metric="manhattan")
    for step in later.values():
        with pytest.raises(UnfitTableError, match="other coordinates than f1, f0, .*; run ingest again"):
            step(swapped)
    says = "epsilon of .* has the metric euclidean, the contract manhattan; run fit_epsilon again"
    for name in ("replicate", "merge_join", "cluster", "outliers", "quality_results"):
        with pytest.raises(UnfitTableError, match=says):
            later[name](other)
    later["fit_epsilon"](other)
    says = "join_plan of .* has the metric euclidean, the contract manhattan; run replicate again"
    for name in ("merge_join", "cluster", "outliers", "quality_results"):
        with pytest.raises(UnfitTableError, match=says):
            later[name](other)
    for name in ("quality_input", *list(STEPS)[1:], "quality_results"):
        later[name](other)
    found = {(i, j) for i, j in pair_set(other).tolist()}
    assert found == set(cKDTree(points).query_pairs(0.7, p=1.0))
