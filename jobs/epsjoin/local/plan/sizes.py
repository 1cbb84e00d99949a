"""How large parts and their workers become: rows, bytes, and how many parts to aim at."""

from __future__ import annotations

import math

from epsjoin.local.plan.cuts import Cuts
from epsjoin.params import RunParams

WORKER_BYTES = 340 << 20
"""A Python worker's memory beside the rows of its part: itself, the package, batches of rows and pairs."""
LEAST_PARTS = 8
"""For the cores, where memory asks for fewer."""
SAMPLE_ROWS_PER_PART = 100
MOST_SAMPLE_BYTES = 256 << 20
"""Of coordinates, unless ``sample_rows`` asks for more: the driver holds them."""
_ROW_BYTES = 20
"""Of a row of replicas beside its point."""


def cuts_of(params: RunParams, n_points: int, dimensions: int) -> Cuts:
    """How to cut so many points: into parts that fit a worker, and some more for the cores."""
    most = rows_that_fit(params.worker_memory_mb, dimensions)
    n_parts = params.n_parts or max(LEAST_PARTS, math.ceil(n_points / most))
    return Cuts(
        params.cuts,
        n_parts,
        params.k,
        params.msl,
        params.replication_budget,
        max(params.sample_rows, min(SAMPLE_ROWS_PER_PART * n_parts, MOST_SAMPLE_BYTES // (8 * dimensions))),
        params.seed,
        most_part_rows=most,
    )


def rows_that_fit(worker_memory_mb: int, dimensions: int) -> int:
    """Rows of a part that a Python worker of so much memory can join."""
    return max(1, ((worker_memory_mb << 20) - WORKER_BYTES) // row_bytes(dimensions))


def row_bytes(dimensions: int) -> int:
    """Bytes of a worker's memory for one row of a part, as measured.

    The row as it is read, its point in the order of ids (up to 8 dimensions once more, in the order of the
    sweep), keys, filter coordinates and places.
    """
    return (24 if dimensions <= 8 else 16) * dimensions + 210
