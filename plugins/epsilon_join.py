"""The DAG of a data set: one function, so that a data set is one page in ``dags/``."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param
from airflow.sdk.definitions.callback import AsyncCallback, SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

import alerts
from approval import ApproveEpsilon
from lake import TAG
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


def _field(section: str, title: str, text: str, kind: str, **limits: Any) -> Param:
    """Make a field of the trigger form that may stay empty: then the data set's default holds.

    No code in its text: Airflow's form draws that as a box, over the line above.
    """
    text = f"{text} Empty: the data set's default."
    return Param(None, type=["null", kind], title=title, section=section, description_md=text, **limits)


_EPS = "Distance threshold"
_CLUSTERS = "Clusters and outliers"
_JOIN = "How the join is cut"
_LIMITS = "Limits, sample, seed"

RUN_PARAMS = {
    "eps": _field(
        _EPS,
        "Distance threshold eps",
        "Two records are neighbours at this distance or less, in the unit of the data set's metric. "
        "Without a default, it is chosen by the three fields below. A back-fill takes this form's fields "
        "only with 'Override parameters on existing runs'.",
        "number",
        exclusiveMinimum=0,
    ),
    "neighbours": _field(
        _EPS,
        "Neighbours per record",
        "Choose eps so that a record has this many neighbours on average, itself not counted.",
        "number",
        exclusiveMinimum=0,
    ),
    "pairs": _field(
        _EPS,
        "Pairs",
        "Choose eps so that the join has this many pairs; beats the neighbours above.",
        "number",
        exclusiveMinimum=0,
    ),
    "k_distance_quantile": _field(
        _EPS,
        "Quantile of the k-distance",
        "Choose eps as this quantile (0 to 1) of the distance to the (min_pts - 1)-th neighbour; "
        "beats the neighbours above.",
        "number",
        exclusiveMinimum=0,
        exclusiveMaximum=1,
    ),
    "min_pts": _field(
        _CLUSTERS,
        "Records that make a core (min_pts)",
        "Records within eps, the record itself included, that make it the core of a cluster.",
        "integer",
        minimum=1,
        maximum=2**31,
    ),
    "lof_k": _field(
        _CLUSTERS,
        "Neighbours of the outlier factor",
        "Neighbours that the local outlier factor looks at.",
        "integer",
        minimum=1,
        maximum=2**31,
    ),
    "cuts": _field(
        _JOIN,
        "Kind of cuts",
        "*planned*: a tree of cuts fitted to a sample. *regular*: halve the space again and again (GESS).",
        "string",
        enum=["planned", "regular", None],
    ),
    "n_parts": _field(
        _JOIN,
        "Number of parts",
        "Parts that the join is cut into, each one Spark task.",
        "integer",
        minimum=1,
        maximum=2**20,
    ),
    "k": _field(
        _JOIN,
        "Cuts crossed at most (k)",
        "Regular cuts: a cube that crosses more than k cuts of a level is not split; 0 is MSJ. "
        "Without a default, a sample chooses it.",
        "integer",
        minimum=0,
        maximum=2**15,
    ),
    "msl": _field(
        _JOIN,
        "Deepest level of a split (msl)",
        "Regular cuts: deepest level at which a cube may be split; 0 is the first. Without a default, a "
        "sample chooses it.",
        "integer",
        minimum=0,
        maximum=62,
    ),
    "replication_budget": _field(
        _LIMITS,
        "Rows per record at most",
        "Rows per record that replication must not exceed.",
        "number",
        minimum=1,
    ),
    "worker_memory_mb": _field(
        _LIMITS,
        "Memory of a worker, MB",
        "Memory of a Python worker, in MB of 2**20 bytes: parts are cut so small that one fits.",
        "integer",
        minimum=768,
        maximum=2**24,
    ),
    "max_pairs": _field(
        _LIMITS,
        "Pairs at most",
        "The join is refused (exit code 4) when more pairs are expected, or appear.",
        "integer",
        minimum=1,
        maximum=2**62,
    ),
    "sample_rows": _field(
        _LIMITS,
        "Records in the sample",
        "Records that the plan and the fit look at.",
        "integer",
        minimum=100,
        maximum=10**7,
    ),
    "seed": _field(_LIMITS, "Seed", "Seed of every random choice.", "integer", minimum=0, maximum=2**63),
}
"""The parameters of a run as a checked form: names and ranges are those of ``epsjoin.params.RunParams``."""


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
