"""The public functions on DataFrames, equal to the slow twins, in every form that a frame may have."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from numpy.typing import NDArray
from pyspark.errors import PySparkException
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import epsjoin.spark
from epsjoin import Cuts, get_metric
from epsjoin.errors import ArgumentError, BudgetError, DataRefusedError, TableError
from epsjoin.lake import parquet
from epsjoin.local.plan import sizes
from epsjoin.spark import dbscan, frames, outliers
from epsjoin.spark.cluster.from_pairs import CLUSTERS, cluster_pairs
from epsjoin.spark.join import frames as join_frames
from epsjoin.spark.join.frames import join_points
from epsjoin.spark.join.merge_join import PAIRS
from epsjoin.spark.join.plan import plan_frames
from epsjoin.spark.neighbours.rank import rank_points
from epsjoin.spark.points import points_of
from epsjoin.spark.rows import FrameRows, to_frame
from oracles import cluster as slow_cluster
from oracles import join as slow
from oracles import outliers as slow_outliers

Found = dict[tuple[int, int], float]
LATTICE, LATTICE_EPS = slow.awkward_points("lattice", 90, 3, 1)


def frame_of(spark: SparkSession, points: NDArray[np.float64], ids: list[int] | None = None) -> DataFrame:
    """Columns id, x0, x1, ..., in four partitions."""
    rows = zip(ids if ids is not None else range(len(points)), points.tolist(), strict=True)
    names = ", ".join(f"x{j} double" for j in range(points.shape[1]))
    return spark.createDataFrame([(i, *row) for i, row in rows], f"id long, {names}").repartition(4)


def columns_of(points: NDArray[np.float64]) -> list[str]:
    return [f"x{j}" for j in range(points.shape[1])]


def pairs_of(pairs: DataFrame) -> Found:
    rows = pairs.collect()
    found = {(row["left_id"], row["right_id"]): row["distance"] for row in rows}
    assert len(found) == len(rows), "a pair came twice"
    return found


def shuffles(frame: DataFrame) -> int:
    jvm: Any = frame._jdf
    return str(jvm.queryExecution().executedPlan().toString()).count("Exchange")


@pytest.mark.parametrize(
    ("kind", "n_parts", "metric"),
    [
        ("planned", 1, "euclidean"),
        ("planned", 7, "euclidean"),
        ("planned", 7, "cosine"),
        ("regular", 7, "euclidean"),
        ("regular", 7, "manhattan"),
    ],
)
def test_a_frame_joined_with_itself(spark: SparkSession, kind: str, n_parts: int, metric: str) -> None:
    points, eps = (LATTICE + 1.0, 0.02) if metric == "cosine" else (LATTICE, LATTICE_EPS)
    pairs = epsjoin.spark.similarity_join(
        frame_of(spark, points),
        eps=eps,
        columns=columns_of(points),
        metric=metric,
        cuts=Cuts(kind, n_parts, replication_budget=math.inf, sample_rows=40),
    )
    assert pairs_of(pairs) == slow.brute_force(points, eps, metric)


@pytest.mark.parametrize("n_frames", [1, 2])
def test_one_shuffle_lies_between_points_and_pairs(spark: SparkSession, n_frames: int) -> None:
    frames = [frame_of(spark, LATTICE).coalesce(2) for _ in range(n_frames)]
    pairs = epsjoin.spark.similarity_join(
        *frames, eps=LATTICE_EPS, columns=columns_of(LATTICE), cuts=Cuts(n_parts=4)
    )
    assert shuffles(pairs) - sum(map(shuffles, frames)) == 1


def test_nothing_is_joined_before_the_pairs_are_used(spark: SparkSession) -> None:
    touched = spark.sparkContext.accumulator(0)

    def touch(x: float) -> float:
        touched.add(1)
        return x

    frame = frame_of(spark, LATTICE).withColumn("x0", F.udf(touch, "double")("x0"))
    pairs = epsjoin.spark.similarity_join(frame, eps=LATTICE_EPS, columns=columns_of(LATTICE))
    before = touched.value
    pairs.collect()
    assert touched.value == before + len(LATTICE)


@pytest.mark.parametrize(
    ("others", "kind", "most_files"),
    [(True, "planned", 100), (False, "planned", 100), (False, "regular", 100), (False, "planned", 15)],
)
def test_pairs_written_by_the_tasks_are_the_same(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    others: bool,
    kind: Any,
    most_files: int,
) -> None:
    """Of one frame of four partitions replicas go in files, unless these would be too many."""
    monkeypatch.setattr(frames, "MAX_FILES", most_files)
    scratched = []
    scratch = parquet.scratch_folder

    def noted(*given: Any) -> Any:
        scratched.append(given)
        return scratch(*given)

    monkeypatch.setattr(parquet, "scratch_folder", noted)
    right = frame_of(spark, LATTICE[::2]) if others else None
    to = str(tmp_path / "pairs of mine")
    kinds: dict[str, Any] = {"columns": columns_of(LATTICE), "cuts": Cuts(kind, n_parts=4)}
    frame = frame_of(spark, LATTICE)
    epsjoin.spark.similarity_join(frame, right, eps=2 * LATTICE_EPS, to=to, **kinds)
    lazy = epsjoin.spark.similarity_join(frame, right, eps=LATTICE_EPS, **kinds)
    written = epsjoin.spark.similarity_join(frame, right, eps=LATTICE_EPS, to=to, **kinds)
    assert pairs_of(written) == pairs_of(lazy) != {}
    assert written.schema == lazy.schema
    assert pairs_of(spark.read.format("delta").load(to)) == pairs_of(lazy), "what was there is replaced"
    assert len(scratched) == (2 if not others and most_files == 100 else 0)
    assert not [path for path in Path(to).iterdir() if path.is_dir() and path.name != "_delta_log"]


def test_no_pairs_are_written_as_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    points = np.array([[0.0], [10.0]])
    to = str(tmp_path / "pairs")
    written = epsjoin.spark.similarity_join(frame_of(spark, points), eps=1.0, columns="x0", to=to)
    assert written.count() == 0
    nothing = frame_of(spark, points).where("id < 0")
    assert epsjoin.spark.similarity_join(nothing, eps=1.0, columns="x0", to=to).count() == 0
    assert spark.read.format("delta").load(to).columns == ["left_id", "right_id", "distance"]


def test_pairs_are_not_written_over_another_table(spark: SparkSession, tmp_path: Path) -> None:
    to = str(tmp_path / "precious")
    spark.range(3).write.format("delta").save(to)
    there = sorted(Path(to).rglob("*"))
    frame = frame_of(spark, LATTICE)
    with pytest.raises(TableError, match=r"is a table of other columns \(id\)"):
        epsjoin.spark.similarity_join(frame, eps=LATTICE_EPS, columns=columns_of(LATTICE), to=to)
    assert spark.read.format("delta").load(to).count() == 3
    assert sorted(Path(to).rglob("*")) == there, "refused before anything was done"
    with pytest.raises(ArgumentError, match="to must be a URI"):
        epsjoin.spark.similarity_join(frame, eps=LATTICE_EPS, columns=columns_of(LATTICE), to="pairs")
    with pytest.raises(ArgumentError, match="is for how = 'inner', not 'anti'"):
        epsjoin.spark.similarity_join(
            frame, frame, eps=LATTICE_EPS, columns=columns_of(LATTICE), how="anti", to=to
        )


def test_replicas_of_a_killed_process_do_no_harm_and_are_vacuumed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = str(tmp_path / "pairs")
    kinds: dict[str, Any] = {"eps": LATTICE_EPS, "columns": columns_of(LATTICE), "to": to}
    frame = frame_of(spark, LATTICE)

    def keep_what_is_there(*_: object) -> None:
        shutil.copytree(to, tmp_path / "kept")
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(join_frames, "join_files", keep_what_is_there)
        with pytest.raises(RuntimeError, match="killed"):
            epsjoin.spark.similarity_join(frame, **kinds)
    shutil.copytree(tmp_path / "kept", to, dirs_exist_ok=True)
    left = {str(path.relative_to(to)) for path in Path(to).rglob("*.parquet")}
    assert left
    written = epsjoin.spark.similarity_join(frame, **kinds)
    assert pairs_of(written) == slow.brute_force(LATTICE, LATTICE_EPS)
    vacuum = DeltaTable(to).vacuum
    assert left <= set(vacuum(0, enforce_retention_duration=False, dry_run=False, full=True))
    assert not left & {str(path.relative_to(to)) for path in Path(to).rglob("*.parquet")}
    assert pairs_of(written) == slow.brute_force(LATTICE, LATTICE_EPS)


@pytest.mark.parametrize(("others", "most_files"), [(False, 100), (False, 0), (True, 100)])
def test_a_join_that_is_refused_leaves_no_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: bool, most_files: int
) -> None:
    monkeypatch.setattr(frames, "MAX_FILES", most_files)
    points = np.concatenate([np.arange(2000.0)[:, None] * 10.0, np.full((15, 1), 0.5)])
    right = frame_of(spark, points + np.repeat([[5.0], [0.0]], [2000, 15], axis=0)) if others else None
    n_pairs = 15 * 15 + 15 if others else 15 * 14 // 2 + 15
    with pytest.raises(BudgetError, match=f"{n_pairs} pairs at least were found, 99 are allowed"):
        epsjoin.spark.similarity_join(
            frame_of(spark, points),
            right,
            eps=1.0,
            columns="x0",
            cuts=Cuts(sample_rows=16),
            max_pairs=99,
            to=str(tmp_path),
        )
    assert not list(tmp_path.rglob("*"))


def test_a_task_that_fails_says_why_and_leaves_no_replicas(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample meets all rows but the one that is bad; nor can the folder be deleted, the second time."""
    rows = [(i, [float(i), 0.0]) for i in range(200)] + [(1000, [math.nan, 0.0])]
    frame = spark.createDataFrame(rows, "id long, at array<double>").repartition(3)
    kinds: dict[str, Any] = {"eps": 1.0, "columns": "at", "cuts": Cuts(sample_rows=10)}
    for is_open in (True, False):
        to = tmp_path / f"pairs-{is_open}"
        if not is_open:
            monkeypatch.setattr(parquet, "filesystem_of", lambda uri: (Locked(), urlsplit(uri).path))
        with pytest.raises(PySparkException, match="coordinate 1 of 'at' is nan where the id is 1000"):
            epsjoin.spark.similarity_join(frame, to=str(to), **kinds)
        assert len(list(to.glob("scratch-*"))) == (0 if is_open else 1)


class Locked:
    """A file system that lets nobody delete."""

    def create_dir(self, path: str, *, recursive: bool) -> None:
        Path(path).mkdir(parents=recursive)

    def delete_dir(self, path: str) -> None:
        raise PermissionError(path)


def test_a_frame_that_changes_while_it_is_joined_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    readings = tmp_path / "readings"

    def fewer_each_time(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with readings.open("a") as file:
            file.write("+")
        for batch in batches:
            yield batch.slice(len(readings.read_text()))

    rows = spark.range(0, 10, 1, 1).mapInArrow(fewer_each_time, "id long")
    frame = rows.select("id", F.col("id").cast("double").alias("x0"))
    to = tmp_path / "pairs"
    kinds: dict[str, Any] = {"eps": 1.0, "columns": "x0"}
    with pytest.raises(DataRefusedError, match="were 9 rows when they were counted, 7 when they were read"):
        epsjoin.spark.similarity_join(frame, to=str(to), **kinds)
    assert not list(to.glob("scratch-*"))

    steady = spark.range(0, 40, 1, 3).select("id", F.col("id").cast("double").alias("x0"))
    for right in (None, steady):
        readings.unlink()
        pairs = epsjoin.spark.similarity_join(frame, right, **kinds)
        n = 9 + (right is not None) * 40
        with pytest.raises(PySparkException, match=f"were {n} rows when they were counted, {n - 2} when"):
            pairs.collect()
    readings.unlink()
    with pytest.raises(PySparkException, match="were 49 rows when they were counted, 47 when"):
        epsjoin.spark.similarity_join(steady, frame, to=str(to), **kinds)
    assert not (to / "_delta_log").exists()


@pytest.mark.parametrize("form", ["array", "floats", "vector", "ml_sparse", "binary"])
def test_a_column_may_hold_whole_points(spark: SparkSession, form: str) -> None:
    points = LATTICE.astype(np.float32).astype(np.float64)
    make = {
        "array": (list, T.ArrayType(T.DoubleType())),
        "floats": (list, T.ArrayType(T.FloatType())),
        "vector": (Vectors.dense, VectorUDT()),
        "ml_sparse": (lambda row: Vectors.sparse(3, dict(enumerate(row))), VectorUDT()),
        "binary": (lambda row: bytearray(np.array(row, "<f8").tobytes()), T.BinaryType()),
    }[form]
    schema = T.StructType([T.StructField("key", T.IntegerType()), T.StructField("at", make[1])])
    frame = spark.createDataFrame([(i, make[0](row)) for i, row in enumerate(points.tolist())], schema)
    for cuts in (None, Cuts(n_parts=4)):
        pairs = epsjoin.spark.similarity_join(frame, eps=LATTICE_EPS, columns="at", id="key", cuts=cuts)
        assert pairs_of(pairs) == slow.brute_force(points, LATTICE_EPS)


def test_other_metrics_scaled_dimensions_and_weights(spark: SparkSession) -> None:
    points = np.random.default_rng(3).random((80, 2)) * [1.0, 100.0]
    frame = frame_of(spark, points)
    kinds: dict[str, Any] = {"columns": ["x0", "x1"], "cuts": Cuts(n_parts=4)}
    each = epsjoin.spark.similarity_join(frame, eps=[0.1, 10.0], **kinds)
    assert set(pairs_of(each)) == set(slow.brute_force(points / [0.1, 10.0], 1.0))
    weighted = epsjoin.spark.similarity_join(
        frame, eps=12.0, metric="manhattan", weights=[100.0, 0.5], **kinds
    )
    assert set(pairs_of(weighted)) == set(slow.brute_force(points * [100.0, 0.5], 12.0, "manhattan"))
    cubic = epsjoin.spark.similarity_join(frame, eps=9.0, metric=get_metric("minkowski", 3.0), **kinds)
    assert set(pairs_of(cubic)) == set(slow.brute_force(points, 9.0, "minkowski", 3.0))


@pytest.mark.parametrize(
    ("how", "kind"),
    [*((how, "planned") for how in ("inner", "left", "right", "semi", "anti")), ("outer", "regular")],
)
def test_two_frames(spark: SparkSession, how: str, kind: str) -> None:
    left, right, eps = LATTICE[:50], LATTICE[40:] + 0.25, 0.75
    others = frame_of(spark, right).withColumnsRenamed({"id": "key", "x0": "a", "x1": "b", "x2": "c"})
    found = epsjoin.spark.similarity_join(
        frame_of(spark, left).withColumn("payload", F.col("id") * 10),
        others,
        eps=eps,
        columns=columns_of(left),
        right_columns=["a", "b", "c"],
        right_id="key",
        how=how,
        cuts=Cuts(kind, 5, sample_rows=30),
    )
    within = slow.between(left, right, eps)
    wanted = slow.joined(within, len(left), len(right), how)
    assert 0 < len({i for i, _ in within}) < len(left), "somebody must be alone, but not everybody"
    rows = found.collect()
    if how in ("semi", "anti"):
        assert sorted(row["id"] for row in rows) == [i for i, _ in wanted]
        assert all(row["payload"] == row["id"] * 10 for row in rows)
        return
    nobody = {None: -1}
    assert sorted((nobody.get(row[0], row[0]), nobody.get(row[1], row[1])) for row in rows) == sorted(wanted)
    for row in rows:
        assert row["distance"] == within.get((row["left_id"], row["right_id"]))


def test_clusters_of_a_frame(spark: SparkSession) -> None:
    points = np.concatenate([LATTICE, LATTICE[:30] + 0.1])
    ids = [7 * i - 100 for i in range(len(points))]
    clusters = epsjoin.spark.dbscan(
        frame_of(spark, points, ids), eps=1.0, min_pts=4, columns=columns_of(points), cuts=Cuts(n_parts=5)
    )
    pairs = [(ids[i], ids[j], distance) for (i, j), distance in slow.brute_force(points, 1.0).items()]
    wanted = slow_cluster.dbscan(ids, pairs, 4)
    assert {role for _, role, _ in wanted.values()} == {"core", "border", "noise"}
    found = {row["id"]: (row["cluster_id"], row["role"], row["degree"]) for row in clusters.collect()}
    assert clusters.is_cached
    clusters.unpersist()
    assert found == wanted


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"max_on_driver": 0},
        {"max_on_driver": 0, "max_shared_cores": 0, "max_in_one_task": 20},
    ],
    ids=["the driver connects", "tasks share core ids", "no task holds all core points nor all edges"],
)
@pytest.mark.parametrize("min_pts", [1, 4])
def test_clusters_are_the_same_whoever_connects_them(
    spark: SparkSession, limits: dict[str, int], min_pts: int
) -> None:
    points = np.concatenate([LATTICE, LATTICE[:30] + 0.1, [[90.0, 0.0, 0.0]]])
    found = points_of(frame_of(spark, points), columns_of(points), "id")
    metric, cuts = get_metric("euclidean"), Cuts(n_parts=3)
    joined = join_points(found, 1.0, metric, None, cuts, 10_000)
    done = ExitStack()
    clusters = cluster_pairs(found.ids(), found.n, joined, min_pts, done, **limits)
    pairs = [(i, j, distance) for (i, j), distance in slow.brute_force(points, 1.0).items()]
    wanted = slow_cluster.dbscan(list(range(len(points))), pairs, min_pts)
    with done:
        rows = to_frame(clusters).collect()
    assert len(rows) == len(points)
    assert {row["id"]: (row["cluster_id"], row["role"], row["degree"]) for row in rows} == wanted


@pytest.mark.parametrize("max_on_driver", [10**6, 0])
def test_outliers_are_the_same_whoever_scores_them(spark: SparkSession, max_on_driver: int) -> None:
    points = np.concatenate([LATTICE, [[50.0, 0.0, 0.0], [60.0, 0.0, 0.0]]])
    eps, k, ids = 2.0, 3, list(range(len(points)))
    pairs = [(i, j, distance) for (i, j), distance in slow.brute_force(points, eps).items()]
    labels = slow_cluster.dbscan(ids, pairs, 4)
    clusters = FrameRows(spark.createDataFrame([(i, *labels[i]) for i in ids], CLUSTERS))
    found = points_of(frame_of(spark, points), columns_of(points), "id")
    stored = FrameRows(spark.createDataFrame(pairs, PAIRS))
    with ExitStack() as done:
        ranked = rank_points(found, LATTICE, clusters, stored, eps, k, ["a", "b", "c"], done, max_on_driver)
        rows = sorted(to_frame(ranked).collect(), key=lambda row: row["rank"])
    scores = slow_outliers.lof(ids, pairs, k)
    wanted = slow_outliers.rank([(i, *scores[i], labels[i][2]) for i in ids])
    assert {row["id"]: row["rank"] for row in rows} == wanted
    assert [row["rank"] for row in rows] == [i + 1 for i in ids]
    for row in rows:
        assert (row["k_distance"], row["lof"]) == pytest.approx(scores[row["id"]])
        assert (row["k_distance_above"] == eps) == (row["k_distance"] is None)
        assert (row["degree"], row["is_noise"]) == (labels[row["id"]][2], labels[row["id"]][1] == "noise")
    assert {row["id"] for row in rows if row["k_distance"] is None} >= {len(points) - 1, len(points) - 2}
    assert rows[0]["dimensions"].startswith("a +")


@pytest.mark.parametrize("max_on_driver", [10**6, 0])
def test_what_fails_keeps_nothing_in_memory(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, max_on_driver: int
) -> None:
    for name in ("cluster_pairs", "rank_points"):
        few = partial(getattr(frames, name), max_on_driver=max_on_driver)
        monkeypatch.setattr(frames, name, few)
    rows = [(i, [float(i), 0.0]) for i in range(200)] + [(1000, [math.nan, 0.0])]
    frame = spark.createDataFrame(rows, "id long, at array<double>").repartition(3)
    kinds: dict[str, Any] = {"eps": 1.0, "columns": "at", "min_pts": 3, "cuts": Cuts(sample_rows=10)}
    spark.catalog.clearCache()
    is_empty = spark._jsparkSession.sharedState().cacheManager().isEmpty
    for find in (dbscan, outliers):
        with pytest.raises(PySparkException, match="coordinate 1 of 'at' is nan"):
            find(frame, **kinds)
        assert is_empty()
        found = find(frame.where("id < 1000"), **kinds)
        assert not is_empty()
        found.unpersist()
        assert is_empty()


def test_an_id_that_means_noise_is_refused(spark: SparkSession) -> None:
    points = np.array([[0.0], [1.0]])
    with pytest.raises(ArgumentError, match="the id -1 is kept for noise"):
        epsjoin.spark.dbscan(frame_of(spark, points, [-1, 5]), eps=1.0, min_pts=2, columns="x0")


def test_outliers_of_a_frame(spark: SparkSession) -> None:
    points = np.concatenate([LATTICE, [[50.0, 0.0, 0.0]]])
    eps, k = 2.0, 3
    found = epsjoin.spark.outliers(
        frame_of(spark, points), eps=eps, min_pts=4, columns=columns_of(points), cuts=Cuts(n_parts=4)
    )
    pairs = [(i, j, distance) for (i, j), distance in slow.brute_force(points, eps).items()]
    ids = list(range(len(points)))
    scores, degree = slow_outliers.lof(ids, pairs, k), slow_cluster.degrees(ids, pairs)
    rank = slow_outliers.rank([(i, *scores[i], degree[i]) for i in ids])
    rows = found.collect()
    assert [row["rank"] for row in rows] == list(range(1, len(points) + 1))
    assert {row["id"]: row["rank"] for row in rows} == rank
    for row in rows:
        assert row["degree"] == degree[row["id"]]
        assert (row["k_distance"], row["lof"]) == pytest.approx(scores[row["id"]])
        assert (row["k_distance_above"] is None) == (row["k_distance"] is not None)
    assert rows[0]["id"] == len(LATTICE)
    assert rows[0]["is_noise"]
    assert rows[0]["dimensions"].startswith("x0 +")
    found.unpersist()


def test_estimate_and_fit_look_at_a_sample(spark: SparkSession) -> None:
    points = np.random.default_rng(4).random((3000, 2))
    frame = frame_of(spark, points)
    expected = epsjoin.spark.estimate(frame, eps=0.02, columns=["x0", "x1"])
    pairs = epsjoin.spark.similarity_join(frame, eps=0.02, columns=["x0", "x1"]).count()
    assert expected.n_rows == 3000
    assert expected.pairs == pairs, "all rows are in the sample"
    fit = epsjoin.spark.fit_epsilon(frame, columns=["x0", "x1"], sample_rows=1000)
    assert fit.n_rows == 3000
    assert fit.expected_pairs(0.02) == pytest.approx(pairs, rel=0.2)


def test_a_join_that_would_be_too_large_is_refused_before_it_runs(spark: SparkSession) -> None:
    points = np.random.default_rng(5).random((2000, 2))
    frame = frame_of(spark, points)
    with pytest.raises(
        BudgetError, match=r"about .* pairs are expected .* the largest eps that fits is"
    ) as no:
        epsjoin.spark.similarity_join(frame, eps=0.5, columns=["x0", "x1"], max_pairs=2000)
    fits = float(str(no.value).split("about ")[-1])
    assert slow.brute_force(points[:500], fits)  # of a sixteenth of the pairs
    assert epsjoin.spark.similarity_join(
        frame, eps=fits * 0.95, columns=["x0", "x1"], max_pairs=2000
    ).count() == pytest.approx(2000, rel=0.25)


def test_a_join_with_a_few_rows_is_refused_before_it_runs_as_well(spark: SparkSession) -> None:
    """A share of the sample as small as theirs of all rows would see none of them."""
    many = np.random.default_rng(5).random((3000, 2))
    few = frame_of(spark, many[:10])
    for left, right in ((few, frame_of(spark, many)), (frame_of(spark, many), few)):
        with pytest.raises(
            BudgetError, match=r"about [\d,]+ pairs are expected .*take a smaller eps, or allow"
        ):
            epsjoin.spark.similarity_join(
                left, right, eps=0.5, columns=["x0", "x1"], max_pairs=4999, cuts=Cuts(sample_rows=100)
            )


def test_more_pairs_than_expected_break_the_task(spark: SparkSession) -> None:
    # the sample of 16 rows meets none of the pairs
    points = np.concatenate([np.arange(2000.0)[:, None] * 10.0, np.full((15, 1), 0.5)])
    cuts = Cuts(sample_rows=16)
    pairs = epsjoin.spark.similarity_join(
        frame_of(spark, points), eps=1.0, columns="x0", cuts=cuts, max_pairs=99
    )
    with pytest.raises(PySparkException, match="BudgetError: more than 99 pairs"):
        pairs.count()


def test_an_empty_frame_has_no_pairs(spark: SparkSession) -> None:
    frame = frame_of(spark, LATTICE).where("id < 0")
    assert epsjoin.spark.similarity_join(frame, eps=1.0, columns=columns_of(LATTICE)).collect() == []
    assert epsjoin.spark.dbscan(frame, eps=1.0, min_pts=3, columns=columns_of(LATTICE)).collect() == []


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"columns": ["x0", "y"]}, "no column 'y'; it has id, x0, x1, x2, word"),
        ({"columns": ["x0", "word"]}, "'word' must hold numbers, not string"),
        ({"columns": []}, "one coordinate column at least"),
        ({"id": "word"}, "'word' must hold whole numbers, not string"),
        ({"eps": 0.0}, "eps must be"),
        ({"metric": "hamming"}, "metric"),
        ({"how": "left"}, "needs two frames"),
        ({"how": "full"}, "how must be one of inner"),
    ],
)
def test_wrong_arguments_are_named(spark: SparkSession, bad: dict[str, Any], message: str) -> None:
    frame = frame_of(spark, LATTICE).withColumn("word", F.lit("w"))
    given: dict[str, Any] = {"eps": 1.0, "columns": columns_of(LATTICE), **bad}
    with pytest.raises(ArgumentError, match=message):
        epsjoin.spark.similarity_join(frame, **given)


def test_other_frames_are_refused(spark: SparkSession) -> None:
    with pytest.raises(ArgumentError, match="a frame of a classic Spark session is needed, not"):
        epsjoin.spark.similarity_join(LATTICE, eps=1.0, columns="x")  # type: ignore[arg-type]  # as the test wants
    left, right = frame_of(spark, LATTICE), frame_of(spark, LATTICE[:, :2])
    with pytest.raises(ArgumentError, match="the same dimensions, not 3 and 2"):
        epsjoin.spark.similarity_join(
            left, right, eps=1.0, columns=columns_of(LATTICE), right_columns=["x0", "x1"]
        )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((5, [1.0, math.nan]), "coordinate 2 of 'at' is nan where the id is 5"),
        ((5, [-math.inf, 1.0]), "coordinate 1 of 'at' is -inf where the id is 5"),
        ((5, [1.0, None]), "a coordinate in 'at' is null where the id is 5"),
        ((5, None), "the column 'at' is null where the id is 5"),
        ((5, [1.0]), "the point with the id 5 has 1 dimensions in 'at', another has 2"),
        ((None, [1.0, 2.0]), "a point's id is null"),
    ],
)
def test_bad_rows_name_their_id(spark: SparkSession, row: tuple[Any, ...], message: str) -> None:
    schema = "id long, at array<double>"
    frame = spark.createDataFrame([(1, [0.0, 0.0]), (2, [1.0, 0.0]), row], schema)
    with pytest.raises(DataRefusedError, match=message):  # the sample meets it
        epsjoin.spark.similarity_join(frame, eps=1.0, columns="at")


@pytest.mark.parametrize("at", ["array<double>", "binary"])
def test_a_frame_without_rows_has_no_pairs(spark: SparkSession, at: str) -> None:
    """Of how many dimensions its points would have been nobody knows, and nobody needs to."""
    nothing = spark.createDataFrame([], f"id long, at {at}")
    some = spark.createDataFrame([(1, bytes(24)), (2, bytes(24))], "id long, at binary")
    assert pairs_of(epsjoin.spark.similarity_join(nothing, eps=1.0, columns="at")) == {}
    for sides in ((nothing, some), (some, nothing)):
        assert pairs_of(epsjoin.spark.similarity_join(*sides, eps=1.0, columns="at")) == {}
    with_one = epsjoin.spark.similarity_join(
        some.where("id = 1"), some.where("id = 2"), eps=1.0, columns="at", cuts=Cuts(sample_rows=1)
    )
    assert pairs_of(with_one) == {(1, 2): 0.0}, "whichever the sample has"


@pytest.mark.parametrize(("n", "n_parts"), [(20_000, 1), (10_000_000, 8)])
def test_small_joins_are_one_part(spark: SparkSession, n: int, n_parts: int) -> None:
    points = points_of(frame_of(spark, np.random.default_rng(0).random((3000, 2))), ["x0", "x1"], "id")
    plan = plan_frames(replace(points, n=n), None, 1e-4, get_metric("euclidean"), None, None, 10**12)
    assert plan.n_parts == n_parts


@pytest.mark.parametrize("n_frames", [1, 2])
def test_very_many_parts_are_planned_on_more_rows(
    spark: SparkSession, n_frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many parts there are follows from the dimensions, which the sample shows."""
    frame = spark.range(25_000).select("id", F.array(F.rand(1), F.rand(2)).alias("at")).persist()
    sides = [points_of(frame, "at", "id") for _ in range(n_frames)]
    left, right = (*sides, None)[:2]
    rows = []
    monkeypatch.setattr(sizes, "rows_that_fit", lambda _, d: 1000 * n_frames if d == 2 else 10**6)
    for per_part in (100, 900):
        monkeypatch.setattr(sizes, "SAMPLE_ROWS_PER_PART", per_part)
        plan = plan_frames(left, right, 1e-3, get_metric("euclidean"), None, None, 10**9)
        rows.append(plan.sample_rows)
    assert rows == [20_000, 22_500]
    frame.unpersist()


@pytest.mark.parametrize("odd", range(4))
def test_the_point_that_has_not_the_dimensions_of_the_others_is_named(spark: SparkSession, odd: int) -> None:
    """Whichever the sample meets first."""
    rows = [(i, [0.0] * (3 if i == odd else 2)) for i in range(4)]
    frame = spark.createDataFrame(rows, "id long, at array<double>")
    with pytest.raises(DataRefusedError, match=f"the id {odd} has 3 dimensions in 'at', another has 2"):
        epsjoin.spark.similarity_join(frame, eps=1.0, columns="at")


def test_a_point_of_other_dimensions_outside_the_sample_breaks_its_task(spark: SparkSession) -> None:
    """Also where a batch has that point alone, as in the second frame."""
    rows = [(i, [float(i), 0.0]) for i in range(200)] + [(1000, [1.0, 2.0, 3.0])]
    frame = spark.createDataFrame(rows, "id long, at array<double>").repartition(20)
    for each in (frame, frame.where("id = 1000 or id < 11")):
        pairs = epsjoin.spark.similarity_join(each, eps=1.0, columns="at", cuts=Cuts(sample_rows=10))
        assert 1000 not in points_of(each, "at", "id").sample(10, Cuts().seed)[0]
        with pytest.raises(PySparkException, match="the id 1000 has 3 dimensions in 'at', another has 2"):
            pairs.collect()


@pytest.mark.parametrize("number", [2**53 + 1, -(2**63)])
def test_a_whole_number_beyond_2_to_the_53_is_refused(spark: SparkSession, number: int) -> None:
    """Two different ones might become equal, and a pair."""
    rows = [(1, 0, 2**53), (2, 1, -(2**53)), (5, number, 0)]
    frame = spark.createDataFrame(rows, "id long, x long, y long").withColumn("at", F.array("x", "y"))
    for columns, name in ((["x", "y"], "x"), ("at", "at")):
        with pytest.raises(DataRefusedError, match=f"'{name}' is {number} where the id is 5; beyond 2"):
            epsjoin.spark.similarity_join(frame, eps=1.0, columns=columns)
        fine = epsjoin.spark.similarity_join(frame.where("id < 5"), eps=1e20, columns=columns)
        assert pairs_of(fine) == {(1, 2): math.hypot(1.0, 2.0**54)}


def test_a_bad_row_outside_the_sample_breaks_its_task(spark: SparkSession) -> None:
    rows = [(i, [float(i), 0.0]) for i in range(200)] + [(1000, [math.nan, 0.0])]
    frame = spark.createDataFrame(rows, "id long, at array<double>")
    pairs = epsjoin.spark.similarity_join(frame, eps=1.0, columns="at", cuts=Cuts(sample_rows=10))
    with pytest.raises(PySparkException, match="coordinate 1 of 'at' is nan where the id is 1000"):
        pairs.collect()


def test_columns_that_hold_no_point_are_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, None)], "id long, at array<double>")
    whole = [frame, spark.createDataFrame([(1, [])], frame.schema)]
    whole += [spark.createDataFrame([(1, b"not so long")], "id long, at binary")]
    for each in whole:
        with pytest.raises(
            DataRefusedError, match="the column 'at' holds no point in the 1 rows of the sample"
        ):
            epsjoin.spark.similarity_join(each, eps=1.0, columns="at")
    with pytest.raises(ArgumentError, match="'w' must hold numbers, not array<string>"):
        epsjoin.spark.similarity_join(
            spark.createDataFrame([(1, ["a"])], "id long, w array<string>"), eps=1.0, columns="w"
        )


def test_steps_files_do_not_hide_the_public_functions() -> None:
    from epsjoin.spark.epsilon import fit_epsilon
    from epsjoin.spark.neighbours import outliers as neighbours_outliers

    assert callable(fit_epsilon.run)
    assert callable(neighbours_outliers.run)
    assert callable(epsjoin.spark.outliers)
    assert callable(epsjoin.spark.fit_epsilon)
    with pytest.raises(AttributeError, match=r"module 'epsjoin.spark' has no attribute 'nothing'"):
        epsjoin.spark.nothing  # noqa: B018 - reading it is the test
