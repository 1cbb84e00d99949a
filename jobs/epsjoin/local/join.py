"""The self join of an array, in this process: plan, replicate, join part by part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.columns import int_column
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.plan import Pairs, join_part, plan_join, replicate


def iter_self_join(
    points: ArrayLike,
    eps: float,
    metric: str | Metric = "euclidean",
    ids: ArrayLike | None = None,
    cuts: str = "planned",
    n_parts: int = 1,
    k: int = 3,
    msl: int = 2,
    replication_budget: float = 4.0,
    max_pairs: int | None = None,
    sample_rows: int = 20_000,
    seed: int = 0,
    counters: dict[str, int] | None = None,
    batch_rows: int = 1 << 18,
) -> Iterator[Pairs]:
    """Every pair of points within eps, batch by batch, in bounded memory.

    Parameters
    ----------
    points : (n, d) array of floats or integers, any memory order; not modified. Computed in float64.
    eps : threshold in the metric's unit, finite and above 0; a pair at exactly eps belongs to the result.
    metric : a name for :func:`epsjoin.local.metric.get_metric`, or what it returned (minkowski).
    ids : (n,) integers; by default the row numbers. They should be distinct; this is not checked.
    cuts : "planned" (a tree fitted to a sample) or "regular" (the papers' halving). The pairs are the same.
    n_parts : parts to divide the work into; one after the other they need less memory at once.
    k, msl, replication_budget : see :func:`epsjoin.local.plan.plan_join`.
    max_pairs : refuse to give more pairs than this.
    sample_rows : rows that the plan looks at.
    seed : of the sample.
    counters : added to, see :func:`epsjoin.local.plan.join_part`.
    batch_rows : most pairs in one batch, at least 1.

    Yields
    ------
    Pairs
        In no particular order; ``left < right``; never empty.

    Raises
    ------
    ArgumentError
        A wrong argument, at the call; a value that is NaN or infinite (the message names the first row and
        column); a point for which the metric is not defined.
    BudgetError
        There are more than ``max_pairs`` pairs: raised before the batch that would exceed it.
    """
    values, numbers = _checked(points, ids)
    chosen = metric if isinstance(metric, Metric) else get_metric(metric)
    eps = chosen.check_eps(eps)
    if batch_rows < 1:
        raise ArgumentError(f"batch_rows must be at least 1, not {batch_rows}")
    if sample_rows < 1:
        raise ArgumentError(f"sample_rows must be at least 1, not {sample_rows}")
    n = len(values)
    sample = np.arange(n)
    if n > sample_rows:
        sample = np.sort(np.random.default_rng(seed).permutation(n)[:sample_rows])
    plan = plan_join(
        values[sample],
        numbers[sample],
        n,
        eps,
        chosen,
        cuts=cuts,
        n_parts=n_parts,
        k=k,
        msl=msl,
        replication_budget=replication_budget,
        seed=seed,
    )

    def batches() -> Iterator[Pairs]:
        rows = replicate(values, numbers, plan)
        ends = np.searchsorted(rows.part, np.arange(plan.n_parts + 1))
        found = 0
        for part in range(plan.n_parts):
            chosen_rows = slice(ends[part], ends[part + 1])
            row = rows.row[chosen_rows]
            key = rows.key[chosen_rows]
            for pairs in join_part(values[row], numbers[row], key, part, plan, batch_rows, counters):
                found += len(pairs.left)
                if max_pairs is not None and found > max_pairs:
                    raise BudgetError(
                        f"more than max_pairs = {max_pairs} pairs within eps = {eps:g}; "
                        f"about {plan.expected_pairs:.3g} are expected"
                    )
                yield pairs

    return batches()


def self_join(
    points: ArrayLike,
    eps: float,
    metric: str | Metric = "euclidean",
    ids: ArrayLike | None = None,
    cuts: str = "planned",
    n_parts: int = 1,
    k: int = 3,
    msl: int = 2,
    replication_budget: float = 4.0,
    max_pairs: int | None = None,
    sample_rows: int = 20_000,
    seed: int = 0,
    counters: dict[str, int] | None = None,
) -> Pairs:
    """Every pair of points within eps, sorted by (left, right).

    Parameters
    ----------
    points, eps, metric, ids, cuts, n_parts, k, msl, replication_budget, max_pairs, sample_rows, seed :
        see :func:`iter_self_join`.
    counters : see :func:`iter_self_join`.

    Returns
    -------
    Pairs
        ``left < right`` are ids; the same arrays whatever the cuts, parts and seed.

    Raises
    ------
    ArgumentError, BudgetError
        See :func:`iter_self_join`.

    Examples
    --------
    >>> pairs = self_join([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]], eps=5.0)
    >>> pairs.left.tolist(), pairs.right.tolist(), pairs.distance.tolist()
    ([0], [1], [5.0])
    """
    batches = list(
        iter_self_join(
            points,
            eps,
            metric,
            ids,
            cuts,
            n_parts,
            k,
            msl,
            replication_budget,
            max_pairs,
            sample_rows,
            seed,
            counters,
        )
    )
    if not batches:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))
    left, right, distance = (np.concatenate(column) for column in zip(*batches, strict=True))
    order = np.lexsort((right, left))
    return Pairs(left[order], right[order], distance[order])


def _checked(points: ArrayLike, ids: ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points as (n, d) float64 in C order, ids as (n,) int64; both checked."""
    given = np.asarray(points)
    if given.ndim != 2 or given.shape[1] == 0:
        raise ArgumentError(f"points must have the shape (n, d) with d at least 1, not {given.shape}")
    if given.dtype.kind not in "fiu":
        raise ArgumentError(f"points must be floats or integers, not {given.dtype}")
    values = np.ascontiguousarray(given, np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        raise ArgumentError(f"points must be finite; row {row}, column {column} is {values[row, column]}")
    if ids is None:
        return values, np.arange(len(values), dtype=np.int64)
    numbers = int_column("ids", ids)
    if len(numbers) != len(values):
        raise ArgumentError(f"ids must be one per point, {len(values)}, not {len(numbers)}")
    return values, numbers
