"""One part of a join."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from epsjoin.kernels.join.window import BLOCK
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.keys import Keys, PartRows
from epsjoin.local.plan.spread import as_points
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.local.sweep.sweeping import Counters, check_batch_rows


def join_part(
    points: NDArray[np.float64],
    ids: NDArray[np.int64],
    key: Keys,
    part: int,
    plan: JoinPlan,
    batch_rows: int = 1 << 18,
    counters: Counters | None = None,
    n_jobs: int = 1,
    is_right: NDArray[np.bool_] | None = None,
) -> Iterator[Pairs]:
    """All pairs that this part reports; over all parts each pair within eps appears exactly once.

    Parameters
    ----------
    points : (n, d), original coordinates of the part's rows, as for :func:`replicate`; not modified.
    ids : (n,) int64, their ids.
    key : their keys from :func:`replicate`.
    part : number of the part.
    plan : from :func:`plan_join`.
    batch_rows : most pairs in one batch, at least 32.
    counters : added to as the batches come: ``rows``, ``carried_rows``, ``candidates``,
        ``distance_computations``, ``pairs``, and ``largest_stack``, which keeps the maximum
        (:mod:`epsjoin.kernels.join.stack_sweep` defines them).
    n_jobs : threads, for planned cuts; the papers' sweep has one.
    is_right : (n,) bool, for two tables: rows of the right one; a pair is then (left id, right id).

    Yields
    ------
    Pairs
        In no particular order; never empty. Memory beyond the rows is bounded by ``batch_rows``.

    Raises
    ------
    ArgumentError
        As for :func:`replicate`; batch_rows is too small.
    """
    counters = {} if counters is None else counters
    batch_rows = min(check_batch_rows(batch_rows), _max_pairs(len(ids)))
    metric = plan.get_metric()
    original = as_points(points, plan)
    embedded = metric.embed(original)
    ids = np.asarray(ids, np.int64)
    rows = PartRows(original, embedded, ids, key, is_right)
    yield from plan.key.join(rows, part, plan.eps, metric, batch_rows, counters, n_jobs)


def _max_pairs(n_rows: int) -> int:
    """Maximum number of pairs of these rows, and room for one step of a sweep."""
    return max(BLOCK, n_rows * (n_rows - 1) // 2 + BLOCK)
