"""The pairs of a sample that a join will decide, from which the cost of a leaf is computed."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from epsjoin.kernels.arrays import Bools, Floats, Ints
from epsjoin.kernels.distances import EUCLIDEAN, make_decision
from epsjoin.kernels.projection import Projection
from epsjoin.kernels.sweep.window import window_rows
from epsjoin.local.plan.expectation.sample_pairs import BATCH_PAIRS
from epsjoin.local.sweep.sweeping import SweepOptions, sweep_window

_FIRST_ROWS = 4096
"""Number of rows of a sample whose pairs are found first, to be decided."""
_SUFFICIENT_PAIRS = 200_000
"""Number of pairs beyond which no more are kept: they would only make planning slower."""
_MAX_PAIRS = 2_000_000
"""Maximum number of pairs of a sample that are kept: memory."""
_BLOCK_NUMBERS = 1 << 20
"""Maximum number of coordinates that are compared at once, of pairs that a sweep has found."""


class DecidedPairs(NamedTuple):
    """Pairs of a sample that a join will decide.

    Parameters
    ----------
    left, right : (k,) int64, rows of the sample.
    weight : number of pairs that each one stands for.
    """

    left: Ints
    right: Ints
    weight: float


def decided_pairs(
    points: Floats, embedded: Floats, eps: float, projection: Projection, seed: int
) -> DecidedPairs:
    """Find the pairs of a sample that pass the filter of a window sweep; if there are many, some for all.

    Parameters
    ----------
    points, embedded : (m, d) and (m, e) float64, the sample; not modified.
    eps : threshold in embedded coordinates.
    projection : of the sweep.
    seed : of the 4096 rows that are swept first, of more rows where these have few pairs (so many that some
        two million pairs may come), and of the 200,000 pairs that stand for more.
    """
    m = len(points)
    random = np.random.default_rng(seed)
    shuffled = random.permutation(m)
    with np.errstate(over="ignore"):
        shifted = embedded - projection.centre
    is_out: Bools = (shifted < projection.low) | (shifted > projection.high)
    is_drawn_in = np.asarray(is_out.any(axis=1))
    first = np.sort(shuffled[:_FIRST_ROWS])
    everything = make_decision(EUCLIDEAN, 0.0, math.inf)
    swept = first
    while True:
        no_mask = np.zeros(len(swept), np.int64)
        rows = window_rows(points[swept], embedded[swept], swept, no_mask, eps, projection)
        kept = [(first[:0], first[:0])]
        for batch in sweep_window(rows, everything, SweepOptions(BATCH_PAIRS, {})):
            near = _are_near_as_they_are(embedded, eps, is_drawn_in, batch.left, batch.right)
            kept.append((batch.left[near], batch.right[near]))
        left, right = (np.concatenate(side) for side in zip(*kept, strict=True))
        weight = (m / len(swept)) ** 2 if m else 1.0
        if len(swept) > len(first) or len(swept) == m or len(left) >= _SUFFICIENT_PAIRS:
            break
        times = math.isqrt(_MAX_PAIRS // max(1, len(left)))  # 3 at least
        swept = np.sort(shuffled[: times * len(first)])
    if len(left) > _SUFFICIENT_PAIRS:
        some = random.choice(len(left), _SUFFICIENT_PAIRS, replace=False)
        left, right, weight = left[some], right[some], weight * len(left) / _SUFFICIENT_PAIRS
    return DecidedPairs(left, right, weight)


def _are_near_as_they_are(embedded: Floats, eps: float, is_drawn_in: Bools, left: Ints, right: Ints) -> Bools:
    """Mark pairs whose rows are near each other before a sweep moves them.

    A sweep moves the outliers of its rows to the border of the others, where they meet. A part moves only its
    own outliers, so it hardly decides such pairs.
    """
    near: Bools = ~(is_drawn_in[left] | is_drawn_in[right])
    asked = np.flatnonzero(~near)
    at_once = max(1, _BLOCK_NUMBERS // max(1, embedded.shape[1]))
    with np.errstate(over="ignore"):
        for begin in range(0, len(asked), at_once):
            some = asked[begin : begin + at_once]
            near[some] = (np.abs(embedded[left[some]] - embedded[right[some]]) <= eps).all(axis=1)
    return near
