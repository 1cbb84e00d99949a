"""A real back-fill: real months, Airflow's services, the schedule beside it; against month by month."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from survival import chain

MONTHS = ("2022-10-01", "2022-11-01", "2022-12-01")
pytestmark = [pytest.mark.end_to_end, pytest.mark.long, pytest.mark.timeout(5400)]


HOW_IT_WAS_MADE = {"guard", "join_plan", "replicas", "quality", "job_metrics"}
"""Tables that tell with which earlier run a run was compared, and from which its pairs were computed:
whichever was in the lake by then."""


def results(content: chain.Content) -> chain.Content:
    """All that must not depend on the order in which the months came."""
    return {place: rows for place, rows in content.items() if place[0] not in HOW_IT_WAS_MADE}


def run(home: Path, *command: str) -> str:
    environment = {**os.environ, "AIRFLOW_HOME": str(home / "airflow"), "EPSJOIN_LAKE": f"file://{home}/lake"}
    done = subprocess.run(
        command, cwd=chain.REPO, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout


def test_backfill__backwards_leaves_the_tables_of_month_by_month(tmp_path: Path) -> None:
    run(tmp_path, "bin/airflow", "setup")
    # one month more than there is data for: it is skipped
    whole = ("bin/airflow", "backfill", "run", "navaids", "2022-08-01", MONTHS[-1], "--run-backwards")
    said = run(tmp_path, *whole)
    assert "backfill: 2022-08-01 skipped: no snapshot" in said
    assert all(f"backfill: {month} done in" in said for month in MONTHS)

    for month in ("2022-09-01", *MONTHS):
        chain.submit_several(chain.JOBS, tmp_path / "by_month", month, {})
    found, expected = (results(chain.content(tmp_path / name)) for name in ("lake", "by_month"))
    assert found == expected
    assert {table for table, *_ in found} >= {"points", "pairs", "clusters", "outliers", "cluster_names"}

    assert "no run is missing" in run(tmp_path, *whole)
    shown = run(
        tmp_path, "bin/epsjoin", "trend", "--lake", str(tmp_path / "lake"), "--dataset", chain.DATASET
    )
    assert "4 runs" in shown
    assert (tmp_path / "lake" / chain.DATASET / "reports" / "trend.png").is_file()
