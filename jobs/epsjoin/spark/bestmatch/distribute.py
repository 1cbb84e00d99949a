"""Best matches of two frames, part by part; where parts overlap, what they have kept is compared again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from epsjoin.kernels.arrays import Floats
from epsjoin.lake.sample import Sample
from epsjoin.lake.schemas import quoted
from epsjoin.local.bestmatch.best import By
from epsjoin.local.bestmatch.orders import Order, OwnOrder, Subset, is_of_one_column
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.spark.bestmatch.matching import BITS, STAGES, Matching
from epsjoin.spark.bestmatch.records import Records, read_records
from epsjoin.spark.join.parts import sort_rows
from epsjoin.spark.join.plan import plan_samples
from epsjoin.spark.join.replicas import Replicate, replicas_of
from epsjoin.spark.join.shuffle import read_part, replicate_frame
from epsjoin.spark.points.hashes import hash_ids
from epsjoin.spark.points.points import Points
from epsjoin.spark.rows.rows import FrameRows, MappedRows, Rows
from epsjoin.spark.tasks.arrow import from_ipc_column, give_back_freed_memory, to_ipc
from epsjoin.spark.tasks.reports import task_number

RECORD_STREAMS = "part int, pending binary, final binary"
"""Columns of records in a shuffle, as DDL: a part, and an Arrow IPC stream of records that are to be compared
again there, or of records that only pass through."""

_BATCH_ROWS = 1 << 18
_MIN_EPS = 1e-250
_NO_LIMIT = 1 << 62

_ToRecords = Callable[[Iterable[pa.RecordBatch]], Iterator[Records]]


class Match(NamedTuple):
    """The plan of a match of two frames.

    Parameters
    ----------
    left, right : the points with everything that must travel with them.
    matching : what tasks do.
    plan : to which parts points go, by their search columns.
    """

    left: Points
    right: Points
    matching: Matching
    plan: JoinPlan


def plan_match(sides: tuple[Points, Points], samples: list[Sample], cuts: Cuts, matching: Matching) -> Match:
    """Plan the join that finds the candidates, on a sample of both frames.

    Parameters
    ----------
    samples : of each side, with all columns.

    Raises
    ------
    ArgumentError
        A metric is not defined for a point of the sample.
    BudgetError
        More candidates are expected than ``max_candidates``.
    """
    searched, eps = [], np.ones(1)
    for name, (ids, rows) in zip(("left", "right"), samples, strict=True):
        columns, eps = matching.search_columns(name, rows[:, : matching.dimensions])
        searched.append((ids, columns))
    both = np.concatenate([columns for _, columns in searched])
    # equal values, which eps 0 requires, are within any threshold; a small one lets in few others
    spread = np.ptp(both, axis=0) if len(both) else np.ones(len(eps))
    eps = np.where(eps == 0, np.maximum(spread * 2.0**-20, _MIN_EPS), eps)
    n_rows = [side.n for side in sides]
    # of one column the nearest are searched for: the pairs within eps are never looked at
    limit = _NO_LIMIT if is_of_one_column(matching.orders) else matching.max_candidates
    plan = plan_samples(searched, n_rows, eps, get_metric("chebyshev"), None, cuts, limit, "max_candidates")
    return Match(*sides, matching, plan)


def match_frames(match: Match, names: list[str]) -> Rows:
    """Match the rows of two frames; lazy.

    Parameters
    ----------
    names : of the criteria's columns in the result.

    Returns
    -------
    Rows
        ``left_id`` and ``right_id`` (long; null where a row has no partner), a double for each criterion,
        ``best_for`` (int).
    """
    rows, work = _distribute(match)
    to_result = _make_result(match.matching.orders, names)

    def finish(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for records in work(batches):
            yield from to_result(records).to_batches(max_chunksize=_BATCH_ROWS)

    return MappedRows(rows, finish, result_ddl(names))


def result_ddl(names: list[str]) -> str:
    """Return the columns of the result, as DDL."""
    distances = (f"{quoted(name)} double" for name in names)
    return ", ".join(["left_id long", "right_id long", *distances, "best_for int"])


def result_schema(names: list[str]) -> pa.Schema:
    """Return the columns of the result."""
    ids = [("left_id", pa.int64()), ("right_id", pa.int64())]
    return pa.schema([*ids, *((name, pa.float64()) for name in names), ("best_for", pa.int32())])


def _distribute(match: Match) -> tuple[Rows, _ToRecords]:
    """Plan the shuffles; return the rows after the last one, and the work that makes records of a split."""
    left, right, matching, plan = match
    of_left, of_right = _replicas_of(left, "left", matching), _replicas_of(right, "right", matching)
    replicas = replicate_frame(left, plan, is_right=False, replicas=of_left).union(
        replicate_frame(right, plan, is_right=True, replicas=of_right)
    )
    rows: Rows = FrameRows(replicas.repartitionById(plan.n_parts, "part"))
    work = _make_matcher(plan.to_json(), matching, left.n + right.n)
    if plan.n_parts > 1 or matching.how == "inner":
        for stage in STAGES[matching.how]:
            by_part = send_records(rows, work, stage, plan.n_parts).repartitionById(plan.n_parts, "part")
            rows, work = FrameRows(by_part.select("pending", "final")), _make_settler(matching, stage)
    return rows, work


def _replicas_of(points: Points, name: str, matching: Matching) -> Replicate:
    """Make the function that sends rows to parts by their search columns, with all that travels with them."""
    reading = points.reading

    def replicas(
        batch: pa.RecordBatch, plan: JoinPlan, counters: dict[str, float]
    ) -> Iterator[tuple[int, pa.Table]]:
        ids, rows = reading.arrays(batch)

        def carry(is_replicated: NDArray[np.bool_]) -> Floats:
            return np.column_stack((rows, is_replicated))

        search, _ = matching.search_columns(name, rows[:, : matching.dimensions])
        return replicas_of(ids, search, plan, counters, carry)

    return replicas


def _make_matcher(plan_json: str, matching: Matching, n_points: int) -> _ToRecords:
    """Make the work of a task that matches the rows of its part."""

    def match(batches: Iterable[pa.RecordBatch]) -> Iterator[Records]:
        give_back_freed_memory()
        plan = JoinPlan.from_json(plan_json)
        for part, rows in read_part(batches, n_points):
            read = list(rows)
            if read:
                yield matching.match(sort_rows(read, plan, matching.width), part, plan)

    return match


def send_records(rows: Rows, work: _ToRecords, stage: str, n_parts: int) -> DataFrame:
    """Send records that are pending for a stage to a part by the id of their row; others keep their part.

    Returns
    -------
    DataFrame
        Columns ``RECORD_STREAMS``, before the shuffle.
    """

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for records in work(batches):
            waits = (records.pending & BITS[stage]) > 0
            final = np.flatnonzero(~waits)
            for begin in range(0, len(final), _BATCH_ROWS):
                passing = to_ipc(records.take(final[begin : begin + _BATCH_ROWS]).to_table())
                yield _to_batch(task_number() % n_parts, None, passing)
            pending = records.take(waits)
            parts = np.zeros(len(pending.left), np.int64)
            if stage != "all":
                hashes = hash_ids(0, pending.right if stage == "right" else pending.left)
                parts = (hashes.view(np.uint64) % np.uint64(n_parts)).astype(np.int64)
            for part in np.unique(parts).tolist():
                yield _to_batch(part, to_ipc(pending.take(parts == part).to_table()), None)

    return rows.map(send, RECORD_STREAMS)


def _to_batch(part: int, pending: bytes | None, final: bytes | None) -> pa.RecordBatch:
    columns = {"pending": pa.array([pending], pa.binary()), "final": pa.array([final], pa.binary())}
    return pa.record_batch({"part": pa.array([part], pa.int32()), **columns})


def _make_settler(matching: Matching, stage: By) -> _ToRecords:
    """Make the work of a task that compares the pending records of a stage, and passes on the others."""

    def settle(batches: Iterable[pa.RecordBatch]) -> Iterator[Records]:
        pending: list[pa.RecordBatch] = []
        for batch in batches:
            streams = {name: pa.record_batch({"ipc": batch[name]}) for name in ("pending", "final")}
            pending += from_ipc_column([streams["pending"]])
            for final in from_ipc_column([streams["final"]]):
                yield read_records([final])
        if pending:
            yield matching.settle(read_records(pending), stage)

    return settle


def _make_result(orders: tuple[Order, ...], names: list[str]) -> Callable[[Records], pa.Table]:
    """Make the function that turns final records into the columns of the result."""

    def to_result(records: Records) -> pa.Table:
        is_lonely = records.lonely > 0
        columns = {
            "left_id": pa.array(records.left, mask=records.lonely == BITS["right"]),
            "right_id": pa.array(records.right, mask=records.lonely == BITS["left"]),
        }
        number = word = 0
        for name, order in zip(names, orders, strict=True):
            if isinstance(order, OwnOrder):
                columns[name] = pa.nulls(len(is_lonely), pa.float64())
            elif isinstance(order, Subset):
                words = len(order.left_masks)  # type: ignore[arg-type]  # names of columns
                common = np.bitwise_count(records.masks[:, word : word + words]).sum(axis=1)
                columns[name] = pa.array(common.astype(np.float64), mask=is_lonely)
                word += words
            else:
                columns[name] = pa.array(np.ascontiguousarray(records.values[:, number]), mask=is_lonely)
                number += 1
        return pa.table({**columns, "best_for": pa.array(records.best_for, pa.int32())})

    return to_result
