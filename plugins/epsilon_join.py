"""The factory of DAGs: with this one function, a data set needs only one page in ``dags/``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from airflow.sdk import DAG
from airflow.sdk.definitions.callback import AsyncCallback, SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

import alerts
from approval import ApproveEpsilon
from assets import asset_of
from dag_texts import APPROVAL, TASKS, WHEN_A_TASK_FAILS
from intervals import IntervalTimetable
from links import ReportLink
from project import AIRFLOW, DATA_SET, TAG
from run_params import RUN_PARAMS
from spark_job import JOB_LIMIT, SparkJobOperator

SNAPSHOT = ("snapshots", "quarantine", "guard", "digests", "value_counts", "points")
RESULTS = ("epsilon", "epsilon_curve", "join_plan", "replicas", "pairs", "clusters", "outliers")
COMPARISON = ("changes", "cluster_flows", "cluster_names", "cluster_events")
MATCHES = ("matches",)

Job = Callable[..., SparkJobOperator]
"""Makes a task of one data set: :func:`_make_job` without its first two arguments."""


def epsilon_join(
    *,
    dataset: str,
    schedule: str,
    start_date: datetime,
    doc_md: str | None,
    tags: list[str] | None = None,
    match_with: str | None = None,
    compares_trees: bool = False,
    job_limit: timedelta = JOB_LIMIT,
    wait_for_snapshot: timedelta | None = None,
    approve_within: timedelta | None = None,
    deadline: timedelta | None = None,
    deadline_callback: AsyncCallback | SyncCallback | None = None,
    on_failure: Callable[[Any], Any] | None = None,
) -> DAG:
    """Make the DAG that joins, clusters and reports every snapshot of a data set, or matches two data sets.

    Parameters
    ----------
    dataset : name of the data set and of the DAG; its contract is ``data_contracts/<data set>.odcs.yaml``.
    schedule : cron expression (UTC) of the midnights at which intervals begin, as the contract says.
    start_date : the first run's date, with a time zone; earlier runs cannot be scheduled or back-filled.
    doc_md : what is special about this data set; on the DAG's page ``WHEN_A_TASK_FAILS`` follows it.
    tags : tags besides ``epsjoin``.
    match_with : the data set with which this one is matched, as the section ``match`` of its contract says;
        the DAG takes in snapshots of both, and has no pairs and no clusters. ``None``: the chain to clusters.
    compares_trees : whether the data set has documents, which are compared as trees, as the metric of its
        contract says: after the join of their points, candidates are refined to pairs.
    job_limit : a job that takes longer is ended, and tried again as after any other failure.
    wait_for_snapshot : how long after the end of its interval a snapshot may come; until then ``ingest``
        looks for it every hour, and the runs of the next intervals do not wait for this one. ``None``:
        without a snapshot the run is skipped.
    approve_within : before the join, ask a person whether eps is right; wait this long for an answer, then go
        on with the eps as fitted; the runs of the next intervals do not wait. ``None``: nobody is asked. In a
        back-fill, every run asks.
    deadline : a run should end this long after it was queued; a later one is marked, and
        ``deadline_callback`` is called. ``None``: runs may take as long as they need. All runs of a back-fill
        are queued when it is created: those that wait too long for their turn count as late.
    deadline_callback : what to call for a late run, as ``AsyncCallback("my_module.my_function")``; by default
        ``alerts.deadline_missed``.
    on_failure : what to call for a failed run, once per run: a function of Airflow's context, or a notifier.
        ``None``: nothing is called.

    Returns
    -------
    DAG : ``ingest >> quality_input >> fit_epsilon >> replicate >> merge_join >> cluster >> outliers >>
        compare >> quality_results >> report``; with ``approve_within``, ``approve_epsilon`` stands before
        ``replicate``; with ``compares_trees``, ``refine`` after ``merge_join``. With ``match_with``:
        ``ingest >> quality_input`` of both data sets, then
        ``match >> quality_matches >> report``.

    Raises
    ------
    ValueError
        No contract can have the name, or ``start_date`` has no time zone; a span of time is not above zero,
        there is a ``deadline_callback`` without a ``deadline``, or eps is to be approved where none is
        chosen: in matches, and of trees.

    Notes
    -----
    A run is named by its logical date, the start of its interval. From a bare cron string Airflow 3 makes no
    intervals, and the date of a run would be the day on which it is due, an interval later. Therefore the
    schedule is a timetable, ``intervals.IntervalTimetable``.
    """
    spans = {"wait_for_snapshot": wait_for_snapshot, "approve_within": approve_within, "deadline": deadline}
    spans["job_limit"] = job_limit
    _check_names(dataset, start_date)
    _check(dataset, spans, deadline_callback, match_with, compares_trees)
    timetable = IntervalTimetable(schedule, timezone="UTC", first=start_date)
    waits = sum((span for span in (wait_for_snapshot, approve_within) if span is not None), timedelta(0))
    with DAG(
        dag_id=dataset,
        schedule=timetable,
        start_date=start_date,
        catchup=False,  # older snapshots are back-filled on purpose
        # a run that cannot begin for as long as an interval is never made: the next one takes its place
        max_active_runs=1 + timetable.count_ends_within(waits),
        params=deepcopy(RUN_PARAMS),  # Airflow writes a run's values into its Param objects
        tags=[TAG, *(tags or [])],
        default_args={"owner": "epsjoin"},
        on_failure_callback=on_failure,
        deadline=_make_alert(dataset, deadline, deadline_callback),
        doc_md=(doc_md or "")
        + WHEN_A_TASK_FAILS.format(airflow=AIRFLOW, dataset=dataset, start=f"{start_date:%Y-%m-%d}"),
    ) as dag:
        job = partial(_make_job, dataset, job_limit)
        quality_input = _take_in(job, wait_for_snapshot)
        if match_with is not None:
            of_others = partial(_make_job, match_with, job_limit)
            others = _take_in(of_others, wait_for_snapshot, suffix=f"_{match_with}")
            _match(job, match_with, [quality_input, others])
        else:
            _find_clusters(job, quality_input, approve_within, compares_trees)
    return dag


def _check_names(dataset: str, start_date: datetime) -> None:
    """Refuse a name that no contract can have, and a date that is not the same everywhere."""
    if DATA_SET.fullmatch(dataset) is None:
        raise ValueError(
            f"data set {dataset!r}: a name is lower-case letters, digits and _, a letter first, 245 at most"
        )
    if start_date.tzinfo is None:
        raise ValueError(f"start_date of {dataset} has no time zone; give it tzinfo=UTC")


def _check(
    dataset: str,
    spans: Mapping[str, timedelta | None],
    deadline_callback: AsyncCallback | SyncCallback | None,
    match_with: str | None,
    compares_trees: bool,
) -> None:
    """Refuse arguments of a DAG that contradict one another."""
    for name, span in spans.items():
        if span is not None and span <= timedelta(0):
            raise ValueError(f"{name} of {dataset} must be a span of time above zero, or None, not {span!r}")
    if deadline_callback is not None and spans["deadline"] is None:
        raise ValueError(f"deadline_callback of {dataset} has no deadline to wait for; give deadline, too")
    is_approved = spans["approve_within"] is not None
    if match_with is not None and is_approved:
        raise ValueError(f"{dataset} is matched by the eps of its contract; leave approve_within out")
    if compares_trees and (match_with is not None or is_approved):
        raise ValueError(
            f"{dataset} compares trees by the eps of its contract; leave match_with and approve_within out"
        )


def _make_alert(
    dataset: str, deadline: timedelta | None, callback: AsyncCallback | SyncCallback | None
) -> DeadlineAlert | None:
    if deadline is None:
        return None
    return DeadlineAlert(
        name=f"{dataset} is late",
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=deadline,
        callback=callback or AsyncCallback(alerts.deadline_missed),
    )


def _make_job(
    dataset: str,
    limit: timedelta,
    name: str,
    reads: Sequence[str],
    *writes: str,
    stage: str | None = None,
    wait: timedelta | None = None,
    suffix: str = "",
) -> SparkJobOperator:
    """Make a task of the DAG at hand; a suffix tells the tasks of a second data set apart."""
    task = f"{name}_{stage}" if stage else name
    return SparkJobOperator(
        task_id=task + suffix,
        job=name,
        dataset=dataset,
        reads=reads,
        writes=writes,
        arguments=["--stage", stage] if stage else [],
        wait=wait,
        doc_md=TASKS[task],
        execution_timeout=limit,
    )


def _take_in(job: Job, wait: timedelta | None, suffix: str = "") -> SparkJobOperator:
    """Make the tasks that read a snapshot and check it; return the last one."""
    ingest = job("ingest", ["source"], *SNAPSHOT, wait=wait, suffix=suffix)
    quality_input = job("quality", SNAPSHOT, "quality", stage="input", suffix=suffix)
    ingest >> quality_input
    return quality_input


def _report(job: Job, last: SparkJobOperator, stage: str, tables: Sequence[str]) -> None:
    """Make the tasks that check the tables and report on them, after the last one that writes them."""
    checked = job("quality", tables, "quality", stage=stage)
    report = job("report", [*SNAPSHOT, *tables, "quality"], "report")
    report.operator_extra_links = (ReportLink(),)
    last >> checked >> report


def _match(job: Job, match_with: str, taken_in: Sequence[SparkJobOperator]) -> None:
    """Make the tasks from the points of two data sets to the report on their matches."""
    match = job("match", ["points"], *MATCHES)
    match.inlets.append(asset_of(match_with, "points"))
    taken_in >> match
    _report(job, match, "matches", MATCHES)


def _find_clusters(
    job: Job, quality_input: SparkJobOperator, approve_within: timedelta | None, compares_trees: bool
) -> None:
    """Make the tasks from the points of a snapshot to the report on its clusters."""
    fit_epsilon = job("fit_epsilon", ["points"], "epsilon", "epsilon_curve")
    replicate = job("replicate", ["points", "epsilon"], "join_plan", "replicas")
    found = "candidates" if compares_trees else "pairs"
    joined = merge_join = job("merge_join", ["join_plan", "replicas"], found)
    ranked_by, results = ["pairs"], [*RESULTS, *COMPARISON]
    if compares_trees:
        joined = job("refine", ["points", "join_plan", "candidates"], "pairs")
        merge_join >> joined
        ranked_by.append("candidates")
        results.insert(results.index("pairs"), "candidates")
    cluster = job("cluster", ["points", "pairs"], "clusters")
    outliers = job("outliers", ["points", "join_plan", *ranked_by, "clusters"], "outliers")
    compare = job("compare", ["points", "clusters"], *COMPARISON)

    quality_input >> fit_epsilon
    if approve_within is None:
        fit_epsilon >> replicate
    else:
        fit_epsilon >> ApproveEpsilon(within=approve_within, doc_md=APPROVAL) >> replicate
    replicate >> merge_join
    joined >> cluster >> outliers >> compare
    _report(job, compare, "results", results)
