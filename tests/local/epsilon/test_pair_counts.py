"""The curve of pair counts, against counting, and the part of it that a power law is fitted to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.local.epsilon.power_law import fit_power_law, pair_count_curve
from oracles import examples
from oracles import fractal as twin
from tests.local.epsilon.samples import SEEDS, random


def batches(pairs, n):
    columns = [np.array([pair[i] for pair in pairs], float if i == 2 else np.int64) for i in range(3)]
    return [tuple(column[place::n] for column in columns) for place in range(n)]


@examples(60)
@given(st.integers(2, 60), st.integers(1, 3), st.integers(2, 30), SEEDS)
def test_pair_count_curve__counts_exactly_at_every_radius(n, d, n_bins, seed):
    # Whole numbers: distances are tied, many are 0, and many lie exactly on a radius (powers of 2).
    points = np.random.default_rng(seed).integers(0, 9, (n, d)).astype(float)
    pairs = [pair for pair in twin.distances(points) if pair[2] <= 8.0]
    distance = [each for _, _, each in pairs]
    curve = pair_count_curve(batches(pairs, 3), n, 8.0, n_bins, seed)
    assert curve.pairs.tolist() == [twin.pairs_within(distance, radius) for radius in curve.radius.tolist()]
    assert curve.equal_pairs == twin.pairs_within(distance, 0.0)
    assert curve.radius[-1] == 8.0
    assert len(curve.radius) <= n_bins + 1
    assert (np.diff(curve.radius) > 0).all()


@pytest.mark.parametrize("r_max", [1.0, math.nextafter(1.0, 2.0), 0.37, 1.7e308, 1e-288, 1e-300])
def test_pair_count_curve__of_many_pairs_counts_exactly_at_and_beside_every_radius(r_max):
    """Radii of the smallest are so small that their numbers lose bits."""
    radii = r_max * 2.0 ** (np.arange(1 - 64 * 64, 1) / 64)
    beside = [np.nextafter(radii, 0.0), radii, np.nextafter(radii, math.inf)[:-1], np.zeros(40)]
    distance = random().permutation(np.concatenate(beside))
    curve = pair_count_curve([distance], 200, r_max, n_bins=20_000)
    assert len(curve.radius) > 3000
    assert set(curve.radius) <= set(radii)
    at_most = np.searchsorted(np.sort(distance), curve.radius, side="right")
    assert curve.pairs.tolist() == at_most.tolist()
    assert curve.equal_pairs == np.count_nonzero(distance == 0.0) >= 40


@examples(30)
@given(st.integers(0, 80), st.integers(1, 5), SEEDS)
def test_pair_count_curve__does_not_depend_on_batches_or_on_ends_being_given(n_pairs, n_batches, seed):
    distance = np.random.default_rng(seed).choice([0.0, 0.1, 0.5, 0.7, 1.0], n_pairs)
    whole = pair_count_curve([distance], 100, 1.0)
    parts = pair_count_curve(np.array_split(distance, n_batches), 100, 1.0)
    ends = np.arange(n_pairs)
    with_ends = pair_count_curve([(ends, ends + 1, distance)], 100, 1.0)
    for curve in (parts, with_ends):
        assert curve.radius.tolist() == whole.radius.tolist()
        assert curve.pairs.tolist() == whole.pairs.tolist()
    assert len(whole.pairs_without) == 0


def test_pair_count_curve__leaves_out_one_group_of_rows_after_the_other():
    points = random().integers(0, 5, (20, 2)).astype(float)  # 20 groups, so one point in each
    pairs = twin.distances(points)
    curve = pair_count_curve(batches(pairs, 2), 20, 8.0)
    at = len(curve.radius) // 2
    for radius, without in (
        (curve.radius[at], curve.pairs_without[:, at]),
        (0.0, curve.equal_pairs_without),
    ):
        rest = [[each for i, j, each in pairs if point not in (i, j)] for point in range(20)]
        expected = [twin.pairs_within(distance, radius) for distance in rest]
        assert sorted(without.tolist()) == sorted(expected)


def test_pair_count_curve__takes_a_pair_within_one_group_off_once():
    pairs = twin.distances(twin.cube(40, 2, random()))  # 20 groups of two: each is in 1 + 2 * 38 of 780 pairs
    assert pair_count_curve(batches(pairs, 2), 40, 2.0).pairs_without[:, -1].tolist() == [780 - 77] * 20


def test_fit_power_law__leaves_out_the_start_and_the_saturated_end():
    pairs = twin.distances(twin.cube(200, 2, random()))
    curve = pair_count_curve(batches(pairs, 1), 200, 1.5)
    law = fit_power_law(curve, 200)
    assert curve.pairs[-1] == 200 * 199 / 2
    used = curve.pairs[(curve.radius >= law.range_low) & (curve.radius <= law.range_high)]
    assert used.min() >= 30
    assert used.max() <= 200 * 199 / 2 / 10
    # The line runs through the middle of the points it was fitted to.
    middle = math.sqrt(law.range_low * law.range_high)
    expected = math.exp(np.interp(math.log(middle), np.log(curve.radius), np.log(curve.pairs)))
    assert math.exp(law.log_c) * middle**law.exponent == pytest.approx(expected, rel=0.1)


def test_pair_count_curve__bears_a_root_that_was_rounded_up():
    assert pair_count_curve([np.array([math.nextafter(1.0, 2.0)])], 2, 1.0).pairs.tolist() == [1]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: pair_count_curve([np.array([2.0])], 2, 1.0), "distance 2.0 is beyond r_max = 1.0"),
        (lambda: pair_count_curve([np.array([math.nan])], 2, 1.0), "never NaN"),
        (lambda: pair_count_curve([], 2, 0.0), "r_max must be a finite number above 0"),
        (lambda: pair_count_curve([([0], [2], [0.5])], 2, 1.0), "right must be rows of the sample, 0 to 1"),
        (lambda: fit_power_law(pair_count_curve([], 100, 1.0), 100), "choose eps by hand"),
    ],
)
def test_pair_count_curve__refuses_wrong_arguments(call, says):
    with pytest.raises(ArgumentError, match=says):
        call()
