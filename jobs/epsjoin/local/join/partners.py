"""Run the sweep of a semi join to its end: which left rows have a partner."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.projection import Projection
from epsjoin.kernels.sweep.partner_sweep import look_both_ways, partner_sweep
from epsjoin.kernels.sweep.window import is_done, new_state, window_rows
from epsjoin.local.metric import Metric
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.sweep.sweeping import CHUNKS_AHEAD, COUNTED, SweepOptions, add_counts, chunks_of
from epsjoin.local.sweep.threads import in_order


def find_partners(
    points: Floats,
    ids: Ints,
    is_right: Bools | None,
    eps: float,
    metric: Metric,
    options: SweepOptions,
    *,
    is_self: bool,
    projection: Projection | None = None,
    show: Callable[[float], None] | None = None,
) -> Ints:
    """Find the left rows that have a right row within eps, without their pairs.

    Parameters
    ----------
    points : (n, d) float64; not modified.
    ids : (n,) int64, distinct in each table.
    is_right : (n,) bool, whether a row is of the right table; None: there is one table, and every row is both
        left and right.
    eps, metric : threshold and metric.
    options : threads and counters; there are no batches. The counter ``pairs`` counts rows with a partner.
    is_self : whether rows with equal ids are one row, which is no partner of its own.
    projection : coordinates of the sweep, where they have been chosen.
    show : called with the fraction of the rows that is done.

    Returns
    -------
    (m,) int64, ids of left rows, in no particular order; the same for any number of threads.

    Notes
    -----
    O(n log n) and the candidates: those of a row until its first partner, beginning with the nearest along
    the sweep. A bit of memory per row beside what :func:`epsjoin.kernels.sweep.window.window_rows` says.
    """
    n, reach = len(points), metric.embedded_eps(eps)
    embedded = metric.embed(points)
    if projection is None:
        projection = choose_projection(embedded, n, reach, metric.norm).projection
    no_mask = np.zeros(n, np.int64)
    rows = look_both_ways(window_rows(points, embedded, ids, no_mask, reach, projection, is_right))
    decision, has_partner = metric.decision(eps), np.zeros(n, np.bool_)
    chunks, stop = chunks_of(rows), threading.Event()

    def sweep(number: int, begin: int, end: int) -> Iterator[tuple[int, Ints]]:
        state = new_state()
        while not is_done(state) and not stop.is_set():
            counts = np.zeros(len(COUNTED), np.int64)
            partner_sweep(state, rows, begin, end, decision, is_self, has_partner, counts)
            yield number, counts

    add_counts(options.counters, rows=n, carried_rows=0)
    sweeps = (sweep(number, *chunk) for number, chunk in enumerate(chunks))
    with closing(in_order(sweeps, options.n_jobs, CHUNKS_AHEAD, stop)) as swept:
        for number, counts in swept:
            add_counts(options.counters, **dict(zip(COUNTED, counts.tolist(), strict=True)))
            if show is not None:
                show(number / len(chunks))
    return rows.ids[has_partner]
