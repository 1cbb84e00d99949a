"""What Airflow's pages say about the DAG of a data set and about each of its tasks, in Markdown."""

from __future__ import annotations

WHEN_A_TASK_FAILS = """
**When a task fails**, the last line of its log says what happened, and its exit code what to do:

| exit code | meaning | what to do |
|---|---|---|
| 1, others | something broke: machine, network, a bug | three tries were made; read the log, clear the task |
| 2 | wrong arguments or params | correct the contract, clear the task; for other params, back-fill: see 4 |
| 3 | a table or the data refused | clear the task that is named; or mend what `quality`, `quarantine` say |
| 4 | refused by a budget | back-fill this date with the eps of the message, or, knowingly, a higher limit |
| 5 (skipped) | nothing to do | the run's interval has no snapshot |

Tables lie in `<lake>/{dataset}/`; `snapshots` shows what was read, `job_metrics` what every job counted.

**Clear** any task at any time, *with downstream*: every job replaces exactly its run's slice of its tables.

**Back-fill** (one at a time per DAG, which must not be paused), here, by REST, or
`{airflow} backfill create --dag-id {dataset} --from-date {start} --to-date <last run> --max-active-runs 2`
makes the runs that are missing, in any order, the schedule beside them; `--reprocess-behavior failed`
makes those again that failed, `completed` all of them, and `--dag-run-conf` gives them other
params: no date can be triggered a second time. Where no Airflow runs:
`{airflow} backfill run {dataset} {start} <last run>`.

**Trigger by hand** with a logical date, the first day of the interval, that has no run yet: any other,
such as the form's default, or one that is not over, is refused. Empty fields of the form mean the data set's
defaults. At a shell, where no scheduler runs or this DAG is paused: `{airflow} run {dataset} {start}`.
"""
"""This text stands on the page of a DAG, below what is special about its data set."""

_QUALITY = (
    "Great Expectations checks whether {tables} are as their contracts in `data_contracts` say; "
    "`quality` has every expectation. **Exit code 3**: one of severity error does not hold; "
    "warnings are in the report."
)

TASKS = {
    "ingest": (
        "Reads the snapshot of the run's interval, checks it against the contract, writes `points`. "
        "**Exit code 5 (skipped)**: there is no snapshot. **3**: too many bad rows, which `quarantine` has, "
        "each with reason, source and line; or the guard holds the snapshot, and `guard` says why."
    ),
    "quality_input": _QUALITY.format(tables="the tables of the snapshot"),
    "fit_epsilon": (
        "Chooses eps from the power law of the pair count, unless the run or the contract gives it. "
        "`epsilon` says which way, and how well the law fits. **Exit code 4**: more pairs are expected "
        "than `max_pairs`; the message has the largest eps that fits."
    ),
    "replicate": (
        "Plans the cuts and writes every point to each part that its cube touches. **Exit code 4**: more "
        "rows per point than `replication_budget`."
    ),
    "merge_join": (
        "Joins the parts, each on its own, into `pairs`: all pairs within eps, each once. "
        "The log says how far it is, how many pairs it will have and how long it takes. "
        "**Exit code 4**: more pairs than `max_pairs` came or are sure to come; the last line has an eps "
        "that fits."
    ),
    "refine": (
        "Of documents: compares the trees of all `candidates`; `pairs` are those within eps edits. "
        "**Exit code 3**: a table was lost or made anew meanwhile; the message says which job to run again."
    ),
    "cluster": "DBSCAN from the pairs: cluster, role, degree of every point.",
    "outliers": "Local outlier factor, k-distance and rank of every point.",
    "compare": (
        "Finds what differs from the run before, and names the clusters as it did: `changes`, "
        "`cluster_flows`, `cluster_names`, `cluster_events`. Of later runs it remakes what is against this "
        "one now, and the names. "
        "**Exit code 1**: another run's task changed the same slices; another try sees both."
    ),
    "match": (
        "Finds the best matches of the run's records among those of the other data set: `matches`. The slice "
        "of the next run is made again if it was made without this one. **Exit code 3**: a record came later "
        "than the contract says."
    ),
    "quality_matches": _QUALITY.format(tables="the matches"),
    "quality_results": _QUALITY.format(tables="all tables of the results"),
    "report": "One HTML page with the run's numbers, plots and checks.",
}
"""This text stands on the page of a task: what it does, and where to look when it refuses."""

APPROVAL = "Asks a person whether eps is right. **Rejected**: what follows is skipped."
"""This text stands on the page of the task that asks for approval, where a data set has one."""
