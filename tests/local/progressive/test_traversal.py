"""Which runs a merge takes: as few bytes as possible are written, and no merge takes too many."""

from __future__ import annotations

import pytest

from epsjoin.local.progressive.sorted_runs import SortedRun
from epsjoin.local.progressive.traversal import lowest_runs, runs_of_full_level, runs_of_next_merge


def run_of(name: int, level: int = 0) -> SortedRun:
    return SortedRun(f"{name:03}", level, (1, 0), 0, [], [])


@pytest.mark.parametrize("fan_in", [2, 3, 8])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 10, 15, 64, 65])
def test_runs_of_next_merge__leaves_the_last_merge_as_many_as_it_can_take(n: int, fan_in: int) -> None:
    runs, taken, merges = [run_of(name) for name in range(n)], list[SortedRun](), 0
    while len(taken) < len(runs):
        taken = runs_of_next_merge(runs, fan_in)
        assert 1 < len(taken) <= fan_in or n == 1
        merges += 1
        if len(taken) < len(runs):
            merged = run_of(n + merges, 1 + max(run.level for run in taken))
            runs, taken = [*(run for run in runs if run not in taken), merged], []
    assert len(taken) == min(n, fan_in)
    assert merges == max(1, -(-(n - 1) // (fan_in - 1))), "no more merges than are needed"


def test_runs_of_full_level__are_the_oldest_of_the_lowest_level_that_has_enough() -> None:
    runs = [run_of(0, 2), run_of(1, 2), run_of(2, 1), run_of(3, 1), run_of(4, 1), run_of(5)]
    assert runs_of_full_level(runs, 2) == runs[2:4]
    assert runs_of_full_level(runs[:3], 2) == runs[:2]
    assert runs_of_full_level(runs, 4) is None


def test_lowest_runs__are_of_the_lowest_levels_and_of_one_level_the_oldest() -> None:
    runs = [run_of(3, 1), run_of(1, 1), run_of(4), run_of(2)]
    assert lowest_runs(runs, 3) == [runs[3], runs[2], runs[1]]
