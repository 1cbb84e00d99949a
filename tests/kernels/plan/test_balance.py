"""Where a cut divides the weight of rows, as sorted arrays of the rows that are asked about have it."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.plan.balance import balanced_position, divide_weights
from oracles import examples

SEEDS = st.integers(0, 10**6)


def position_by_sums(values, weights, fraction):
    """The first value above the lowest that has the fraction below or at it, else the last; or NaN."""
    total = math.fsum(weights)  # eighths: every sum is exact
    for place, value in enumerate(values):
        if value > values[0] and math.fsum(weights[: place + 1]) >= total * fraction:
            return value
    return values[-1] if values and values[-1] > values[0] else math.nan


@examples(300)
@given(st.integers(0, 30), st.integers(1, 20), st.sampled_from([0.0, 0.125, 0.5, 0.75, 1.0, 1.5]), SEEDS)
def test_balanced_position__has_the_fraction_of_the_weight_below_it(n, n_values, fraction, seed):
    random = np.random.default_rng(seed)
    values = random.integers(0, n_values, n) / n_values
    weights = random.integers(-3, 9, n) / 8.0  # 0 is a weight, less is none
    order = np.argsort(values, kind="stable")
    asked = order[weights[order] >= 0.0]
    expected = position_by_sums(values[asked].tolist(), weights[asked].tolist(), fraction)
    for rows in (order, asked):
        assert np.array_equal(balanced_position(rows, values, weights, fraction), expected, equal_nan=True)


@examples(200)
@given(st.integers(0, 40), SEEDS)
def test_divide_weights__copies_those_of_each_side_in_the_order_of_the_rows(n, seed):
    random = np.random.default_rng(seed)
    lower = random.integers(0, 8, n) / 8.0
    upper, weights = lower + random.integers(0, 4, n) / 8.0, random.random(n)
    position = random.integers(0, 10) / 8.0
    left, right = np.empty(n), np.empty(n)
    n_left, n_right = divide_weights(lower, upper, weights, position, left, right)
    assert left[:n_left].tolist() == weights[lower < position].tolist()
    assert right[:n_right].tolist() == weights[upper >= position].tolist()
