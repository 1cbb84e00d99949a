"""The table changes: which records differ from those of the run before, and how."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from epsjoin.lake import transactions
from epsjoin.lake.lake import Slice
from epsjoin.spark.compare import compare
from epsjoin.spark.compare.changes import to_json
from epsjoin.spark.report.gather import gather
from epsjoin.spark.startup.rehearse import STEPS
from tests import planted
from tests.spark.compare.runs import COLUMNS, GUARD, PARAMS, contents, process, rows, write
from tests.spark.conftest import JobMaker
from tests.tiny import coordinate, key, list_of_coordinates


def test_changes__tell_what_differs_with_the_values_of_both_runs(make_job: JobMaker, tmp_path: Path) -> None:
    first = {1: (0.0, 0.0), 2: (0.5, 0.0), 3: (1.0, -0.0), 4: (9.0, 9.0)}
    second = {1: (0.0, 0.0), 2: (0.5, 0.25), 3: (1.0, 0.0), 5: (8.0, 8.0)}
    write(tmp_path, "2023-01-01", first, {1: "é", 3: "a"})
    write(tmp_path, "2023-02-01", second, {1: "b", 3: "a"})
    job = make_job(COLUMNS, path="{date}.csv", interval="month", params=PARAMS)
    for run in planted.RUNS[:2]:
        process(job, run)
    assert rows(job, planted.RUNS[0], "changes") == []
    found = rows(job, planted.RUNS[1], "changes")
    assert {row["against"] for row in found} == {planted.RUNS[0]}
    seen = [
        (
            row["id"],
            row["what"],
            row["moved"],
            *(row[name] and json.loads(row[name]) for name in ("columns", "before", "now")),
        )
        for row in found
    ]
    assert seen == [
        (1, "updated", False, ["kind"], *({"id": 1, "x": 0.0, "y": 0.0, "kind": kind} for kind in "éb")),
        (2, "updated", True, ["y"], *({"id": 2, "x": 0.5, "y": y, "kind": None} for y in (0.0, 0.25))),
        (4, "deleted", False, None, {"id": 4, "x": 9.0, "y": 9.0, "kind": None}, None),
        (5, "inserted", False, None, None, {"id": 5, "x": 8.0, "y": 8.0, "kind": None}),
    ]
    assert '"kind": "é"' in found[0]["before"], "as people write it"


def test_changes__are_the_same_from_points_where_a_run_has_no_digests(
    make_job: JobMaker, tmp_path: Path
) -> None:
    history = planted.history()
    for run, places in zip(planted.RUNS[:2], (history[2], history[9]), strict=True):
        write(tmp_path, run, places, {5: run})
    job = make_job(COLUMNS, path="{date}.csv", interval="month", guard=GUARD, params=PARAMS)
    for run in planted.RUNS[:2]:
        process(job, run)
    by_digests = contents(job, planted.RUNS[:2])
    with mock.patch.object(compare, "find_changes", wraps=compare.find_changes) as found:
        transactions.commit(job.lake, {Slice("digests", planted.RUNS[0]): []})  # as in a lake of before
        process(job, planted.RUNS[1], ["compare"])
    assert found.call_count == 1
    assert contents(job, planted.RUNS[:2]) == by_digests
    assert len(by_digests["changes"]) > 30


def test_changes__without_a_key_count_equal_records(make_job: JobMaker, tmp_path: Path) -> None:
    now = [4, 4, 3, 3, 3, 2, 2, 0, 5]  # of each of 0 to 4 there were two
    for run, places in zip(planted.RUNS[:2], ([*range(5)] * 2, now), strict=True):
        write(tmp_path, run, {n: (float(place), 0.0) for n, place in enumerate(places)})
    job = make_job([coordinate("x"), coordinate("y")], path="{date}.csv", interval="month", params=PARAMS)
    for run in planted.RUNS[:2]:
        process(job, run, [step for step in STEPS if step != "outliers"])
    found = [
        (row["what"], json.loads(row["now"] or row["before"])["x"])
        for row in rows(job, planted.RUNS[1], "changes")
    ]
    came, went = [("inserted", 3.0), ("inserted", 5.0)], [("deleted", x) for x in (0.0, 1.0, 1.0)]
    assert sorted(found) == sorted([*came, *went])


def test_changes__are_written_as_texts_a_few_rows_at_a_time() -> None:
    """A row of Python's own takes ten times what it takes in a table, and all may have changed."""
    table = pa.table({f"x{i}": np.arange(20_000.0) + i for i in range(8)})
    tracemalloc.start()
    texts = to_json(table, ["x7", "x0"])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert json.loads(texts[12_345].as_py()) == {"x7": 12_352.0, "x0": 12_345.0}
    assert len(texts) == 20_000
    assert most < 100 * len(texts)


def test_compare__with_a_run_in_which_a_column_had_another_type_reads_its_values_as_today(
    make_job: JobMaker, tmp_path: Path
) -> None:
    """What becomes the same text is no change; the run before need not be made again."""
    runs = planted.RUNS[:2]
    values = {runs[0]: range(40), runs[1]: ["0", "1", "two", *map(str, range(3, 40))]}
    for run, column in values.items():
        lines = [f"{i},{i / 7},{i % 3},{value}" for i, value in enumerate(column)]
        (tmp_path / f"{run}.csv").write_text("\n".join(["id,x,y,n", *lines]) + "\n")
    for run, kind in zip(runs, ("integer", "string"), strict=True):
        columns = [key(), coordinate("x"), coordinate("y"), {"name": "n", "logicalType": kind}]
        job = make_job(columns, path=f"{tmp_path}/{{date}}.csv", interval="month", guard={"updated": None})
        process(replace(job, params=replace(job.params, **PARAMS)), run)
    (change,) = rows(job, runs[1], "changes")
    assert (change["id"], change["what"], change["columns"]) == (2, "updated", '["n"]')
    assert (json.loads(change["before"])["n"], json.loads(change["now"])["n"]) == ("2", "two")


def test_compare__tells_the_vector_of_a_record_only_where_it_has_moved(
    make_job: JobMaker, tmp_path: Path
) -> None:
    runs = planted.RUNS[:2]
    vectors = np.random.default_rng(0).standard_normal((40, 3))
    for run, words in zip(runs, ("seen", "seen again"), strict=True):
        columns = {"id": range(40), "v": pa.array(vectors.tolist()), "note": [words] * 40}
        pq.write_table(pa.table(columns), tmp_path / f"{run}.parquet")
        vectors[[3, 30]] += 1.0
    columns = [key(), list_of_coordinates("v", 3), {"name": "note", "logicalType": "string"}]
    files = {"path": f"{tmp_path}/{{date}}.parquet", "format": "parquet"}
    job = make_job(columns, **files, interval="month", guard={"updated": None}, params=PARAMS)
    for run in runs:
        process(job, run)
    found = rows(job, runs[1], "changes")
    assert [row["id"] for row in found] == list(range(40))
    for row in found:
        was, now = json.loads(row["before"]), json.loads(row["now"])
        assert (was["id"], was["note"], now["note"]) == (row["id"], "seen", "seen again")
        assert row["moved"] == (row["id"] in (3, 30)) == ("v_1" in now) == ("v_3" in was)
    assert len(gather(replace(job, run=runs[1])).comparison.moves) == 2
