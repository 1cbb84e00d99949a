"""How the files of a report come into the lake."""

from __future__ import annotations

from pathlib import Path

import pyarrow.fs as pafs
import pytest

from epsjoin.report.publish import _put

NAMES = ("report.html", "run.json")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """The page of an earlier report, in the folder of its run."""
    folder = tmp_path / "reports" / "run=2023-06-01"
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_text("old")
    return folder


def make(folder: Path, *names: str) -> list[Path]:
    folder.mkdir()
    for name in names:
        (folder / name).write_text("new")
    return [folder / name for name in NAMES]


def contents(page: Path) -> dict[str, str]:
    assert list(page.parent.iterdir()) == [page]
    return {file.name: file.read_text() for file in page.iterdir()}


def test_put__shows_who_reads_no_part_of_a_file(tmp_path: Path, page: Path) -> None:
    with (page / "report.html").open() as reader:
        _put(make(tmp_path / "scratch", *NAMES), pafs.LocalFileSystem(), str(page))
        assert reader.read() == "old"
    assert contents(page) == dict.fromkeys(NAMES, "new")


def test_put__that_fails_leaves_the_page_as_it_was(tmp_path: Path, page: Path) -> None:
    """As on a full disk; the last file lacks here."""
    with pytest.raises(FileNotFoundError):
        _put(make(tmp_path / "scratch", *NAMES[:-1]), pafs.LocalFileSystem(), str(page))
    assert contents(page) == dict.fromkeys(NAMES, "old")


def test_put__makes_the_folder_of_a_first_report(tmp_path: Path) -> None:
    page = tmp_path / "reports" / "run=2023-06-01"
    _put(make(tmp_path / "scratch", *NAMES), pafs.LocalFileSystem(), str(page))
    assert contents(page) == dict.fromkeys(NAMES, "new")
