"""Which files are a run's snapshot."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from epsjoin.errors import DataRefusedError
from epsjoin.spark.ingest.snapshot import find_snapshot, interval_of
from tests.spark.conftest import JobMaker
from tests.spark.ingest.test_ingest import GOOD, XY


def test_find_snapshot__refuses_a_folder_in_a_snapshot(make_job: JobMaker, tmp_path: Path) -> None:
    (tmp_path / "2023-06-04" / "_temporary").mkdir(parents=True)
    (tmp_path / "2023-06-04" / ".hidden").mkdir()
    (tmp_path / "2023-06-04" / "a.csv").write_text(GOOD)
    job = make_job(XY, path="{date}", interval="month")
    assert [name for name, _ in find_snapshot(job)] == ["2023-06-04/a.csv"]
    (tmp_path / "2023-06-04" / "more").mkdir()
    with pytest.raises(DataRefusedError, match="2023-06-04: 'more' in it is not a file") as raised:
        find_snapshot(job)
    assert raised.value.exit_code == 3


@pytest.mark.parametrize(
    ("interval", "begin", "end"),
    [
        ("day", "2024-02-28", "2024-02-29"),
        ("week", "2023-12-28", "2024-01-04"),
        ("month", "2023-12-01", "2024-01-01"),
        ("month", "2023-01-31", "2023-02-28"),
        ("quarter", "2023-11-01", "2024-02-01"),
        ("year", "2024-02-29", "2025-02-28"),
    ],
)
def test_interval_of__ends_where_the_next_begins(interval: str, begin: str, end: str) -> None:
    assert interval_of(interval, date.fromisoformat(begin)) == (
        date.fromisoformat(begin),
        date.fromisoformat(end),
    )
