"""A drafted contract: where its snapshots are, and how often they come."""

from __future__ import annotations

from pathlib import Path

import pytest

from epsjoin.contracts.load_source import load_source
from epsjoin.source.draft.contract import draft


@pytest.mark.parametrize(
    ("days", "interval"),
    [
        (("2024-01-31", "2024-02-01", "2024-02-02"), "day"),
        (("2024-01-01", "2024-01-08", "2024-01-15", "2024-01-29"), "week"),
        (("2021-11-22", "2022-01-04", "2022-02-01", "2022-03-31"), "month"),
        (("2022-01-05", "2022-04-02", "2022-12-31"), "quarter"),
        (("2021-06-01", "2022-05-30", "2024-01-01"), "year"),
        (("2024-01-31",), "day"),
    ],
)
@pytest.mark.parametrize("is_folder", [False, True])
def test_draft__guesses_the_interval_by_the_dates_of_the_snapshots(
    tmp_path: Path, days: tuple[str, ...], interval: str, is_folder: bool
) -> None:
    for day in (*days, "2024-99-99"):
        file = tmp_path / day / "part.csv" if is_folder else tmp_path / f"a-{day}.csv"
        file.parent.mkdir(exist_ok=True)
        file.write_text("x\n1.5\n")
    file = tmp_path / days[0] / "part.csv" if is_folder else tmp_path / f"a-{days[0]}.csv"
    text = draft(file, "mine")
    assert f"# - interval: {interval}" in text
    (tmp_path / "mine.odcs.yaml").write_text(text)
    source = load_source(tmp_path, "mine")
    assert (source.interval, source.path) == (
        interval,
        f"{tmp_path}/{'{date}' if is_folder else 'a-{date}.csv'}",
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("stores_20240301.csv", "20240301 in its path must be written 2024-03-01"),
        ("2024_03_01/stores.csv", "2024_03_01 in its path must be written 2024-03-01"),
        ("stores 12345678 20240301.csv", "20240301 in its path must be written 2024-03-01"),
        ("stores_20249901.csv", "there is no date in the file's name, so every run takes it"),
        ("stores_202403011.csv", "there is no date in the file's name, so every run takes it"),
    ],
)
def test_draft__says_how_a_date_must_be_written_where_it_would_be_passed_over(
    tmp_path: Path, name: str, said: str
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("x\n1.5\n")
    (line,) = [line for line in draft(file, "mine").splitlines() if line.startswith("# - interval: day; ")]
    assert line.startswith(f"# - interval: day; {said}")
