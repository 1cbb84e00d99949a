"""How the files of a report come into the lake."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow.fs as pafs
import pytest

from epsjoin.findings import Findings
from epsjoin.report import publish
from epsjoin.report.page import make_report
from epsjoin.report.publish import _put
from epsjoin.spark.job.job import Job
from tests.stored_runs import new_lake

NAMES = ("report.html", "run.json")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """The page of an earlier report, in the folder of its run."""
    folder = tmp_path / "reports" / "run=2023-06-01"
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_text("old")
    return folder


def contents(page: Path) -> dict[str, str]:
    assert list(page.parent.iterdir()) == [page]
    return {file.name: file.read_text() for file in page.iterdir()}


def test_put__shows_who_reads_no_part_of_a_file(page: Path) -> None:
    with (page / "report.html").open() as reader:
        _put(dict.fromkeys(NAMES, b"new"), pafs.LocalFileSystem(), str(page))
        assert reader.read() == "old"
    assert contents(page) == dict.fromkeys(NAMES, "new")


def test_put__that_fails_leaves_the_page_as_it_was(page: Path) -> None:
    """As on a full disk, with the last file."""
    _, most = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, most))
    try:
        with pytest.raises(OSError, match="too large"):
            _put({"report.html": b"new", "run.json": bytes(1 << 17)}, pafs.LocalFileSystem(), str(page))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert contents(page) == dict.fromkeys(NAMES, "old")


def test_put__makes_the_folder_of_a_first_report(tmp_path: Path) -> None:
    page = tmp_path / "reports" / "run=2023-06-01"
    _put(dict.fromkeys(NAMES, b"new"), pafs.LocalFileSystem(), str(page))
    assert contents(page) == dict.fromkeys(NAMES, "new")


def test_publish__leaves_nothing_in_the_temporary_folder_when_it_is_killed_while_it_draws(
    mapless: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is there at any time: of a kill, Python might not know."""
    lake, temporary, seen = new_lake(tmp_path), tmp_path / "tmp", list[list[Path]]()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def look(findings: Findings) -> dict[str, bytes]:
        seen.append([*temporary.iterdir()])
        return make_report(findings)

    monkeypatch.setattr(publish, "gather", lambda _: mapless)
    monkeypatch.setattr(publish, "make_report", look)
    job = cast("Job", SimpleNamespace(lake=lake, run="2023-06-01"))
    counters = publish.publish(job)
    assert seen == [[]]
    files = [*Path(tmp_path, "lake", "navaids", "reports", "run=2023-06-01").iterdir()]
    assert counters == {"files": len(files), "bytes": sum(file.stat().st_size for file in files)}
