"""What a plan expects of each part: its sample is joined by the plan, in milliseconds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.plan.join_plan import ExpectedParts, JoinPlan
from epsjoin.local.plan.keys import PartRows
from epsjoin.local.plan.spread import replicate
from epsjoin.local.plan.two_tables import SampledSides
from epsjoin.local.sweep.sweeping import SweepOptions

_MAX_PAIRS = 2_000_000
"""Maximum number of pairs of the sample that are found; more would not improve the estimate of a part."""
_BATCH_PAIRS = 1 << 16
"""Maximum number of pairs that are held at once."""
_DIGITS = 6
"""Significant digits of what is expected, which is text in a plan."""


def expect_parts(
    plan: JoinPlan, sample: Floats, sample_ids: Ints, n_rows: int, sides: SampledSides | None = None
) -> ExpectedParts | None:
    """Expect rows, pairs and work of each part of a plan.

    Parameters
    ----------
    plan : the cuts, and the expectations for all parts.
    sample, sample_ids : (m, d) float64 and (m,) int64, what the plan was made on; not modified.
    n_rows : rows of the whole input, at least m.
    sides : of two tables: whose rows the sample has; None: one table.

    Returns
    -------
    ExpectedParts | None
        None for a sample without rows, or one whose parts have more than two million pairs together, which
        would take longer than to plan.

    Notes
    -----
    The pairs of the parts are in proportion to those of the sample, with one pair more in each, since a part
    without a pair in the sample may still have some. Their sum is the plan's expectation for all, which may
    be based on more than the sample's own pairs.
    """
    m = len(sample)
    if not m:
        return None
    weight, pair_weight = np.full(m, n_rows / m), (n_rows / m) ** 2
    if sides is not None:
        weight, pair_weight = np.where(sides.is_right, *reversed(sides.weights)), sides.pair_weight
    replicas = replicate(sample, sample_ids, plan)
    bounds = np.searchsorted(replicas.part, np.arange(plan.n_parts + 1))
    points = np.ascontiguousarray(sample, np.float64)
    metric = plan.get_metric()
    embedded = metric.embed(points)
    rows, pairs, seconds = (np.zeros(plan.n_parts) for _ in range(3))
    total = 0
    for part, (begin, end) in enumerate(pairwise(bounds)):
        here, key = replicas.row[begin:end], replicas.key[begin:end]
        counters: dict[str, int] = {}
        if len(here) > 1:
            side = None if sides is None else sides.is_right[here]
            of_part = PartRows(points[here], embedded[here], sample_ids[here], key, side)
            options = SweepOptions(_BATCH_PAIRS, counters)
            for found in plan.key.join(of_part, part, plan.eps, metric, options):
                total += len(found.left)
                if total > _MAX_PAIRS:
                    return None
        rows[part] = weight[here].sum()
        pairs[part] = counters.get("pairs", 0)
        seconds[part] = plan.key.seconds(
            rows[part],
            embedded.shape[1],
            counters.get("candidates", 0) * pair_weight,
            pairs[part] * pair_weight,
        )
    fractions = (pairs + 1.0) / (pairs.sum() + plan.n_parts)
    return ExpectedParts(*(_short(column) for column in (rows, fractions * plan.expected_pairs, seconds)))


def _short(values: Floats) -> Floats:
    return np.array([float(f"{value:.{_DIGITS}g}") for value in values])
