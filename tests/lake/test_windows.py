"""The intervals of a window, and how far back they go."""

from __future__ import annotations

import pytest

from epsjoin.errors import ArgumentError
from epsjoin.lake.arguments import parse_run
from epsjoin.lake.windows import intervals_of_window


@pytest.mark.parametrize(
    ("interval", "run", "first"),
    [
        ("day", "0002-01-02", "0001-12-31"),
        ("week", "0002-01-02", "0001-12-26"),
        ("month", "0002-02-01", "0001-12-01"),
        ("year", "0002-01-01", "0001-01-01"),
    ],
)
def test_window__longer_than_the_calendar_ends_at_its_first_year(interval: str, run: str, first: str) -> None:
    found = intervals_of_window(interval, run, 100_000)
    assert (found[0], found[-1]) == (first, run)


def test_window__has_the_intervals_until_its_run() -> None:
    assert intervals_of_window("month", "2023-02-01", 3) == ["2022-12-01", "2023-01-01", "2023-02-01"]


def test_run__of_the_last_year_has_no_end_and_is_refused() -> None:
    assert parse_run("9998-12-31") == "9998-12-31"
    with pytest.raises(ArgumentError, match="--run must be a date before the year 9999, not '9999-01-01'"):
        parse_run("9999-01-01")
