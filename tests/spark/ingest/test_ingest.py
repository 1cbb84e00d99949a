"""Ingest: nothing is lost, nothing is guessed, a refused snapshot leaves the points as they were."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin.errors import DataRefusedError, TableError
from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark.ingest import ingest
from epsjoin.spark.ingest.facts import KindCount, facts_of
from epsjoin.spark.job.job import Job
from epsjoin.spark.report.intake import count_reasons
from epsjoin.spark.rows.stored import StoredSlice
from epsjoin.spark.tasks.reports import TaskReport
from tests.spark.conftest import JobMaker
from tests.spark.ingest.ingested import GOOD, XY, rows
from tests.tiny import RUN, coordinate, key


def by_line(job: Job) -> dict[int, str]:
    return {row["line"]: row["reason"] for row in rows(job, "quarantine")}


def test_ingest__keeps_every_value_as_it_came(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job(XY)
    (tmp_path / "snapshot.csv").write_text(
        'id,extra,y,x,name\n7,?,1e-3,0.1,"a, ""b""\nc"\n-8,?,-0.0,9007199254740993,\n'
    )
    counters = ingest.run(job)
    points = sorted(rows(job, "points"), key=lambda row: row["id"])
    assert [(p["id"], p["x"], p["y"], p["name"]) for p in points] == [
        (-8, 9007199254740992.0, 0.0, None),
        (7, 0.1, 0.001, 'a, "b"\nc'),
    ]
    assert [np.frombuffer(p["point"], "<f8").tolist() for p in points] == [
        [9007199254740992.0, -0.0],
        [0.1, 0.001],
    ]
    assert counters["rows_read"] == counters["rows_ok"] == 2
    assert json.loads(rows(job, "snapshots")[0]["columns"]) == ["id", "extra", "y", "x", "name"]


def test_ingest__quarantines_each_bad_row_with_line_reason_and_raw_record(
    make_job: JobMaker, tmp_path: Path
) -> None:
    job = make_job(XY, max_quarantine_share=0.9)
    bad = (
        b"id,x,y,name\r\n1,0,0,ok\r\n2,,0,a\r\n3,zero,0,a\r\n"
        b"4,nan,0,a\r\n5,0,1e999,a\r\n6,0,0\r\n7,0,0,\xff\xfe\r\n,0,0,a\r\n9.5,0,0,a\r\n10,1_0,0,a\r\n"
    )
    (tmp_path / "snapshot.csv").write_bytes(bad)
    counters = ingest.run(job)
    assert by_line(job) == {
        3: "x: missing",
        4: "x: not a number: 'zero'",
        5: "x: not finite: 'nan'",
        6: "y: not finite: '1e999'",
        7: "not as many fields as the header has: '3, not 4'",
        8: "not UTF-8",
        9: "id: missing",
        10: "id: not a 64-bit integer: '9.5'",
        11: "x: not a number: '1_0'",
    }
    raw = {row["line"]: row["raw"] for row in rows(job, "quarantine")}
    assert raw[4] == "3,zero,0,a"
    assert raw[8] == "7,0,0,\\xff\\xfe"
    assert (counters["rows_read"], counters["rows_ok"], counters["rows_quarantined"]) == (10, 1, 9)


def test_ingest__renames_and_rounds_and_names_what_is_bad_as_the_file_does(
    make_job: JobMaker, tmp_path: Path
) -> None:
    own = [{"property": "role", "value": "coordinate"}, {"property": "decimals", "value": 2}]
    x = {"name": "x", "physicalName": "X (m)", "logicalType": "number", "customProperties": own}
    job = make_job([{**key("number"), "physicalName": "no."}, x], max_quarantine_share=0.9)
    lines = ["1,0.125", "2,7.004999", "3,wide", ",1", "2,7.0", "-1,1"]
    (tmp_path / "snapshot.csv").write_text("no.,X (m)\n" + "\n".join(lines) + "\n")
    ingest.run(job)
    points = sorted(rows(job, "points"), key=lambda row: row["id"])
    assert [(point["number"], point["x"]) for point in points] == [(1, 0.12), (2, 7.0)]
    assert [np.frombuffer(point["point"], "<f8").tolist() for point in points] == [[0.12], [7.0]]
    assert by_line(job) == {
        4: "X (m): not a number: 'wide'",
        5: "no.: missing",
        6: "key: the same row again",
        7: "no.: -1 is kept for noise: '-1'",
    }
    assert json.loads(rows(job, "snapshots")[0]["columns"]) == ["no.", "X (m)"]
    (tmp_path / "snapshot.csv").write_text("number,x\n1,0.125\n")
    with pytest.raises(DataRefusedError, match=r"columns 'no\.', 'X \(m\)' are missing; the file has"):
        ingest.run(job)


def test_ingest__keeps_the_first_of_equal_rows_and_none_of_a_key_with_different_rows(
    make_job: JobMaker, tmp_path: Path
) -> None:
    job = make_job(XY, max_quarantine_share=0.9)
    lines = ["1,0,0,a", "2,0,0,b", "1,0,0,a", "3,0,0,c", "2,0,0,changed", "2,0,0,b", "1,0.0,0,a"]
    (tmp_path / "snapshot.csv").write_text("id,x,y,name\n" + "\n".join(lines) + "\n")
    ingest.run(job)
    assert sorted(row["id"] for row in rows(job, "points")) == [1, 3]
    assert by_line(job) == {
        4: "key: the same row again",
        8: "key: the same row again",
        3: "key: rows with one key differ: '3 rows'",
        6: "key: rows with one key differ: '3 rows'",
        7: "key: rows with one key differ: '3 rows'",
    }


def test_ingest__tells_composite_keys_apart(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job([key("a", "string", 1), key("b", "string", 2), coordinate("x")])
    (tmp_path / "snapshot.csv").write_text("a,b,x\n1,11,0\n11,1,0\n")
    ingest.run(job)
    points = rows(job, "points")
    assert sorted((row["a"], row["b"]) for row in points) == [("1", "11"), ("11", "1")]
    assert points[0]["id"] != points[1]["id"]


def test_ingest__a_source_without_key_keeps_equal_records_apart(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job([coordinate("x")])
    (tmp_path / "snapshot.csv").write_text("x\n1\n1\n2\n1\n")
    ingest.run(job)
    assert [row["id"] for row in sorted(rows(job, "points"), key=lambda row: row["id"])] == [0, 1, 2, 3]


def test_ingest__reads_byte_order_mark_and_gzip(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job(XY, path="snapshot.csv.gz")
    (tmp_path / "snapshot.csv.gz").write_bytes(
        gzip.compress(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    )
    assert ingest.run(job)["rows_ok"] == 3


def test_ingest__reads_json_lines(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job(XY, path="snapshot.jsonl", format="json", max_quarantine_share=0.9)
    lines = [
        '{"id": 1, "x": 0, "y": 0.5, "name": "ü"}',
        '{"id": 2, "x": "0", "y": 0}',
        "[1]",
        '{"id": 3, "x": NaN, "y": 0}',
        "{",
    ]
    (tmp_path / "snapshot.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ingest.run(job)
    assert [(row["id"], row["name"]) for row in rows(job, "points")] == [(1, "ü")]
    assert sorted(by_line(job)) == [2, 3, 4, 5]


def test_ingest__reads_parquet(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job(XY, path="snapshot.parquet", format="parquet", max_quarantine_share=0.9)
    table = pa.table(
        {"id": [1, 2, 3], "x": [0.0, None, 2.0], "y": [0.0, 0.0, float("inf")], "name": ["a", "b", "c"]}
    )
    pq.write_table(table, tmp_path / "snapshot.parquet")
    ingest.run(job)
    assert [row["id"] for row in rows(job, "points")] == [1]
    assert by_line(job) == {2: "x: missing", 3: "y: not finite: 'inf'"}
    assert len(rows(job, "snapshots")[0]["sha256"]) == 64


def test_ingest__no_json_record_can_break_it(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job(
        [key("name", "string"), coordinate("x")], path="a.jsonl", format="json", max_quarantine_share=0.9
    )
    lines = [
        '{"name": "a", "x": 0}',
        f'{{"name": "b", "x": 1{"0" * 400}}}',
        f'{{"name": "c", "x": {"1" * 5000}}}',
        '{"name": "\\ud800", "x": 0}',
        '{"name": "e", "x": 0, "\\ud800": "\\ud800"}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    counters = ingest.run(job)
    assert (counters["rows_read"], counters["rows_ok"], counters["rows_quarantined"]) == (5, 2, 3)
    assert by_line(job) == {
        2: f"x: out of range: '1{'0' * 79}'",
        3: "not JSON: 'a number has too many digits'",
        4: r"name: not UTF-8: '\ud800'",
    }
    assert {row["line"]: row["raw"] for row in rows(job, "quarantine")}[4] == lines[3]
    assert json.loads(rows(job, "snapshots")[0]["columns"]) == ["name", "x", r"\ud800"]


def test_ingest__no_parquet_row_can_break_it(make_job: JobMaker, tmp_path: Path) -> None:
    columns = [*XY, {"name": "t", "logicalType": "timestamp"}]
    job = make_job(columns, path="a.parquet", format="parquet", max_quarantine_share=0.9)
    far = pa.array([2**62, 0, 2**62], pa.timestamp("us"))
    names = pa.array([b"a", b"\xff\xfe", b"c"], pa.binary()).view(pa.string())
    content = {"id": [1, 2, 3], "x": [0.0] * 3, "y": [0.0] * 3, "name": names, "t": far[::-1].take([1, 1, 0])}
    pq.write_table(pa.table({**content, "unnamed": far, "bytes": names}), tmp_path / "a.parquet")
    counters = ingest.run(job)
    assert (counters["rows_read"], counters["rows_ok"], counters["rows_quarantined"]) == (3, 1, 2)
    assert {line: reason[:18] for line, reason in by_line(job).items()} == {
        2: "name: not UTF-8: '",
        3: "t: out of range: '",
    }
    assert json.loads(rows(job, "snapshots")[0]["columns"]) == [*content, "unnamed", "bytes"]


def test_ingest__takes_times_of_nanoseconds_in_tasks_that_have_no_pandas(
    make_job: JobMaker, tmp_path: Path
) -> None:
    columns = [*XY, {"name": "t", "logicalType": "timestamp"}]
    job = make_job(columns, path="a.parquet", format="parquet")
    times = pa.array([1_700_000_000_123_456_789, 999, None], pa.timestamp("ns"))
    content = {"id": [1, 2, 3], "x": [0.0] * 3, "y": [0.0] * 3, "name": ["a"] * 3, "t": times}
    pq.write_table(pa.table(content), tmp_path / "a.parquet")
    assert ingest.run(job)["rows_ok"] == 3
    assert {row["id"]: row["t"] and row["t"].isoformat() for row in rows(job, "points")} == {
        1: "2023-11-14T22:13:20.123456+00:00",
        2: "1970-01-01T00:00:00+00:00",
        3: None,
    }


def test_ingest__counts_reasons_without_their_values_as_the_report_does(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job([key(), coordinate("lat", "latitude"), coordinate("lon", "longitude")])
    bad = [(f"{i}", f"{100 + i}", "0") for i in range(40)]
    bad += [(f"{i}", "", "0") for i in range(100, 130)]
    bad += [(f"{i}", "0", text) for i, text in enumerate(["'", "it's: 'so'", '"a "" b"'], 200)]
    bad += [(f"{300 + i // (3 + i % 2)}", f"{i}", "0") for i in range(20)]
    content = "id,lat,lon\n1,0,0,0\n2,0\n" + "".join(",".join(row) + "\n" for row in bad)
    (tmp_path / "snapshot.csv").write_text(content)
    seen: list[TaskReport] = []
    read = TaskReport.of_batches

    def read_and_see(batches: Any) -> list[TaskReport]:
        seen.extend(read(batches))
        return seen

    monkeypatch.setattr(TaskReport, "of_batches", read_and_see)
    with pytest.raises(DataRefusedError, match="most often: lat: above 90[.] Every"):
        ingest.run(job)
    kinds: dict[str, int] = {}
    for report in seen:
        mine = [fact for fact in facts_of([report]) if isinstance(fact, KindCount)]
        assert len(mine) <= 5
        for fact in mine:
            kinds[fact.kind] = kinds.get(fact.kind, 0) + fact.rows
    assert kinds.pop("key: rows with one key differ") > 0
    assert kinds == {
        "lat: above 90": 40,
        "lat: missing": 30,
        "lon: not a number": 3,
        "not as many fields as the header has": 2,
    }
    shown = count_reasons(StoredSlice.of(job, Slice("quarantine", job.run)))
    assert {kind: count for kind, count in shown.items() if not kind.startswith("key")} == kinds
    assert next(iter(shown)) == "lat: above 90"


def test_ingest__takes_a_snapshot_with_just_as_many_bad_rows_as_are_allowed(
    make_job: JobMaker, tmp_path: Path
) -> None:
    """0.29 times 100 is less than 29 in float64."""
    job = make_job(XY, max_quarantine_share=0.29)
    lines = [f"{i},{'?' if i < 29 else i},0,a\n" for i in range(100)]
    (tmp_path / "snapshot.csv").write_text("id,x,y,name\n" + "".join(lines))
    assert ingest.run(job)["rows_quarantined"] == 29


def test_ingest__0_and_minus_0_are_one_value_of_a_key(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job(XY, max_quarantine_share=0.5)
    (tmp_path / "snapshot.csv").write_text("id,x,y,name\n1,-0.0,0,a\n1,0,0,a\n")
    ingest.run(job)
    assert [str(row["x"]) for row in rows(job, "points")] == ["-0.0"]
    assert by_line(job) == {3: "key: the same row again"}


def test_ingest__again_gives_the_same_tables(make_job: JobMaker, tmp_path: Path) -> None:
    job = make_job(XY)
    (tmp_path / "snapshot.csv").write_text(GOOD)
    ingest.run(job)
    first = sorted(rows(job, "points"), key=lambda row: row["id"])
    (tmp_path / "snapshot.csv").write_text("id,x,y,name\n3,4.5,5.5,c\n1,0.5,1.5,a\n2,2.5,3.5,b\n")
    ingest.run(job)
    assert sorted(rows(job, "points"), key=lambda row: row["id"]) == first


def test_ingest__a_missing_slice_is_an_error_and_names_the_job(make_job: JobMaker) -> None:
    with pytest.raises(TableError, match="points has no slice of run 2023-06-01; run ingest for it first"):
        slices.count_rows(make_job(XY).lake, Slice("points", RUN))
