"""Back-fills by Airflow's own scheduler: any months, any order, beside the schedule. Fake Spark."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from airflow import settings
from airflow.models.pool import Pool
from fastapi.testclient import TestClient

from dags.doors import MONTHS, by_cli, by_rest
from dags.fake_spark import FakeSpark
from dags.in_process import Scheduler, runs_of, states_of
from epsjoin.pipeline import jobs_of


def dates_of_jobs(spark: FakeSpark) -> list[str]:
    """The runs that Spark was asked to make, in order."""
    calls = [call.read_text().splitlines() for call in sorted((spark.root / "calls").iterdir())]
    return [call[call.index("--run") + 1] for call in calls]


@pytest.mark.parametrize(("door", "is_backwards"), [("cli", False), ("rest", True)])
def test_backfill__makes_every_month_once_in_the_order_asked_for_beside_the_schedule(
    scheduler: Scheduler, rest: TestClient, door: str, is_backwards: bool
) -> None:
    scheduler.only = ()
    if door == "cli":
        by_cli("--max-active-runs", "1", *(["--run-backwards"] if is_backwards else []))
    else:
        assert by_rest(rest, max_active_runs=1, run_backwards=is_backwards) == 200
    scheduler.run()
    made = runs_of("navaids", run_type="backfill")
    assert {date: run.state for date, run in made.items()} == dict.fromkeys(MONTHS, "success")
    intervals = [(run.data_interval_start, run.data_interval_end) for run in made.values()]
    first_days = [datetime(2022, month, 1, tzinfo=UTC) for month in (1, 2, 3, 4)]
    assert intervals == list(pairwise(first_days))

    scheduled = runs_of("navaids", run_type="scheduled")
    assert [run.state for run in scheduled.values()] == ["success"], "the schedule goes on beside it"
    dates = [date for date, task in scheduler.ran if task == "ingest"]
    assert [date for date in dates if date in MONTHS] == (MONTHS[::-1] if is_backwards else MONTHS)
    assert set(dates) - set(MONTHS) == set(scheduled)


def test_backfill__of_many_months_at_once_keeps_to_the_pool_and_never_writes_a_slice_twice(
    scheduler: Scheduler, fake_spark: FakeSpark
) -> None:
    by_cli("--max-active-runs", "3")
    scheduler.run()
    assert sorted(dates_of_jobs(fake_spark)) == sorted(runs_of("navaids")), "each job is told its own month"
    assert Pool.get_pool("lake_writers").slots == 2
    assert max(len(turn) for turn in scheduler.at_once) == 2, "two jobs at once, the schedule's included"
    assert all(len(set(turn)) == len(turn) for turn in scheduler.at_once), "two jobs of one run at once"
    assert any(set(turn) <= set(MONTHS) for turn in scheduler.at_once), "months run beside each other"
    assert len(scheduler.ran) == len(set(scheduler.ran)) == len(jobs_of("join")) * 4


def test_backfill__a_month_that_fails_leaves_the_others_alone_and_can_be_made_again(
    scheduler: Scheduler, fake_spark: FakeSpark
) -> None:
    # of all calls that ask for February, and of no other
    (fake_spark.root / "ends" / "ingest").write_text('case "$*" in *"--run 2022-02-01"*) exit 3 ;; esac\n')
    by_cli("--max-active-runs", "2")
    scheduler.run()
    runs = runs_of("navaids", run_type="backfill")
    assert [run.state for run in runs.values()] == ["success", "failed", "success"]
    february = states_of(runs[MONTHS[1]])
    assert february.pop("ingest") == "failed"
    assert set(february.values()) == {"upstream_failed"}

    (fake_spark.root / "ends" / "ingest").unlink()
    before = len(dates_of_jobs(fake_spark))
    by_cli("--reprocess-behavior", "failed", "--dag-run-conf", '{"eps": 20}')
    scheduler.run()
    assert [run.state for run in runs_of("navaids", run_type="backfill").values()] == ["success"] * 3
    assert dates_of_jobs(fake_spark)[before:] == [MONTHS[1]]
    assert '{"eps": 20}' in fake_spark.calls_text().splitlines()


WRITER = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
database.execute("CREATE TABLE IF NOT EXISTS busy (n INTEGER)")
print("writes", flush=True)
while True:
    database.execute("INSERT INTO busy VALUES (1)")
    time.sleep(0.001)
"""


def test_backfill__comes_into_being_whole_on_sqlite_while_others_write(scheduler: Scheduler) -> None:
    file = str(settings.engine.url.database)
    with subprocess.Popen([sys.executable, "-c", WRITER, file], stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout
            assert writer.stdout.readline() == "writes\n"
            by_cli(first="2021-11-01", last="2023-06-30")
        finally:
            writer.terminate()
    assert len(runs_of("navaids", run_type="backfill")) == 20
