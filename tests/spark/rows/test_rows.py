"""Splits that tasks read, and partial results: as many rows as the points need, whatever the batches."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from epsjoin.lake import parquet, schemas
from epsjoin.lake.parquet import File
from epsjoin.local.cluster.from_pairs import Degrees, partial_degrees, sum_degrees
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.planner import plan_join
from epsjoin.spark.join.replicas import FLUSH_BYTES
from epsjoin.spark.join.replicate import n_files
from epsjoin.spark.points.points import Points
from epsjoin.spark.points.reading import Reading
from epsjoin.spark.rows.persist import materialize
from epsjoin.spark.rows.rows import (
    DriverRows,
    FrameRows,
    StoredRows,
    collect_table,
    combine_partials,
    frame_of,
    select_columns,
    to_frame,
)
from epsjoin.spark.rows.splits import OPEN_COST_BYTES, RowGroups, split_bytes
from epsjoin.spark.rows.stored import scan_files

BATCH_LIMIT = "spark.sql.execution.arrow.maxRecordsPerBatch"


def merged(partials: Sequence[Degrees]) -> Degrees:
    ids, counts = (np.concatenate(column) for column in zip(*partials, strict=True))
    return sum_degrees(ids, counts)


@pytest.mark.parametrize(("max_rows", "wanted"), [(100, [20]), (20, [20]), (19, [20] * 10)])
def test_combine_partials__gives_the_sums_in_few_rows(max_rows: int, wanted: list[int]) -> None:
    left, right = (
        np.random.default_rng(0)
        .permuted(np.tile(np.arange(20), (10, 1)), axis=1)
        .reshape(10, 2, 10)
        .swapaxes(0, 1)
    )
    found = list(
        combine_partials((partial_degrees(*ends) for ends in zip(left, right, strict=True)), merged, max_rows)
    )
    assert [len(each.ids) for each in found] == wanted
    whole = merged(found)
    assert whole.ids.tolist() == list(range(20))
    assert whole.counts.tolist() == [10] * 20


def stored(sizes: Sequence[int], n_cores: int) -> StoredRows:
    files = [File("points", f"{i}.parquet", size, 1, {}) for i, size in enumerate(sizes)]
    return StoredRows(None, "file:///nowhere", files, "id long, point binary", n_cores)


def test_splits__are_never_empty_and_whole_files_are_not_divided() -> None:
    for sizes in ([20 << 20], [3 << 20], [0], [1100 << 20]):
        rows = stored(sizes, 7)
        assert all(rows.splits())
        whole = replace(rows, whole_files=True)
        assert whole.splits() == [[RowGroups(file)] for file in rows.files]


def test_n_files__counts_the_times_that_a_task_writes() -> None:
    """A partition of a frame may be large: its task writes whenever it holds enough."""
    sample = np.random.default_rng(1).random((500, 2))
    ids, metric = np.arange(500), get_metric("euclidean")
    of_frame = Points(None, Reading(("x", "y"), 2), 500, 3)
    small, large = (plan_join(sample, ids, n, 0.01, metric, Cuts(n_parts=4)) for n in (500, 10**9))
    assert n_files(of_frame, small) == pytest.approx(small.n_parts * 3, rel=0.01)
    flushes = large.expected_rows * (2 * 8 + 8 + 8 + 4) / FLUSH_BYTES
    assert n_files(of_frame, large) == pytest.approx(large.n_parts * (3 + flushes), rel=0.01)
    assert flushes > 500
    files = stored([30 << 20, 30 << 20], 7)
    of_table = Points(None, Reading(("x", "y"), 2), 500, files=files)
    assert n_files(of_table, small) == pytest.approx(small.n_parts * len(files.splits()), rel=0.01)
    assert len(files.splits()) > 1


def named(groups: RowGroups) -> tuple[str, int]:
    return groups.file.path, groups.number


@pytest.mark.parametrize(("n_cores", "megabytes"), [(1000, 4), (200, 8), (1, 64)])
def test_splits__hold_every_row_group_once_and_are_of_about_one_size(n_cores: int, megabytes: int) -> None:
    sizes = [*np.random.default_rng(3).integers(0, 1 << 26, 40).tolist(), 1 << 29, 0, 1, 1 << 20]
    rows = stored(sizes, n_cores)
    splits = rows.splits()
    target = split_bytes(rows.files, schemas.parse_ddl(rows.schema), n_cores)
    assert target >> 20 == megabytes
    groups = [
        RowGroups(file, number, -(-file.size // target) or 1)
        for file in rows.files
        for number in range(-(-file.size // target) or 1)
    ]
    found = [each for split in splits for each in split]
    assert sorted(found, key=named) == sorted(groups, key=named)
    bytes_of = [sum((each.file.size + OPEN_COST_BYTES) / each.of for each in split) for split in splits]
    total = sum(file.size + OPEN_COST_BYTES for file in rows.files)
    assert sum(bytes_of) == pytest.approx(total)
    assert len(splits) == -(-total // target)
    largest = max((each.file.size + OPEN_COST_BYTES) / each.of for each in groups)
    assert max(bytes_of) - min(bytes_of) <= largest, "the smallest split would have got the last row groups"


def test_splits__do_not_depend_on_the_order_of_the_files() -> None:
    rows = stored([5 << 20, 9 << 20, 9 << 20, 1 << 20, 40 << 20, 1 << 20], 4)
    turned = replace(rows, files=rows.files[::-1])
    assert turned.splits() == rows.splits()


def test_splits__are_of_what_is_read_not_of_whole_files() -> None:
    files = [File("points", f"{i}.parquet", 30 << 20, 1 << 17, {}) for i in range(8)]
    ids, whole = (StoredRows(None, "", files, schema, 100) for schema in ("id long", "point binary"))
    assert [len(split) for split in ids.splits()] == [2, 2, 2, 2]  # each a megabyte and its opening
    assert len(whole.splits()) == 8 * 31 / 4
    # a file has the coordinates twice: as columns of their own, and as points
    known = [replace(file, point_bytes=2 * 8) for file in files]
    of_points = replace(whole, files=known, schema="id long, point binary")
    assert [len(split) for split in of_points.splits()] == [1] * 8  # each three megabytes and its opening
    assert of_points.bytes_read == 8 * (1 << 17) * (8 + 2 * 8)
    text = replace(of_points, schema="id long, point string")
    assert text.bytes_read == 8 * (30 << 20), "a column of the source may have that name, too"


def test_splits__are_one_for_each_core_of_any_columns() -> None:
    files = [File("pairs", f"{i}.parquet", (24 << 20) + i, 1 << 20, {}) for i in range(16)]
    rows = StoredRows(None, "", files, "left_id long, right_id long, distance double", 8)
    ends = select_columns(rows, "left_id long, right_id long")
    for each in (rows, ends):
        assert [len(split) for split in replace(each, whole_files=True).splits()] == [2] * 8


@pytest.mark.parametrize("of", [1, 2, 3, 5, 8, 100])
def test_stream_file__in_pieces_gives_every_row_once(of: int, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": np.arange(777)}), tmp_path / "a.parquet", row_group_size=100)
    file = File("points", "a.parquet", (tmp_path / "a.parquet").stat().st_size, 777, {})
    found = [
        [
            row
            for batch in parquet.stream_file(
                tmp_path.as_uri(), file, pa.schema([("id", pa.int64())]), 64, (number, of)
            )
            for row in batch["id"]
        ]
        for number in range(of)
    ]
    assert [row.as_py() for piece in found for row in piece] == list(range(777))
    assert sum(bool(piece) for piece in found) == min(of, 8), "a piece is whole row groups"


@pytest.mark.parametrize(("max_bytes", "reads_at_once"), [(300 * 8 + 200, True), (300 * 8 - 1, False)])
def test_stream_file__reads_a_row_group_at_once_unless_it_is_large(
    max_bytes: int, reads_at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = pa.table({"id": np.arange(300), "key": np.arange(300)})
    pq.write_table(columns, tmp_path / "a.parquet", use_dictionary=False, compression="none")
    file = File("points", "a.parquet", (tmp_path / "a.parquet").stat().st_size, 300, {})
    monkeypatch.setattr(parquet, "MAX_AT_ONCE_BYTES", max_bytes)
    if reads_at_once:
        monkeypatch.delattr(pq.ParquetFile, "iter_batches")
    else:
        monkeypatch.delattr(pq.ParquetFile, "read_row_group")
    found = list(parquet.stream_file(tmp_path.as_uri(), file, pa.schema([("id", pa.int64())]), 64))
    assert [len(batch) for batch in found] == [64] * 4 + [44], "never more rows than a batch may have"
    assert np.array_equal(pa.Table.from_batches(found)["id"], np.arange(300))


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


def test_combine_partials__of_nothing_is_nothing() -> None:
    assert list(combine_partials(iter(()), merged)) == []
