"""The rows of the table replicas, made from points by a plan."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.lake.arrow import to_binary
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.spread import replicate
from epsjoin.spark import tasks

REPLICAS = "part int, id long, mask long, code binary, point binary"


def new_report() -> tasks.TaskReport:
    """A report with the counters of :func:`replicas_of`."""
    return tasks.TaskReport(counters={"points": 0, "rows": 0, "replicated_points": 0})


def replicas_of(
    ids: NDArray[np.int64],
    points: NDArray[np.float64],
    plan: JoinPlan,
    counters: dict[str, float],
) -> Iterator[tuple[int, pa.Table]]:
    """The replicas of some points, part by part; counted in ``counters``."""
    replicas = replicate(points, ids, plan)
    counters["points"] += len(ids)
    counters["rows"] += len(replicas.row)
    counters["replicated_points"] += int((np.bincount(replicas.row, minlength=len(ids)) > 1).sum())
    if not len(replicas.part):
        return
    bounds = np.flatnonzero(np.r_[True, replicas.part[1:] != replicas.part[:-1], True])
    for begin, end in pairwise(bounds):
        row, key = replicas.row[begin:end], replicas.key[begin:end]
        is_planned = plan.kind == "planned"
        yield (
            int(replicas.part[begin]),
            pa.table(
                {
                    "id": ids[row],
                    "mask": pa.array(key) if is_planned else pa.nulls(len(row), pa.int64()),
                    "code": pa.nulls(len(row), pa.binary()) if is_planned else to_binary(key),
                    "point": to_binary(points[row]),
                }
            ),
        )


FLUSH_BYTES = 64 << 20
"""A task writes its replicas out, or sends them on in packets, when it holds so many bytes of them."""
