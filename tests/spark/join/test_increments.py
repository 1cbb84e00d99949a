"""``increments``: pairs of parts that are done are in the table while others are joined, each pair once."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

import epsjoin.spark
import epsjoin.spark.frames as public
from epsjoin import Cuts, self_join
from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.spark.join import frames
from tests import open_sets
from tests.spark.conftest import REPO
from tests.spark.join.test_running import slow_parts, slowed
from tests.spark.lattice import frame_of

POINTS, EPS = open_sets.read("pendigits")[:3000, :5], 0.11
KINDS: dict[str, Any] = {
    "eps": EPS,
    "columns": [f"x{i}" for i in range(5)],
    "cuts": Cuts(n_parts=12, replication_budget=50.0),
}


def pairs_in(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.left_id, row.right_id) for row in frame.collect())


def expected() -> list[tuple[int, int]]:
    found = self_join(POINTS, EPS)
    return sorted(zip(found.left.tolist(), found.right.tolist(), strict=True))


def is_complete(to: str, version: int | None = None) -> str | None:
    return DeltaTable(to, version=version).metadata().configuration.get("epsjoin.complete")


@pytest.mark.parametrize("max_files", [10_000, 0])
def test_similarity_join__by_increments_has_each_pair_in_one_version(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_files: int
) -> None:
    """By files and by a shuffle; a stream that reads the versions is what one transaction would be."""
    monkeypatch.setattr(public, "MAX_FILES", max_files)
    slow_parts(monkeypatch, frames, n_fast=4, seconds=0.3)
    join_frame = frames.join_frame

    def slow_frame(*given: Any, **options: Any) -> Any:
        rows = join_frame(*given, **options)
        return replace(rows, work=slowed(rows.work, 4, 0.3))

    monkeypatch.setattr(frames, "join_frame", slow_frame)
    to, truth = str(tmp_path / "pairs"), expected()
    written = epsjoin.spark.similarity_join(frame_of(spark, POINTS), to=to, increments=0.0, **KINDS)
    assert pairs_in(written) == truth
    last = DeltaTable(to).version()
    tables = [DeltaTable(to, version=version).get_add_actions(flatten=True) for version in range(last + 1)]
    rows = [sum(pa.table(files)["num_records"].to_pylist()) for files in tables]
    assert rows[0] == 0
    assert rows == sorted(rows)
    assert 0 < rows[1] < 0.15 * len(truth), "first some of the plan's sample"
    assert len(set(rows)) > 4, rows
    assert [is_complete(to, version) for version in range(last + 1)] == ["false"] * last + ["true"]
    if not max_files:
        return  # both ways add their files by the same commits, which the other one reads as a stream
    batches: list[list[tuple[int, int]]] = []
    stream = (
        spark.readStream.format("delta")
        .option("startingVersion", 0)
        .option("maxFilesPerTrigger", 2)
        .load(to)
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .foreachBatch(lambda batch, _: batches.append(pairs_in(batch)))
        .start()
    )
    stream.awaitTermination(60)
    assert sorted(itertools.chain(*batches)) == truth, "each pair once"
    assert len(batches) > 1


def test_similarity_join__by_increments_replaces_a_table_and_is_replaced_by_one_transaction(
    spark: SparkSession, tmp_path: Path
) -> None:
    to, frame = str(tmp_path / "pairs"), frame_of(spark, POINTS)
    one = pairs_in(epsjoin.spark.similarity_join(frame, to=to, **KINDS))
    assert is_complete(to) is None
    grown = pairs_in(epsjoin.spark.similarity_join(frame, frame, to=to, increments=0.0, **KINDS))
    assert is_complete(to) == "true"
    assert len(grown) == 2 * len(one) + len(POINTS)
    with pytest.raises(BudgetError):
        epsjoin.spark.similarity_join(frame, to=to, increments=0.0, **KINDS | {"max_pairs": 10})
    assert is_complete(to) == "true", "refused by its plan"
    assert pairs_in(epsjoin.spark.similarity_join(frame, to=to, **KINDS)) == one
    assert is_complete(to) == "true"
    for wrong, said in (({"increments": 1.0}, "give to, too"), ({"to": to, "increments": -1}, "at least 0")):
        with pytest.raises(ArgumentError, match=said):
            epsjoin.spark.similarity_join(frame, **KINDS, **wrong)


SCRIPT = """
import sys
import numpy as np
from pyspark.sql import SparkSession
import epsjoin.spark
from epsjoin import Cuts
from epsjoin.spark.job.session import get_session
spark = get_session("killed")
points = np.load(sys.argv[1])
rows = [(i, *map(float, point)) for i, point in enumerate(points)]
names = [f"x{i}" for i in range(points.shape[1])]
frame = spark.createDataFrame(rows, ["id", *names])
print("ready", flush=True)
kinds = {"columns": names, "cuts": Cuts(n_parts=12, replication_budget=50.0)}
for _ in range(1000):
    epsjoin.spark.similarity_join(frame, eps=float(sys.argv[3]), to=sys.argv[2], increments=0.0, **kinds)
"""
"""Joins again and again, until it is killed."""


def version_of(table: str) -> int:
    """The table's version; -1 where there is none yet."""
    return DeltaTable(table).version() if DeltaTable.is_deltatable(table) else -1


@pytest.mark.long
@pytest.mark.timeout(3600)  # 31 sessions: on a machine with other work a quarter of an hour does not do
def test_similarity_join__by_increments_that_is_killed_is_never_complete_with_a_pair_missing(
    tmp_path: Path,
) -> None:
    """``KILLS`` kills by SIGKILL (30 by default), at random moments of a first join and somewhat beyond.

    The first process is killed when its join is complete: the moments of the others are shares of that time.
    """
    truth, to = expected(), str(tmp_path / "pairs")
    np.save(tmp_path / "points.npy", POINTS)
    moments, seen = np.random.default_rng(0), list[str | None]()
    undisturbed: float | None = None
    for number in range(1 + int(os.environ.get("KILLS", "30"))):
        version = version_of(to)
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / "points.npy"), to, str(EPS)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=REPO, start_new_session=True
        )
        assert process.stdout is not None
        assert any("ready" in line for line in process.stdout)
        while version_of(to) == version and process.poll() is None:
            time.sleep(0.02)
        began = time.monotonic()
        if undisturbed is None:
            while is_complete(to) != "true" and process.poll() is None:
                time.sleep(0.02)
            undisturbed = time.monotonic() - began
        else:
            time.sleep(moments.uniform(0.0, 1.5 * undisturbed))
        assert process.poll() is None, "it ended by itself"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        state = is_complete(to)
        seen.append(state)
        if state == "true":
            found = DeltaTable(to).to_pyarrow_table()
            got = sorted(zip(found["left_id"].to_pylist(), found["right_id"].to_pylist(), strict=True))
            assert got == truth, number
    assert {"false", "true"} <= {*seen}, seen
    assert seen.count("false") > len(seen) // 5, "most joins were over before the kill"
