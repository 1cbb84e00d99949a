"""Sizes of parts and of their workers: rows, bytes, and how many parts to aim at."""

from __future__ import annotations

import math

from epsjoin.local.plan.cuts import Cuts
from epsjoin.params import RunParams

WORKER_BYTES = 340 << 20
"""Bytes of a Python worker's memory without the rows of its part: itself, the package, batches."""
MIN_PARTS = 8
"""Minimum number of parts, so that the cores have work where memory needs fewer parts."""
SAMPLE_ROWS_PER_PART = 100
"""Number of rows of the sample for each part."""
MAX_SAMPLE_BYTES = 256 << 20
"""Maximum of bytes of the sample's coordinates, which the driver holds; ``sample_rows`` may ask for more."""
REPLICA_ROW_BYTES = 20
"""Bytes of a row of replicas without its point."""

PAIRS_OF_A_TASK_BYTES = 128 << 20
"""Bytes of a worker's memory for a batch of pairs while their points are numbered and connected."""
MAPPED_POINT_BYTES = 9
"""Bytes that a worker of ``cluster`` maps for each point: its id and whether it is core."""


def cuts_of(params: RunParams, n_points: int, dimensions: int) -> Cuts:
    """Choose how to cut ``n_points`` points: into parts that fit a worker, and some more for the cores."""
    most = rows_that_fit(params.worker_memory_mb, dimensions)
    n_parts = params.n_parts or max(MIN_PARTS, math.ceil(n_points / most))
    return Cuts(
        params.cuts,
        n_parts,
        params.k,
        params.msl,
        params.replication_budget,
        max(params.sample_rows, min(SAMPLE_ROWS_PER_PART * n_parts, MAX_SAMPLE_BYTES // (8 * dimensions))),
        params.seed,
        params.rule,
        params.decisions,
        most_part_rows=most,
    )


def rows_that_fit(worker_memory_mb: int, dimensions: int) -> int:
    """Rows of a part that a Python worker of ``worker_memory_mb`` can join."""
    return max(1, ((worker_memory_mb << 20) - WORKER_BYTES) // row_bytes(dimensions))


def row_bytes(dimensions: int) -> int:
    """Bytes of a worker's memory for one row of a part, as measured.

    The row as it is read, its point in the order of ids (up to 8 dimensions once more, in the order of the
    sweep), keys, filter coordinates and places.
    """
    return (24 if dimensions <= 8 else 16) * dimensions + 210


def points_that_map(worker_memory_mb: int) -> int:
    """Points of which a Python worker of ``worker_memory_mb`` can map all ids while it connects pairs."""
    return max(0, (worker_memory_mb << 20) - WORKER_BYTES - PAIRS_OF_A_TASK_BYTES) // MAPPED_POINT_BYTES
