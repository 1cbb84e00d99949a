"""Which sorted runs the next merge takes, in each traversal of the tree of merges."""

from __future__ import annotations

from epsjoin.local.progressive.sorted_runs import SortedRun


def runs_of_next_merge(runs: list[SortedRun], fan_in: int) -> list[SortedRun]:
    """Choose runs, once all are written, so that the last merge takes as many as it can.

    Notes
    -----
    Then the least bytes are written: the first merge takes only as many runs as are too many.
    """
    if len(runs) <= fan_in:
        return runs
    first = (len(runs) - 1) % (fan_in - 1) + 1
    return lowest_runs(runs, first if first > 1 else fan_in)


def runs_of_full_level(runs: list[SortedRun], fan_in: int) -> list[SortedRun] | None:
    """Choose as many runs of the lowest level as a merge takes; None where no level has so many."""
    levels = [run.level for run in runs]
    full = [level for level in set(levels) if levels.count(level) >= fan_in]
    return [run for run in runs if run.level == min(full)][:fan_in] if full else None


def lowest_runs(runs: list[SortedRun], n: int) -> list[SortedRun]:
    """Choose runs of the lowest levels, the oldest first."""
    return sorted(runs, key=lambda run: (run.level, run.name))[:n]
