"""Tables: a slice is replaced whole or not at all, and what is broken is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from epsjoin.errors import ArgumentError, TableError
from epsjoin.lake import delta_log, parquet, schemas, slices, uris
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.parquet import File, Target
from epsjoin.spark import scan
from epsjoin.spark.tasks import task_number
from tests.spark.conftest import RUN, JobMaker, coordinate, has_slice, key


@pytest.fixture
def lake(make_job: JobMaker) -> Lake:
    within = {**coordinate("x"), "logicalTypeOptions": {"minimum": -1, "maximum": 1}}
    return make_job([key(), within]).lake


def pairs(*rows: tuple[int, int, float]) -> pa.Table:
    return pa.table(
        {
            "left_id": pa.array([row[0] for row in rows], pa.int64()),
            "right_id": pa.array([row[1] for row in rows], pa.int64()),
            "distance": pa.array([row[2] for row in rows], pa.float64()),
        }
    )


def read(lake: Lake, run: str = RUN, table: str = "pairs") -> list[dict[str, Any]]:
    return slices.read_slice(lake, Slice(table, run)).drop_columns(["run"]).to_pylist()


def test_write_slice__replaces_the_runs_rows_and_no_others(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((1, 2, 0.5)))
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5), (3, 4, 0.1)))
    slices.write_slice(lake, Slice("pairs", RUN), pairs((7, 8, 0.25)))
    assert read(lake) == [{"left_id": 7, "right_id": 8, "distance": 0.25}]
    assert read(lake, "2023-05-01") == [{"left_id": 1, "right_id": 2, "distance": 0.5}]


def test_write_slice__an_empty_slice_is_there_and_a_missing_one_is_not(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    slices.write_slice(lake, Slice("pairs", RUN), pairs())
    assert read(lake) == []
    assert has_slice(lake, "pairs", RUN)
    assert not has_slice(lake, "pairs", "2022-01-01")
    assert not has_slice(lake, "clusters", RUN)


def test_write_slice__of_job_metrics_is_the_jobs_own(lake: Lake) -> None:
    for job, value in (("ingest", 1.0), ("cluster", 2.0), ("ingest", 3.0)):
        rows = slices.table_of(lake, "job_metrics", [{"job": job, "counter": "n", "value": value}])
        slices.write_slice(lake, Slice("job_metrics", RUN, also=(("job", job),)), rows)
    found = sorted((row["job"], row["value"]) for row in read(lake, table="job_metrics"))
    assert found == [("cluster", 2.0), ("ingest", 3.0)]


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


def test_write_slice__many_runs_at_once_on_a_table_that_does_not_exist_yet(lake: Lake) -> None:
    runs = [f"2023-{month:02}-01" for month in range(1, 13)]
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda run: slices.write_slice(lake, Slice("pairs", run), pairs((1, int(run[5:7]) + 1, 0.5))),
                runs,
            )
        )
    assert [read(lake, run)[0]["right_id"] for run in runs] == list(range(2, 14))


@pytest.mark.long
def test_write_slice__many_jobs_at_once_make_a_table_once(lake: Lake, tmp_path: Path) -> None:
    """A table that is made twice has another identity in its second version: every other job would fail."""
    for number in range(25):  # the two must meet within microseconds
        empty = replace(lake, uri=(tmp_path / f"lake{number}").as_uri())
        jobs = {f"2023-{month:02}-01": delta_log.pin_versions(empty, "merge_join") for month in range(1, 9)}
        with ThreadPoolExecutor(8) as pool:
            list(
                pool.map(
                    lambda each: slices.write_slice(each[1], Slice("pairs", each[0]), pairs()), jobs.items()
                )
            )
        assert DeltaTable(empty.location("pairs")).version() == len(jobs) + 1  # one for the constraints


def test_write_slice__two_at_once_on_one_slice_leave_one_of_them(lake: Lake) -> None:
    def write(number: int) -> bool:
        try:
            slices.write_slice(lake, Slice("pairs", RUN), pairs((number, 100, 0.5), (number, 101, 0.5)))
        except TableError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        went_well = list(pool.map(write, range(8)))
    left = {row["left_id"] for row in read(lake)}
    assert len(read(lake)) == 2
    assert len(left) == 1
    assert went_well[left.pop()]


@pytest.mark.parametrize("before", [None, ((5, 6, 0.5),), ()])
def test_commit__of_two_jobs_on_one_slice_the_first_wins(
    lake: Lake, before: tuple[tuple[int, int, float], ...] | None
) -> None:
    if before is not None:
        slices.write_slice(lake, Slice("pairs", RUN), pairs(*before))
    first, second = delta_log.pin_versions(lake, "merge_join"), delta_log.pin_versions(lake, "merge_join")
    slices.write_slice(first, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    with pytest.raises(
        TableError, match="another job changed pairs of run 2023-06-01 while .* run merge_join again when"
    ):
        slices.write_slice(second, Slice("pairs", RUN), pairs((3, 4, 0.5)))
    assert read(lake) == [{"left_id": 1, "right_id": 2, "distance": 0.5}]
    slices.write_slice(delta_log.pin_versions(lake, "merge_join"), Slice("pairs", RUN), pairs((3, 4, 0.5)))
    assert read(lake) == [{"left_id": 3, "right_id": 4, "distance": 0.5}]


def test_commit__of_two_gates_on_one_slice_the_first_wins(lake: Lake) -> None:
    """A slow gate must not put what it saw of older tables over what a later one saw."""
    row = {"expectation": "one row", "severity": "error", "success": True, "observed": ""}
    names = ("clusters", "outliers", "pairs")
    rows = {name: slices.table_of(lake, "quality", [{"table": name, **row}]) for name in names}
    for name in names:
        slices.write_slice(lake, Slice("quality", RUN, also=(("table", name),)), rows[name])
    slow, fast = (delta_log.pin_versions(lake, "quality_results") for _ in range(2))
    for name in ("pairs", "outliers"):  # the second commit meets what the first removed
        slices.write_slice(fast, Slice("quality", RUN, also=(("table", name),)), rows[name])
    with pytest.raises(TableError, match="another job changed quality of run 2023-06-01 while"):
        slices.write_slice(slow, Slice("quality", RUN, also=(("table", "pairs"),)), rows["pairs"])
    slices.write_slice(slow, Slice("quality", RUN, also=(("table", "clusters"),)), rows["clusters"])
    assert sorted(found["table"] for found in read(lake, table="quality")) == list(names)


@pytest.mark.parametrize("again", [False, True])
def test_commit__of_jobs_on_different_slices_all_succeed(lake: Lake, again: bool) -> None:
    runs = (RUN, "2023-05-01", "2023-04-01")
    for run in runs if again else ():  # Delta refuses whom another's removal of files might concern
        slices.write_slice(lake, Slice("pairs", run), pairs((7, 8, 0.5)))
    jobs = {run: delta_log.pin_versions(lake, "merge_join") for run in runs}
    for number, (run, of_job) in enumerate(jobs.items()):
        slices.write_slice(of_job, Slice("pairs", run), pairs((number, 9, 0.5)))
    assert [read(lake, run)[0]["left_id"] for run in jobs] == [0, 1, 2]
    jobs = {job: delta_log.pin_versions(lake, job) for job in ("cluster", "outliers")}
    for job, of_job in jobs.items():
        rows = slices.table_of(lake, "job_metrics", [{"job": job, "counter": "n", "value": 1.0}])
        slices.write_slice(of_job, Slice("job_metrics", RUN, also=(("job", job),)), rows)
    assert {row["job"] for row in read(lake, table="job_metrics")} == set(jobs)


def test_write_slice__keeps_a_tables_contract(lake: Lake) -> None:
    with pytest.raises(TableError, match="pairs: columns .* where the contract has"):
        slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)).drop_columns(["distance"]))
    with pytest.raises(TableError, match="pairs: distance is null in a row"):
        slices.write_slice(
            lake,
            Slice("pairs", RUN),
            pa.table({"left_id": [1], "right_id": [2], "distance": pa.nulls(1, pa.float64())}),
        )
    with pytest.raises(TableError, match="a column is not of its contract's type"):
        slices.write_slice(
            lake, Slice("pairs", RUN), pa.table({"left_id": ["x"], "right_id": [2], "distance": [0.5]})
        )


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ((5, 5, 0.5), r"pairs: left_is_below_right does not hold in a row \(left_id 5, right_id 5\)"),
        ((5, 6, -0.5), r"pairs: distance is at least 0 does not hold in a row \(distance -0.5\)"),
        ((5, 6, float("nan")), r"pairs: distance is at least 0 does not hold in a row \(distance nan\)"),
    ],
)
def test_write_slice__refuses_a_row_that_breaks_its_contract(
    lake: Lake, row: tuple[int, int, float], sentence: str
) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.0)))
    with pytest.raises(TableError, match=sentence):
        slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5), row, (3, 4, 0.5)))
    assert read(lake) == [{"left_id": 1, "right_id": 2, "distance": 0.0}]


def test_write__refuses_a_partition_that_breaks_its_contract(lake: Lake) -> None:
    rows = slices.table_of(lake, "replicas", [{"id": 1, "mask": 0, "point": b""}]).drop_columns(["part"])
    with pytest.raises(TableError, match=r"replicas: part is at least 0 .* \(part '-1'\)"):
        parquet.target_of(lake, Slice("replicas", RUN)).write([rows], part=-1)
    assert parquet.target_of(lake, Slice("replicas", RUN)).write([rows], part=0)


def checks_of(lake: Lake, table: str = "pairs") -> dict[str, str]:
    """The constraints in a table's log."""
    known = DeltaTable(lake.location(table)).metadata().configuration
    names = (name for name in known if name.startswith("delta.constraints."))
    return {name.removeprefix("delta.constraints."): known[name] for name in names}


def test_open_or_create__any_other_writer_must_keep_the_contract(spark: SparkSession, lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    place = uris.uri_for("spark", lake.location("pairs"))
    insert = f"INSERT INTO delta.`{place}` VALUES ('2023-05-01', {{}}, 4, 0.25)"  # noqa: S608 - no text of others
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
    "snapshots": {"bytes": 1, "rows_read": 3, "rows_ok": 2, "rows_quarantined": 1},
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
        ("outliers", "a_distance_is_known_or_bounded", {"k_distance_above": 1.0}),
        ("outliers", "a_distance_is_known_or_bounded", {"k_distance": None}),
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
        found = spark.sql(f"SELECT {asked} FROM (SELECT {values})").first()  # noqa: S608 - no text of others
        assert found is not None
        assert [
            each.rpartition("__")[0] for each, holds in found.asDict().items() if holds is not True
        ] == broken


def _sql(value: object) -> str:
    return "NULL" if value is None else f"'{value}'"


def test_open_or_create__brings_an_older_table_to_its_contract(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constraints that came from a contract are those of today's; those of others stay."""
    with monkeypatch.context() as older:
        older.setattr(Lake, "checks", lambda *_: {"right_id_is_odd__0123abcd": "right_id <> 4"})
        slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((1, 2, 0.5)))
    DeltaTable(lake.location("pairs")).alter.add_constraint({"of_the_team": "left_id > 0"})
    jobs = [delta_log.pin_versions(lake, "merge_join") for _ in range(2)]
    assert set(checks_of(lake)) == {*lake.checks("pairs"), "of_the_team"}
    version = DeltaTable(lake.location("pairs")).version()
    for job, run in zip(jobs, (RUN, "2023-07-01"), strict=True):
        slices.write_slice(job, Slice("pairs", run), pairs((3, 4, 0.5)))
    assert DeltaTable(lake.location("pairs")).version() == version + 2, "constraints are set once"
    assert [len(read(lake, run)) for run in ("2023-05-01", RUN, "2023-07-01")] == [1, 1, 1]


def test_open_or_create__of_jobs_at_once_all_end_with_the_constraints(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [f"2023-{month:02}-01" for month in range(1, 13)]
    with monkeypatch.context() as older:
        older.setattr(Lake, "checks", lambda *_: {})
        slices.write_slice(lake, Slice("pairs", "2022-01-01"), pairs((1, 2, 0.5)))
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda run: slices.write_slice(
                    delta_log.pin_versions(lake, "merge_join"), Slice("pairs", run), pairs()
                ),
                runs,
            )
        )
    assert set(checks_of(lake)) == set(lake.checks("pairs"))
    assert all(has_slice(lake, "pairs", run) for run in runs)


def test_begin__of_a_table_whose_rows_break_a_newer_contract_says_so(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    monkeypatch.setattr(Lake, "checks", lambda *_: {"far__0123abcd": "distance >= 1"})
    with pytest.raises(
        TableError, match="rows of earlier runs break its contract as it is now .* run merge_join"
    ):
        delta_log.pin_versions(lake, "merge_join")
    assert read(lake) == [{"left_id": 1, "right_id": 2, "distance": 0.5}]


def test_begin__of_a_job_under_an_older_contract_the_commit_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(Lake, "checks", lambda *_: {})
        slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((1, 2, 0.5)))
        job = delta_log.pin_versions(lake, "merge_join")
    delta_log.pin_versions(lake, "merge_join")
    with pytest.raises(TableError, match="another job changed pairs"):
        slices.write_slice(job, Slice("pairs", RUN), pairs((3, 4, 0.5)))
    slices.write_slice(delta_log.pin_versions(lake, "merge_join"), Slice("pairs", RUN), pairs((3, 4, 0.5)))


def file_of(lake: Lake) -> Path:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5), (3, 4, 0.1)))
    _, root = uris.filesystem_of(lake.location("pairs"))
    return Path(root) / slices.files_of(lake, Slice("pairs", RUN))[0].path


def test_read_small__notices_a_file_that_is_gone_or_broken(lake: Lake) -> None:
    file = file_of(lake)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(TableError, match="cannot be read .* run merge_join again"):
        read(lake)
    file.unlink()
    with pytest.raises(TableError, match="cannot be read .* run merge_join again"):
        read(lake)


def test_read_small__notices_a_file_with_other_rows_than_its_log_says(lake: Lake) -> None:
    file = file_of(lake)
    table = pa.parquet.read_table(file, partitioning=None)
    pa.parquet.write_table(table.slice(0, 1), file)
    with pytest.raises(TableError, match="has 1 rows, its table's log says 2"):
        read(lake)


def test_write__files_that_were_never_committed_are_in_no_table(lake: Lake) -> None:
    parquet.target_of(lake, Slice("pairs", RUN)).write([pairs((5, 6, 0.5))])
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    assert len(read(lake)) == 1


def test_replace_table__refuses_a_table_of_other_columns_that_was_made_meanwhile(tmp_path: Path) -> None:
    location = tmp_path.as_uri()
    others = Target("others", location, pa.schema([("id", pa.int64())]), (), "")
    delta_log.replace_table(others, [])
    into = Target("pairs", location, pa.schema([("left_id", pa.int64())]), (), "")
    with pytest.raises(TableError, match=r"is a table of other columns \(id\)"):
        delta_log.replace_table(into, [])
    assert DeltaTable(location).version() == 1


def test_replace_table__refuses_a_partitioned_table(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "x": [1, 1]})
    write_deltalake(tmp_path, rows, partition_by=["x"])
    into = Target("pairs", tmp_path.as_uri(), rows.schema, (), "")
    for look in (delta_log.check_replaceable, lambda into: delta_log.replace_table(into, [])):
        with pytest.raises(TableError, match="is partitioned by x; take another folder"):
            look(into)
    assert DeltaTable(tmp_path).version() == 0


def test_refuse_other_columns__of_a_log_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("no log")
    into = Target("pairs", tmp_path.as_uri(), pa.schema([("id", pa.int64())]), (), "")
    with pytest.raises(
        TableError, match=r"the Delta log of .* cannot be read \(Kernel error: Json error[^<]*\)$"
    ):
        delta_log.check_replaceable(into)


@pytest.mark.parametrize("few", [0, 1000])
def test_read__is_of_the_version_that_was_looked_at(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(scan, "MAX_NAMED_FILES", few)
    slices.write_slice(lake, Slice("pairs", RUN, fingerprint="old-"), pairs((1, 2, 0.5)))
    listed = slices.version_and_files

    def replaced_right_after(*given: Any) -> Any:
        found = listed(*given)
        slices.write_slice(lake, Slice("pairs", RUN, fingerprint="new-"), pairs((1, 2, 0.5), (3, 4, 0.1)))
        return found

    monkeypatch.setattr(slices, "version_and_files", replaced_right_after)
    assert scan.read(spark, lake, Slice("pairs", RUN, fingerprint="old-")).count() == 1


@pytest.mark.parametrize("few", [0, 1000])
def test_read_replaced__is_what_was_written_not_what_another_job_has_made_of_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(scan, "MAX_NAMED_FILES", few)
    into = Target("ids", tmp_path.as_uri(), pa.schema([("id", pa.int64())]), (), "")

    def written(*ids: int) -> list[File]:
        file = into.write([pa.table({"id": ids})])
        return delta_log.replace_table(into, [file] if file else [])

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
    into = parquet.target_of(lake, Slice("pairs", RUN, fingerprint="stamp-"))

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
        assert all(name.startswith("stamp-") for name in of_task)


def test_open_or_create__makes_tables_that_both_engines_can_read(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    table = DeltaTable(lake.location("pairs"))
    assert table.metadata().partition_columns == ["run"]
    assert table.metadata().configuration["delta.enableDeletionVectors"] == "false"


@pytest.mark.parametrize("text", ["lake", "./lake", "~/lake"])
def test_lake_uri__refuses_a_relative_path(text: str) -> None:
    with pytest.raises(ArgumentError, match="--lake must be a URI"):
        uris.parse_lake_uri(text)


def test_lake_uri__refuses_a_host_that_was_meant_as_a_folder() -> None:
    with pytest.raises(ArgumentError, match="a file URI has three slashes"):
        uris.parse_lake_uri("file://lake2/tables")


@pytest.mark.parametrize(
    ("uri", "spark", "others"),
    [
        ("file:///data/my%20lake", "file:///data/my lake", "file:///data/my%20lake"),
        ("file://localhost/lake", "file:///lake", "file://localhost/lake"),
        ("s3a://bucket/my%20lake", "s3a://bucket/my lake", "s3://bucket/my%20lake"),
        ("s3://bucket/lake", "s3a://bucket/lake", "s3://bucket/lake"),
        ("hdfs://name:8020/lake", "hdfs://name:8020/lake", "hdfs://name:8020/lake"),
        ("hdfs:///lake", "hdfs:///lake", "hdfs:///lake"),
        ("gs://bucket/s3a%3A//lake", "gs://bucket/s3a://lake", "gs://bucket/s3a%3A//lake"),
        (
            "abfss://box@account.dfs.core.windows.net/lake",
            *["abfss://box@account.dfs.core.windows.net/lake"] * 2,
        ),
    ],
)
def test_uri_for__is_what_each_library_takes(uri: str, spark: str, others: str) -> None:
    assert uris.uri_for("spark", uri) == spark
    assert uris.uri_for("pyarrow", uri) == others
    assert uris.uri_for("deltalake", uri) == others


@pytest.mark.parametrize(
    ("uri", "kind", "path"),
    [
        ("file:///data/my%20lake", "local", "/data/my lake"),
        ("s3a://bucket/my%20lake", "s3", "bucket/my lake"),
        ("s3://bucket/lake", "s3", "bucket/lake"),
        ("gs://bucket/my%20lake", "gcs", "bucket/my lake"),
        ("abfss://box@account.dfs.core.windows.net/my%20lake", "abfs", "box/my lake"),
    ],
)
def test_filesystem_of__knows_the_stores(
    monkeypatch: pytest.MonkeyPatch, uri: str, kind: str, path: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # else pyarrow asks AWS for the region
    filesystem, inner = uris.filesystem_of(uri)
    assert (filesystem.type_name, inner) == (kind, path)


@pytest.mark.parametrize("name", ["mein See ö", "lake [a-z] {1,2} *?"])
def test_read__takes_a_lake_with_blanks_signs_and_letters_of_any_alphabet(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lake = Lake(uris.parse_lake_uri(str(tmp_path / name)), lake.contracts, lake.source)
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    for few in (0, 1000):
        monkeypatch.setattr(scan, "MAX_NAMED_FILES", few)
        assert scan.read(spark, lake, Slice("pairs", RUN)).count() == 1


def test_files_of__refuses_files_made_from_something_else(lake: Lake) -> None:
    delta_log.commit(lake, {Slice("pairs", RUN, fingerprint="old-"): []})
    assert slices.files_of(lake, Slice("pairs", RUN, fingerprint="old-"))
    with pytest.raises(
        TableError, match="pairs of run 2023-06-01 was made from other tables .* run merge_join again"
    ):
        slices.files_of(lake, Slice("pairs", RUN, fingerprint="new-"))
