"""Tables by Spark: its own scan sees what is stored, and its writers must keep the contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from epsjoin.errors import TableError
from epsjoin.lake import delta_log, schemas, slices, targets, transactions, uris
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File
from epsjoin.lake.targets import Target
from epsjoin.spark.rows import scan
from epsjoin.spark.tasks.reports import task_number
from tests.lake.rows import checks_of, lake_of_pairs, pairs, read
from tests.tiny import RUN


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_of_pairs(tmp_path)


@pytest.mark.parametrize("few", [0, 1000])
def test_read__spark_by_delta_or_by_name_and_pyarrow_see_the_same_rows(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(scan, "MAX_NAMED_FILES", few)
    slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((9, 10, 0.5)))
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5), (3, 4, 0.1)))
    by_spark = [
        row.asDict() for row in scan.read(spark, lake, Slice("pairs", RUN)).orderBy("left_id").collect()
    ]
    assert by_spark == [{"run": RUN, **row} for row in read(lake)]


def test_open_or_create__any_other_writer_must_keep_the_contract(spark: SparkSession, lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    place = uris.uri_for("spark", lake.location("pairs"))
    insert = f"INSERT INTO delta.`{place}` VALUES ('2023-05-01', {{}}, 4, 0.25)"
    with pytest.raises(Exception, match=r"CHECK constraint left_is_below_right__[0-9a-f]{8} "):
        spark.sql(insert.format(4))
    with pytest.raises(Exception, match="violated"):
        spark.sql(insert.format("NULL"))
    rows = pairs((4, 4, 0.25)).append_column("run", pa.array([RUN]))
    with pytest.raises(DeltaError, match="1 rows failed validation check"):
        write_deltalake(lake.location("pairs"), rows, mode="append")
    spark.sql(insert.format(3))
    slices.write_slice(delta_log.pin_versions(lake, "merge_join"), Slice("pairs", RUN), pairs((5, 6, 0.5)))
    expected = {("2023-05-01", 3), (RUN, 5)}
    assert {
        (row["run"], row["left_id"]) for row in spark.read.format("delta").load(place).collect()
    } == expected
    by_deltalake = DeltaTable(lake.location("pairs")).to_pyarrow_table().to_pylist()
    assert {(row["run"], row["left_id"]) for row in by_deltalake} == expected


GOOD: dict[str, dict[str, Any]] = {
    "snapshots": {"bytes": 1, "rows_read": 3, "rows_ok": 2, "rows_quarantined": 1, "rows_left_out": 0},
    "points": {"x": 0.5},
    "pairs": {"left_id": 1, "right_id": 2, "distance": 0.5},
    "clusters": {"cluster_id": -1, "role": "noise", "degree": 1},
    "outliers": {"rank": 1, "k_distance": 1.0, "degree": 1},
}


@pytest.mark.parametrize(
    ("table", "name", "change"),
    [
        ("snapshots", "rows_add_up", {"rows_ok": 3}),
        ("points", "x_is_from_1_to_1", {"x": -1.5}),
        ("points", "x_is_from_1_to_1", {"x": 1.5}),
        ("pairs", "distance_is_at_least_0", {"distance": float("nan")}),
        ("pairs", "left_is_below_right", {"left_id": 2}),
        ("clusters", "role_is_one_of_core_border_noise", {"role": "edge", "cluster_id": 1}),
        ("clusters", "degree_is_at_least_1", {"degree": 0}),
        ("clusters", "noise_is_in_no_cluster", {"cluster_id": 1}),
        ("clusters", "noise_is_in_no_cluster", {"role": "core"}),
        ("outliers", "k_distance_is_at_least_0", {"k_distance": -0.5}),
        ("outliers", "lof_is_at_least_0", {"lof": float("nan")}),
    ],
)
def test_open_or_create__what_the_log_says_means_the_same_to_spark(
    spark: SparkSession, lake: Lake, table: str, name: str, change: dict[str, Any]
) -> None:
    """deltalake words conditions anew: of a good row each is true, of a bad one just one is not."""
    delta_log.open_or_create(lake, table)
    checks = checks_of(lake, table)
    asked = ", ".join(f"{check} AS {each}" for each, check in checks.items())
    for row, broken in ((GOOD[table], []), ({**GOOD[table], **change}, [name])):
        types = {column.name: schemas.to_ddl([column]).split()[1] for column in lake.schema(table)}
        values = ", ".join(f"CAST({_sql(row.get(c))} AS {kind}) AS `{c}`" for c, kind in types.items())
        found = spark.sql(f"SELECT {asked} FROM (SELECT {values})").first()
        assert found is not None
        assert [
            each.rpartition("__")[0] for each, holds in found.asDict().items() if holds is not True
        ] == broken


def _sql(value: object) -> str:
    return "NULL" if value is None else f"'{value}'"


@pytest.mark.parametrize("few", [0, 1000])
def test_read__is_of_the_version_that_was_looked_at(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(scan, "MAX_NAMED_FILES", few)
    slices.write_slice(lake, Slice("pairs", RUN, fingerprint="old-"), pairs((1, 2, 0.5)))
    listed = slices.log_and_files

    def replaced_right_after(*given: Any) -> Any:
        found = listed(*given)
        slices.write_slice(lake, Slice("pairs", RUN, fingerprint="new-"), pairs((1, 2, 0.5), (3, 4, 0.1)))
        return found

    monkeypatch.setattr(slices, "log_and_files", replaced_right_after)
    assert scan.read(spark, lake, Slice("pairs", RUN, fingerprint="old-")).count() == 1


@pytest.mark.parametrize("few", [0, 1000])
def test_read_replaced__is_what_was_written_not_what_another_job_has_made_of_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(scan, "MAX_NAMED_FILES", few)
    into = Target("ids", tmp_path.as_uri(), pa.schema([("id", pa.int64())]), (), {})

    def written(*ids: int) -> list[File]:
        file = into.write([pa.table({"id": ids})])
        return transactions.replace_table(into, [file] if file else [])

    files = written(1, 2)
    assert scan.read_replaced(spark, into, files).count() == 2
    written(3)
    if few:
        assert scan.read_replaced(spark, into, files).count() == 2
        return
    with pytest.raises(TableError, match="another job has changed .* meanwhile"):
        scan.read_replaced(spark, into, files)


def test_new_name__rises_with_the_task_and_with_what_a_task_writes(spark: SparkSession, lake: Lake) -> None:
    """Files of one size are read in this order, which must not be chance's."""
    into = targets.target_of(lake, Slice("pairs", RUN, fingerprint="fingerprint-"))

    def name_two(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ids = [task for task in batch["id"].to_pylist() for _ in range(2)]
            yield pa.record_batch({"task": ids, "name": [into.new_name(task_number()) for _ in ids]})

    rows = spark.range(0, 12, 1, 12).mapInArrow(name_two, "task long, name string").collect()
    named = [(row["task"], row["name"]) for row in rows]
    assert [task for task, _ in sorted(named, key=lambda row: row[1])] == sorted(2 * [*range(12)])
    assert len({name for _, name in named}) == 24
    for task in range(12):
        of_task = [name for number, name in named if number == task]
        assert of_task == sorted(of_task)
        assert all(name.startswith("fingerprint-") for name in of_task)


def test_read__takes_a_lake_with_blanks_signs_and_letters_of_any_alphabet(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = uris.parse_lake_uri(str(tmp_path / "mein See ö [a-z] {1,2} *?"))
    lake = Lake(uri, lake.contracts, lake.source)
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    for few in (0, 1000):
        monkeypatch.setattr(scan, "MAX_NAMED_FILES", few)
        assert scan.read(spark, lake, Slice("pairs", RUN)).count() == 1
