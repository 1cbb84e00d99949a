"""Rows that a step works on: of frames, of files, and of the driver."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from epsjoin.lake import schemas
from epsjoin.lake.parquet import File
from epsjoin.spark.rows.persist import materialize
from epsjoin.spark.rows.rows import (
    DriverRows,
    FrameRows,
    collect_table,
    frame_of,
    to_frame,
)
from epsjoin.spark.rows.stored import scan_files

BATCH_LIMIT = "spark.sql.execution.arrow.maxRecordsPerBatch"


def test_scan_files__reads_one_large_file_by_several_threads(tmp_path: Path) -> None:
    n_rows = 1 << 21
    pq.write_table(
        pa.table({"id": np.arange(n_rows)}),
        tmp_path / "a.parquet",
        row_group_size=n_rows >> 3,
        use_dictionary=False,
        compression="none",
    )
    file = File("points", "a.parquet", (tmp_path / "a.parquet").stat().st_size, n_rows, {})

    def span(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ids = np.concatenate([batch["id"] for batch in batches])
        yield pa.record_batch({"first": [ids[0]], "rows": [len(ids)]})

    def no_session() -> SparkSession:
        raise AssertionError("the driver reads it")

    found = scan_files(
        no_session, tmp_path.as_uri(), [file], pa.schema([("id", pa.int64())]), span, threads=4
    )
    spans = [(row["first"], row["rows"]) for batch in found for row in batch.to_pylist()]
    assert sorted(spans) == [(n_rows // 4 * number, n_rows // 4) for number in range(4)]


def test_frame_rows__name_their_types_as_tables_do(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(1, 2, 0.5, "a", b"b", True)], "i int, l long, d double, s string, b binary, t boolean"
    )
    schema = FrameRows(frame).schema
    assert schemas.parse_ddl(schema).types == [
        schemas.ARROW_TYPES[kind] for kind in ("int", "long", "double", "string", "binary", "boolean")
    ]
    assert collect_table(FrameRows(frame)).to_pylist() == [row.asDict() for row in frame.collect()]


def test_driver_rows__are_in_the_order_of_the_splits_and_go_to_spark_only_as_a_frame(
    spark: SparkSession,
) -> None:
    asked: list[int] = []

    def session() -> SparkSession:
        asked.append(1)
        return spark

    def make(split: int) -> Iterator[pa.RecordBatch]:
        time.sleep(0.01 * (5 - split))  # the last is ready first
        yield pa.record_batch({"id": np.array([split, 10 * split])})

    rows = DriverRows(session, 5, range(5), make, "id long")
    wanted = [number for split in range(5) for number in (split, 10 * split)]
    assert collect_table(rows)["id"].to_pylist() == wanted
    assert not asked
    assert sorted(row["id"] for row in to_frame(rows).collect()) == sorted(wanted)
    assert asked


@pytest.mark.parametrize("limit", ["0", "-1", "7"])
def test_frame_of__gives_a_table_to_a_session_with_any_limit_of_batches(
    spark: SparkSession, limit: str
) -> None:
    """0 and less stand for no limit, and pyspark fails with an Arrow table."""
    before = spark.conf.get(BATCH_LIMIT)
    spark.conf.set(BATCH_LIMIT, limit)
    try:
        for n in (0, 20):
            assert frame_of(spark, pa.table({"id": np.arange(n)})).count() == n
        assert spark.conf.get(BATCH_LIMIT) == limit
    finally:
        spark.conf.set(BATCH_LIMIT, before)


def test_materialize__persists_a_frame_unless_it_fails(spark: SparkSession) -> None:
    spark.catalog.clearCache()
    is_empty = spark._jsparkSession.sharedState().cacheManager().isEmpty
    with pytest.raises(PySparkException, match="no such row"):
        materialize(spark.range(1).select(F.raise_error(F.lit("no such row"))))
    assert is_empty()
    frame = materialize(spark.range(1))
    assert frame.is_cached
    frame.unpersist()
