"""All pairs of a window sweep, for tests."""

from __future__ import annotations

import numpy as np

from epsjoin.kernels.distances import CHEBYSHEV, EUCLIDEAN, MANHATTAN, make_decision
from epsjoin.kernels.pairs.batch import PairBatch
from epsjoin.kernels.projection import MAXIMUM, SQUARES, SUM
from epsjoin.kernels.sweep import window

NORMS = {"euclidean": (SQUARES, EUCLIDEAN), "manhattan": (SUM, MANHATTAN), "chebyshev": (MAXIMUM, CHEBYSHEV)}


def sweep_all(points, eps, projection, metric="euclidean", mask=None, is_right=None, room=1000, chunk=10**9):
    """All pairs of row numbers as they come, and the counters."""
    n = len(points)
    slack = eps * (1 + 1e-12)
    mask = np.zeros(n, np.int64) if mask is None else mask
    rows = window.window_rows(points, points, np.arange(n), mask, slack, projection, is_right)
    decision = make_decision(NORMS[metric][1], 0.0, eps)
    counters = np.zeros(4, np.int64)
    batch = PairBatch(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
    found = []
    for begin in range(0, n, chunk):
        state = window.new_state()
        while not window.is_done(state):
            m = window.window_sweep(state, rows, begin, min(n, begin + chunk), decision, batch, counters)
            found += zip(batch.left[:m].tolist(), batch.right[:m].tolist(), strict=True)
    return found, counters.tolist()


def is_narrowed(points, eps, projection):
    """Whether rows lie so densely that their gaps narrow the windows."""
    n = len(points)
    nothing = np.zeros(n, np.int64)
    return len(window.window_rows(points, points, np.arange(n), nothing, eps, projection).starts) > 0
