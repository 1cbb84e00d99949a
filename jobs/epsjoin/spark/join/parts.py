"""Parts that tasks join, from files or from a frame."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from epsjoin.errors import TableError
from epsjoin.kernels.sorting import lexsort
from epsjoin.lake import parquet
from epsjoin.lake.arrow import to_matrix
from epsjoin.lake.parquet import File
from epsjoin.lake.schemas import parse_ddl
from epsjoin.lake.targets import Target
from epsjoin.local.join.parts import join_part
from epsjoin.local.plan.blocks import BlockPlan
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.keys import Keys
from epsjoin.local.plan.stored import read_plan
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import Counters
from epsjoin.spark.join.blocks import join_task, mark_block
from epsjoin.spark.join.pairs import BATCH_PAIRS, PAIRS, check_limit, leave_out, to_batch
from epsjoin.spark.join.pairs_table import PairsTable
from epsjoin.spark.join.replicas import KEY_COLUMNS, REPLICAS
from epsjoin.spark.join.running import Refuse, RunningJoin
from epsjoin.spark.join.shuffle import read_part
from epsjoin.spark.rows.rows import FrameRows, MappedRows, Rows
from epsjoin.spark.rows.write import Written
from epsjoin.spark.tasks import tasks
from epsjoin.spark.tasks.arrow import give_back_freed_memory
from epsjoin.spark.tasks.progress import watched
from epsjoin.spark.tasks.reports import TaskReport

BATCH_ROWS = 1 << 16
"""Maximum number of rows that a task reads from a file of replicas at once."""

_STARTING_ROWS = 64
"""Number of rows whose join loads and compiles all kernels of a part's join."""


class Part(NamedTuple):
    """A part and the files of its replicas; for a pair of blocks, those of both blocks."""

    number: int
    files: list[File]


Joiner = Callable[[Part], Iterator[pa.RecordBatch]]
"""Function that joins a part in a task, and yields one report."""


def join_files(
    spark: SparkSession,
    replicas: Sequence[File],
    work: Joiner,
    plan: JoinPlan | BlockPlan,
    table: PairsTable,
    max_pairs: int,
    refuse: Refuse,
) -> Written:
    """Join each part in a task that reads the part's files; the largest parts start first.

    Parameters
    ----------
    work : made by :func:`make_joiner` of this plan, for this table of pairs.
    table, refuse : see :class:`epsjoin.spark.join.running.RunningJoin`, which says how far the tasks are.

    Raises
    ------
    BudgetError
        By the parts that are joined so far, there will be more than ``max_pairs`` pairs; the others are not
        joined.
    TableError
        Rows were lost on the way.
    """
    parts = _list_parts(replicas, plan)
    parts.sort(key=lambda part: (-sum(file.size for file in part.files), part.number))
    rows = [sum(file.rows for file in part.files) for part in parts]
    numbers = [part.number for part in parts]
    running = RunningJoin(spark, plan, numbers, rows, max_pairs, table, refuse)
    with watched(running):
        reports = TaskReport.of_batches(tasks.run_tasks(spark, parts, running.telling(work)))
        written = Written.of(reports)
        if written.counters.get("rows", 0) != sum(rows):
            raise TableError("the parts joined another number of rows than replicas have; run the join again")
    found = [sum(file.rows for file in report.files) for report in reports]
    written.counters.update(running.counters(found))
    return written


def _list_parts(replicas: Sequence[File], plan: JoinPlan | BlockPlan) -> list[Part]:
    """List the parts that have rows; for a pair of blocks, both must have some."""
    stored: dict[int, list[File]] = defaultdict(list)
    for file in replicas:
        stored[int(file.partition["part"])].append(file)
    if isinstance(plan, JoinPlan):
        return [Part(number, files) for number, files in stored.items()]
    tasks_of = ((number, {*blocks}) for number, blocks in enumerate(plan.tasks.tolist()))
    return [
        Part(number, [file for block in sorted(blocks) for file in stored[block]])
        for number, blocks in tasks_of
        if blocks <= stored.keys()
    ]


def join_frame(
    replicas: DataFrame,
    plan: JoinPlan,
    n_points: int,
    max_pairs: int,
    *,
    raises: bool = True,
) -> Rows:
    """Join the replicas of ``replicate_frame``; lazy, with one shuffle by part.

    Parameters
    ----------
    n_points : number of points of all frames. The task of part 0 fails if the replicas were made from another
        number of points.
    raises : whether the task of a part with more than ``max_pairs`` pairs fails; otherwise it ends early,
        with more than that.

    Returns
    -------
    Rows
        Columns ``PAIRS``; each part is a split.
    """
    plan_json = plan.to_json()

    def join(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = JoinPlan.from_json(plan_json)
        for part, rows in read_part(batches, n_points):
            counters = dict[str, int]()
            yield from _join_batches(rows, part, plan, max_pairs, counters)
            if raises:
                check_limit(counters.get("pairs", 0), max_pairs, plan.eps, f"part {part}")

    by_part = replicas.repartitionById(plan.n_parts, "part")
    return MappedRows(FrameRows(by_part), join, PAIRS)


def make_joiner(
    plan_json: str, replicas: str, pairs: Target, max_pairs: int, first: Pairs | None = None
) -> Joiner:
    """Make the work of a task on a part: read the part's files, join, write the pairs, yield one report.

    The report has the seconds of each phase. With cuts, ``starting`` is loading and compiling the kernels,
    which happens once in a worker: a join of a few of the rows, before ``joining`` begins. ``first`` are the
    first pairs, which are left out.
    """

    def join(part: Part) -> Iterator[pa.RecordBatch]:
        plan = read_plan(plan_json)
        report = TaskReport()
        began = time.perf_counter()
        counters: dict[str, int] = {"rows": 0, "pairs": 0}
        read = report.timed(_read_rows(replicas, part, plan), "reading")
        if isinstance(plan, BlockPlan):
            found = join_task(read, part.number, plan, max_pairs, counters)
        else:
            found = _join_batches(read, part.number, plan, max_pairs, counters, report)
        left_out: dict[str, float] = {}
        others = leave_out(first, found, left_out)
        written = report.write(pairs, report.timed(others, "joining"))
        for inner in ("reading_seconds", "starting_seconds"):
            report.counters["joining_seconds"] -= report.counters.get(inner, 0.0)
        report.counters["writing_seconds"] = time.perf_counter() - began - sum(report.counters.values())
        report.counters |= counters | left_out
        report.counters["largest_part_rows"] = counters["rows"]
        report.counters["bytes"] = written.size if written else 0
        yield report.to_batch()

    return join


def _read_rows(replicas: str, part: Part, plan: JoinPlan | BlockPlan) -> Iterator[pa.RecordBatch]:
    """Read the columns of a part's files that its join needs; with blocks, each row says in which it is."""
    of_replicas = parse_ddl(REPLICAS)
    key = [plan.key.column] if isinstance(plan, JoinPlan) else []
    columns = pa.schema([of_replicas.field(name) for name in ("id", *key, "point")])
    for file in part.files:
        batches = parquet.stream_file(replicas, file, columns, BATCH_ROWS)
        yield from batches if key else mark_block(batches, int(file.partition["part"]))


class SortedRows(NamedTuple):
    """The rows of a part by id, as :func:`join_part` takes them; of two tables, the left one's come first."""

    points: NDArray[np.float64]
    ids: NDArray[np.int64]
    key: Keys
    is_right: NDArray[np.bool_] | None


def sort_rows(read: list[pa.RecordBatch], plan: JoinPlan, width: int | None = None) -> SortedRows:
    """Put the rows of all batches into the order of their ids, whatever the order of the batches is.

    The batches are dropped one by one, as the points of a part take most of a worker's memory.

    Parameters
    ----------
    read : at least one batch of replicas; the list is emptied.
    width : number of values that the column ``point`` holds; by default the plan's dimensions.
    """
    sides = None
    if "is_right" in read[0].schema.names:
        sides = np.concatenate([batch["is_right"].to_numpy(zero_copy_only=False) for batch in read])
    ids = np.concatenate([batch["id"].to_numpy() for batch in read])
    order = lexsort((ids,) if sides is None else (ids, sides))
    place = np.empty(len(ids), np.int64)
    place[order] = np.arange(len(ids))
    points = np.empty((len(ids), plan.dimensions if width is None else width))
    column, key = plan.key.column, plan.key.empty(len(ids))
    begin = 0
    read.reverse()
    while read:
        batch = read.pop()
        here = place[begin : begin + batch.num_rows]
        points[here] = to_matrix(batch["point"], points.shape[1])
        key[here] = KEY_COLUMNS[column].read(batch[column])
        begin += batch.num_rows
    return SortedRows(points, ids[order], key, None if sides is None else sides[order])


def _join_batches(
    batches: Iterable[pa.RecordBatch],
    part: int,
    plan: JoinPlan,
    max_pairs: int,
    counters: Counters,
    report: TaskReport | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of a part, whose rows come in batches; end when there are more than ``max_pairs``.

    A report gets the seconds in which the kernels start.
    """
    give_back_freed_memory()
    read = list(batches)
    if not read:
        return
    rows = sort_rows(read, plan)
    if report is not None:
        some = slice(_STARTING_ROWS)
        sides = None if rows.is_right is None else rows.is_right[some]
        few = join_part(rows.points[some], rows.ids[some], rows.key[some], part, plan, is_right=sides)
        for _ in report.timed(few, "starting"):
            pass
    found = join_part(
        rows.points, rows.ids, rows.key, part, plan, BATCH_PAIRS, counters, is_right=rows.is_right
    )
    n_pairs = 0
    for pairs in found:
        yield to_batch(pairs)
        n_pairs += len(pairs.left)
        if n_pairs > max_pairs:
            return
