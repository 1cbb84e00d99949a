"""Whom Airflow tells of a late or failed run: its own scheduler, its own way to a callback. Fake Spark."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from airflow.dag_processing.dagbag import DagBag
from airflow.dag_processing.processor import _execute_dag_callbacks
from airflow.models.callback import TriggererCallback
from airflow.models.deadline import Deadline
from airflow.sdk import AsyncCallback
from airflow.triggers.callback import CallbackTrigger
from airflow.utils.session import create_session
from sqlalchemy import select

import dag_commands
from dags.fake_spark import FakeSpark
from dags.in_process import Scheduler, runs_of
from epsilon_join import epsilon_join

PAGE = """
from datetime import UTC, datetime, timedelta
from pathlib import Path
from epsilon_join import epsilon_join  # a DAG of Airflow

def tell(context):
    Path({told!r}).write_text(context["dag_run"].run_id)

dag = epsilon_join(
    dataset="buoys", schedule="0 0 1 * *", start_date=datetime(2022, 1, 1, tzinfo=UTC), doc_md=None,
    deadline=timedelta(hours=2), on_failure=tell,
)
"""


@pytest.fixture
def scheduler(database: None, fake_spark: FakeSpark, tmp_path: Path) -> Iterator[Scheduler]:
    page = tmp_path / "dags" / "buoys.py"
    page.parent.mkdir()
    page.write_text(PAGE.format(told=str(tmp_path / "told")))
    scheduler = Scheduler(DagBag(page.parent), only=["ingest"], with_schedule=False)
    yield scheduler
    scheduler.close()


def trigger() -> None:
    """Ask for a run, as at the shell."""
    assert dag_commands.main(["trigger", "buoys", "-l", "2023-06-01"]) == 0


def test_deadline__that_is_missed_calls_what_the_page_names_and_not_before(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    trigger()
    (run,) = (run for run in runs_of("buoys").values() if run.run_type == "manual")
    with create_session() as session:
        (deadline,) = session.scalars(select(Deadline).where(Deadline.dagrun_id == run.id))
        assert run.queued_at
        assert deadline.deadline_time - run.queued_at == timedelta(hours=2)
        assert not deadline.missed
        deadline.handle_miss(session)  # the scheduler's next step for all whose time is over
        assert deadline.missed
        assert isinstance(deadline.callback, TriggererCallback)
        # what the triggerer is told; it imports the function by this path
        told = CallbackTrigger(deadline.callback.data["path"], deadline.callback.data["kwargs"])

    async def all_events() -> list[Any]:
        return [event.payload["state"] async for event in told.run()]

    with caplog.at_level(logging.WARNING, "alerts"):
        assert asyncio.run(all_events()) == ["running", "success"]
    assert f"buoys is late: run {run.run_id} should have ended by" in caplog.text


def test_failed_run__is_told_once_to_whom_the_page_names(
    scheduler: Scheduler, fake_spark: FakeSpark, tmp_path: Path
) -> None:
    fake_spark.ends("ingest", 3)
    trigger()
    scheduler.run()
    run = runs_of("buoys")["2023-06-01"]
    assert run.state == "failed"
    requests = [request for request in scheduler.callbacks if request.run_id == run.run_id]
    assert len(requests) == 1
    # the DAG processor's next step
    _execute_dag_callbacks(scheduler.bag, requests[0], structlog.get_logger())
    assert (tmp_path / "told").read_text() == run.run_id


def test_failure__is_told_to_nobody_where_the_page_names_nobody(dag_bag: DagBag) -> None:
    for dag in dag_bag.dags.values():
        assert dag.deadline is None
        assert dag.on_failure_callback is None


def test_deadline_callback__without_a_deadline_is_refused() -> None:
    with pytest.raises(ValueError, match="deadline_callback of buoys has no deadline"):
        epsilon_join(
            dataset="buoys",
            schedule="0 0 1 * *",
            start_date=datetime(2022, 1, 1, tzinfo=UTC),
            doc_md=None,
            deadline_callback=AsyncCallback("alerts.deadline_missed"),
        )
