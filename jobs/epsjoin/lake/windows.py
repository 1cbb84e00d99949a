"""Which runs are in the window that ends with a run: those of the last intervals by date."""

from __future__ import annotations

from datetime import date

from epsjoin.contracts.times import run_before
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake


def intervals_of_window(interval: str, run: str, n: int) -> list[str]:
    """The first days of the last n intervals until that of a run, the earliest first; not all have a run.

    Fewer where they would begin before the year 1.
    """
    days = [date.fromisoformat(run)]
    while len(days) < n and days[-1].year > 1:
        days.append(run_before(interval, days[-1]))
    return [day.isoformat() for day in reversed(days)]


def runs_of_window(lake: Lake, run: str, n: int | None = None) -> list[str]:
    """The runs among the last intervals whose values were counted, the earliest first; ``run`` is the last.

    Parameters
    ----------
    n : number of intervals; by default that of the contract.
    """
    of_window = intervals_of_window(lake.source.interval, run, n or lake.source.window_runs)
    there = {*slices.list_runs(lake, "value_counts"), run}
    return [each for each in of_window if each in there]
