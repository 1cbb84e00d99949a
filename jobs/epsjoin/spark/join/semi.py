"""Semi and anti joins of frames: each part says which of its left rows have a partner, and makes no pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.errors import TableError
from epsjoin.kernels.arrays import Ints
from epsjoin.local.join.partners import find_partners
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.one_sided import hold, reach
from epsjoin.local.sweep.sweeping import SweepOptions
from epsjoin.spark.join.carried import CARRIED, RowFile, can_travel, held_with_rows, without_row
from epsjoin.spark.join.pairs import BATCH_PAIRS
from epsjoin.spark.join.parts import sort_rows
from epsjoin.spark.join.replicas import Replicate, replicas_read_by
from epsjoin.spark.join.shuffle import read_part, replicate_frame
from epsjoin.spark.points.columns import with_rows
from epsjoin.spark.points.points import Points
from epsjoin.spark.rows.rows import FrameRows, MappedRows, Rows, to_frame
from epsjoin.spark.tasks.arrow import Task, give_back_freed_memory
from epsjoin.spark.tasks.cost import counted

FOUND = "left_id long"
"""Columns of what the parts of a semi or an anti join find, as DDL."""
_ID_BYTES = 8
_FRACTION_OF_TIMEOUT = 1 / 10
"""Fraction of the time after which Spark gives up a broadcast that one core may need for a join, at most."""


class Sides(NamedTuple):
    """The points of both frames; without right ones, the partners of a row are other left rows."""

    left: Points
    right: Points | None


def keep_rows(
    left: DataFrame, columns: str | Sequence[str], id_column: str, sides: Sides, plan: JoinPlan, how: str
) -> DataFrame:
    """Keep the rows of a frame that have a partner ("semi") or have none ("anti"); lazy.

    Parameters
    ----------
    left, columns, id_column : the frame, and the names of its coordinates and of its ids.
    sides : the points of ``left`` and of the right frame.
    plan : of planned cuts.

    Notes
    -----
    If all ids are within the size up to which Spark broadcasts a table
    (``spark.sql.autoBroadcastJoinThreshold``), those that are found are broadcast, and the rows of ``left``
    stay where they are. Spark gives up a broadcast that is not computed after ``spark.sql.broadcastTimeout``,
    so this is not done if the join may take long. Otherwise each row of ``left`` travels with its point to
    the one part that knows all about it (:mod:`epsjoin.spark.join.carried`), and the part yields it. Rows
    that cannot travel are joined by Spark with the ids that are found, which shuffles both.
    """
    is_broadcast = _is_broadcast(left, sides.left.n, plan)
    if not is_broadcast and can_travel(left.schema):
        whole = with_rows(left, columns, id_column)
        carrying = replace(sides.left, make_frame=lambda: whole)
        by_part = _shuffle(sides, plan, carrying, held_with_rows(sides.left.reading))
        work = _make_finder(sides, plan, how, carries=True)
        return by_part.mapInArrow(counted(left.sparkSession, work), left.schema)
    ids = to_frame(find_rows(sides, plan, how)).withColumnRenamed("left_id", "_left_id")
    if is_broadcast:
        ids = F.broadcast(ids)
    return left.join(ids, left[id_column] == ids["_left_id"], "left_semi")


def _is_broadcast(left: DataFrame, n_left: int, plan: JoinPlan) -> bool:
    conf = left.sparkSession._jsparkSession.sessionState().conf()
    most_bytes, seconds = conf.autoBroadcastJoinThreshold(), conf.broadcastTimeout()
    is_soon = seconds <= 0 or plan.expected_seconds <= _FRACTION_OF_TIMEOUT * seconds  # 0: no limit
    return bool(n_left * _ID_BYTES <= most_bytes and is_soon)


def find_rows(sides: Sides, plan: JoinPlan, how: str) -> Rows:
    """Find the ids of the left rows that have a partner ("semi") or have none ("anti").

    Parameters
    ----------
    sides : the points of both frames.
    plan : of planned cuts.

    Returns
    -------
    Rows
        Columns ``FOUND``, lazy, with one shuffle by part: each id once, since each left row is in one part
        (:mod:`epsjoin.local.plan.one_sided`).
    """
    by_part = _shuffle(sides, plan, sides.left, replicas_read_by(sides.left.reading, hold))
    return MappedRows(FrameRows(by_part), _make_finder(sides, plan, how, carries=False), FOUND)


def _shuffle(sides: Sides, plan: JoinPlan, left: Points, held: Replicate) -> DataFrame:
    """Send left rows and right ones to their parts, as streams."""
    right = sides.left if sides.right is None else sides.right
    of_right = replicas_read_by(right.reading, reach)
    sent = replicate_frame(left, plan, False, held).union(replicate_frame(right, plan, True, of_right))
    return sent.repartitionById(plan.n_parts, "part")


def _make_finder(sides: Sides, plan: JoinPlan, how: str, *, carries: bool) -> Task:
    """Make the work of a task on a part: it yields the ids that it finds, or the rows that came with them."""
    plan_json, is_self = plan.to_json(), sides.right is None
    n_points = sides.left.n + (sides.left if sides.right is None else sides.right).n

    def find(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = JoinPlan.from_json(plan_json)
        for _, of_part in read_part(batches, n_points):
            read: list[pa.RecordBatch] = []
            with RowFile() as rows:
                for batch in of_part:
                    if CARRIED in batch.schema.names:
                        rows.add(batch)
                        batch = without_row(batch)
                    read.append(batch)
                if not read:
                    continue
                found = _find_in_part(read, plan, how, is_self=is_self)
                if carries:
                    yield from rows.take(found)
                else:
                    yield pa.record_batch({"left_id": pa.array(found, pa.int64())})

    return find


def _find_in_part(read: list[pa.RecordBatch], plan: JoinPlan, how: str, *, is_self: bool) -> Ints:
    """Find the ids of a part's left rows, ascending; empties ``read``."""
    give_back_freed_memory()
    rows = sort_rows(read, plan)
    if rows.is_right is None:
        raise TableError("rows of a part came without the side that they are of; run the join again")
    options = SweepOptions(BATCH_PAIRS, {})
    found = find_partners(
        rows.points, rows.ids, rows.is_right, plan.eps, plan.get_metric(), options, is_self=is_self
    )
    return np.setdiff1d(rows.ids[~rows.is_right], found) if how == "anti" else np.sort(found)
