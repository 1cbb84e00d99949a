"""What other DAGs see of ours: events of tables, and the way from the last task to the report. Fake Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from fastapi.testclient import TestClient
from pendulum import duration
from sqlalchemy import select

import intervals
from dags.fake_spark import REPOSITORY, FakeSpark
from dags.in_process import Scheduler, states_of


@pytest.fixture
def scheduler(
    database: None, fake_spark: FakeSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scheduler]:
    """The DAG navaids and the one from the documents that comes after its clusters."""
    monkeypatch.setattr(intervals, "GRACE", duration(0))  # the month may have begun a minute ago
    text = (REPOSITORY / "docs" / "run.md").read_text(encoding="utf-8")
    pages = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    folder = tmp_path / "dags"
    folder.mkdir()
    (folder / "navaids.py").write_text((REPOSITORY / "dags" / "navaids.py").read_text())
    (folder / "after.py").write_text(next(page for page in pages if "after_clusters" in page))
    scheduler = Scheduler(DagBag(folder), only=["cluster", "report", "tell"])
    assert scheduler.bag.import_errors == {}
    yield scheduler
    scheduler.close()


def test_new_clusters__start_the_dag_that_waits_for_them_with_run_and_counters(
    scheduler: Scheduler, rest: TestClient
) -> None:
    assert rest.post("/api/v2/dags/navaids/dagRuns", json={"logical_date": "2023-06-01T00:00:00Z"}).is_success
    scheduler.run()
    with create_session() as session:
        (after,) = session.scalars(select(DagRun).where(DagRun.dag_id == "after_clusters"))
        assert after.run_type == "asset_triggered"
        (event,) = after.consumed_asset_events
        assert (event.source_run_id, event.extra) == ("2023-06-01", {"job": "cluster", "rows": 11020})
    assert states_of(after) == {"tell": "success"}


def test_report__has_a_link_to_the_tab_of_its_run(scheduler: Scheduler, rest: TestClient) -> None:
    assert rest.post("/api/v2/dags/navaids/dagRuns", json={"logical_date": "2023-05-01T00:00:00Z"}).is_success
    scheduler.run()
    tasks = "/api/v2/dags/navaids/dagRuns/2023-05-01/taskInstances"
    links = rest.get(f"{tasks}/report/links").json()["extra_links"]
    assert links == {"Report": "/dags/navaids/runs/2023-05-01/plugin/epsjoin-report"}
    assert rest.get(f"{tasks}/cluster/links").json()["extra_links"] == {}


def test_report_link__follows_airflow_below_a_path(
    scheduler: Scheduler, rest: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://example.org/airflow/")
    assert rest.post("/api/v2/dags/navaids/dagRuns", json={"logical_date": "2023-04-01T00:00:00Z"}).is_success
    scheduler.run()
    links = rest.get("/api/v2/dags/navaids/dagRuns/2023-04-01/taskInstances/report/links").json()
    assert links["extra_links"]["Report"].startswith("/airflow/dags/navaids/runs/2023-04-01/plugin/")
