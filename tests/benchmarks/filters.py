"""The planner's costs of a window sweep: sweeps of the bench's sets by many grids and filters, fitted.

    PYTHONPATH=jobs:tests .venv/bin/python -m benchmarks.filters

prints the ``FILTER_*`` of :mod:`epsjoin.local.plan.costs`. The counts that are fitted are those by which the
planner estimates a sweep (:mod:`epsjoin.local.plan.projection`), of all rows instead of a sample.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.distances import NOTHING_IS_WITHIN
from epsjoin.kernels.pairs.batch import CANDIDATES, DISTANCES, PairBatch
from epsjoin.kernels.projection import FILTER_SIZES, SQUARES, Projection, filter_size
from epsjoin.kernels.sweep.vectors import BLOCK
from epsjoin.kernels.sweep.window import WindowRows, is_done, new_state, window_rows, window_sweep
from epsjoin.kernels.sweep.window_keys import Keys, window_candidates
from epsjoin.local.plan.projection import order_axes, simple_projection

from .sets import BY_NAME, Points, uniform

_ROWS = 30_000
_MAX_GRID = 5
_MAX_NANOSECONDS = 1e9
_ROUNDS = 3


class Swept(NamedTuple):
    """One sweep: what was counted, and its CPU nanoseconds, the least of some rounds."""

    size: int
    dimensions: int
    visits: int
    candidates: int
    survivors: int
    nanoseconds: float


def inputs() -> dict[str, tuple[Points, float]]:
    """Points, and the threshold at which they are swept: that of the set, wider where rows are left out."""
    chosen = {name: (BY_NAME[name].make(), BY_NAME[name].eps or 1.0) for name in ("pendigits", "landsat")}
    for name in ("uni8", "cad16", "hist64"):
        points = BY_NAME[name].make()
        chosen[name] = points[:: len(points) // _ROWS][:_ROWS].copy(), BY_NAME[name].eps or 1.0
    chosen["uni4"] = uniform(_ROWS, 4), 0.06
    return chosen


def sweep(rows: WindowRows, dimensions: int) -> Swept:
    """Sweep all rows some times; nothing is within, so that no pairs are written."""
    n, room = len(rows.row), 1024
    batch = PairBatch(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
    seconds = []
    for _ in range(_ROUNDS):
        counters, state, started = np.zeros(4, np.int64), new_state(), time.process_time()
        while not is_done(state):
            window_sweep(state, rows, 0, n, NOTHING_IS_WITHIN, batch, counters)
        seconds.append(time.process_time() - started)
        if seconds[-1] * 1e9 > _MAX_NANOSECONDS:
            break
    _, visits = window_candidates(Keys(rows.row, rows.place, rows.window, rows.passes, rows.gaps))
    counts = int(counters[CANDIDATES]), int(counters[DISTANCES])
    return Swept(rows.n_coordinates, dimensions, visits, *counts, min(seconds) * 1e9)


def sweeps(points: Points, eps: float) -> list[Swept]:
    """Sweep by all grids and filters that are no larger than the points allow."""
    found = []
    nothing = np.zeros(len(points), np.int64)
    axes = order_axes(points[:2000], eps, filter_size(points.shape[1]))
    for size in FILTER_SIZES:
        if size > 2 * len(axes):
            break
        simple = simple_projection(points, SQUARES)
        for n_grid in range(min(_MAX_GRID, len(axes) - 1) + 1):
            projection: Projection = simple._replace(axes=axes, n_grid=n_grid, n_filter=size)
            found.append(
                sweep(window_rows(points, points, nothing, nothing, eps, projection), points.shape[1])
            )
    return found


def fit(found: list[Swept]) -> tuple[dict[str, float], float]:
    """Nanoseconds of each count by least relative squares, and the median relative error."""
    from scipy.optimize import nnls

    def counts(one: Swept) -> list[float]:
        filled = one.visits * -np.expm1(-one.candidates / one.visits)
        blocks = filled + one.candidates / BLOCK
        by_size = [blocks * (one.size == size) for size in FILTER_SIZES]
        return [one.visits, filled, *by_size, one.survivors, one.survivors * one.dimensions]

    of_all = np.array([counts(one) for one in found], np.float64)
    taken = np.array([one.nanoseconds for one in found])
    costs, _ = nnls(of_all / taken[:, None], np.ones(len(taken)))
    names = ["visit", "window that is not empty", *(f"block of {size}" for size in FILTER_SIZES)]
    error = float(np.median(np.abs(of_all @ costs / taken - 1.0)))
    return dict(zip([*names, "survivor", "coordinate of a survivor"], costs, strict=True)), error


def main() -> int:
    found: list[Swept] = []
    for name, (points, eps) in inputs().items():
        here = sweeps(points, eps)
        print(f"{name}: {len(here)} sweeps, {sum(one.nanoseconds for one in here) / 1e9:.2f} s", flush=True)
        found += here
    costs, error = fit(found)
    print("ns: " + ", ".join(f"{cost:.2f} per {name}" for name, cost in costs.items()))
    print(f"median error {error:.0%} of {len(found)} sweeps")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
