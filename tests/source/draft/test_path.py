"""A drafted contract: where its snapshots are, and how often they come."""

from __future__ import annotations

from pathlib import Path

import pytest

from epsjoin.contracts.load_source import load_source
from epsjoin.source.draft.contract import draft
from epsjoin.source.draft.path import name_of


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
    ("name", "path"),
    [
        ("stores_20240301.csv", "stores_{date:yyyyMMdd}.csv"),
        ("2024_03_01/stores.csv", "{date:yyyy_MM_dd}"),
        ("2024-03-01/stores_20240302.csv", "{date}"),
        ("stores 12345678 20240301.csv", "stores 12345678 {date:yyyyMMdd}.csv"),
        ("stores.2024.03.01.csv", "stores.{date:yyyy.MM.dd}.csv"),
    ],
)
def test_draft__takes_dates_in_the_form_in_which_they_are_written(
    tmp_path: Path, name: str, path: str
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("x\n1.5\n")
    text = draft(file, "mine")
    assert (
        f"# - path: {path[path.index('{') : path.index('}') + 1]} stands for the date of a snapshot" in text
    )
    (tmp_path / "mine.odcs.yaml").write_text(text)
    assert load_source(tmp_path, "mine").path == f"{tmp_path}/{path}"
    assert "one snapshot only" in text


@pytest.mark.parametrize("name", ["stores_20249901.csv", "stores_202403011.csv", "stores_12341230.csv"])
def test_draft__takes_no_other_number_for_a_date(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x\n1.5\n")
    text = draft(tmp_path / name, "mine")
    assert "# - interval: day; there is no date in the file's name, so every run takes it" in text
    assert f"path: {tmp_path}/{name}" in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("stores_20240301.csv", "stores"),
        ("2024-03-01 Stores.csv.gz", "stores"),
        ("2024-03-01.csv", "set"),
        ("stores_20249901.csv", "stores_20249901"),
        ("7up.json", "set_7up"),
    ],
)
def test_name_of__has_no_date(name: str, expected: str) -> None:
    assert name_of(Path("/data") / name) == expected
