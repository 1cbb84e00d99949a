"""Large files in sections: several tasks read one, and the tables are those that one task makes."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from epsjoin.errors import DataRefusedError, EpsjoinError
from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark.ingest import divide, doubles, ingest, passes, read
from epsjoin.spark.job.job import Job
from tests.spark.conftest import JobMaker
from tests.spark.ingest.test_settle import COLUMNS, by_hand, seen_items, write_files
from tests.tiny import RUN


@pytest.fixture(autouse=True)
def small_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divide, "MIN_SECTION_BYTES", 500)


def tables(job: Job) -> dict[str, list[Any]]:
    """The rows of all tables of ingest, in no order, without what no two passes share."""
    found = {}
    for table in ("points", "digests", "quarantine", "snapshots"):
        rows = slices.read_slice(job.lake, Slice(table, RUN)).to_pylist()
        found[table] = sorted(map(repr, rows))
    return found


def to_json(data: bytes) -> bytes:
    _, *lines = data.decode().splitlines()
    objects = []
    for id_, x, name in (line.split(",") for line in lines):
        objects.append(f'{{"id": {id_}, "x": {x if x != "x" else chr(34) * 2}, "name": "{name}"}}\n')
    return "".join(objects).encode()


@pytest.mark.parametrize(
    ("format_", "max_doubles"),
    [
        ("csv", 1 << 18),
        ("json", 2),
        pytest.param("csv", 2, marks=pytest.mark.long),
        pytest.param("json", 1 << 18, marks=pytest.mark.long),
    ],
)
def test_ingest__in_sections_writes_the_tables_that_one_task_writes(
    make_job: JobMaker, tmp_path: Path, format_: str, max_doubles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(COLUMNS, path="{date}", interval="month", max_quarantine_share=0.9, format=format_)
    files = write_files(tmp_path, f".{format_}")
    if format_ == "json":
        files = {name: to_json(data) for name, data in files.items()}
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
    for name in list(files)[1:]:
        (tmp_path / name).unlink()
        del files[name]
    monkeypatch.setattr(doubles.make_finder, "__defaults__", (max_doubles,))
    items = seen_items(monkeypatch)
    ingest.run(job)
    first, second = items
    assert len(first) == 4
    assert [file.section.number for file in first] == [0, 1, 2, 3]
    assert 1 < len(second) <= 4
    kept, refused = by_hand(job, files)
    points = slices.read_slice(job.lake, Slice("points", RUN)).to_pylist()
    assert sorted(((row["id"], row["x"], row["name"]) for row in points), key=repr) == kept
    quarantine = slices.read_slice(job.lake, Slice("quarantine", RUN)).to_pylist()
    assert sorted((r["source"], r["line"], r["reason"], r["raw"]) for r in quarantine) == refused
    in_sections = tables(job)
    monkeypatch.setattr(divide, "MIN_SECTION_BYTES", 1 << 20)
    ingest.run(job)
    assert len(items[2]) == 1
    assert tables(job) == in_sections


GOOD = "id,x,name\n" + "".join(f'{i},0.5,"a ""b""\n, c"\n' for i in range(200))


def test_ingest__writes_the_points_of_one_large_file_by_several_tasks(
    make_job: JobMaker, tmp_path: Path
) -> None:
    job = make_job(COLUMNS)
    (tmp_path / "snapshot.csv").write_text(GOOD)
    assert ingest.run(job)["rows_ok"] == 200
    assert len(slices.files_of(job.lake, Slice("points", RUN))) == 4


@pytest.mark.parametrize(
    ("n_records", "n_sections"),
    [
        ((400,), (4,)),
        ((401,), (4,)),
        ((402,), (4,)),
        ((403,), (4,)),
        ((601, 199), (3, 1)),
        ((450, 350), (2, 1)),
    ],
)
def test_divide__has_as_many_sections_as_tasks_are_wanted_whatever_the_sizes(
    make_job: JobMaker, tmp_path: Path, n_records: tuple[int, ...], n_sections: tuple[int, ...]
) -> None:
    """Two for each of two cores; a record has 11 bytes, so that most sizes are no multiples of four."""
    job = make_job(COLUMNS)
    files = []
    for index, n in enumerate(n_records):
        file = tmp_path / f"{index}.csv"
        file.write_text("id,x,name\n" + "".join(f"{i},0.5,ab\n" for i in range(100, 100 + n)))
        files.append(read.SourceFile(index, file.name, file.as_uri(), False))
    found = divide.divide(job.spark, job.lake.source, files)
    assert tuple(sum(each.name == file.name for each in found) for file in files) == n_sections


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_ingest__reads_a_large_file_by_another_delimiter_in_sections(
    make_job: JobMaker, tmp_path: Path, delimiter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By commas some of its quotes are at no end of a field, so that one task would have to read it."""
    job = make_job(COLUMNS, delimiter=delimiter, max_quarantine_share=0.9)
    bad = ["7000,0@5,a", "7003,0,a,b"]
    more = "".join(f'{i},0.5,"a ""b""\n, c"\n' for i in range(9000, 9200))
    text = "".join([GOOD, *(f"{line}\n" for line in bad), more])
    for old, new in ((",", delimiter), ("@", ",")):
        text = text.replace(old, new)
        bad = [line.replace(old, new) for line in bad]
    (tmp_path / "snapshot.csv").write_text(text)
    items = seen_items(monkeypatch)
    assert ingest.run(job)["rows_ok"] == 400
    assert [file.section.number for file in items[0]] == [0, 1, 2, 3]
    names = {row["name"] for row in slices.read_slice(job.lake, Slice("points", RUN)).to_pylist()}
    assert names == {f'a "b"\n{delimiter} c'}
    quarantine = slices.read_slice(job.lake, Slice("quarantine", RUN)).to_pylist()
    assert sorted((row["line"], row["reason"], row["raw"]) for row in quarantine) == [
        (402, "x: not a number: '0,5'", bad[0]),
        (403, "not as many fields as the header has: '4, not 3'", bad[1]),
    ]


def test_ingest__refuses_a_header_by_another_delimiter_and_keeps_it(
    make_job: JobMaker, tmp_path: Path
) -> None:
    job = make_job(COLUMNS, delimiter=";")
    (tmp_path / "snapshot.csv").write_text(GOOD)
    with pytest.raises(DataRefusedError, match="separated by ',', and the delimiter is ';'"):
        ingest.run(job)
    (row,) = slices.read_slice(job.lake, Slice("quarantine", RUN)).to_pylist()
    assert row["raw"] == "id,x,name"
    (tmp_path / "snapshot.csv").write_text("id;x\n1;0\n")
    with pytest.raises(DataRefusedError, match="column 'name' is missing; the file has id, x"):
        ingest.run(job)
    (row,) = slices.read_slice(job.lake, Slice("quarantine", RUN)).to_pylist()
    assert row["raw"] == "id;x"


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_ingest__reads_what_cannot_be_divided_by_one_task(
    make_job: JobMaker, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(COLUMNS, path=f"snapshot.csv{ending}")
    odd = "7000,0,a\r7001,0,b\n" if not ending else "7000,0,a\n7001,0,b\n"
    data = (GOOD + odd + "".join(f"{i},0,{i**9}\n" for i in range(1000, 1400))).encode()
    (tmp_path / f"snapshot.csv{ending}").write_bytes(gzip.compress(data) if ending else data)
    assert (tmp_path / f"snapshot.csv{ending}").stat().st_size > 8 * divide.MIN_SECTION_BYTES
    items = seen_items(monkeypatch)
    assert ingest.run(job)["rows_ok"] == 602
    assert [file.section for file in items[0]] == [None]


@pytest.mark.parametrize(
    ("end", "sentence"),
    [("7000,0", "the file ends within this record"), ('7000,0,"' + "a" * 999, "does not end")],
)
def test_ingest__a_fault_in_a_section_is_told_as_by_one_task(
    make_job: JobMaker, tmp_path: Path, end: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(COLUMNS)
    (tmp_path / "snapshot.csv").write_text(GOOD + end)
    items = seen_items(monkeypatch)
    with pytest.raises(DataRefusedError, match=f"snapshot.csv: line {2 + 2 * 200}: .*{sentence}"):
        ingest.run(job)
    assert items[-1][0].section is None
    (row,) = slices.read_slice(job.lake, Slice("quarantine", RUN)).to_pylist()
    assert sentence in row["reason"]
    assert not list((tmp_path / "lake").rglob("run=*/*points*"))


def test_ingest__refuses_a_file_that_changed_between_two_readings_of_a_section(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(COLUMNS, max_quarantine_share=0.9)
    file = tmp_path / "snapshot.csv"
    file.write_text(GOOD + '199,0.5,"a ""b""\n, c"\n')
    find = passes.doubles_of

    def find_and_change(*found: Any) -> Any:
        now = file.stat()
        file.write_text(file.read_text().replace("\n7,0.5", "\n7,0.6"))
        os.utime(file, ns=(now.st_atime_ns, now.st_mtime_ns + 1))
        return find(*found)

    monkeypatch.setattr(passes, "doubles_of", find_and_change)
    with pytest.raises(EpsjoinError, match="the file changed while it was read: it was larger") as raised:
        ingest.run(job)
    assert raised.value.exit_code == 1, "another try may help"


def test_ingest__reads_a_file_again_by_one_task_if_it_changed_after_it_was_divided(
    make_job: JobMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(COLUMNS)
    file = tmp_path / "snapshot.csv"
    file.write_text(GOOD)
    divided = passes.divide

    def divide_and_change(*given: Any) -> list[read.SourceFile]:
        found = divided(*given)
        file.write_text(file.read_text().replace("\n7,0.5", "\n7,0.6"))
        os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))
        return found

    monkeypatch.setattr(passes, "divide", divide_and_change)
    items = seen_items(monkeypatch)
    assert ingest.run(job)["rows_ok"] == 200
    assert [len(each) for each in items] == [4, 1]
    points = slices.read_slice(job.lake, Slice("points", RUN)).to_pylist()
    assert [row["x"] for row in points if row["id"] == 7] == [0.6]
