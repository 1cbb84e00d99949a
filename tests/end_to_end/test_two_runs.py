"""Two runs at once on one lake, as real processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from survival import chain
from survival.processes import Started, driver

OTHER_RUN = "2022-12-01"
pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
]


def slices(content: chain.Content, run: str) -> chain.Content:
    return {place: rows for place, rows in content.items() if place[1] == run}


def but_guard(content: chain.Content) -> chain.Content:
    """All but ``guard``, which says with which earlier run was compared: whichever is in the lake by then."""
    return {place: rows for place, rows in content.items() if place[0] != "guard"}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> chain.Content:
    """The tables of two runs that were made at the same time."""
    folder = tmp_path_factory.mktemp("both")
    runs = {
        run: Started(chain.command("ingest", folder / "lake", run=run), folder / run)
        for run in (chain.RUN, OTHER_RUN)
    }
    try:
        for run, started in runs.items():
            assert started.task.wait(timeout=600) == 0, (folder / run).read_text()
    finally:
        for started in runs.values():
            started.end()
    return chain.content(folder / "lake")


def test_two_runs_at_once__make_their_own_slices(both: chain.Content) -> None:
    written = {"quarantine", "guard", "snapshots", "digests", "value_counts", "points", "job_metrics"}
    for run in (chain.RUN, OTHER_RUN):
        assert {table for table, *_ in slices(both, run)} == written
    assert both["points", chain.RUN] != both["points", OTHER_RUN]


def test_one_run_twice_at_once__the_second_to_commit_says_so_and_succeeds_when_tried_again(
    tmp_path: Path, both: chain.Content
) -> None:
    lake, log = tmp_path / "lake", tmp_path / "log"
    slow = Started(chain.command("ingest", lake), log)
    try:
        while "2023-06-04.csv.gz" not in log.read_text():  # it has begun, and committed nothing
            assert not slow.is_over(), log.read_text()
            time.sleep(0.02)
        [pid] = driver(slow)
        os.kill(pid, signal.SIGSTOP)
        assert chain.submit("ingest", lake).returncode == 0
        os.kill(pid, signal.SIGCONT)
        assert slow.task.wait(timeout=600) == 1
    finally:
        slow.end()
    last = log.read_text().strip().splitlines()[-1]
    assert last.startswith(
        "ingest: another job changed quarantine of run 2023-06-01 while this one ran, so nothing was written"
    )
    assert last.endswith("run ingest again when that one has ended")
    first = chain.content(lake)
    assert but_guard(first) == but_guard(slices(both, chain.RUN))
    assert chain.submit("ingest", lake).returncode == 0
    assert chain.content(lake) == first
