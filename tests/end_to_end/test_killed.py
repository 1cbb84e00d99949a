"""A job that is killed while it writes leaves no process, and run again it gives the same tables.

The short form of ``make kill-loop``: fixed victims, at the moment when the first file is there.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pytest

from survival import chain
from survival.processes import Started, Victim, driver, jvm, kill

JOBS = ("ingest", "fit_epsilon", "replicate", "merge_join")
pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children with their parent"),
]


def files(lake: Path, table: str) -> set[Path]:
    return set((lake / chain.DATASET / table).rglob("*.parquet"))


def kill_when_it_writes(job: str, table: str, lake: Path, victim: Victim, log: Path) -> None:
    there, begun = files(lake, table), chain.versions(lake)
    started = Started(chain.command(job, lake), log)
    try:
        deadline = time.monotonic() + 300
        while files(lake, table) <= there:
            assert not started.is_over(), log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert kill(*victim(started))
        assert started.is_gone_within(5), started.processes()
        assert started.task.returncode
    finally:
        started.end()
    assert chain.versions(lake) == begun, "a killed job has committed"


def test_a_job_that_was_killed_while_it_wrote__run_again_gives_the_same_tables(tmp_path: Path) -> None:
    undisturbed, lake = tmp_path / "undisturbed", tmp_path / "lake"
    chain.submit_several(JOBS, undisturbed, chain.RUN, {})
    expected = chain.content(undisturbed)
    shutil.copytree(undisturbed, lake)
    for job, table, victim in (("replicate", "replicas", driver), ("merge_join", "pairs", jvm)):
        kill_when_it_writes(job, table, lake, victim, tmp_path / f"{job}.log")
        assert chain.content(lake) == expected
        done = chain.submit(job, lake)
        assert done.returncode == 0, done.stdout[-3000:]
        assert chain.content(lake) == expected
