"""The step ``refine``: keeps those candidates whose documents are within eps edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from epsjoin.console import counted, say
from epsjoin.errors import TableError
from epsjoin.kernels.ids import index_ids, rows_of
from epsjoin.lake import slices, targets, transactions
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.schemas import parse_ddl
from epsjoin.lake.targets import Target
from epsjoin.local.sweep.sweeping import check_n_jobs
from epsjoin.local.trees.points import OPTIONS
from epsjoin.spark.job.job import Job
from epsjoin.spark.join.records import SIDES, bring_records, compare_records
from epsjoin.spark.join.trees import tree_comparer
from epsjoin.spark.rows import scan
from epsjoin.spark.rows.rows import DriverRows, FrameRows, Rows, StoredRows
from epsjoin.spark.rows.stored import MAX_HERE_BYTES, in_table
from epsjoin.spark.rows.write import Written
from epsjoin.spark.tasks.arrow import Task
from epsjoin.spark.tasks.reports import TaskReport

BATCH_ROWS = 1 << 13
"""Number of candidates that a thread of the driver compares at a time."""

_IDS, _TREES = "left_id long, right_id long", "id long, tree binary"


def run(job: Job, max_here: int = MAX_HERE_BYTES) -> dict[str, float]:
    """Replace the run's slice of ``pairs``: the candidates whose documents are within eps edits.

    Few documents and candidates are compared by threads of the driver, without a session. Otherwise two joins
    by id bring the trees to the candidates, and tasks compare them. All candidates are compared, in
    increments, too, since most of a run's cost is in finding them.

    Parameters
    ----------
    max_here : maximum number of bytes of candidates and trees that the driver reads.

    Raises
    ------
    TableError
        ``candidates`` has no slice of this run, or documents or candidates were lost on the way.
    """
    job = replace(job, lake=slices.as_now(job.lake))
    inputs = Fingerprints(job.lake, job.run, is_made_now=True)
    pairs, k = inputs.slice("pairs"), int(inputs.row("join_plan")["eps"])
    candidates = StoredRows.of(job, inputs.slice("candidates"), _IDS)
    trees = StoredRows.of(job, Slice("points", job.run), _TREES)
    is_small = candidates.bytes_read + trees.bytes_read <= max_here
    rows = _hold(candidates, trees) if is_small else _join(job, inputs, candidates.n)
    into = targets.target_of(job.lake, pairs)
    with targets.deleted_on_error(into):
        files, counters = Written.of(TaskReport.of_batches(rows.run(_make_refiner(k, into))))
        n_compared = counters.get("candidates", 0)
        if n_compared != candidates.n:
            raise TableError(
                f"{n_compared:,.0f} candidates were compared, the log says {candidates.n:,}; run refine again"
            )
    transactions.commit(job.lake, {pairs: files})
    n_pairs = sum(file.rows for file in files)
    of = f"{counted(n_pairs, 'pair')} of {counted(candidates.n, 'candidate')}"
    say(f"refine: {of} within {counted(k, 'edit')}")
    return {"refinements": 0, "subtree_pairs": 0, **counters, "candidates": candidates.n, "pairs": n_pairs}


def _make_refiner(k: int, into: Target) -> Task:
    """Make the work of a task that writes the pairs among its candidates, and yields one report."""

    def refine(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report = TaskReport(counters={"candidates": 0})
        compare = tree_comparer(k, OPTIONS, report.counters)
        found = (compare_records(batch, compare) for batch in batches)
        report.write(into, report.timed(found, "refining"))
        yield report.to_batch()

    return refine


def _join(job: Job, inputs: Fingerprints, n_candidates: int) -> Rows:
    """Let Spark bring the trees to the candidates."""
    say(f"refine: {counted(n_candidates, 'candidate')}, by tasks")
    candidates = scan.read(job.spark, job.lake, inputs.slice("candidates"))
    points = scan.read(job.spark, job.lake, Slice("points", job.run))
    return FrameRows(bring_records(candidates, points.withColumnRenamed("tree", "record")))


def _hold(candidates: StoredRows, trees: StoredRows) -> DriverRows:
    """Read candidates and trees on the driver, which brings them together batch by batch.

    Raises
    ------
    TableError
        A candidate has an id that no document has.
    """
    documents, asked = (_read(rows) for rows in (trees, candidates))
    documents = documents.sort_by("id")
    index = index_ids(documents["id"].to_numpy())
    packed = documents["tree"].combine_chunks()
    ids = [asked[f"{side}_id"].to_numpy() for side in SIDES]

    def make(begin: int) -> Iterator[pa.RecordBatch]:
        columns: dict[str, object] = {}
        for side, of_side in zip(SIDES, ids, strict=True):
            some = of_side[begin : begin + BATCH_ROWS]
            rows = rows_of(index, some)
            if rows.size and rows.min() < 0:
                raise TableError(f"points has no document of id {some[rows.argmin()]}; run merge_join again")
            columns[f"{side}_id"], columns[f"{side}_record"] = some, packed.take(pa.array(rows))
        yield pa.record_batch(columns)

    begins = range(0, asked.num_rows, BATCH_ROWS)
    return DriverRows(trees.session, check_n_jobs(-1), begins, make, "")


def _read(rows: StoredRows) -> pa.Table:
    schema = parse_ddl(rows.schema)
    return in_table(rows.scan(schema.names, iter), schema)
