"""First pairs of a table that grows: the parts must find each of them once, and no file is left over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import epsjoin.spark
from epsjoin import Cuts, get_metric
from epsjoin.errors import DataRefusedError, TableError
from epsjoin.lake.growing import GrowingTable
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.spark.join.frames import begin_table, target_at
from epsjoin.spark.join.pairs import LEFT_OUT, check_left_out, leave_out, to_batch
from epsjoin.spark.join.plan import PairsPlan, plan_samples
from tests import open_sets
from tests.spark.lattice import frame_of

POINTS, EPS = open_sets.read("pendigits")[:600, :4], 0.1
CUTS = Cuts(n_parts=3, replication_budget=50.0)


def pairs_of(*ids: tuple[int, int]) -> Pairs:
    left, right = np.array(ids, np.int64).reshape(-1, 2).T
    return Pairs(left.copy(), right.copy(), np.arange(len(ids), dtype=np.float64))


def test_leave_out__counts_and_a_pair_that_is_not_met_once_is_refused() -> None:
    first = pairs_of((1, 2), (3, 4))
    batches = [to_batch(pairs_of((1, 2), (1, 3))), to_batch(pairs_of((5, 6), (3, 4)))]
    counters: dict[str, float] = {}
    rest = pa.Table.from_batches(list(leave_out(first, batches, counters)))
    assert list(zip(rest["left_id"].to_pylist(), rest["right_id"].to_pylist(), strict=True)) == [
        *((1, 3), (5, 6))
    ]
    assert counters == {LEFT_OUT: 2}
    check_left_out(first, counters)
    for wrong in ({LEFT_OUT: 3.0}, {LEFT_OUT: 1.0}, {}):
        with pytest.raises(DataRefusedError, match="2 pairs were in the table first, but the parts found"):
            check_left_out(first, wrong)
    none: dict[str, float] = {}
    assert list(leave_out(None, batches, none)) == batches
    assert none == {}
    check_left_out(None, none)


@pytest.mark.parametrize("by", ["files", "shuffle"])
def test_similarity_join__by_increments_refuses_ids_that_are_not_distinct(
    spark: SparkSession, tmp_path: Path, by: str
) -> None:
    """Few ids of many rows: pairs of other rows with the ids of a first pair would be left out."""
    frame = frame_of(spark, POINTS).withColumn("id", F.col("id") % 4)
    to = str(tmp_path / "pairs")
    asked: dict[str, Any] = {"eps": EPS, "columns": ["x0", "x1", "x2", "x3"], "cuts": CUTS}
    frames = [frame] if by == "files" else [frame, frame]
    with pytest.raises(DataRefusedError, match="two rows have one id"):
        epsjoin.spark.similarity_join(*frames, to=to, increments=60.0, **asked)
    table = DeltaTable(to)
    assert table.metadata().configuration["epsjoin.complete"] == "false"
    left = {str(file) for file in tmp_path.rglob("*.parquet")}
    assert left == set(table.file_uris()), "what was not added is deleted"


def test_begin_table__that_is_refused_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples, rows = [(np.arange(len(POINTS)), POINTS)], [len(POINTS)]
    plan = plan_samples(samples, rows, EPS, get_metric("euclidean"), None, CUTS, 1e9)

    def refuse(*_: object) -> None:
        raise TableError("another job changed it")

    monkeypatch.setattr(GrowingTable, "add", refuse)
    with pytest.raises(TableError, match="another job changed it"):
        begin_table(PairsPlan(plan, samples, rows), target_at(tmp_path.as_uri()), 1.0)
    assert not list(tmp_path.rglob("*.parquet"))
