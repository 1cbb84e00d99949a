"""Clusters by size and points by role, for the commands that tell of them; it loads compiled kernels."""

from __future__ import annotations

from typing import Any

from epsjoin.lake import slices
from epsjoin.lake.lake import Lake, Slice
from epsjoin.spark.report.sizes import count_clusters


def count_of_clusters(lake: Lake, where: Slice) -> dict[str, Any]:
    """Count points and clusters of a slice of ``clusters``, by role and by size; see ``count_clusters``."""
    return count_clusters(
        slices.count_rows(lake, where),
        lambda columns, work: list(work(slices.stream_slice(lake, where, columns))),
    )
