"""Ranked outliers on Spark: those of the library, bit for bit."""

from __future__ import annotations

import itertools
import os
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import epsjoin
from epsjoin.errors import DataRefusedError, TableError
from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.local.metric import get_metric
from epsjoin.local.neighbours.rank import robust_spread
from epsjoin.local.scratch import ScratchFiles
from epsjoin.spark.cluster.from_pairs import CLUSTERS
from epsjoin.spark.join.pairs import PAIRS
from epsjoin.spark.neighbours import cell, on_driver, outliers, rank
from epsjoin.spark.neighbours.on_driver import MAX_ON_DRIVER_BYTES
from epsjoin.spark.neighbours.rank import rank_points
from epsjoin.spark.neighbours.ranked import Scoring, Usual
from epsjoin.spark.points.columns import points_of
from epsjoin.spark.rows.rows import FrameRows, to_frame
from oracles import cluster as slow_cluster
from oracles import join as slow
from oracles import outliers as slow_outliers
from tests.spark.conftest import STEPS, JobMaker
from tests.spark.lattice import LATTICE, columns_of, frame_of
from tests.spark.real_data import column, content, job_on

POINTS = np.concatenate([LATTICE, [[50.0, 0.0, 0.0], [60.0, 0.0, 0.0]]])
EPS, K = 2.0, 3
IDS = [7 * (i * 31 % len(POINTS)) - 40 for i in range(len(POINTS))]
"""Ids in another order than the rows, so that a tie by row would show."""


def rank_all(
    spark: SparkSession,
    pairs: list[tuple[int, int, float]],
    k: int = K,
    max_on_driver: int = 1 << 30,
    lost: int = 0,
) -> list[dict[str, object]]:
    labels = slow_cluster.dbscan(IDS, pairs, 4)
    clusters = FrameRows(spark.createDataFrame([(i, *labels[i]) for i in IDS], CLUSTERS))
    points = points_of(frame_of(spark, POINTS, IDS), columns_of(POINTS), "id").of_dimensions(3)
    stored = FrameRows(spark.createDataFrame(pairs[lost:], PAIRS))
    names = ["a", "b", "c"]
    of = points, LATTICE, clusters, stored, Scoring(EPS, get_metric("euclidean"), k, names)
    with ExitStack() as done:
        # some cells, if by Spark
        ranked = rank_points(*of, done, max_on_driver, cell_bytes=(8 * 3 + 16 * k) * 15)
        rows = [row.asDict() for row in to_frame(ranked).collect()]
    for row in rows:
        assert (row["degree"], row["is_noise"]) == (labels[row["id"]][2], labels[row["id"]][1] == "noise")
    return sorted(rows, key=lambda row: row["rank"])


def pairs_within(eps: float) -> list[tuple[int, int, float]]:
    found = slow.brute_force(POINTS, eps).items()
    return [(*sorted((IDS[i], IDS[j])), distance) for (i, j), distance in found]


WAYS = [1 << 30, 100 * len(POINTS), 0]
"""Bytes that the driver may hold: it ranks the points, does so with large arrays in files, or Spark does."""


def test_room_on_driver__is_memory_then_files_then_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/nowhere")
    n, d, k = 1000, 16, 4
    whole = n * (100 + 27 * d + 16 * k)
    assert on_driver.room_on_driver(n, d, k, whole) is np.zeros
    in_files = on_driver.room_on_driver(n, d, k, whole - 1)
    assert isinstance(in_files, ScratchFiles)
    assert (in_files.folder, in_files.room) == (tmp_path, whole - 1 - 100 * n), (
        "the first arrays are in memory"
    )
    assert on_driver.room_on_driver(n, d, k, 100 * n - 1) is None
    assert on_driver.room_on_driver(n, d, n, n * (100 + 8 * d)) is np.zeros  # then nothing is searched for
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 2 * (whole - 100 * n) - 1, "SC_PAGE_SIZE": 1}.get)
    assert on_driver.room_on_driver(n, d, k, whole - 1) is None
    assert on_driver.room_on_driver(n, d, k, whole) is np.zeros


@pytest.mark.parametrize(
    ("k", "max_on_driver"),
    [
        *((K, way) for way in WAYS[:2]),
        pytest.param(K, 0, marks=pytest.mark.long),  # a job's outliers by Spark are tried below
        *(
            pytest.param(k, way, marks=pytest.mark.long)
            for k, way in itertools.product((1, len(POINTS) - 1), WAYS)
        ),
    ],
)
def test_rank_points__are_the_definition_however_far_the_neighbours_are(
    spark: SparkSession, k: int, max_on_driver: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first are told in words."""
    for module in (rank, on_driver):
        monkeypatch.setattr(module, "MAX_EXPLAINED", 5)
    rows = rank_all(spark, pairs_within(EPS), k, max_on_driver)
    scores = slow_outliers.lof(IDS, pairs_within(1000.0), k)
    assert {row["id"]: (row["k_distance"], row["lof"]) for row in rows} == scores
    assert {row["id"]: row["rank"] for row in rows} == slow_outliers.rank([(i, *scores[i]) for i in IDS])
    usual = Usual.of(LATTICE, ("a", "b", "c"), get_metric("euclidean"))
    of_first = np.array([POINTS[IDS.index(row["id"])] for row in rows[:5]])
    words = usual.describe(of_first).to_pylist()
    assert [row["dimensions"] for row in rows] == words + [None] * (len(POINTS) - 5)
    assert words[0].startswith("a +")


def test_usual__of_longitudes_beyond_180_degrees_is_that_of_the_same_places() -> None:
    places = np.column_stack([np.zeros(31), np.arange(170.0, 201.0)])
    usual = Usual.of(places, ("lat", "lon"), get_metric("haversine"))
    assert usual.centre[1] % 360.0 == 185.0
    assert usual.spread[1] == robust_spread(places)[1][1]
    words = usual.describe(places[[1, 15, 29]]).to_pylist()
    assert [word.split(", ")[0] for word in words] == ["lon -1.2", "lat +0.0", "lon +1.2"]


def test_usual__of_places_is_the_same_in_radians() -> None:
    places = np.column_stack([np.linspace(-4.0, -3.0, 31) ** 2, np.arange(165.0, 196.0)])
    places[:, 1] = (places[:, 1] + 180.0) % 360.0 - 180.0
    degrees = Usual.of(places, ("lat", "lon"), get_metric("haversine"))
    radians = Usual.of(np.radians(places), ("lat", "lon"), get_metric("haversine_radians"))
    assert np.allclose(radians.centre, np.radians(degrees.centre))
    assert np.allclose(radians.spread, np.radians(degrees.spread))
    some = places[[2, 17, 29]]
    assert radians.describe(np.radians(some)).to_pylist() == degrees.describe(some).to_pylist()


def test_usual__of_longitudes_across_180_degrees_counts_the_shorter_way_round() -> None:
    rng = np.random.default_rng(1)
    places = np.column_stack([rng.normal(-17.0, 0.1, 500), rng.normal(180.0, 0.1, 500)])
    places[:, 1] = (places[:, 1] + 180.0) % 360.0 - 180.0
    assert np.ptp(places[:, 1]) > 359
    usual = Usual.of(places, ("lat", "lon"), get_metric("haversine"))
    assert abs(abs(usual.centre[1]) - 180.0) < 0.1
    far = np.array([[-17.0, 179.0], [-17.0, -179.0]])
    for words, sign in zip(usual.describe(far).to_pylist(), "-+", strict=True):
        name, z = words.split(", ")[0].split(" ")
        assert name == "lon"
        assert z[0] == sign
        assert 8 < abs(float(z)) < 13


@pytest.mark.parametrize("max_on_driver", WAYS)
def test_rank_points__of_no_more_points_than_neighbours_have_no_score(
    spark: SparkSession, max_on_driver: int
) -> None:
    rows = rank_all(spark, pairs_within(EPS), len(POINTS), max_on_driver)
    assert [row["id"] for row in rows] == sorted(IDS)
    assert {(row["lof"], row["k_distance"]) for row in rows} == {(None, None)}


@pytest.mark.parametrize("max_on_driver", WAYS)
def test_rank_points__of_no_more_points_than_neighbours_count_the_pairs_all_the_same(
    spark: SparkSession, max_on_driver: int
) -> None:
    with pytest.raises(TableError, match="neighbours were found in the pairs, "):
        rank_all(spark, pairs_within(EPS), len(POINTS), max_on_driver, lost=1)


@pytest.mark.parametrize(("n_bytes", "is_collected"), [(32 * 92 + 24 * 400, True), (32 * 92 + 24 * 4, False)])
def test_rank_points__on_a_cluster_of_more_pairs_than_the_driver_should_hold_are_ranked_by_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, n_bytes: int, is_collected: bool
) -> None:
    monkeypatch.setattr(rank, "has_one_machine", lambda _: False)
    monkeypatch.setattr(rank, "room_on_driver", lambda *_: np.zeros)
    collected: list[object] = []
    plain = rank.rank_on_driver
    monkeypatch.setattr(rank, "rank_on_driver", lambda *of: collected.append(of) or plain(*of))
    assert len(POINTS) == 92
    assert rank_all(spark, pairs_within(EPS), K, n_bytes) == rank_all(spark, pairs_within(EPS), K, 1 << 30)
    assert len(collected) == 1 + is_collected


@pytest.mark.filterwarnings("error")
def test_rank_points__of_points_too_far_apart_for_a_density_are_the_same_by_either_way(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = np.array([[1e200, 0, 0], [-1e200, 0, 0], [3e200, 0, 0], *([x, 0, 0] for x in (0, 1, 2, 4))])
    monkeypatch.setattr("tests.spark.neighbours.test_rank.POINTS", far)
    monkeypatch.setattr("tests.spark.neighbours.test_rank.IDS", list(range(len(far))))
    first, *others = (rank_all(spark, pairs_within(EPS), 2, way) for way in WAYS)
    assert [row["lof"] for row in first if row["id"] < 3] == [None] * 3
    assert others == [first] * len(others)


@pytest.mark.parametrize("max_on_driver", [WAYS[0], 0])
def test_rank_points__refuse_pairs_that_do_not_belong_to_the_clusters(
    spark: SparkSession, max_on_driver: int
) -> None:
    labels = slow_cluster.dbscan(IDS, pairs_within(EPS), 4)
    clusters = spark.createDataFrame([(i, *labels[i]) for i in IDS], CLUSTERS)
    points = points_of(frame_of(spark, POINTS, IDS), columns_of(POINTS), "id").of_dimensions(3)
    stored = spark.createDataFrame(pairs_within(EPS), PAIRS)
    euclidean = get_metric("euclidean")
    # a point whose only neighbour is lost, not one of more than k
    degree = {i: labels[i][2] for i in IDS}
    lost = next(each for each in pairs_within(EPS) if degree[each[0]] <= K)
    for changed_clusters, changed_pairs, says in (
        (
            clusters,
            stored.where(f"NOT (left_id = {lost[0]} AND right_id = {lost[1]})"),
            "by the degrees of clusters",
        ),
        (
            clusters.where(f"id <> {lost[0]}"),
            stored,
            f"no row of point {lost[0]}" if max_on_driver else f"{len(IDS) - 1} points, there are {len(IDS)}",
        ),
        (
            clusters.withColumn("id", F.when(F.col("id") == lost[0], 9999).otherwise(F.col("id"))),
            stored,
            f"no row of point {lost[0]}" if max_on_driver else "clusters has no row of 1 point; run cluster",
        ),
        (
            clusters.union(spark.createDataFrame([(9999, -1, "noise", 1)], CLUSTERS)),
            stored,
            f"clusters has {len(IDS) + 1} points, there are {len(IDS)}",
        ),
    ):
        with pytest.raises(TableError, match=says):
            rank_points(
                points,
                LATTICE,
                FrameRows(changed_clusters),
                FrameRows(changed_pairs),
                Scoring(EPS, euclidean, K, "abc"),
                ExitStack(),
                max_on_driver,
            )


def test_outliers__of_points_beyond_all_squares_are_refused(make_job: JobMaker, tmp_path: Path) -> None:
    points = np.concatenate([POINTS, [[1e200, 0.0, 0.0]]])
    job = job_on(make_job, tmp_path, points, {"eps": 0.5, "min_pts": 5})
    for name, step in STEPS.items():
        if name != "outliers":
            step(job)
    for max_on_driver in (MAX_ON_DRIVER_BYTES, 0):
        with pytest.raises(DataRefusedError, match="distances of 1 point do not fit into float64; give the"):
            outliers.run(job, max_on_driver)


def test_outliers__of_a_job_are_those_of_the_library_bit_for_bit(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the driver without a session, with large arrays in files, too, and by Spark in four cells."""
    monkeypatch.setattr(cell, "_MIN_CELL_POINTS", 50)
    for module in (rank, on_driver):
        monkeypatch.setattr(module, "MAX_EXPLAINED", 20)
    random = np.random.default_rng(2)
    points = np.concatenate(
        [random.normal(size=(300, 3)), np.zeros((9, 3)), random.normal(size=(60, 3)) * 90]
    )
    job = job_on(make_job, tmp_path, points, {"eps": 0.5, "min_pts": 5, "seed": 3, "sample_rows": 7_000})
    for name, step in STEPS.items():
        if name != "outliers":
            step(job)

    def no_session() -> SparkSession:
        raise AssertionError("a session was started for a few rows")

    expected = epsjoin.lof(points, 4)
    found = []
    here = partial(outliers.run, replace(job, session=no_session))
    for run in (here, partial(here, 160 * len(points)), partial(outliers.run, job, 0)):
        counters = run()
        assert counters["with_lof"] == counters["rows"] == len(points)
        assert (counters["seed"], counters["sample_rows"]) == (3, 7_000), "for who draws the same points"
        lof, k_distance = column(job, "outliers", "id", "lof", "k_distance")
        assert lof.tobytes() == expected.lof.tobytes()
        assert k_distance.tobytes() == expected.k_distance.tobytes()
        assert np.isinf(lof).any(), "next to equal points"
        assert (k_distance == 0).sum() == 9
        (words,) = column(job, "outliers", "rank", "dimensions")
        assert [text is None for text in words] == [place >= 20 for place in range(len(points))]
        found.append(content(job, "outliers"))
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])


def test_outliers__stand_beside_slices_of_the_contract_before(make_job: JobMaker, tmp_path: Path) -> None:
    """Its column ``k_distance_above`` and its condition on rows may stay in a table of older runs."""
    points = np.random.default_rng(2).normal(size=(50, 2))
    job = job_on(make_job, tmp_path, points, {"eps": 0.3, "min_pts": 5})
    for step in STEPS.values():
        step(job)
    place = job.lake.location("outliers")
    new = slices.read_slice(job.lake, Slice("outliers", job.run))
    log = DeltaTable(place)
    above = pa.schema([pa.field("k_distance_above", pa.float64())])
    log.alter.add_columns(list(Schema.from_arrow(above).fields))
    known = "k_distance IS NULL OR k_distance_above IS NULL"
    DeltaTable(place).alter.add_constraint({"a_distance_is_known_or_bounded_0000": known})
    later = replace(job, run="2024-01-01")
    for step in STEPS.values():
        step(later)
    assert (
        slices.read_slice(later.lake, Slice("outliers", later.run))
        .drop_columns(["run"])
        .equals(new.drop_columns(["run"]))
    )
    assert slices.read_slice(job.lake, Slice("outliers", job.run)).equals(new)
