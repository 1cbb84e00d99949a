"""Staged rows of one key together, and what a task holds while it writes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from epsjoin.lake import parquet
from epsjoin.lake.lake import Slice
from epsjoin.spark.ingest import read as ingest_read
from epsjoin.spark.ingest import settle
from epsjoin.spark.tasks import TaskReport
from tests.spark.conftest import JobMaker
from tests.tiny import RUN, coordinate, key


def test_separate_refused__finds_two_keys_with_one_id(make_job: JobMaker) -> None:
    """Staged by hand: nobody can wait for two keys with one 64-bit hash."""
    job = make_job([key("a", "string", 1), coordinate("x")])
    id_ = 2**60 + 1  # no float64 has this value
    row = {"_slot": id_, "_file": 0, "_source": "s", "_raw": "", "_line": 2}
    good = {**row, "_id": id_, "_digest": b"equal", "x": 0.0}
    refused = {**row, "_slot": id_ + 1, "_line": 4, "_reason": "x: missing"}
    staged = [{**good, "a": "hot"}, {**good, "_line": 3, "a": "cold"}, refused]
    report = TaskReport()
    schema = ingest_read.staged_schema(job.lake)
    settle.separate_refused(job.lake.source, pa.Table.from_pylist(staged, schema), report)
    assert report.refused == [f"two keys have the same id {id_}: [['hot'], ['cold']]; use another key"]


def test_writer__holds_no_more_than_a_file_of_points_and_a_batch_of_refused_rows(
    make_job: JobMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job([key(), coordinate("x")])
    monkeypatch.setattr(settle, "FILE_BYTES", 250)
    monkeypatch.setattr(settle, "BATCH_CHARACTERS", 25)
    schema = ingest_read.staged_schema(job.lake)
    row = {"_file": 0, "_source": "s"}
    staged = []
    for i in range(40):
        place = {"_slot": i, "_line": i, "_raw": f"{i:010}"}
        is_bad = i % 4 == 0
        staged.append(
            {
                **row,
                **place,
                **({"_reason": "x: missing"} if is_bad else {"_id": i, "_digest": b"", "x": 0.5}),
            }
        )
    batches = [pa.RecordBatch.from_pylist(staged[i : i + 4], schema) for i in range(0, 40, 4)]
    into = [parquet.target_of(job.lake, Slice(name, RUN)) for name in ("points", "quarantine")]
    (said,) = settle.make_writer(job.lake.source, *into)(iter(batches))
    report = TaskReport.from_json(said["report"][0].as_py())
    for table, n_rows, least in (("points", 30, 3), ("quarantine", 10, 3)):
        sizes = [file.rows for file in report.files if file.table == table]
        assert sum(sizes) == n_rows
        assert len(sizes) >= least
