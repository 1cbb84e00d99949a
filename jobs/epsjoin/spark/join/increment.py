"""The pairs of a run from those of its base: staying pairs are copied, placed points are joined with all.

The plan says which points are placed, and which are gone. First the placed ones are read. Then there are
three kinds of tasks, none of which waits for another: some copy the pairs of the base whose ends stay; some
read the points that stay, and join them with the placed ones; one joins the placed ones with one another. No
process holds all points: reading them twice costs less. If points and pairs are few, threads of the driver do
all this, which takes less time than starting a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from epsjoin.console import counted, say
from epsjoin.errors import TableError, UnfitTableError
from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.kernels.ids import index_ids, rows_of
from epsjoin.kernels.sorting import argsort
from epsjoin.kernels.sweep.near_cells import NearCells
from epsjoin.lake.arrow import pair_columns
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.schemas import parse_ddl
from epsjoin.lake.targets import Target
from epsjoin.local.join.options import JoinOptions
from epsjoin.local.join.update import Points, join_placed, join_with, keep_pairs, mark_near
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import Counters, check_n_jobs
from epsjoin.spark.job.job import Job
from epsjoin.spark.join.base import Changes, IncrementPlan, base_tables
from epsjoin.spark.join.pairs import PAIRS, to_batch
from epsjoin.spark.points.points import stored_files, stored_reading
from epsjoin.spark.points.reading import Reading
from epsjoin.spark.rows.rows import StoredRows
from epsjoin.spark.rows.splits import Split
from epsjoin.spark.rows.stored import MAX_HERE_BYTES, in_table
from epsjoin.spark.rows.write import Written
from epsjoin.spark.tasks import tasks
from epsjoin.spark.tasks.reports import TaskReport
from epsjoin.spark.tasks.shared import Array, Shared, share

COPY, STAYED, PLACED = "copy", "stayed", "placed"
"""What a task does: copy pairs, join points that stayed with placed ones, or placed ones with one another."""


class TaskWork(NamedTuple):
    """What one task does, and of which files."""

    kind: str
    of: Split


Arrays = Mapping[str, Array] | Shared
"""Arrays by name, here or in files that tasks map."""

Worker = Callable[[TaskWork], Iterator[pa.RecordBatch]]
"""The work of a task, which writes pairs and yields one report."""

Runner = Callable[[Sequence[Any], Callable[[Any], Iterable[pa.RecordBatch]]], list[pa.RecordBatch]]
"""Does some work on each item, and collects what it yields, in the order of the items."""


def join_increment(job: Job, inputs: Fingerprints, row: Mapping[str, Any], into: Target) -> Written:
    """Let tasks write the pairs of an increment.

    Parameters
    ----------
    inputs : the run's own, from which the fingerprint of the pairs was taken.
    row : the row of ``join_plan``.
    into : the slice of ``pairs``.

    Raises
    ------
    UnfitTableError
        The base has been replaced since the increment was planned, or an earlier version has planned it.
    TableError
        Another number of pairs or points was read than the logs say.
    """
    lake, plan, changes = job.lake, IncrementPlan.from_json(row["plan"]), Changes.from_row(row)
    try:
        base = base_tables(lake, plan.base)
        if base.pairs.fingerprint != plan.pairs:
            raise UnfitTableError(
                f"{base.pairs} are of other points, or of another plan, than they were then"
            )
        before = StoredRows.of(job, base.pairs, PAIRS)
    except UnfitTableError as error:
        raise UnfitTableError(
            f"pairs of run {job.run} were to be computed from those of run {plan.base}, which has changed "
            f"since ({error}); run replicate again"
        ) from error
    points, reading = stored_files(job, inputs.slice("points")), stored_reading(lake)
    pairs_before = counted(before.n, "pair")
    say(f"merge_join: increment on run {plan.base}, {pairs_before}; {changes}")
    is_small = before.bytes_read + points.n * 8 * (1 + len(reading.names)) <= MAX_HERE_BYTES
    if is_small:
        before, points = (replace(rows, n_cores=check_n_jobs(-1)) for rows in (before, points))
    threads = check_n_jobs(-1)
    run: Runner = (
        partial(tasks.run_here, n_threads=threads) if is_small else partial(tasks.run_tasks, job.session())
    )
    placed = _find_placed(points, reading, changes.placed, run)
    of_tasks = [TaskWork(COPY, split) for split in before.splits()]
    options, cells = JoinOptions.of(lake.source.point_metric, 1, job.params.max_pairs, False, None), None
    if len(placed.ids):
        of_tasks += [*(TaskWork(STAYED, split) for split in points.splits()), TaskWork(PLACED, [])]
        sample = next(chain.from_iterable(map(points.reader(iter), points.splits())))
        cells = mark_near(placed, reading.arrays(sample)[1], points.n, row["eps"], options)
    arrays = {"gone": changes.gone, "ids": placed.ids, "points": placed.points}
    with _reach(arrays, None if is_small else job.session()) as reached:
        does = _Tasks(reading, into, row["eps"], options, reached)
        reports = run(of_tasks, _make_worker(before, points, cells, does))
    written = Written.of(TaskReport.of_batches(reports))
    counters = {"candidates": 0, "distance_computations": 0, "joined_pairs": 0} | written.counters
    if counters["kept_pairs"] + counters["dropped_pairs"] != before.n:
        raise TableError(f"{pairs_before} of run {plan.base} were to be read, others were; run it again")
    if len(placed.ids) != len(changes.placed) or counters.get("rows", points.n) != points.n:
        raise TableError(f"{counted(points.n, 'point')} were to be read, others were; run it again")
    counters |= {"rows": points.n, "placed": len(placed.ids), "gone": len(changes.gone)}
    return written._replace(counters=counters)


@contextmanager
def _reach(arrays: Mapping[str, Array], session: SparkSession | None) -> Iterator[Arrays]:
    """Arrays as the tasks of a session reach them; without one they are here."""
    if session is None:
        yield arrays
        return
    shared = share(session, **arrays)
    try:
        yield shared
    finally:
        shared.remove()


def _find_placed(
    points: StoredRows, reading: Reading, ids: Ints, run: Callable[..., list[pa.RecordBatch]]
) -> Points:
    """Find the placed points, in the order of their ids; no copy of the others is held.

    Parameters
    ----------
    run : lets tasks, or threads of the driver, read the splits.
    """
    index = index_ids(ids)

    def pick(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.filter(pa.array(rows_of(index, batch["id"].to_numpy()) >= 0))

    found = run(points.splits(), points.reader(pick)) if len(ids) else []
    of, values = reading.arrays(in_table(found, parse_ddl(points.schema)).combine_chunks())
    order = argsort(of)
    return Points(np.ascontiguousarray(values[order]), of[order])


@dataclass(frozen=True)
class _Tasks:
    """What the tasks of an increment do; it is pickled to each of them.

    Parameters
    ----------
    reading : how points are read.
    into : where pairs are written.
    eps, options : how placed points are joined.
    arrays : ids that are ``gone``; ``ids`` and ``points`` of the placed ones.
    """

    reading: Reading
    into: Target
    eps: float
    options: JoinOptions
    arrays: Arrays

    def copy(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copy the pairs of the base whose ends stay."""
        report = TaskReport(counters={"kept_pairs": 0, "dropped_pairs": 0})
        gone = index_ids(np.array(self.arrays["gone"]))
        is_gone = np.ones(len(gone.ids), np.bool_)

        def kept() -> Iterator[pa.RecordBatch]:
            for batch in report.timed(batches, "reading"):
                left, right, _ = pair_columns(batch)
                is_kept = keep_pairs(gone, is_gone, left, right)
                report.counters["kept_pairs"] += int(is_kept.sum())
                report.counters["dropped_pairs"] += int((~is_kept).sum())
                yield batch.filter(pa.array(is_kept))

        yield from self._write(kept(), report)

    def join_stayed(self, near: NearCells, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join points that stay with the placed ones, around which the cells are."""
        report, counts = TaskReport(counters={"rows": 0}), dict[str, int]()
        placed = self._placed()
        index = index_ids(placed.ids)

        def points() -> Iterator[tuple[Points, Bools]]:
            for batch in report.timed(batches, "reading"):
                ids, values = self.reading.arrays(batch)
                report.counters["rows"] += len(ids)
                yield Points(values, ids), rows_of(index, ids) < 0

        joined = join_with(placed, points(), near, self.eps, self.options._replace(counters=counts))
        yield from self._write(_counted(joined, report, counts), report)

    def join_placed(self) -> Iterator[pa.RecordBatch]:
        """Join the placed points with one another."""
        report, counts = TaskReport(), dict[str, int]()
        joined = join_placed(self._placed(), self.eps, self.options._replace(counters=counts))
        yield from self._write(_counted(joined, report, counts), report)

    def _placed(self) -> Points:
        return Points(np.array(self.arrays["points"]), np.array(self.arrays["ids"]))

    def _write(self, found: Iterable[pa.RecordBatch], report: TaskReport) -> Iterator[pa.RecordBatch]:
        """Write pairs; yield the report of the task."""
        written = report.write(self.into, report.timed(found, "joining"))
        report.counters["joining_seconds"] -= report.counters.get("reading_seconds", 0.0)
        report.counters["pairs"] = written.rows if written else 0
        report.counters["bytes"] = written.size if written else 0
        yield report.to_batch()


def _make_worker(before: StoredRows, points: StoredRows, cells: NearCells | None, does: _Tasks) -> Worker:
    """Make the work of a task; ``cells`` are those around the placed points, ``None`` if there are none."""
    # a pickled object must not hold the session
    works = {COPY: before.reader(does.copy)}
    if cells is not None:
        works[STAYED] = points.reader(partial(does.join_stayed, cells))

    def work(task: TaskWork) -> Iterator[pa.RecordBatch]:
        return does.join_placed() if task.kind == PLACED else works[task.kind](task.of)

    return work


def _counted(found: Iterator[Pairs], report: TaskReport, counts: Counters) -> Iterator[pa.RecordBatch]:
    """Yield the pairs as batches, and then report the work that was counted."""
    yield from map(to_batch, found)
    report.counters["joined_pairs"] = counts.get("pairs", 0)
    for name in ("candidates", "distance_computations"):
        report.counters[name] = counts.get(name, 0)
