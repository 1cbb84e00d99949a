"""The rows of the table replicas, made from points by a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.lake.arrow import to_binary, to_codes
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.keys import Keys
from epsjoin.local.plan.spread import Replicas, replicate
from epsjoin.spark.points.reading import Reading
from epsjoin.spark.tasks.reports import TaskReport

REPLICAS = "part int, id long, mask long, code binary, point binary"
"""Columns of replicas in files outside of a lake, as DDL."""

FLUSH_BYTES = 64 << 20
"""Number of bytes of replicas held in memory at which a task writes them to files or sends them on."""


class KeyColumn(NamedTuple):
    """A column of ``replicas`` with the keys of one kind of plan; it is null under the other kind.

    Parameters
    ----------
    type : type of the column.
    write : function that turns keys into the column.
    read : function that turns the column into keys.
    """

    type: pa.DataType
    write: Callable[[Keys], pa.Array]
    read: Callable[[pa.Array], Keys]


KEY_COLUMNS = {
    "mask": KeyColumn(pa.int64(), pa.array, lambda column: column.to_numpy()),
    "code": KeyColumn(pa.binary(), to_binary, to_codes),
}
"""Key columns of ``replicas`` by the name that ``JoinPlan.key.column`` has."""


Carry = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
"""Function that makes the values that go with points, (n, w), from whether each has several replicas."""

Replicate = Callable[[pa.RecordBatch, Any, dict[str, float]], Iterator[tuple[int, pa.Table]]]
"""Function that yields the replicas of a batch of rows, as :func:`replicas_of` does of points.

It takes plans of one kind, a ``JoinPlan`` or a ``BlockPlan``.
"""


Spread = Callable[[NDArray[np.float64], NDArray[np.int64], JoinPlan], Replicas]
"""Function that sends points with their ids to parts, as :func:`epsjoin.local.plan.spread.replicate`."""


def replicas_read_by(reading: Reading, spread: Spread = replicate) -> Replicate:
    """Make the function that replicates the points which ``reading`` reads."""

    def replicas(
        batch: pa.RecordBatch, plan: JoinPlan, counters: dict[str, float]
    ) -> Iterator[tuple[int, pa.Table]]:
        ids, points = reading.of_dimensions(plan.dimensions).arrays(batch)
        return replicas_of(ids, points, plan, counters, spread=spread)

    return replicas


def new_report() -> TaskReport:
    """Make a report with the counters of :func:`replicas_of`."""
    return TaskReport(counters={"points": 0, "rows": 0, "replicated_points": 0})


def replicas_of(
    ids: NDArray[np.int64],
    points: NDArray[np.float64],
    plan: JoinPlan,
    counters: dict[str, float],
    carry: Carry | None = None,
    spread: Spread = replicate,
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the replicas of some points, part by part, and count them in ``counters``.

    Parameters
    ----------
    carry : makes the values of the column ``point``; by default it holds the points.
    spread : sends the points to parts.
    """
    replicas = spread(points, ids, plan)
    is_replicated = np.bincount(replicas.row, minlength=len(ids)) > 1
    counters["points"] += len(ids)
    counters["rows"] += len(replicas.row)
    counters["replicated_points"] += int(is_replicated.sum())
    if not len(replicas.part):
        return
    carried = points if carry is None else carry(is_replicated)
    used = plan.key.column
    bounds = np.flatnonzero(np.r_[True, replicas.part[1:] != replicas.part[:-1], True])
    for begin, end in pairwise(bounds):
        row, key = replicas.row[begin:end], replicas.key[begin:end]
        keys = {
            name: column.write(key) if name == used else pa.nulls(len(row), column.type)
            for name, column in KEY_COLUMNS.items()
        }
        part_rows = pa.table({"id": ids[row], **keys, "point": to_binary(carried.take(row, axis=0))})
        yield int(replicas.part[begin]), part_rows


def hold_by_part(batches: Iterable[Iterable[tuple[int, pa.Table]]]) -> Iterator[dict[int, list[pa.Table]]]:
    """Hold replicas in memory, and yield them by part after each batch that fills ``FLUSH_BYTES``, and last.

    What is yielded is always the same dictionary; it is emptied before the next batch is taken.

    Parameters
    ----------
    batches : for each batch of points what :func:`replicas_of` yields.
    """
    held: dict[int, list[pa.Table]] = defaultdict(list)
    held_bytes = 0
    for replicas in batches:
        for part, rows in replicas:
            held[part].append(rows)
            held_bytes += rows.nbytes
        if held_bytes > FLUSH_BYTES:
            yield held
            held.clear()
            held_bytes = 0
    yield held
