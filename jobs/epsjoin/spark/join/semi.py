"""Semi and anti joins of frames: each part says which of its left rows have a partner, and makes no pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from epsjoin.errors import TableError
from epsjoin.local.join.partners import find_partners
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.one_sided import hold, reach
from epsjoin.local.sweep.sweeping import SweepOptions
from epsjoin.spark.join.merge_join import BATCH_PAIRS, sort_rows
from epsjoin.spark.join.replicas import replicas_read_by
from epsjoin.spark.join.shuffle import read_part, replicate_frame
from epsjoin.spark.points import Points
from epsjoin.spark.rows import FrameRows, MappedRows, Rows, to_frame

FOUND = "left_id long"
"""Columns of what the parts of a semi or an anti join find, as DDL."""
_ID_BYTES = 8
_FRACTION_OF_TIMEOUT = 1 / 10
"""Fraction of the time after which Spark gives up a broadcast that one core may need for a join, at most."""


def take_found(left: DataFrame, id_column: str, found: Rows, n_left: int, plan: JoinPlan) -> DataFrame:
    """Take the rows of a frame whose ids the parts have found; lazy.

    Parameters
    ----------
    left : of ``n_left`` rows.
    id_column : the name of its ids.
    found : columns ``FOUND``.
    plan : of the join.

    Notes
    -----
    Where all ids are within what Spark broadcasts of a table whose size it knows
    (``spark.sql.autoBroadcastJoinThreshold``), they are broadcast, and the rows of ``left`` stay where they
    are: Spark itself learns how few the ids are after it has begun to shuffle ``left``. It gives up a
    broadcast that is not computed after ``spark.sql.broadcastTimeout``, so a join that may take long is left
    to a shuffle.
    """
    conf = left.sparkSession._jsparkSession.sessionState().conf()
    most_bytes, seconds = conf.autoBroadcastJoinThreshold(), conf.broadcastTimeout()
    ids = to_frame(found).withColumnRenamed("left_id", "_left_id")
    is_soon = seconds <= 0 or plan.expected_seconds <= _FRACTION_OF_TIMEOUT * seconds  # 0: no limit
    if n_left * _ID_BYTES <= most_bytes and is_soon:
        ids = F.broadcast(ids)
    return left.join(ids, left[id_column] == ids["_left_id"], "left_semi")


def find_rows(points: Points, others: Points | None, plan: JoinPlan, how: str) -> Rows:
    """Find the left rows that have a partner ("semi") or have none ("anti"); lazy, with one shuffle by part.

    Parameters
    ----------
    points, others : left and right rows; without right ones, the partners of a row are other left rows.
    plan : of planned cuts.

    Returns
    -------
    Rows
        Columns ``FOUND``: each id once, since each left row is in one part
        (:mod:`epsjoin.local.plan.one_sided`).
    """
    right = points if others is None else others
    replicas = _send(points, plan, is_right=False).union(_send(right, plan, is_right=True))
    by_part = replicas.repartitionById(plan.n_parts, "part").select("ipc", "report")
    plan_json, n_points, is_self = plan.to_json(), points.n + right.n, others is None

    def find(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = JoinPlan.from_json(plan_json)
        read = list(read_part(batches, n_points))
        if read:
            yield _find_in_part(read, plan, how, is_self=is_self)

    return MappedRows(FrameRows(by_part), find, FOUND)


def _send(points: Points, plan: JoinPlan, *, is_right: bool) -> DataFrame:
    spread = reach if is_right else hold
    return replicate_frame(points, plan, is_right, replicas_read_by(points.reading, spread))


def _find_in_part(read: list[pa.RecordBatch], plan: JoinPlan, how: str, *, is_self: bool) -> pa.RecordBatch:
    """Find the ids of a part's left rows; empties ``read``."""
    pa.set_memory_pool(pa.system_memory_pool())  # as for pairs: the sweep needs what Arrow frees
    rows = sort_rows(read, plan)
    if rows.is_right is None:
        raise TableError("rows of a part came without the side that they are of; run the join again")
    options = SweepOptions(BATCH_PAIRS, {})
    found = find_partners(
        rows.points, rows.ids, rows.is_right, plan.eps, plan.get_metric(), options, is_self=is_self
    )
    if how == "anti":
        found = np.setdiff1d(rows.ids[~rows.is_right], found)
    return pa.record_batch({"left_id": pa.array(np.sort(found), pa.int64())})
