"""Doubles: which are kept, what a task holds while it writes, and that nothing is lost on the way."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest

from epsjoin.errors import EpsjoinError, TableError
from epsjoin.lake import parquet, slices, targets
from epsjoin.lake.lake import Slice
from epsjoin.source.records import open_records
from epsjoin.spark.ingest import doubles, ingest, passes, read, settle, writer
from epsjoin.spark.ingest.facts import ManyDoubles, facts_of
from epsjoin.spark.ingest.read import SourceFile
from epsjoin.spark.job.job import Job
from epsjoin.spark.tasks.reports import TaskReport
from tests.spark.conftest import JobMaker
from tests.tiny import RUN, coordinate, key


def test_separate_refused__finds_two_keys_with_one_id(make_job: JobMaker) -> None:
    """Staged by hand: nobody can wait for two keys with one 64-bit hash."""
    job = make_job([key("a", "string", 1), coordinate("x")])
    id_ = 2**60 + 1  # no float64 has this value
    row = {"_slot": id_, "_id": id_, "_file": 0, "_source": "s", "_raw": "", "x": 0.0}
    staged = [{**row, "_line": 2, "a": "hot"}, {**row, "_line": 3, "a": "cold"}]
    report = TaskReport()
    schema = settle.staged_schema(job.lake)
    settle.separate_refused(job.lake.source, pa.Table.from_pylist(staged, schema), report)
    assert report.refused == [f"two keys have the same id {id_}: [['hot'], ['cold']]; use another key"]


def test_settled_points__lie_in_files_behind_those_of_the_readers(make_job: JobMaker, tmp_path: Path) -> None:
    """By their order the guard tells that of the records: it must not hang on which process wrote first."""
    folder = tmp_path / "snapshot"
    folder.mkdir()
    for name, rows in (("a", "1,0.5\n2,0.5\n1,0.5\n"), ("b", "3,0.5\n"), ("c", "4,0.5\n")):
        (folder / f"{name}.csv").write_text(f"id,x\n{rows}")
    job = make_job([key(), coordinate("x")], path="snapshot", max_quarantine_share=0.5)
    ingest.run(job)
    columns, location = job.lake.schema("points"), job.lake.location("points")
    in_order = [
        parquet.read_file(location, file, columns, ["id"])["id"].to_pylist()
        for file in slices.files_of(job.lake, Slice("points", RUN))
    ]
    assert in_order == [[2], [3], [4], [1]], "what is read again keeps its place"


def test_separate_refused__takes_rows_for_the_same_by_their_typed_values(make_job: JobMaker) -> None:
    job = make_job([key(), coordinate("x"), {"name": "name", "logicalType": "string"}])
    rows = [
        *((1, 0.0, "a"), (1, -0.0, "a"), (1, 0.0, "a")),
        *((2, 0.0, None), (2, 0.0, "")),
        *((3, 0.0, "a"), (3, 0.0, "a"), (3, 5e-324, "a")),
        *((4, 0.0, None), (5, 0.0, None)),
        *((6, 1.0, None), (6, 1.0, None)),
    ]
    own = {"_file": 0, "_source": "s", "_raw": ""}
    staged = [
        {**own, "_slot": i, "_id": i, "_line": line, "id": i, "x": x, "name": name}
        for line, (i, x, name) in enumerate(rows)
    ]
    table = pa.Table.from_pylist(staged, settle.staged_schema(job.lake))
    good, bad = settle.separate_refused(job.lake.source, table, TaskReport())
    assert good["_line"].to_pylist() == [0, 8, 9, 10]
    same, differ = "key: the same row again", "key: rows with one key differ: '{} rows'"
    assert [(row["line"], row["reason"]) for row in bad] == [
        *((1, same), (2, same)),
        *((line, differ.format(2)) for line in (3, 4)),
        *((line, differ.format(3)) for line in (5, 6, 7)),
        (11, same),
    ]
    empty, none = settle.separate_refused(job.lake.source, table.slice(0, 0), TaskReport())
    assert (empty.num_rows, none) == (0, [])


def test_writer__holds_no_more_than_a_file_of_points_and_a_batch_of_refused_rows(
    make_job: JobMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job([key(), coordinate("x")])
    monkeypatch.setattr(writer, "FILE_BYTES", 250)
    monkeypatch.setattr(writer, "BATCH_CHARACTERS", 25)
    tables = (targets.target_of(job.lake, Slice(name, RUN)) for name in writer.Targets._fields)
    into = writer.Writer(job.lake.source, writer.Targets(*tables))
    for i in range(0, 40, 4):
        ids = pa.array(range(i, i + 3))
        into.keep("s", ids, pa.table({"id": ids, "x": [0.5] * 3}))
        into.refuse([{"source": "s", "line": i, "reason": "x: missing", "raw": f"{i:010}"}])
    report = into.close()
    for table, n_rows, least in (("points", 30, 3), ("digests", 30, 3), ("quarantine", 10, 3)):
        sizes = [file.rows for file in report.files if file.table == table]
        assert sum(sizes) == n_rows
        assert len(sizes) >= least


COLUMNS = [key(), coordinate("x"), {"name": "name", "logicalType": "string"}]


def write_files(folder: Path, ending: str, n: int = 300) -> dict[str, bytes]:
    """Three files: keys that come again as equal rows or as others, in one file and in several; odd rows."""
    (folder / "2023-06-01").mkdir()
    random = np.random.default_rng(5)
    files = {}
    for name in "abc":
        lines = ["id,x,name"]
        for _ in range(n):
            number = int(random.integers(0, 2 * n))
            odd = random.integers(0, 20)
            lines.append(f"{number},{number % 7 if odd else 'x'},{'a' if odd % 5 else 'b'}")
        data = "\n".join([*lines, ""]).encode()
        files[f"2023-06-01/{name}{ending}"] = gzip.compress(data) if ending.endswith("gz") else data
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return files


def by_hand(job: Job, files: dict[str, bytes]) -> tuple[list[Any], list[Any]]:
    """Points and quarantine as the words say: the first of equal rows is kept, none of rows that differ."""
    refused: list[Any] = []
    by_id: dict[int, list[Any]] = {}
    for name in sorted(files):
        for record in open_records(io.BytesIO(files[name]), name, job.lake.source):
            row = (name, record.line)
            if record.values is None:
                refused.append((*row, record.reason, record.raw))
            else:
                by_id.setdefault(record.values[0], []).append((record.values, row, record.raw))
    kept = []
    for members in by_id.values():
        if len({values for values, _, _ in members}) > 1:
            reason = f"key: rows with one key differ: '{len(members)} rows'"
            refused += [(*row, reason, raw) for _, row, raw in members]
            continue
        kept.append(members[0][0])
        refused += [(*row, "key: the same row again", raw) for _, row, raw in members[1:]]
    return sorted(kept, key=repr), sorted(refused)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize(
    ("max_doubles", "has_one_machine", "max_given"),
    [(1 << 18, True, 2), (2, True, 3), (2, False, 3)],
)
def test_ingest__keeps_one_of_a_key_or_none_wherever_its_rows_are(
    make_job: JobMaker,
    tmp_path: Path,
    ending: str,
    max_doubles: int,
    has_one_machine: bool,
    max_given: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The driver compares the ids of few files on one machine; else tasks do, after a shuffle."""
    monkeypatch.setattr(passes, "has_one_machine", lambda _: has_one_machine)
    monkeypatch.setattr(passes, "MAX_GIVEN", max_given)
    lazy_tasks = Mock(wraps=passes.tasks.lazy_tasks)
    monkeypatch.setattr(passes.tasks, "lazy_tasks", lazy_tasks)
    job = make_job(COLUMNS, path="{date}", interval="month", max_quarantine_share=0.9)
    files = write_files(tmp_path, ending)
    monkeypatch.setattr(doubles.make_finder, "__defaults__", (max_doubles,))
    ingest.run(job)
    is_by_driver = has_one_machine and len(files) <= max_given
    assert lazy_tasks.call_count == (1 if is_by_driver else 2), (
        "the doubles alone are shuffled, or the ids, too"
    )
    kept, refused = by_hand(job, files)
    assert len(kept) > 100
    assert {reason[:12] for _, _, reason, _ in refused} == {"key: rows wi", "key: the sam", "x: not a num"}
    points = slices.read_slice(job.lake, Slice("points", RUN)).to_pylist()
    digests = slices.read_slice(job.lake, Slice("digests", RUN))
    assert sorted(digests["id"].to_pylist()) == sorted(row["id"] for row in points)
    assert sorted(((row["id"], row["x"], row["name"]) for row in points), key=repr) == kept
    quarantine = slices.read_slice(job.lake, Slice("quarantine", RUN)).to_pylist()
    assert sorted((r["source"], r["line"], r["reason"], r["raw"]) for r in quarantine) == refused


@pytest.mark.parametrize("most", [6, 0])
def test_finder__passes_on_no_more_doubles_than_the_driver_can_hold(most: int) -> None:
    ids = np.array([5, 6, 5, 7, 6, 8])
    places = np.array([read.places_of(i % 3, np.array(i)) for i in range(6)])
    streams = read._to_streams(np.stack([ids, places]))
    found = list(doubles.make_finder(most)([streams]))
    reports = [
        TaskReport.from_json(text) for each in found for text in each["report"].drop_null().to_pylist()
    ]
    numbers = doubles.doubles_of(found, reports)
    assert reports[-1].counters["ids"] == 6
    shown = {file: None if mine is None else mine.tolist() for file, mine in numbers.items()}
    assert shown == ({0: [0], 1: [1, 4], 2: [2]} if most else {0: None, 1: None, 2: None})
    many = [fact.file for fact in facts_of(reports) if isinstance(fact, ManyDoubles)]
    assert sorted(many) == ([] if most else [0, 1, 2])


def test_ingest__refuses_a_file_that_changed_before_it_was_read_again(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(COLUMNS, max_quarantine_share=0.9)
    (tmp_path / "snapshot.csv").write_text("id,x,name\n1,0,a\n1,0,a\n2,0,b\n")
    find = passes.doubles_of

    def find_and_change(*found: Any) -> Any:
        (tmp_path / "snapshot.csv").write_text("id,x,name\n1,0,a\n1,0,a\n3,0,b\n")
        return find(*found)

    monkeypatch.setattr(passes, "doubles_of", find_and_change)
    told = "snapshot.csv: the file changed while it was read: it had"
    with pytest.raises(EpsjoinError, match=told) as raised:
        ingest.run(job)
    assert raised.value.exit_code == 1, "another try may help"


def seen_items(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What tasks read, pass by pass."""
    items: list[Any] = []

    def watch(name: str) -> None:
        start = getattr(passes.tasks, name)

        def seen(spark: Any, of_tasks: Any, *others: Any) -> Any:
            first = of_tasks[0]  # a file, one with the numbers of its doubles, or a range to be surveyed
            if isinstance(first[0] if isinstance(first, tuple) else first, SourceFile):
                items.append(of_tasks)
            return start(spark, of_tasks, *others)

        monkeypatch.setattr(passes.tasks, name, seen)

    watch("run_tasks")
    watch("lazy_tasks")
    return items


def test_ingest__reads_only_files_with_doubles_again(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "2023-06-01").mkdir()
    for name, numbers in (("a", (1, 2)), ("b", (3, 4)), ("c", (2, 5))):
        lines = [f"{number},0,same" for number in numbers]
        (tmp_path / "2023-06-01" / f"{name}.csv").write_text("\n".join(["id,x,name", *lines, ""]))
    job = make_job(COLUMNS, path="{date}", interval="month", max_quarantine_share=0.9)
    items = seen_items(monkeypatch)
    assert ingest.run(job)["rows_ok"] == 5
    assert [(file.name, numbers.tolist()) for file, numbers in items[1]] == [
        ("2023-06-01/a.csv", [1]),
        ("2023-06-01/c.csv", [0]),
    ]


def test_ingest__notices_an_id_that_was_lost_on_the_way(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(COLUMNS)
    (tmp_path / "snapshot.csv").write_text("id,x,name\n1,0,a\n2,0,b\n")
    monkeypatch.setattr(passes, "add_counters", lambda _: {"ids": 1.0})
    with pytest.raises(TableError, match="2 points were written, but 1 ids compared"):
        ingest.run(job)
