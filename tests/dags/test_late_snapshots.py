"""A snapshot that comes late: the run waits for it where its page says so. Real scheduler, fake Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.dagrun import DagRun
from airflow.models.taskreschedule import TaskReschedule
from airflow.utils.session import create_session
from fastapi.testclient import TestClient
from sqlalchemy import select, update

import spark_job
from dags.fake_spark import FakeSpark
from dags.in_process import Scheduler, runs_of, states_of
from epsilon_join import epsilon_join

PAGE = """
from datetime import UTC, datetime, timedelta
from epsilon_join import epsilon_join  # a DAG of Airflow

dag = epsilon_join(
    dataset="tides", schedule="0 0 * * *", start_date=datetime(2022, 1, 1, tzinfo=UTC), doc_md=None,
    wait_for_snapshot=timedelta(days=3),
)
"""
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
YESTERDAY = TODAY - timedelta(days=1)
LONG_AGO = TODAY - timedelta(days=4)


@pytest.fixture
def scheduler(database: None, fake_spark: FakeSpark, tmp_path: Path) -> Iterator[Scheduler]:
    page = tmp_path / "dags" / "tides.py"
    page.parent.mkdir()
    page.write_text(PAGE)
    fake_spark.ends("ingest", 5, "epsjoin: no snapshot")
    scheduler = Scheduler(DagBag(page.parent), only=["ingest"], with_schedule=False)
    yield scheduler
    scheduler.close()


def turn(scheduler: Scheduler) -> None:
    for _ in range(3):
        time.sleep(1)  # SQLite's clock has whole seconds
        scheduler.turn()


def start(scheduler: Scheduler, rest: TestClient, day: datetime) -> None:
    answer = rest.post("/api/v2/dags/tides/dagRuns", json={"logical_date": day.isoformat()})
    assert answer.status_code == 200, answer.text
    turn(scheduler)


def state_of(day: datetime) -> Any:
    run = runs_of("tides")[f"{day:%Y-%m-%d}"]
    return run.state, states_of(run)["ingest"]


def test_run__waits_for_its_snapshot_without_a_worker_and_takes_it_when_it_has_come(
    scheduler: Scheduler, rest: TestClient, fake_spark: FakeSpark
) -> None:
    start(scheduler, rest, YESTERDAY)
    assert state_of(YESTERDAY) == ("running", "up_for_reschedule")
    assert fake_spark.jobs == ["ingest"], "it does not look again at once"
    with create_session() as session:
        (next_try,) = session.scalars(select(TaskReschedule.reschedule_date))
        in_seconds = (next_try - datetime.now(UTC)).total_seconds()
        assert 1800 < in_seconds <= 3600
        session.execute(update(TaskReschedule).values(reschedule_date=datetime.now(UTC)))

    (fake_spark.root / "ends" / "ingest").unlink()
    turn(scheduler)
    assert state_of(YESTERDAY)[1] == "success"
    assert fake_spark.jobs == ["ingest", "ingest"]


def test_run__that_waits_does_not_keep_the_next_ones_from_being_made(
    scheduler: Scheduler, rest: TestClient, fake_spark: FakeSpark
) -> None:
    """Airflow makes no run twice: one whose turn comes a whole interval late is never made."""
    start(scheduler, rest, YESTERDAY - timedelta(days=1))
    with create_session() as session:
        session.execute(update(DagRun).values(run_type="scheduled", creating_job_id=1))
    with_schedule = Scheduler(scheduler.bag, only=["ingest"], keeps_runs=True)
    turn(with_schedule)
    assert state_of(YESTERDAY - timedelta(days=1)) == ("running", "up_for_reschedule")
    assert state_of(YESTERDAY) == ("running", "up_for_reschedule")
    assert with_schedule.bag.dags["tides"].max_active_runs == 1 + 3


@pytest.mark.parametrize(("left", "seconds"), [(timedelta(hours=5), 3600), (timedelta(minutes=20), 1200)])
def test_next_try__is_in_an_hour_or_at_the_end_of_the_wait(
    monkeypatch: pytest.MonkeyPatch, left: timedelta, seconds: int
) -> None:
    """A snapshot that comes in the last minutes is seen, too."""
    monkeypatch.setattr(spark_job, "utcnow", lambda: TODAY)
    wait = timedelta(days=3)
    job = spark_job.SparkJobOperator(job="ingest", dataset="tides", writes=["points"], wait=wait)
    ended: Any = {"data_interval_end": TODAY - wait}
    found = job._find_next_try({**ended, "data_interval_end": TODAY - wait + left})
    assert found is not None
    assert (found - TODAY).total_seconds() == seconds
    assert job._find_next_try(ended) is None


def test_run__whose_time_to_wait_is_over_is_skipped_at_once(
    scheduler: Scheduler, rest: TestClient, fake_spark: FakeSpark
) -> None:
    start(scheduler, rest, LONG_AGO)
    assert state_of(LONG_AGO)[1] == "skipped"
    assert fake_spark.jobs == ["ingest"]


def test_run__of_a_command_that_makes_one_try_is_skipped_at_once(
    database: None, fake_spark: FakeSpark, rest: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by ``bin/airflow run``."""
    monkeypatch.setenv("EPSJOIN_WAITS", "no")
    page = tmp_path / "tides.py"
    page.write_text(PAGE)
    fake_spark.ends("ingest", 5, "epsjoin: no snapshot")
    scheduler = Scheduler(DagBag(page), only=["ingest"], with_schedule=False)
    start(scheduler, rest, YESTERDAY)
    assert state_of(YESTERDAY)[1] == "skipped"
    scheduler.close()


def test_time_to_wait__of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="wait_for_snapshot of tides must be a span of time above zero"):
        epsilon_join(
            dataset="tides",
            schedule="0 0 * * *",
            start_date=datetime(2022, 1, 1, tzinfo=UTC),
            doc_md=None,
            wait_for_snapshot=timedelta(0),
        )
