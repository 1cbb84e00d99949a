"""The join of one part, when a join is split into parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.sweep.vectors import BLOCK
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.keys import Keys, PartRows
from epsjoin.local.plan.spread import as_points
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import Counters, SweepOptions, check_batch_rows


def join_part(
    points: Floats,
    ids: Ints,
    key: Keys,
    part: int,
    plan: JoinPlan,
    batch_rows: int = 1 << 18,
    counters: Counters | None = None,
    n_jobs: int = 1,
    is_right: Bools | None = None,
) -> Iterator[Pairs]:
    """Find the pairs that one part reports; all parts together report each pair within eps exactly once.

    Parameters
    ----------
    points : (n, d) float64, original coordinates of the part's rows, as for ``replicate``; not modified.
    ids : (n,) int64, the ids of the rows.
    key : (n,) or (n, bytes), the keys of the rows from ``replicate``.
    part : number of the part.
    plan : the plan from ``plan_join``.
    batch_rows : maximum number of pairs in one batch, at least 32.
    counters : dictionary to whose entries the work is added while batches come: ``rows``, ``carried_rows``,
        ``candidates``, ``distance_computations``, ``pairs``, and ``largest_stack``, which keeps the maximum
        (:mod:`epsjoin.kernels.sweep.stack_sweep` defines them).
    n_jobs : number of threads under planned cuts; the papers' sweep has one.
    is_right : (n,) bool, for two tables: whether a row is one of the right table. A pair is then (left id,
        right id).

    Yields
    ------
    Pairs
        A batch of pairs in no particular order; never empty. ``batch_rows`` bounds the memory, not counting
        the rows.

    Raises
    ------
    ArgumentError
        As ``replicate``; or batch_rows is too small.
    """
    batch_rows = min(check_batch_rows(batch_rows), _max_pairs(len(ids)))
    options = SweepOptions(batch_rows, {} if counters is None else counters, n_jobs)
    metric = plan.get_metric()
    original = as_points(points, plan)
    embedded = metric.embed(original)
    ids = np.asarray(ids, np.int64)
    rows = PartRows(original, embedded, ids, key, is_right)
    yield from plan.key.join(rows, part, plan.eps, metric, options)


def _max_pairs(n_rows: int) -> int:
    """Maximum number of pairs of this number of rows, with room for one more step of the sweep."""
    return max(BLOCK, n_rows * (n_rows - 1) // 2 + BLOCK)
