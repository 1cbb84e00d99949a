"""Clusters by size and points by role, counted by whatever scans them; needs no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.spark.points.buckets import Bucket, plan_buckets
from epsjoin.spark.report.members import MAX_CLUSTERS
from epsjoin.spark.tasks.arrow import Scan, Task
from epsjoin.vocabulary import NOISE

_MIN_HELD = 1 << 20
"""Minimum number of rows that are held before they are added up."""

MEMBERS = pa.schema(
    [("cluster_id", pa.int64()), ("size", pa.int64()), ("core", pa.int64()), ("border", pa.int64())]
)
"""Points by cluster; all noise is one of them."""


def count_clusters(n_points: int, scan: Scan) -> dict[str, Any]:
    """Count points by role and clusters by size, and list the largest clusters, without their centres.

    Parameters
    ----------
    n_points : number of rows of ``clusters``.
    scan : of these rows.

    Returns
    -------
    The fields of ``Findings`` about this.
    """
    sizes: dict[int, int] = {}
    noise, core, border = 0, 0, 0
    largest: list[dict[str, Any]] = []
    for bucket in plan_buckets(n_points):
        rows = _add_up(pa.Table.from_batches(scan(["cluster_id", "role"], _counter(bucket)), MEMBERS))
        is_noise = pc.equal(rows["cluster_id"], NOISE)
        noise += pc.sum(rows.filter(is_noise)["size"]).as_py() or 0
        rows = rows.filter(pc.invert(is_noise))
        core += pc.sum(rows["core"]).as_py() or 0
        border += pc.sum(rows["border"]).as_py() or 0
        for size, count in zip(*np.unique(rows["size"].to_numpy(), return_counts=True), strict=True):
            sizes[int(size)] = sizes.get(int(size), 0) + int(count)
        order = [("size", "descending"), ("cluster_id", "ascending")]
        largest += rows.take(pc.select_k_unstable(rows, MAX_CLUSTERS, order)).to_pylist()
    largest.sort(key=lambda row: (-row["size"], row["cluster_id"]))
    return {
        "n_clusters": sum(sizes.values()),
        "n_core": core,
        "n_border": border,
        "n_noise": noise,
        "cluster_sizes": np.array(sorted(sizes), np.int64),
        "cluster_size_counts": np.array([sizes[size] for size in sorted(sizes)], np.int64),
        "largest_clusters": largest[:MAX_CLUSTERS],
    }


def _counter(bucket: Bucket) -> Task:
    """Count the points of each cluster of a bucket."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held, rows, limit = [MEMBERS.empty_table()], 0, _MIN_HELD
        for batch in batches:
            batch = batch.filter(pa.array(bucket.holds(batch["cluster_id"].to_numpy())))
            roles = (pc.cast(pc.equal(batch["role"], role), pa.int64()) for role in ("core", "border"))
            one = pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)
            held.append(pa.table([batch["cluster_id"], one, *roles], schema=MEMBERS))
            rows += batch.num_rows
            if rows > limit:
                held = [_add_up(pa.concat_tables(held))]
                rows = len(held[0])
                limit = max(_MIN_HELD, 2 * rows)
        yield from _add_up(pa.concat_tables(held)).to_batches()

    return count


def _add_up(rows: pa.Table) -> pa.Table:
    """Add up the rows of each cluster."""
    names = MEMBERS.names[1:]
    added = rows.group_by("cluster_id", use_threads=False).aggregate([(name, "sum") for name in names])
    return added.select(["cluster_id", *(f"{name}_sum" for name in names)]).rename_columns(MEMBERS.names)
