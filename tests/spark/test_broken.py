"""A broken machine: one clear sentence, exit code 1, and the tables as they were."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from epsjoin import pipeline
from epsjoin.errors import TableError
from epsjoin.lake import parquet, slices, targets, transactions, uris
from epsjoin.lake.lake import Slice
from epsjoin.spark.job.job import Job
from tests.spark.conftest import copy_of, submit
from tests.tiny import RUN


@pytest.fixture
def job(chain: Job, tmp_path: Path) -> Job:
    """A copy of it all that a test may break."""
    return copy_of(chain, tmp_path / "copy")


def versions(job: Job) -> dict[str, int]:
    folder = Path(uris.filesystem_of(job.lake.location("points"))[1]).parent
    return {log.parent.name: DeltaTable(log.parent).version() for log in folder.glob("*/_delta_log")}


def change_in_the_middle(file: Path) -> None:
    """One bit of a number, as a bad disk or memory does: the file can be read all the same."""
    columns = [pq.read_metadata(file).row_group(0).column(i) for i in range(2)]
    largest = max(columns, key=lambda column: column.total_compressed_size)
    content = bytearray(file.read_bytes())
    content[largest.data_page_offset + largest.total_compressed_size // 2] ^= 1
    file.write_bytes(content)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def overwrite(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:100] + bytes(len(content) - 200) + content[-100:])


def rename_the_ids(file: Path) -> None:
    """One bit of a footer, which has no checksum: Spark's own scan would take the column for missing."""
    content = file.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    at = content.index(b"\x02id", footer) + 1
    file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])


def path_of(job: Job, table: str) -> Path:
    """The largest file of a table's slice."""
    file = max(slices.files_of(job.lake, Slice(table, RUN)), key=lambda file: file.size)
    return Path(uris.filesystem_of(job.lake.location(table))[1]) / file.path


@pytest.mark.parametrize(
    ("table", "reader", "break_"),
    [
        ("points", "fit_epsilon", change_in_the_middle),  # by the threads of the driver
        ("points", "fit_epsilon", cut_off),
        ("points", "fit_epsilon", Path.unlink),
        ("replicas", "merge_join", change_in_the_middle),  # by the tasks
        ("pairs", "cluster", overwrite),
        ("points", "quality_input", change_in_the_middle),  # by the gates, on the driver
        ("replicas", "quality_results", change_in_the_middle),
    ],
)
def test_a_broken_file__is_named_with_the_job_that_makes_it_again(
    job: Job, capsys: pytest.CaptureFixture[str], table: str, reader: str, break_: Callable[[Path], None]
) -> None:
    path = path_of(job, table)
    break_(path)
    before = versions(job)
    code, last = submit(job, reader, capsys)
    assert code == 1
    assert last.startswith(f"{reader}: {table}: file:/")
    assert path.name in last
    assert last.endswith(f"run {pipeline.writer_of(table)} again")
    assert versions(job) == before


@pytest.mark.parametrize("break_", [change_in_the_middle, cut_off, overwrite, Path.unlink])
@pytest.mark.parametrize("table", ["points", "replicas", "pairs"])
def test_a_broken_file__is_noticed_by_every_reader(
    job: Job, table: str, break_: Callable[[Path], None]
) -> None:
    path = path_of(job, table)
    file = next(
        file for file in slices.files_of(job.lake, Slice(table, RUN)) if file.path.endswith(path.name)
    )
    break_(path)
    said = rf"{table}: file:/.*{path.name} cannot be read .*; run {pipeline.writer_of(table)} again$"
    with pytest.raises(TableError, match=said):
        slices.read_slice(job.lake, Slice(table, RUN))
    columns = targets.target_of(job.lake, Slice(table, RUN)).inner_schema
    with pytest.raises(TableError, match=said):
        list(parquet.stream_file(job.lake.location(table), file, columns, 100))
    with pytest.raises(TableError, match=said):
        parquet.take_rows(job.lake.location(table), file, columns, np.arange(1))


def workers_of(pid: int) -> Iterator[int]:
    """The Python processes of a session's tasks."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"spark.startup.daemon" in (folder / "cmdline").read_bytes() and pid in ancestors(folder.name):
                yield int(folder.name)
        except OSError:
            continue


def ancestors(pid: str) -> Iterator[int]:
    while pid not in ("0", "1"):
        pid = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
        yield int(pid)


@contextmanager
def files_end_at(size: int, processes: Callable[[], Iterable[int]]) -> Iterator[None]:
    """To these processes the disk is full as soon as a file has this size."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        assert limit_files(processes(), (size, usual[1]))
        yield
    finally:
        limit_files(processes(), usual)  # and those that were forked meanwhile


def limit_files(processes: Iterable[int], limits: tuple[int, int]) -> int:
    """Give the processes these limits; how many there are."""
    n_processes = 0
    for pid in processes:
        with suppress(ProcessLookupError):  # an idle worker ends by itself
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
            n_processes += 1
    return n_processes


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("ingest", "points"),
        ("replicate", "replicas"),
        ("merge_join", "pairs"),
        ("cluster", "clusters"),
        ("outliers", "outliers"),
    ],
)
def test_a_full_disk__is_said_and_changes_no_table(
    job: Job, capsys: pytest.CaptureFixture[str], name: str, table: str
) -> None:
    jvm = job.spark.sparkContext._gateway.proc.pid  # the tasks' processes are its children
    before = versions(job)
    by_driver = name in ("cluster", "outliers")  # which write few points themselves
    with files_end_at(1024, lambda: [os.getpid()] if by_driver else workers_of(jvm)):
        code, last = submit(job, name, capsys)
    assert code == 1
    assert re.match(rf"{name}: file:/[^ ]*/{table}[/ ]", last)
    assert "cannot be written" in last
    assert "File too large" in last
    assert last.endswith(f"then run {name} again")
    assert versions(job) == before


def test_a_full_disk__where_the_logs_lie_is_said_and_changes_no_table(job: Job) -> None:
    files = slices.files_of(job.lake, Slice("pairs", RUN))
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = versions(job)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, usual[1]))
    try:
        with pytest.raises(TableError, match="^file.* cannot be written .*File too large.* merge_join"):
            transactions.commit(job.lake, {Slice("pairs", RUN): files})
        with pytest.raises(TableError, match="^file.* cannot be written .*File too large.* merge_join"):
            transactions.commit(job.lake, {Slice("pairs", RUN): []})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert versions(job) == before
    assert slices.files_of(job.lake, Slice("pairs", RUN)) == files


def test_a_broken_footer__is_named_before_sparks_own_scan_takes_it_at_its_word(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    path = path_of(job, "points")
    rename_the_ids(path)
    for reader in ("fit_epsilon", "quality_results"):  # of which only rules read the ids
        code, last = submit(job, reader, capsys)
        assert code == 3
        assert last.startswith(f"{reader}: points: file:/")
        said = "cannot be read (it has no column id of type int64); run ingest again for run "
        assert f"{path.name} {said}{RUN}, or have the contract call its columns what it" in last
