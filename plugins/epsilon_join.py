"""The DAG of a data set: one function, so that a data set is one page in ``dags/``."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow.sdk.definitions.callback import AsyncCallback, SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

import alerts
from approval import ApproveEpsilon
from lake import TAG
from run_params import RUN_PARAMS
from spark_job import SparkJobOperator

WHEN_IT_FAILS = """
**When a task fails**, the last line of its log says what happened, and its exit code what to do:

| exit code | meaning | what to do |
|---|---|---|
| 1, others | something broke: machine, network, a bug | three tries were made; read the log, clear the task |
| 2 | wrong arguments or params | correct the params or `data_contracts/{dataset}.odcs.yaml`, trigger again |
| 3 | the data was refused | `quarantine` or `quality` says why; repair the source, clear `ingest` |
| 4 | refused by a budget | trigger again with the eps that the message names, or, knowingly, a higher limit |
| 5 (skipped) | nothing to do | the run's interval has no snapshot |

Tables lie in `<lake>/{dataset}/`; `snapshots` shows what was read, `job_metrics` what every job counted.

**Clear** any task at any time, *with downstream*: every job replaces exactly its run's slice of its tables.

**Back-fill** (one at a time per DAG, which must not be paused), here, by REST, or
`bin/airflow backfill create --dag-id {dataset} --from-date {start} --to-date <last run> --max-active-runs 2`
makes the runs that are missing, in any order, the schedule beside them; `--reprocess-behavior completed`
makes the others again, too, and `--dag-run-conf` gives them other params. Where no Airflow runs:
`bin/airflow backfill run {dataset} {start} <last run>`.

**Trigger by hand** with a logical date, the first day of the interval, that has no run yet; empty fields of
the form mean the data set's defaults. At a shell, without a scheduler:
`bin/airflow dags test {dataset} {start}`.
"""


def epsilon_join(
    *,
    dataset: str,
    schedule: str,
    start_date: datetime,
    doc_md: str | None,
    tags: list[str] | None = None,
    approve_within: timedelta | None = None,
    deadline: timedelta | None = None,
    deadline_callback: AsyncCallback | SyncCallback | None = None,
    on_failure: Callable[[Any], Any] | None = None,
) -> DAG:
    """Make the DAG that joins, clusters and reports every snapshot of a data set.

    Parameters
    ----------
    dataset : name of the data set and of the DAG; its contract is ``data_contracts/<data set>.odcs.yaml``.
    schedule : cron expression (UTC) of where the runs begin; its interval must be the contract's.
    start_date : the first run's date, with a time zone; earlier runs cannot be scheduled or back-filled.
    doc_md : what is special about this data set; ``WHEN_IT_FAILS`` follows it on the DAG's page.
    tags : tags besides ``epsjoin``.
    approve_within : ask a person whether eps is right, before the join; so long to wait for an answer, then
        the run goes on with the eps as fitted. ``None``: nobody is asked. In a back-fill, every run asks.
    deadline : a run should end this long after it was queued; a later one is marked, and
        ``deadline_callback`` called. ``None``: runs may take as long as they need. All runs of a back-fill
        are queued when it is made: those that wait their turn count as late.
    deadline_callback : whom to tell of a late run, as ``AsyncCallback("my_module.my_function")``; by default
        ``alerts.deadline_missed``.
    on_failure : whom to tell of a failed run, once a run: a function of Airflow's context, or a notifier.
        ``None``: nobody.

    Returns
    -------
    DAG : ``ingest >> quality_input >> fit_epsilon >> replicate >> merge_join >> cluster >> outliers >>
        quality_results >> report``; with ``approve_within``, ``approve_epsilon`` stands before ``replicate``.

    Raises
    ------
    ValueError
        A span of time is not above zero, or there is a ``deadline_callback`` without a ``deadline``.

    Notes
    -----
    A run is named by its logical date, the start of its interval. For a bare cron string Airflow 3 makes no
    intervals, and a run's date would be the day it is due, an interval later: hence the timetable.
    """
    for name, span in (("approve_within", approve_within), ("deadline", deadline)):
        if span is not None and span <= timedelta(0):
            raise ValueError(f"{name} of {dataset} must be a span of time above zero, or None, not {span!r}")
    if deadline_callback is not None and deadline is None:
        raise ValueError(f"deadline_callback of {dataset} has no deadline to wait for; give deadline, too")
    with DAG(
        dag_id=dataset,
        schedule=CronDataIntervalTimetable(schedule, timezone="UTC"),
        start_date=start_date,
        catchup=False,  # older snapshots are back-filled on purpose
        max_active_runs=1,
        params=deepcopy(RUN_PARAMS),  # Airflow writes a run's values into its Param objects
        tags=[TAG, *(tags or [])],
        default_args={"owner": "epsjoin"},
        on_failure_callback=on_failure,
        deadline=DeadlineAlert(
            name=f"{dataset} is late",
            reference=DeadlineReference.DAGRUN_QUEUED_AT,
            interval=deadline,
            callback=deadline_callback or AsyncCallback(alerts.deadline_missed),
        )
        if deadline is not None
        else None,
        doc_md=(doc_md or "") + WHEN_IT_FAILS.format(dataset=dataset, start=f"{start_date:%Y-%m-%d}"),
    ) as dag:

        def job(name: str, writes: list[str], doc: str, hours: float = 1, **more: Any) -> SparkJobOperator:
            return SparkJobOperator(
                job=name,
                dataset=dataset,
                writes=writes,
                doc_md=doc,
                execution_timeout=timedelta(hours=hours),
                **more,
            )

        def quality(stage: str, of: str) -> SparkJobOperator:
            return job(
                "quality",
                ["quality"],
                f"Great Expectations looks whether {of} are as their contracts in `data_contracts` say; "
                "`quality` has every expectation. **Exit code 3**: one of severity error does not hold; "
                "warnings are in the report.",
                task_id=f"quality_{stage}",
                arguments=["--stage", stage],
            )

        ingest = job(
            "ingest",
            ["snapshots", "quarantine", "points"],
            "Reads the snapshot of the run's interval, checks it against the contract, writes `points`. "
            "**Exit code 5 (skipped)**: there is no snapshot. **3**: too many bad rows; `quarantine` has "
            "each with reason, source and line.",
        )
        fit_epsilon = job(
            "fit_epsilon",
            ["epsilon", "epsilon_curve"],
            "Chooses eps from the power law of the pair count, unless the run or the contract gives it. "
            "`epsilon` says which way, and how well the law fits. **Exit code 4**: more pairs are expected "
            "than `max_pairs`; the message has the largest eps that fits.",
        )
        replicate = job(
            "replicate",
            ["join_plan", "replicas"],
            "Plans the cuts and writes every point to each part that its cube touches. **Exit code 4**: more "
            "rows per point than `replication_budget`.",
        )
        merge_join = job(
            "merge_join",
            ["pairs"],
            "Joins the parts, each on its own, into `pairs`: all pairs within eps, each once. "
            "**Exit code 4**: more pairs came than `max_pairs`.",
            hours=4,
        )
        cluster = job("cluster", ["clusters"], "DBSCAN from the pairs: cluster, role, degree of every point.")
        outliers = job("outliers", ["outliers"], "Local outlier factor, k-distance and rank of every point.")
        report = job("report", ["report"], "One HTML page with the run's numbers, plots and checks.")

        approved = fit_epsilon
        if approve_within is not None:
            doc = "Asks a person whether eps is right. **Rejected**: what follows is skipped."
            approved = fit_epsilon >> ApproveEpsilon(within=approve_within, doc_md=doc)
        (ingest >> quality("input", "the tables of the snapshot") >> fit_epsilon)
        (
            approved
            >> replicate
            >> merge_join
            >> cluster
            >> outliers
            >> quality("results", "all tables of the results")
            >> report
        )
    return dag
