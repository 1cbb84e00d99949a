"""The DAG of a data set: one function, so that a data set is one page in ``dags/``."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from lake import TAG
from spark_job import SparkJobOperator

WHEN_IT_FAILS = """
**When a task fails**, the last line of its log says what happened, and its exit code what to do:

| exit code | meaning | what to do |
|---|---|---|
| 1, others | something broke: machine, network, a bug | three tries were made; read the log, clear the task |
| 2 | wrong arguments or params | correct the params or `data_contracts/{dataset}.odcs.yaml`, trigger again |
| 3 | the data was refused | `quarantine` has the reason of each bad row; repair the source, clear `ingest` |
| 4 | refused by a budget | trigger again with the eps that the message names, or, knowingly, a higher limit |
| 5 (skipped) | nothing to do | the run's interval has no snapshot |

Tables lie in `<lake>/{dataset}/`; `snapshots` shows what was read, `job_metrics` what every job counted.

**Clear** any task at any time, *with downstream*: every job replaces exactly its run's slice of its tables.

**Back-fill** (one at a time per DAG):
`bin/airflow backfill create --dag-id {dataset} --from-date {start} --to-date <last run> --max-active-runs 1`
makes the runs that are missing; `--reprocess-behavior completed` makes the others again, too.

**Trigger by hand** with a logical date, the first day of the interval; empty fields of the form mean the
data set's defaults. At a shell, without a scheduler: `bin/airflow dags test {dataset} {start}`.
"""


def _field(section: str, text: str, kind: str, **limits: Any) -> Param:
    """Make a field of the trigger form that may stay empty: then the data set's default holds."""
    text = f"{text} Empty: the data set's default."
    return Param(None, type=["null", kind], section=section, description_md=text, **limits)


_EPS = "Distance threshold"
_CLUSTERS = "Clusters and outliers"
_JOIN = "How the join is cut"
_LIMITS = "Limits, sample, seed"

RUN_PARAMS = {
    "eps": _field(
        _EPS,
        "Two records are neighbours at this distance or less, in the unit of the data set's metric. "
        "Without a default, `fit_epsilon` chooses it by the three fields below.",
        "number",
        exclusiveMinimum=0,
    ),
    "neighbours": _field(
        _EPS,
        "Choose eps so that a record has this many neighbours on average, itself not counted.",
        "number",
        exclusiveMinimum=0,
    ),
    "pairs": _field(
        _EPS,
        "Choose eps so that the join has this many pairs; beats `neighbours`.",
        "number",
        exclusiveMinimum=0,
    ),
    "k_distance_quantile": _field(
        _EPS,
        "Choose eps as this quantile (0 to 1) of the distance to the (min_pts - 1)-th neighbour; "
        "beats `neighbours`.",
        "number",
        exclusiveMinimum=0,
        exclusiveMaximum=1,
    ),
    "min_pts": _field(
        _CLUSTERS,
        "Records within eps, the record itself included, that make it the core of a cluster.",
        "integer",
        minimum=1,
        maximum=2**31,
    ),
    "lof_k": _field(
        _CLUSTERS, "Neighbours that the local outlier factor looks at.", "integer", minimum=1, maximum=2**31
    ),
    "cuts": _field(
        _JOIN,
        "`planned`: a tree of cuts fitted to a sample. `regular`: halve the space again and again (GESS).",
        "string",
        enum=["planned", "regular", None],
    ),
    "n_parts": _field(
        _JOIN, "Parts that the join is cut into, each one Spark task.", "integer", minimum=1, maximum=2**20
    ),
    "k": _field(
        _JOIN,
        "Regular cuts: a cube that crosses more than k cuts of a level is not split; 0 is MSJ. "
        "Without a default, a sample chooses it.",
        "integer",
        minimum=0,
        maximum=2**15,
    ),
    "msl": _field(
        _JOIN,
        "Regular cuts: deepest level at which a cube may be split; 0 is the first. Without a default, a "
        "sample chooses it.",
        "integer",
        minimum=0,
        maximum=62,
    ),
    "replication_budget": _field(
        _LIMITS, "Rows per record that replication must not exceed.", "number", minimum=1
    ),
    "worker_memory_mb": _field(
        _LIMITS,
        "Memory of a Python worker, in MB of 2**20 bytes: parts are cut so small that one fits.",
        "integer",
        minimum=512,
        maximum=2**24,
    ),
    "max_pairs": _field(
        _LIMITS,
        "The join is refused (exit code 4) when more pairs are expected, or appear.",
        "integer",
        minimum=1,
        maximum=2**62,
    ),
    "sample_rows": _field(
        _LIMITS, "Records that the plan and the fit look at.", "integer", minimum=100, maximum=10**7
    ),
    "seed": _field(_LIMITS, "Seed of every random choice.", "integer", minimum=0, maximum=2**63),
}
"""The parameters of a run as a checked form: names and ranges are those of ``epsjoin.params.RunParams``."""


def epsilon_join(
    *, dataset: str, schedule: str, start_date: datetime, doc_md: str | None, tags: list[str] | None = None
) -> DAG:
    """Make the DAG that joins, clusters and reports every snapshot of a data set.

    Parameters
    ----------
    dataset : name of the data set and of the DAG; its contract is ``data_contracts/<data set>.odcs.yaml``.
    schedule : cron expression (UTC) of where the runs begin; its interval must be the contract's.
    start_date : the first run's date, with a time zone; earlier runs cannot be scheduled or back-filled.
    doc_md : what is special about this data set; ``WHEN_IT_FAILS`` follows it on the DAG's page.
    tags : tags besides ``epsjoin``.

    Returns
    -------
    DAG : ``ingest >> quality_input >> fit_epsilon >> replicate >> merge_join >> cluster >> outliers >>
        quality_results >> report``.

    Notes
    -----
    A run is named by its logical date, the start of its interval. For a bare cron string Airflow 3 makes no
    intervals, and a run's date would be the day it is due, an interval later: hence the timetable.
    """
    with DAG(
        dag_id=dataset,
        schedule=CronDataIntervalTimetable(schedule, timezone="UTC"),
        start_date=start_date,
        catchup=False,  # older snapshots are back-filled on purpose
        max_active_runs=1,
        params=deepcopy(RUN_PARAMS),  # Airflow writes a run's values into its Param objects
        tags=[TAG, *(tags or [])],
        default_args={"owner": "epsjoin"},
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

        (
            ingest
            >> quality("input", "the tables of the snapshot")
            >> fit_epsilon
            >> replicate
            >> merge_join
            >> cluster
            >> outliers
            >> quality("results", "all tables of the results")
            >> report
        )
    return dag
