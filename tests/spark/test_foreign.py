"""Tables that another program has changed: the next job stops and names the job that makes them right."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from epsjoin import pipeline
from epsjoin.lake import slices, uris
from epsjoin.lake.lake import Slice
from epsjoin.spark.job.job import Job
from tests.lake.test_protocol import demand
from tests.spark.conftest import copy_of, submit
from tests.tiny import RUN

READER = {
    "snapshots": "quality_input",
    "quarantine": "quality_input",
    "guard": "quality_input",
    "digests": "quality_input",
    "value_counts": "quality_input",
    "points": "fit_epsilon",
    "epsilon": "replicate",
    "epsilon_curve": "quality_results",
    "join_plan": "merge_join",
    "replicas": "merge_join",
    "pairs": "cluster",
    "clusters": "outliers",
    "outliers": "quality_results",
    "changes": "quality_results",
    "cluster_flows": "quality_results",
    "cluster_names": "quality_results",
    "cluster_events": "quality_results",
}
"""The first job that reads a table. Nothing is made from ``quality`` and ``job_metrics``; pages show them."""


@pytest.fixture
def job(chain: Job, tmp_path: Path) -> Job:
    return copy_of(chain, tmp_path / "copy")


def folder_of(job: Job, table: str) -> Path:
    return Path(uris.filesystem_of(job.lake.location(table))[1])


def append_a_row(job: Job, table: str) -> None:
    """As another program does: a row more, in a file of its own."""
    stored = slices.read_slice(job.lake, Slice(table, RUN))
    if not stored.num_rows:
        values = {"source": "x", "line": 1, "reason": "none", "raw": "x", "run": RUN}
        values |= {"against": "2023-05-01", "id": 1, "what": "deleted", "moved": False, "before": "{}"}
        values |= {"column_name": "kind", "points": 1}
        values |= {"event": "born", "name": 1, "members": 1, "ends": False}
        stored = pa.Table.from_pylist([values], stored.schema)
    write_deltalake(job.lake.location(table), stored.slice(0, 1), mode="append")


def remove_a_file(job: Job, table: str) -> None:
    """As DELETE does where all rows of a file go: the log no longer names the file, the others stay."""
    file = slices.files_of(job.lake, Slice(table, RUN))[-1]
    action = {"path": file.path, "deletionTimestamp": int(time.time() * 1000), "dataChange": True}
    log = folder_of(job, table) / "_delta_log"
    name = f"{DeltaTable(job.lake.location(table)).version() + 1:020d}.json"
    (log / name).write_text(json.dumps({"remove": action}), encoding="utf-8")


def test_reader__is_named_for_every_table_that_something_is_made_from() -> None:
    of_other_chains = (*pipeline.STAGES["matches"], "candidates")
    assert {*READER, *of_other_chains, "quality", "job_metrics"} == set(pipeline.TABLES)


@pytest.mark.parametrize(
    ("table", "change"),
    [
        *((table, append_a_row) for table in READER),
        *((table, remove_a_file) for table in ("points", "join_plan", "pairs", "clusters", "changes")),
        *(
            pytest.param(table, remove_a_file, marks=pytest.mark.long)
            for table in sorted(READER.keys() - {"points", "join_plan", "pairs", "clusters", "changes"})
        ),
    ],
)
def test_foreign_rows_and_missing_files__of_any_table_stop_the_next_job(
    job: Job, capsys: pytest.CaptureFixture[str], table: str, change: Callable[[Job, str], None]
) -> None:
    reader, writer = READER[table], pipeline.writer_of(table)
    change(job, table)
    code, last = submit(job, reader, capsys)
    assert code == 3, "no other try can help before the writer has run"
    assert last.startswith(f"{reader}: {table} ")
    assert last.endswith((f"run {writer} again", f"run {writer} for it first"))
    assert submit(job, writer, capsys)[0] == 0
    if not reader.startswith("quality"):
        assert submit(job, reader, capsys)[0] == 0, "the advice mends it"


@pytest.mark.parametrize("name", ["fit_epsilon", "merge_join", "outliers", "quality_input"])
def test_a_job_without_its_tables__says_what_to_run_first_and_is_not_tried_again(
    job: Job, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    shutil.rmtree(folder_of(job, "points").parent)
    code, last = submit(job, name, capsys)
    assert code == 3
    assert last.startswith(f"{name}: ")
    assert last.endswith("has no slice of run 2023-06-01; run ingest for it first")


def test_quality__after_a_refused_ingest_is_that_of_what_came_in_before(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    (job.project / "snapshot.csv").write_text("id,x,y\n1,?,2\n2,0.5,0.5\n")
    code, last = submit(job, "ingest", capsys)
    assert code == 3
    assert "keeps what came in before, so that these are stored nowhere; mend the source, or raise" in last
    assert submit(job, "quality_input", capsys)[0] == 0


def sql(job: Job, table: str, statement: str) -> None:
    place = uris.uri_for("spark", job.lake.location(table))
    job.spark.sql(statement.format(f"delta.`{place}`"))


def test_merge_join__of_replicas_without_a_part_says_how_many_rows_are_missing(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    """DELETE by partition columns alone removes whole files and renames none."""
    DeltaTable(job.lake.location("replicas")).delete("part = 1")
    code, last = submit(job, "merge_join", capsys)
    assert code == 3
    assert last.startswith("merge_join: replicas of run 2023-06-01 has ")
    assert last.endswith("another program has changed it; run replicate again")


@pytest.mark.long  # Spark itself deletes the rows; jobs see no more of that than a demand of its log
@pytest.mark.parametrize(
    ("table", "delete"),
    [
        ("points", "DELETE FROM {} WHERE id % 50 = 1"),
        ("replicas", "DELETE FROM {} WHERE id % 50 = 1"),
        ("pairs", "DELETE FROM {} WHERE left_id % 50 = 1"),
        ("clusters", "DELETE FROM {} WHERE id % 50 = 1"),
    ],
)
def test_rows_deleted_by_deletion_vectors__are_never_read(
    job: Job, capsys: pytest.CaptureFixture[str], table: str, delete: str
) -> None:
    """Whoever deletes a person's record must not find it in pairs, clusters and outliers."""
    sql(job, table, "ALTER TABLE {} SET TBLPROPERTIES ('delta.enableDeletionVectors'='true')")
    sql(job, table, delete)
    check_deletion_vectors(job, capsys, table)


def test_demand_of_deletion_vectors__is_refused_by_all_jobs_until_the_table_is_made_anew(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    demand(job.lake.location("points"), 3, ["deletionVectors"])
    check_deletion_vectors(job, capsys, "points")


def check_deletion_vectors(job: Job, capsys: pytest.CaptureFixture[str], table: str) -> None:
    """Readers and the writer refuse a table that has them, until its folder is deleted."""
    writer = pipeline.writer_of(table)
    for name in (READER[table], writer, "quality_results"):
        code, last = submit(job, name, capsys)
        assert code == 3
        assert last.startswith(f"{name}: {table}: file:///")
        assert "asks its readers for deletionVectors" in last
        assert last.endswith(f"delete this folder, then run {writer} again for every run")
    shutil.rmtree(folder_of(job, table))
    assert submit(job, writer, capsys)[0] == 0
    assert submit(job, READER[table], capsys)[0] == 0


@pytest.mark.parametrize("by_spark", [False, pytest.param(True, marks=pytest.mark.long)])
def test_columns_with_other_names_in_the_files__are_refused_by_name(
    job: Job, capsys: pytest.CaptureFixture[str], by_spark: bool
) -> None:
    if by_spark:
        sql(job, "pairs", "ALTER TABLE {} SET TBLPROPERTIES ('delta.columnMapping.mode'='name')")
    else:
        demand(job.lake.location("pairs"), 2, ["columnMapping"])
    code, last = submit(job, "cluster", capsys)
    assert (code, "asks its readers for columnMapping" in last) == (3, True)
