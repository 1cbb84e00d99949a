"""Axes by what they separate: pair by pair, as the definition says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.plan.separation import separating_axes, window_lengths
from epsjoin.kernels.projection import axes_by_variance
from oracles import examples


def rows_of(kind, n, d, seed):
    random = np.random.default_rng(seed)
    rows = random.random((n, d)) if kind == "random" else random.integers(0, 4, (n, d)) / 4
    if kind == "far" and n:
        rows[random.integers(n)] = random.choice([-1.7e308, 1.7e308], d)  # differences overflow
    return rows


ROWS = st.builds(
    rows_of,
    st.sampled_from(["random", "equal", "far"]),
    st.integers(1, 40),
    st.integers(1, 9),
    st.integers(0, 10**6),
)
EPS = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])


@examples(200)
@given(ROWS, EPS)
def test_window_lengths__count_what_lies_up_to_eps_above(rows, eps):
    values = np.sort(rows[:, 0])
    expected = [sum(other <= value + eps for other in values[i + 1 :]) for i, value in enumerate(values)]
    assert window_lengths(values, eps).tolist() == expected


def choose_one_by_one(pairs, eps, first, count):
    """The axes as the docstring has them; ``pairs`` are the coordinates of both rows of each."""
    chosen = [first]
    near = [set(np.flatnonzero(np.abs(a - b) <= eps)) for a, b in pairs]
    while near and len(chosen) < count:
        left = [sum(axis in each for each in near) for axis in range(len(pairs[0][0]))]
        best = left.index(min(left))
        if left[best] == len(near) or best in chosen:
            break
        chosen.append(best)
        near = [each for each in near if best in each]
    return chosen


@examples(300)
@given(ROWS, EPS, st.data())
@pytest.mark.filterwarnings("ignore:overflow")
def test_separating_axes__leave_the_fewest_pairs_one_by_one(rows, eps, data):
    first = data.draw(st.integers(0, rows.shape[1] - 1))
    rows = np.ascontiguousarray(rows[np.argsort(rows[:, first], kind="stable")])
    lengths = window_lengths(rows[:, first].copy(), eps)
    pairs = [(rows[i], rows[i + 1 + k]) for i, length in enumerate(lengths) for k in range(length)]
    picked = np.arange(data.draw(st.integers(0, 3)), len(pairs), data.draw(st.integers(1, 5)))
    count = data.draw(st.integers(1, 8))
    expected = choose_one_by_one([pairs[i] for i in picked], eps, first, count)
    assert separating_axes(rows, lengths, picked, eps, first, count).tolist() == expected


@examples(200)
@given(ROWS)
def test_axes_by_variance__are_in_the_order_of_the_variances(rows):
    twice = np.concatenate((rows, rows[:, ::-1]), axis=1)
    for each in (rows, twice, np.asfortranarray(rows), rows[::2, ::-1]):
        with np.errstate(over="ignore", invalid="ignore"):
            expected = np.argsort(-np.ascontiguousarray(each).var(axis=0), kind="stable")
        assert axes_by_variance(each).tolist() == expected.tolist()
