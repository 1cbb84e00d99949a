"""What a join of two tables costs: rows of one table are not compared with each other, as a plan assumes.

A plan is made on a sample of all rows, whatever table they are of, since the cuts serve both. Its candidates
are those of the rows among each other; here they are counted between the samples of the tables.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.join.codes import code_order
from epsjoin.kernels.join.projection import Projection
from epsjoin.kernels.join.stack_sweep import stack_comparisons
from epsjoin.kernels.join.window import window_rows
from epsjoin.kernels.join.window_keys import Keys, window_candidates
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.keys import Keys as AnyKeys
from epsjoin.local.plan.keys import MaskKey
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.plan.spread import replicate


def expect_between(plan: JoinPlan, samples: tuple[Floats, Floats], n_rows: tuple[int, int]) -> JoinPlan:
    """Correct what a plan expects, for a join of two tables.

    Parameters
    ----------
    plan : made on rows of both tables.
    samples : (l, d) and (r, d) float64, a uniform sample of each; not modified.
    n_rows : rows of both tables.

    Returns
    -------
    JoinPlan
        The same cuts; rows, those of the largest part and candidates are of the two tables. Each row of a
        sample stands for as many rows as its table has for one of its sample.
    """
    both = np.concatenate(samples)
    is_right = np.arange(len(both)) >= len(samples[0])
    weights = [n / max(1, len(sample)) for n, sample in zip(n_rows, samples, strict=True)]
    replicas = replicate(both, np.arange(len(both)), plan)
    in_parts = sum(
        np.bincount(replicas.part[is_right[replicas.row] == side], minlength=plan.n_parts) * weight
        for side, weight in enumerate(weights)
    )
    bounds = np.searchsorted(replicas.part, np.arange(plan.n_parts + 1))
    count = _count_in_window if isinstance(plan.key, MaskKey) else _count_on_stack
    candidates = 0.0
    for begin, end in pairwise(bounds):
        here = replicas.row[begin:end]
        candidates += count(plan, both[here], is_right[here], replicas.key[begin:end])
    return replace(
        plan,
        expected_rows=float(np.sum(in_parts)),
        expected_part_rows=float(np.max(in_parts)),
        expected_candidates=candidates * weights[0] * weights[1],
    )


def _count_in_window(plan: JoinPlan, points: Floats, is_right: Bools, mask: AnyKeys) -> float:
    """Candidates of a part with planned cuts."""
    metric = plan.get_metric()
    embedded, reach = metric.embed(points), metric.embedded_eps(plan.eps)
    projection = choose_projection(embedded, len(points), reach, metric.norm).projection
    return count_between(embedded, is_right, reach, projection, np.asarray(mask, np.int64))


def _count_on_stack(plan: JoinPlan, points: Floats, is_right: Bools, codes: AnyKeys) -> float:
    """Comparisons of a part with regular cuts, those of rows that another part owns among them."""
    del plan, points
    codes = np.asarray(codes, np.uint8)
    order = code_order(codes)
    return float(stack_comparisons(codes[order], is_right[order].astype(np.int8)).sum())


def count_between(
    embedded: Floats, is_right: Bools, reach: float, projection: Projection, mask: Ints | None = None
) -> float:
    """Count the candidates between the rows of two tables in a window sweep.

    Parameters
    ----------
    embedded : (n, e) float64.
    is_right : (n,) bool, whether a row is one of the right table.
    reach : threshold in embedded coordinates.
    projection : coordinates of the sweep.
    mask : (n,) int64, of the rows of a part; None: one part.
    """
    n = len(embedded)
    if not is_right.any() or is_right.all():
        return 0.0
    mask = np.zeros(n, np.int64) if mask is None else mask
    swept = window_rows(embedded, embedded, np.arange(n), mask, reach, projection, is_right)
    return float(window_candidates(Keys(swept.row, swept.place, swept.window, swept.passes)).sum())
