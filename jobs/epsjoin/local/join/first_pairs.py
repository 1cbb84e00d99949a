"""The first pairs of a join in parts: those of rows of its plan's sample, found before any part is joined.

They are pairs of the result like all others, so they are left out of what the parts find.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing

import numpy as np

from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.sweep.window import window_rows
from epsjoin.local.metric import Metric
from epsjoin.local.plan.projection import choose_projection
from epsjoin.local.sweep.pairs import Pairs, collect
from epsjoin.local.sweep.sweeping import SweepOptions, sweep_window

MAX_FIRST_PAIRS = 10_000
"""Maximum number of first pairs: enough to judge eps by, and little to send to every task."""
_MAX_FIRST_FRACTION = 0.1
"""Maximum fraction of the expected pairs that come first; the parts find the others."""
_MARKS = 1 << 20
"""Number of marks by which most pairs are known not to be among the first."""


def find_first_pairs(
    samples: Sequence[tuple[Ints, Floats]],
    n_rows: Sequence[int],
    eps: float,
    metric: Metric,
    expected_pairs: float,
) -> Pairs:
    """Find the pairs of some rows of a sample.

    Parameters
    ----------
    samples : of one table or of two, ids (m,) int64 and points (m, d) float64 each, in random order.
    n_rows : rows of each table.
    eps, metric : of the join.
    expected_pairs : pairs that all rows are expected to have.

    Returns
    -------
    Pairs
        Sorted by ids, with the distances of the join: about a tenth of the expected pairs at most, and never
        more than ``MAX_FIRST_PAIRS``.

    Notes
    -----
    A fraction s of the rows of each table has s² of the pairs, so that s = sqrt(Z' / Z) of them are taken for
    Z' of the Z pairs, as far as the sample has so many: Dittrich's dissertation, section 4.1.3, where they
    are the rows that a progressive join reads first. It costs O(n log n) and the candidates of these rows.
    """
    goal = min(MAX_FIRST_PAIRS, _MAX_FIRST_FRACTION * expected_pairs)
    fraction = math.sqrt(goal / expected_pairs) if expected_pairs > 0 else 0.0
    taken = [math.ceil(fraction * rows) for rows in n_rows]
    ids = np.concatenate([ids[:rows] for (ids, _), rows in zip(samples, taken, strict=True)])
    points = np.concatenate([points[:rows] for (_, points), rows in zip(samples, taken, strict=True)])
    n_left = min(taken[0], len(samples[0][0]))
    is_right = None if len(samples) == 1 else np.arange(len(ids)) >= n_left
    points = np.ascontiguousarray(points, np.float64)
    embedded, reach = metric.embed(points), metric.embedded_eps(eps)
    projection = choose_projection(embedded, len(points), reach, metric.norm).projection
    no_mask = np.zeros(len(ids), np.int64)
    rows = window_rows(points, embedded, ids, no_mask, reach, projection, is_right)
    batches, n_found = list[Pairs](), 0
    with closing(sweep_window(rows, metric.decision(eps), SweepOptions(MAX_FIRST_PAIRS, {}))) as found:
        for batch in found:
            batches.append(batch)
            n_found += len(batch.left)
            if n_found >= MAX_FIRST_PAIRS:  # these rows have more pairs than expected
                break
    left, right, distance = collect(iter(batches))
    return Pairs(left[:MAX_FIRST_PAIRS], right[:MAX_FIRST_PAIRS], distance[:MAX_FIRST_PAIRS])


class LeftOut:
    """Leaves pairs out of others.

    Parameters
    ----------
    pairs : those that are left out.
    """

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
        self._marks = np.zeros(_MARKS, np.bool_)
        self._marks[pairs.left % _MARKS] = True

    def of(self, pairs: Pairs) -> Pairs:
        """Return all other pairs, in their order.

        Notes
        -----
        Some nanoseconds per pair: most have a left id whose mark is not set.
        """
        suspects = np.flatnonzero(self._marks[pairs.left % _MARKS])
        both = zip(pairs.left[suspects].tolist(), pairs.right[suspects].tolist(), strict=True)
        known = suspects[np.fromiter((pair in self._pairs for pair in both), np.bool_, len(suspects))]
        if not len(known):
            return pairs
        return Pairs(
            np.delete(pairs.left, known), np.delete(pairs.right, known), np.delete(pairs.distance, known)
        )
