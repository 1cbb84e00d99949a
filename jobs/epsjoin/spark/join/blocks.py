"""Joins in many dimensions by pairs of blocks, each of which is multiplied by a task.

Rows of frames travel as they are, float32 as float32, through one shuffle: each to all tasks of its block. In
a run the table ``replicas`` has each row once, by blocks, and a task reads the files of two blocks. What a
task does is :func:`epsjoin.local.product.sweep.sweep_products`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from epsjoin.errors import TableError
from epsjoin.kernels.arrays import Ints
from epsjoin.kernels.arrays import Points as Coordinates
from epsjoin.kernels.sorting import argsort
from epsjoin.lake.arrow import to_binary, to_coordinates
from epsjoin.local.plan.blocks import BlockPlan
from epsjoin.local.product.rows import ROWS_AT_ONCE
from epsjoin.local.product.sweep import NamedRows, sweep_products
from epsjoin.local.sweep.sweeping import Counters, SweepOptions
from epsjoin.spark.join.pairs import BATCH_PAIRS, PAIRS, check_limit, to_batch
from epsjoin.spark.join.replicas import FLUSH_BYTES, KEY_COLUMNS, Replicate
from epsjoin.spark.join.shuffle import REPLICA_STREAMS, read_part
from epsjoin.spark.points.points import Points
from epsjoin.spark.points.reading import Reading
from epsjoin.spark.rows.rows import FrameRows, MappedRows, Rows
from epsjoin.spark.tasks.arrow import Task, give_back_freed_memory, stream_batch, to_ipc
from epsjoin.spark.tasks.reports import TaskReport


def join_blocks(
    points: Points, others: Points | None, plan: BlockPlan, max_pairs: int, *, raises: bool = True
) -> Rows:
    """Join points by pairs of blocks; lazy, with one shuffle.

    Parameters
    ----------
    points, others : the left and the right table; without a right one, pairs of the left one.
    plan : the plan for these points.
    max_pairs, raises : see :func:`epsjoin.spark.join.parts.join_frame`.

    Returns
    -------
    Rows
        Columns ``PAIRS``; each task is a split.
    """
    sent = _send(points, plan, is_right=False)
    n_points = points.n
    if others is not None:
        sent = sent.union(_send(others, plan, is_right=True))
        n_points += others.n
    by_task = sent.repartitionById(plan.n_parts, "part")
    return MappedRows(FrameRows(by_task), make_joiner(plan, n_points, max_pairs, raises=raises), PAIRS)


def _send(points: Points, plan: BlockPlan, *, is_right: bool) -> DataFrame:
    reading = points.reading.of_dimensions(plan.dimensions)
    return points.rows.map(make_sender(plan, reading, is_right=is_right), REPLICA_STREAMS)


def make_sender(plan: BlockPlan, reading: Reading, *, is_right: bool) -> Task:
    """Make the work of a task that sends its rows to all tasks of their blocks, as ``REPLICA_STREAMS``.

    Its report has the number of ``points``, and of ``rows`` that it sent.
    """

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report = TaskReport(counters={"points": 0, "rows": 0})
        held: dict[int, list[pa.RecordBatch]] = defaultdict(list)
        held_bytes = 0
        for batch in batches:
            ids, points = reading.coordinates(batch)
            for block, rows in _by_block(plan, ids, points, is_right=is_right):
                held[block].append(rows)
                held_bytes += rows.nbytes
                report.counters["rows"] += len(plan.tasks_of[block]) * rows.num_rows
            report.counters["points"] += len(ids)
            if held_bytes > FLUSH_BYTES:
                yield from _to_tasks(plan, held)
                held_bytes = 0
        yield from _to_tasks(plan, held)
        yield stream_batch("part", [0], [None], [report.to_json()])

    return send


def _by_block(
    plan: BlockPlan, ids: Ints, points: Coordinates, *, is_right: bool
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Divide rows by their blocks."""
    block = np.empty(len(ids), np.int64)
    for begin in range(0, len(ids), ROWS_AT_ONCE):
        some = slice(begin, begin + ROWS_AT_ONCE)
        block[some] = plan.blocks_of(points[some], ids[some], is_right=is_right)
    order = np.argsort(block, kind="stable")
    bounds = np.flatnonzero(np.diff(block[order], prepend=-1, append=-1))
    for begin, end in pairwise(bounds.tolist()):
        rows, number = order[begin:end], int(block[order[begin]])
        of_block = pa.repeat(pa.scalar(number, pa.int32()), len(rows))
        columns = {"id": ids[rows], "block": of_block, "point": to_binary(points[rows])}
        yield number, pa.record_batch(columns)


def _to_tasks(plan: BlockPlan, held: dict[int, list[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Send what is held to tasks, block by block, and drop it.

    A batch holds copies of a block for as many tasks as ``FLUSH_BYTES`` have room for, and for at least one:
    if all rows are in one block, the copies for all of its tasks could be more than Arrow takes.
    """
    for block in sorted(held):
        stream = to_ipc(pa.Table.from_batches(held.pop(block)))
        to, at_once = plan.tasks_of[block], max(1, FLUSH_BYTES // len(stream))
        for begin in range(0, len(to), at_once):
            some = to[begin : begin + at_once]
            yield stream_batch("part", some, [stream] * len(some), [None] * len(some))


def rows_of_blocks(reading: Reading) -> Replicate:
    """Make the function that yields the rows of ``replicas`` block by block: each of its points once."""

    def replicas(
        batch: pa.RecordBatch, plan: BlockPlan, counters: dict[str, float]
    ) -> Iterator[tuple[int, pa.Table]]:
        ids, points = reading.of_dimensions(plan.dimensions).coordinates(batch)
        counters["points"] += len(ids)
        counters["rows"] += len(ids)
        for block, rows in _by_block(plan, ids, points, is_right=False):
            keys = {name: pa.nulls(len(rows), column.type) for name, column in KEY_COLUMNS.items()}
            yield block, pa.table({"id": rows["id"], **keys, "point": rows["point"]})

    return replicas


def mark_block(batches: Iterable[pa.RecordBatch], block: int) -> Iterator[pa.RecordBatch]:
    """Add the number of their block to rows of ``replicas``."""
    for batch in batches:
        yield batch.append_column("block", pa.repeat(pa.scalar(block, pa.int32()), batch.num_rows))


def make_joiner(plan: BlockPlan, n_points: int, max_pairs: int, *, raises: bool) -> Task:
    """Make the work of a task that multiplies two blocks; the task is a part, of the same number."""

    def join(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task, rows in read_part(batches, n_points):
            counters = dict[str, int]()
            yield from join_task(rows, task, plan, max_pairs, counters)
            if raises:
                check_limit(counters.get("pairs", 0), max_pairs, plan.eps, f"the pair of blocks {task}")

    return join


def join_task(
    batches: Iterable[pa.RecordBatch], task: int, plan: BlockPlan, max_pairs: int, counters: Counters
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of a task, whose rows come in batches; end when there are more than ``max_pairs``.

    The counters get ``rows`` of the task, ``candidates``, ``distance_computations`` and ``pairs``.
    """
    give_back_freed_memory()
    first, second = plan.tasks[task].tolist()
    of_blocks: dict[int, list[pa.RecordBatch]] = {first: [], second: []}
    for batch in batches:
        if batch.num_rows:
            block = batch["block"][0].as_py()
            if block not in of_blocks:
                raise TableError(f"rows of the block {block} came to the task {task}; run the join again")
            of_blocks[block].append(batch)
    left = _gather(of_blocks[first], plan.dimensions)
    right = None if second == first else _gather(of_blocks[second], plan.dimensions)
    sweep = sweep_products(
        left,
        right,
        plan.space,
        plan.metric,
        plan.eps,
        SweepOptions(BATCH_PAIRS, counters),
        is_ordered=plan.is_self,
    )
    found = 0
    for pairs in sweep:
        yield to_batch(pairs)
        found += len(pairs.left)
        if found > max_pairs:
            return


def _gather(read: list[pa.RecordBatch], dimensions: int) -> NamedRows:
    """Put the rows of a block into the order of their ids; the batches are dropped one by one."""
    ids = np.concatenate([np.empty(0, np.int64), *(batch["id"].to_numpy() for batch in read)])
    order = argsort(ids)
    place = np.empty(len(ids), np.int64)
    place[order] = np.arange(len(ids))
    points: Coordinates = np.empty((0, dimensions))
    begin = 0
    read.reverse()
    while read:
        batch = read.pop()
        some = to_coordinates(batch["point"], dimensions)
        if not begin:
            points = np.empty((len(ids), dimensions), some.dtype)
        points[place[begin : begin + len(some)]] = some
        begin += len(some)
    return NamedRows(points, ids[order])
