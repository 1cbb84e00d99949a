"""Airflow's own scheduler in the test's process: real queue, pools and limits; tasks run one by one."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.executors.base_executor import BaseExecutor
from airflow.jobs.job import Job
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.models.backfill import Backfill
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.sdk.definitions.dag import _run_task
from airflow.utils.session import create_session
from airflow.utils.state import TaskInstanceState
from sqlalchemy import delete, select

BUNDLE = "dags-folder"
TURNS = 200


class Taken(BaseExecutor):
    """An executor that starts nothing: it takes what the scheduler hands out."""

    def __init__(self) -> None:
        super().__init__(parallelism=32)
        self.callbacks: list[Any] = []

    def sync(self) -> None:
        """There is nothing to look after."""

    def send_callback(self, request: Any) -> None:
        """Keep what a DAG processor would be asked to call."""
        self.callbacks.append(request)


class Scheduler:
    """The scheduler of some DAGs, which are unpaused; they begin without runs.

    Parameters
    ----------
    bag : the DAGs; their tasks run as they are there.
    only : names of the tasks that run; others are done when they are handed out, which saves a second each.
        ``None``: all run.
    with_schedule : whether the runs that are due are made.
    keeps_runs : whether the runs stay that the DAGs have.

    Attributes
    ----------
    at_once : of every turn, the runs' dates whose tasks the scheduler had handed out together.
    ran : dates and names of the tasks, in the order in which they ran.
    callbacks : what the DAG processor was asked to call.
    """

    def __init__(
        self,
        bag: DagBag,
        only: Collection[str] | None = None,
        with_schedule: bool = True,
        keeps_runs: bool = False,
    ) -> None:
        self.bag = bag
        self.only = only
        self.at_once: list[list[str]] = []
        self.ran: list[tuple[str, str]] = []
        with create_session() as session:
            if session.get(DagBundleModel, BUNDLE) is None:
                session.add(DagBundleModel(name=BUNDLE))
        sync_bag_to_db(bag, BUNDLE, None)
        with create_session() as session:
            for dag_id in bag.dags:
                if not keeps_runs:
                    session.execute(delete(DagRun).where(DagRun.dag_id == dag_id))
                session.get_one(DagModel, dag_id).is_paused = False
            job = Job()
            session.add(job)
            session.flush()
            session.expunge(job)
            session.execute(delete(Backfill))
        self._executor = Taken()
        self.callbacks = self._executor.callbacks
        self._scheduler = SchedulerJobRunner(job, executors=[self._executor])
        self._scheduler._scheduler_use_job_schedule = with_schedule

    def turn(self) -> bool:
        """Let the scheduler look once and the tasks run that it hands out; whether there were any."""
        with create_session() as session:
            self._scheduler._do_scheduling(session)
        given = list(self._executor.queued_tasks.values())
        self._executor.queued_tasks.clear()
        if given:
            self.at_once.append([])
        for workload in given:
            with create_session() as session:
                ti = session.get_one(TaskInstance, workload.ti.id)
                date = f"{ti.dag_run.logical_date or ti.dag_run.run_after:%Y-%m-%d}"
                self.at_once[-1].append(date)
                self.ran.append((date, ti.task_id))
                if self.only is not None and ti.task_id not in self.only:
                    ti.state = TaskInstanceState.SUCCESS
                    continue
                session.expunge_all()
            _run_task(ti=ti, task=self.bag.dags[ti.dag_id].task_dict[ti.task_id])
        return bool(given)

    def give_up_waiting(self) -> None:
        """Answer the questions whose time is over, as the scheduler does every few seconds."""
        self._scheduler.check_awaiting_input_timeouts()

    def close(self) -> None:
        """Leave no run behind for other tests."""
        with create_session() as session:
            for dag_id in self.bag.dags:
                session.execute(delete(DagRun).where(DagRun.dag_id == dag_id))
                session.get_one(DagModel, dag_id).is_paused = True

    def run(self) -> None:
        """Turn until there is nothing to do any more."""
        time.sleep(1)  # SQLite's clock has whole seconds: a run made in this one is not due yet
        for _ in range(TURNS):
            if not self.turn() and not self._goes_on():
                self._scheduler._mark_backfills_complete()
                return
        raise AssertionError(f"not done after {TURNS} turns")

    def _goes_on(self) -> bool:
        """Whether any run has something to do, other than to wait for a person."""
        with create_session() as session:
            waits = select(TaskInstance.run_id).where(TaskInstance.state == TaskInstanceState.AWAITING_INPUT)
            unfinished = select(DagRun.id).where(
                DagRun.dag_id.in_(self.bag.dags),
                DagRun.state.in_(["queued", "running"]),
                DagRun.run_id.not_in(waits),
            )
            return session.scalar(unfinished.limit(1)) is not None


def runs_of(dag_id: str, **where: Any) -> dict[str, DagRun]:
    """The runs of a DAG by their dates."""
    with create_session() as session:
        runs = session.scalars(
            select(DagRun).filter_by(dag_id=dag_id, **where).order_by(DagRun.logical_date)
        ).all()
        session.expunge_all()
    return {f"{run.logical_date:%Y-%m-%d}": run for run in runs}


def states_of(run: DagRun) -> dict[str, str]:
    """The states of a run's tasks."""
    return {ti.task_id: str(ti.state) for ti in run.get_task_instances()}
