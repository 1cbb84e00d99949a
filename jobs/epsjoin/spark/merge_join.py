"""Merge join: every part by itself, every pair once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa

from epsjoin.errors import BudgetError, TableError
from epsjoin.local.plan import JoinPlan, join_part
from epsjoin.local.sweeping import Pairs
from epsjoin.spark import tables, tasks
from epsjoin.spark.arrow import to_codes, to_matrix
from epsjoin.spark.job import Job, say
from epsjoin.spark.lineage import stamp_of_join

BATCH_PAIRS = 1 << 18


class Part(NamedTuple):
    """A part and the files that its rows lie in."""

    number: int
    files: list[tables.File]


def join_parts(job: Job) -> dict[str, float]:
    """Replace the run's slice of ``pairs``.

    One task per part reads the part's files itself, joins it, and writes its pairs batch by batch; the
    driver sees file facts and counters only. The largest parts start first.

    Raises
    ------
    BudgetError
        More than ``max_pairs`` pairs were found.
    TableError
        ``replicas`` has no slice of this run, or a file does not hold the rows that the log says.
    """
    plan_row = tables.read_row(job.lake, "join_plan", job.run)
    by_part: dict[int, list[tables.File]] = defaultdict(list)
    stamp = stamp_of_join(job.lake, job.run)
    files = tables.files_of(job.lake, "replicas", job.run, stamp)
    for file in files:
        by_part[int(file.partition["part"])].append(file)
    parts = [Part(number, mine) for number, mine in by_part.items()]
    parts.sort(key=lambda part: (-sum(file.size for file in part.files), part.number))
    say(f"merge_join: {sum(file.rows for file in files):,} rows in {len(parts)} parts")
    work = _joiner(
        plan_row["plan"],
        job.lake.location("replicas"),
        tables.target(job.lake, "pairs", job.run, stamp),
        len(job.lake.source.coordinates),
        job.params.max_pairs,
    )
    reports = tasks.collect_reports(tasks.run_tasks(job.spark, parts, work, tasks.REPORT_SCHEMA))
    counters = tasks.add_counters(reports)
    if counters["pairs"] > job.params.max_pairs:
        raise BudgetError(
            f"more than {job.params.max_pairs:,} pairs (max_pairs) lie within eps {plan_row['eps']:g}, "
            f"{plan_row['expected_pairs']:,.0f} were expected; take a smaller eps, or allow more pairs"
        )
    if counters["rows"] != sum(file.rows for file in files):
        raise TableError("the parts joined fewer rows than replicas has; run merge_join again")
    tables.commit(job.lake, "pairs", job.run, [file for report in reports for file in report.files], stamp)
    say(f"merge_join: {counters['pairs']:,.0f} pairs, {counters['candidates']:,.0f} candidates")
    return {
        **counters,
        "expected_pairs": plan_row["expected_pairs"],
        "expected_candidates": plan_row["expected_candidates"],
    }


def _joiner(
    plan_json: str, replicas: str, pairs: tables.Target, dimensions: int, max_pairs: int
) -> Callable[[Part], Iterator[pa.RecordBatch]]:
    def join(part: Part) -> Iterator[pa.RecordBatch]:
        plan = JoinPlan.from_json(plan_json)
        key_column = "mask" if plan.kind == "planned" else "code"
        columns = ["id", key_column, "point"]
        rows = pa.concat_tables([tables.read_file(replicas, file, columns) for file in part.files])
        # rows come in the order of file names, which are random: by id, so that pairs come in one order
        rows = rows.sort_by("id")
        key = rows["mask"].to_numpy() if plan.kind == "planned" else to_codes(rows["code"])
        points = to_matrix(rows["point"], dimensions)
        counters: dict[str, int] = {}
        batches = join_part(points, rows["id"].to_numpy(), key, part.number, plan, BATCH_PAIRS, counters)
        written = pairs.write(_up_to(max_pairs, batches))
        report = tasks.TaskReport(files=[written] if written else [], counters=dict(counters))
        report.counters.setdefault("pairs", 0)
        report.counters["rows"] = rows.num_rows
        report.counters["largest_part_rows"] = rows.num_rows
        yield report.to_batch()

    return join


def _up_to(max_pairs: int, batches: Iterator[Pairs]) -> Iterator[pa.RecordBatch]:
    """The batches as Arrow, until they hold enough to refuse: the files are then never committed."""
    found = 0
    for pairs in batches:
        yield pa.record_batch({"left_id": pairs.left, "right_id": pairs.right, "distance": pairs.distance})
        found += len(pairs.left)
        if found > max_pairs:
            return
