"""What a join of two tables costs: rows of one table are not compared with each other, as a plan assumes.

A plan is made on a sample of all rows, whatever table they are of, since the cuts serve both. Its candidates
are those of the rows among each other; here they are counted between the samples of the tables.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.codes import code_order
from epsjoin.kernels.projection import Projection
from epsjoin.kernels.sweep.stack_sweep import stack_comparisons
from epsjoin.kernels.sweep.window import window_rows
from epsjoin.kernels.sweep.window_keys import Keys, window_candidates
from epsjoin.local.plan.join_plan import JoinPlan
from epsjoin.local.plan.keys import Keys as AnyKeys
from epsjoin.local.plan.keys import MaskKey
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.plan.spread import replicate


class SampledSides(NamedTuple):
    """Which rows of a plan's sample are of the right table, and how many rows both tables have.

    Parameters
    ----------
    is_right : (m,) bool, rows of the right table.
    n_rows : rows of the left table and of the right one. The sample may have another fraction of each.
    """

    is_right: Bools
    n_rows: tuple[int, int]

    @property
    def weights(self) -> tuple[float, float]:
        """How many rows of its table a row of the sample stands for, left and right."""
        n_right = int(np.count_nonzero(self.is_right))
        n_left = len(self.is_right) - n_right
        return self.n_rows[0] / max(1, n_left), self.n_rows[1] / max(1, n_right)

    @property
    def pair_weight(self) -> float:
        """How many pairs of rows a left row and a right row of the sample stand for."""
        return self.weights[0] * self.weights[1]


def expect_between(plan: JoinPlan, sample: Floats, ids: Ints, sides: SampledSides) -> JoinPlan:
    """Correct what a plan expects, for a join of two tables.

    Parameters
    ----------
    plan : made on rows of both tables.
    sample, ids : (m, d) float64 and (m,) int64, these rows; not modified.
    sides : of them.

    Returns
    -------
    JoinPlan
        The same cuts; rows, those of the largest part and candidates are of the two tables. Each row of the
        sample stands for as many rows as its table has for one of its sample.
    """
    replicas = replicate(sample, ids, plan)
    in_parts = np.zeros(plan.n_parts)
    for is_right, weight in zip((False, True), sides.weights, strict=True):
        of_side = replicas.part[sides.is_right[replicas.row] == is_right]
        in_parts += weight * np.bincount(of_side, minlength=plan.n_parts)
    bounds = np.searchsorted(replicas.part, np.arange(plan.n_parts + 1))
    count = _count_in_window if isinstance(plan.key, MaskKey) else _count_on_stack
    candidates = 0.0
    for begin, end in pairwise(bounds):
        here = replicas.row[begin:end]
        candidates += count(plan, sample[here], sides.is_right[here], replicas.key[begin:end])
    return replace(
        plan,
        expected_rows=float(in_parts.sum()),
        expected_part_rows=float(in_parts.max()),
        expected_candidates=candidates * sides.pair_weight,
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
    keys = Keys(swept.row, swept.place, swept.window, swept.passes, swept.gaps)
    return float(window_candidates(keys)[0].sum())
