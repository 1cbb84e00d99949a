"""The papers' merge of GESS, row by row: its rows, its comparisons, its seconds."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.arrays import Floats
from epsjoin.kernels.distances import EUCLIDEAN, make_decision
from epsjoin.kernels.pairs.batch import CANDIDATES, PAIRS, PairBatch
from epsjoin.kernels.plan.regular import stack_rows
from epsjoin.kernels.plan.stack_rows import StackRows
from epsjoin.kernels.sweep.stack_sweep import is_done, new_state, stack_sweep

from ..measure import clocked
from .counting import cubes_of

_BATCH = 1 << 20


def sweep(rows: StackRows, eps: float) -> tuple[int, int]:
    """Comparisons and pairs of the row-by-row merge, as the papers do it."""
    state, counters = new_state(len(rows.points)), np.zeros(4, np.int64)
    batch = PairBatch(np.empty(_BATCH, np.int64), np.empty(_BATCH, np.int64), np.empty(_BATCH))
    while not is_done(state):
        stack_sweep(state, rows, eps, make_decision(EUCLIDEAN, 0.0, eps), batch, counters)
    return int(counters[CANDIDATES]), int(counters[PAIRS])


def merge_rows(points: Floats, eps: float, k: int, msl: int) -> StackRows:
    """The rows of GESS in the order of their codes."""
    cubes = cubes_of(points, eps)
    coded = cubes.encode(k, msl)
    of = coded.row
    near = points[of]
    none = np.empty((0, coded.codes.shape[1]), np.uint8)
    return stack_rows(near, near, coded.codes, cubes.lower[of], cubes.upper[of], none, 0)[1]


def seconds_of(points: Floats, eps: float, k: int, msl: int) -> tuple[float, int]:
    """CPU seconds of replicating, sorting and merging, and the pairs."""
    seconds, _, pairs = clocked(lambda: sweep(merge_rows(points, eps, k, msl), eps)[1])
    return seconds, pairs
