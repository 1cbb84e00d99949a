"""A person's word on eps: asked by Airflow, answered over REST or by nobody. Real scheduler, fake Spark."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from fastapi.testclient import TestClient
from sqlalchemy import update

from approval import ApproveEpsilon
from dags.fake_spark import FakeSpark
from dags.in_process import Scheduler, runs_of, states_of
from epsilon_join import epsilon_join

PAGE = """
from datetime import UTC, datetime, timedelta
from epsilon_join import epsilon_join  # a DAG of Airflow

dag = epsilon_join(
    dataset="lamps", schedule="0 0 1 * *", start_date=datetime(2022, 1, 1, tzinfo=UTC), doc_md=None,
    approve_within=timedelta(hours=4),
)
"""
FITTED = '{"eps": 52.5141, "expected_pairs": 16530.4, "exponent": 1.6912, "n_sample": 11020}'
AFTER = ("replicate", "merge_join", "cluster", "outliers", "compare", "quality_results", "report")
ASKED = "/api/v2/dags/lamps/dagRuns/{}/taskInstances/approve_epsilon/-1/hitlDetails"


@pytest.fixture
def scheduler(database: None, fake_spark: FakeSpark, tmp_path: Path) -> Iterator[Scheduler]:
    page = tmp_path / "dags" / "lamps.py"
    page.parent.mkdir()
    page.write_text(PAGE)
    fake_spark.writes_no_metrics()
    (fake_spark.root / "ends" / "fit_epsilon").write_text(f"echo '{FITTED}' > \"$metrics\"\n")
    scheduler = Scheduler(DagBag(page.parent), only=["fit_epsilon", "approve_epsilon"], with_schedule=False)
    yield scheduler
    scheduler.close()


@pytest.fixture
def asked(scheduler: Scheduler, rest: TestClient) -> DagRun:
    """A run that waits for its answer."""
    body = {"logical_date": "2023-06-01T00:00:00Z", "conf": {}}
    assert rest.post("/api/v2/dags/lamps/dagRuns", json=body).status_code == 200
    scheduler.run()
    run = runs_of("lamps")["2023-06-01"]
    assert states_of(run)["approve_epsilon"] == "awaiting_input"
    return run


def test_question__shows_what_was_chosen_and_what_happens_without_an_answer(
    asked: DagRun, rest: TestClient
) -> None:
    question = rest.get(ASKED.format(asked.run_id)).json()
    assert question["subject"] == "Join lamps, run 2023-06-01, with eps 52.5141?"
    for row in (
        "| eps, in the unit of the metric | 52.5141 |",
        "| pairs expected | 16,530 |",
        "| exponent of the pair count | 1.69 |",
        "Without an answer within 4 hours the run goes on",
    ):
        assert row in question["body"]
    assert (question["options"], question["defaults"]) == (["Approve", "Reject"], ["Approve"])


def test_question__of_a_fit_without_a_power_law_says_so(
    scheduler: Scheduler, fake_spark: FakeSpark, rest: TestClient
) -> None:
    (fake_spark.root / "ends" / "fit_epsilon").write_text(
        """echo '{"eps": 3, "expected_pairs": 0.0}' > "$metrics"\n"""
    )
    body = {"logical_date": "2023-06-01T00:00:00Z", "conf": {"eps": 3}}
    rest.post("/api/v2/dags/lamps/dagRuns", json=body)
    scheduler.run()
    question = rest.get(ASKED.format(runs_of("lamps")["2023-06-01"].run_id)).json()
    assert "| exponent of the pair count | not known |" in question["body"]


def test_waiting__holds_no_slot_and_the_join_has_not_begun(asked: DagRun, fake_spark: FakeSpark) -> None:
    assert {states_of(asked)[task] for task in AFTER} == {"None"}
    assert asked.state == "running"
    (task,) = (task for task in asked.get_task_instances() if task.task_id == "approve_epsilon")
    assert task.pool == "default_pool"


def test_approved__the_run_goes_on(asked: DagRun, scheduler: Scheduler, rest: TestClient) -> None:
    answer = rest.patch(ASKED.format(asked.run_id), json={"chosen_options": ["Approve"], "params_input": {}})
    assert answer.status_code == 200, answer.text
    scheduler.run()
    run = runs_of("lamps")["2023-06-01"]
    assert run.state == "success"
    assert set(states_of(run).values()) == {"success"}


def test_rejected__what_follows_is_skipped_and_a_sentence_says_what_to_do(
    asked: DagRun,
    scheduler: Scheduler,
    rest: TestClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(ApproveEpsilon, "log", logging.getLogger("said"))  # Airflow's own goes to the server
    rest.patch(ASKED.format(asked.run_id), json={"chosen_options": ["Reject"], "params_input": {}})
    scheduler.run()
    run = runs_of("lamps")["2023-06-01"]
    states = states_of(run)
    assert states["approve_epsilon"] == "success"
    assert {states[task] for task in AFTER} == {"skipped"}
    assert run.state == "success"
    said = caplog.text
    assert "eps was rejected: nothing is joined" in said
    assert "--dag-id lamps --from-date 2023-06-01 --to-date 2023-06-01" in said


def test_not_answered_in_time__the_run_goes_on_as_fitted(asked: DagRun, scheduler: Scheduler) -> None:
    with create_session() as session:
        waiting = TaskInstance.run_id == asked.run_id, TaskInstance.task_id == "approve_epsilon"
        (task,) = (task for task in asked.get_task_instances() if task.task_id == "approve_epsilon")
        left = task.trigger_timeout - datetime.now(UTC)
        assert timedelta(hours=3, minutes=50) < left <= timedelta(hours=4)
        past = datetime.now(UTC) - timedelta(seconds=1)
        session.execute(update(TaskInstance).where(*waiting).values(trigger_timeout=past))
    scheduler.give_up_waiting()
    scheduler.run()
    assert set(states_of(runs_of("lamps")["2023-06-01"]).values()) == {"success"}


@pytest.mark.parametrize("wrong", [timedelta(0), timedelta(hours=-1)])
@pytest.mark.parametrize("name", ["approve_within", "deadline", "job_limit"])
def test_span__that_is_none_is_refused(name: str, wrong: timedelta) -> None:
    start = datetime(2022, 1, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match=f"{name} of lamps must be a span of time above zero"):
        epsilon_join(dataset="lamps", schedule="0 0 1 * *", start_date=start, doc_md=None, **{name: wrong})


def test_job_limit__ends_jobs_and_no_question() -> None:
    start, day = datetime(2022, 1, 1, tzinfo=UTC), timedelta(days=1)
    page = {"dataset": "lamps", "schedule": "0 0 1 * *", "start_date": start, "doc_md": None}
    limits = {
        task.task_id: task.execution_timeout
        for task in epsilon_join(**page, approve_within=3 * day, job_limit=day).tasks
    }
    assert limits.pop("approve_epsilon") is None, "an answer may take longer"
    assert set(limits.values()) == {day}
    matched = epsilon_join(**page, match_with="stars", job_limit=2 * day)
    assert {task.execution_timeout for task in matched.tasks} == {2 * day}


def test_approval__is_asked_of_nobody_where_the_page_does_not_want_it(dag_bag: DagBag) -> None:
    assert all("approve_epsilon" not in dag.task_dict for dag in dag_bag.dags.values())
