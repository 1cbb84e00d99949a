"""Joins of frames whose pairs the tasks write into a table."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import epsjoin.spark
from epsjoin import Cuts
from epsjoin.errors import ArgumentError, BudgetError, DataRefusedError, TableError
from epsjoin.lake import targets
from epsjoin.spark import frames
from epsjoin.spark.join import frames as join_frames
from oracles import join as slow
from tests.spark.lattice import (
    LATTICE,
    LATTICE_EPS,
    columns_of,
    frame_of,
    no_pairs,
    pairs_of,
    shrinking_frame,
)


@pytest.mark.parametrize(
    ("others", "kind", "max_files"),
    [
        (True, "planned", 100),
        (False, "regular", 100),
        pytest.param(False, "planned", 100, marks=pytest.mark.long),
        pytest.param(False, "planned", 15, marks=pytest.mark.long),
    ],
)
def test_similarity_join__by_tasks_that_write_has_the_same_pairs(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    others: bool,
    kind: Any,
    max_files: int,
) -> None:
    """Of one frame of four partitions replicas go in files, unless these would be too many."""
    monkeypatch.setattr(frames, "MAX_FILES", max_files)
    scratched = []
    scratch = targets.scratch_folder

    def noted(*given: Any) -> Any:
        scratched.append(given)
        return scratch(*given)

    monkeypatch.setattr(targets, "scratch_folder", noted)
    right = frame_of(spark, LATTICE[::2]) if others else None
    to = str(tmp_path / "pairs of mine")
    kinds: dict[str, Any] = {"columns": columns_of(LATTICE), "cuts": Cuts(kind, n_parts=4)}
    frame = frame_of(spark, LATTICE)
    epsjoin.spark.similarity_join(frame, right, eps=2 * LATTICE_EPS, to=to, **kinds)
    written = epsjoin.spark.similarity_join(frame, right, eps=LATTICE_EPS, to=to, **kinds)
    if others:
        truth = slow.between(LATTICE, LATTICE[::2], LATTICE_EPS)
    else:
        truth = slow.brute_force(LATTICE, LATTICE_EPS)
    assert pairs_of(written) == truth != {}
    assert written.schema == epsjoin.spark.similarity_join(frame, right, eps=LATTICE_EPS, **kinds).schema
    assert pairs_of(spark.read.format("delta").load(to)) == truth, "what was there is replaced"
    assert len(scratched) == (2 if not others and max_files == 100 else 0)
    assert not [path for path in Path(to).iterdir() if path.is_dir() and path.name != "_delta_log"]


def test_similarity_join__writes_no_pairs_as_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    points = np.array([[0.0], [10.0]])
    to = str(tmp_path / "pairs")
    written = epsjoin.spark.similarity_join(frame_of(spark, points), eps=1.0, columns="x0", to=to)
    assert written.count() == 0
    nothing = frame_of(spark, points).where("id < 0")
    assert epsjoin.spark.similarity_join(nothing, eps=1.0, columns="x0", to=to).count() == 0
    assert spark.read.format("delta").load(to).columns == ["left_id", "right_id", "distance"]


def test_similarity_join__writes_over_no_other_table(spark: SparkSession, tmp_path: Path) -> None:
    to = str(tmp_path / "precious")
    write_deltalake(to, pa.table({"id": range(3)}))
    there = sorted(Path(to).rglob("*"))
    frame = frame_of(spark, LATTICE)
    with pytest.raises(TableError, match=r"columns \(id int64; in this order must be left_id int64, "):
        epsjoin.spark.similarity_join(frame, eps=LATTICE_EPS, columns=columns_of(LATTICE), to=to)
    assert DeltaTable(to).to_pyarrow_table().num_rows == 3
    assert sorted(Path(to).rglob("*")) == there, "refused before anything was done"
    with pytest.raises(ArgumentError, match="to must be a URI"):
        epsjoin.spark.similarity_join(frame, eps=LATTICE_EPS, columns=columns_of(LATTICE), to="pairs")
    with pytest.raises(ArgumentError, match="is for how = 'inner', not 'anti'"):
        epsjoin.spark.similarity_join(
            frame, frame, eps=LATTICE_EPS, columns=columns_of(LATTICE), how="anti", to=to
        )


def test_replicas__of_a_killed_process_do_no_harm_and_are_vacuumed(
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


@pytest.mark.parametrize(("others", "max_files"), [(False, 100), (False, 0), (True, 100)])
def test_similarity_join__that_is_refused_leaves_no_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: bool, max_files: int
) -> None:
    monkeypatch.setattr(frames, "MAX_FILES", max_files)
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


def test_similarity_join__whose_task_fails_says_why_and_leaves_no_replicas(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample meets all rows but the one that is bad; nor can the folder be deleted, the second time."""
    rows = [(i, [float(i), 0.0]) for i in range(200)] + [(1000, [math.nan, 0.0])]
    frame = spark.createDataFrame(rows, "id long, at array<double>").repartition(3)
    kinds: dict[str, Any] = {"eps": 1.0, "columns": "at", "cuts": Cuts(sample_rows=10)}
    for is_open in (True, False):
        to = tmp_path / f"pairs-{is_open}"
        if not is_open:
            monkeypatch.setattr(targets, "filesystem_of", lambda uri: (Locked(), urlsplit(uri).path))
        with pytest.raises(PySparkException, match="coordinate 1 of 'at' is nan where the id is 1000"):
            epsjoin.spark.similarity_join(frame, to=str(to), **kinds)
        assert len(list(to.glob("scratch-*"))) == (0 if is_open else 1)


class Locked:
    """A file system that lets nobody delete."""

    def get_file_info(self, _: object) -> list[object]:
        return []

    def create_dir(self, path: str, *, recursive: bool) -> None:
        Path(path).mkdir(parents=recursive)

    def delete_dir(self, path: str) -> None:
        raise PermissionError(path)


def test_similarity_join__refuses_a_frame_that_changes_while_it_is_joined(
    spark: SparkSession, tmp_path: Path
) -> None:
    readings = tmp_path / "readings"
    to = tmp_path / "pairs"
    kinds: dict[str, Any] = {"eps": 1.0, "columns": "x0"}

    def points(rows: DataFrame) -> DataFrame:
        return rows.select("id", F.col("id").cast("double").alias("x0"))

    few = points(shrinking_frame(spark, readings))  # the sample is all of it
    with pytest.raises(DataRefusedError, match="were 9 rows when they were counted, 8 when they were read"):
        epsjoin.spark.similarity_join(few, to=str(to), **kinds)
    assert not list(to.glob("scratch-*"))

    frame, steady = points(shrinking_frame(spark, readings, 3000)), points(spark.range(0, 40, 1, 3))
    kinds["cuts"] = Cuts(sample_rows=10)
    for right in (None, steady):
        readings.unlink()
        pairs = epsjoin.spark.similarity_join(frame, right, **kinds)
        n = 2999 + (right is not None) * 40
        with pytest.raises(PySparkException, match=f"were {n:,} rows when they were counted, {n - 2:,} when"):
            pairs.collect()
    readings.unlink()
    with pytest.raises(PySparkException, match="were 3,039 rows when they were counted, 3,037 when"):
        epsjoin.spark.similarity_join(steady, frame, to=str(to), **kinds)
    assert not (to / "_delta_log").exists()


@pytest.mark.parametrize("kind", ["regular", "planned"])
def test_similarity_join__has_its_pairs_in_tasks_of_other_numbers(spark: SparkSession, kind: Any) -> None:
    """Spark gives the tasks of a lazy result other numbers where it is united with a frame, or coalesced."""
    kinds: dict[str, Any] = {"columns": columns_of(LATTICE), "cuts": Cuts(kind, n_parts=4)}
    found = epsjoin.spark.similarity_join(frame_of(spark, LATTICE), eps=LATTICE_EPS, **kinds)
    truth = slow.brute_force(LATTICE, LATTICE_EPS)
    assert pairs_of(no_pairs(spark).union(found)) == truth != {}
    assert pairs_of(found.coalesce(3)) == truth
