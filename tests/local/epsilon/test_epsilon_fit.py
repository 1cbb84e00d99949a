"""What a fit answers: an eps for a wish, and the pairs that an eps has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.local.epsilon.fit import fit_epsilon
from epsjoin.local.join.arrays import self_join
from oracles import examples
from oracles import fractal as twin
from tests.local.epsilon.samples import FIT, about, random, size


@pytest.mark.parametrize("sample_rows", [1500, 500])
@pytest.mark.parametrize("neighbours", [2, 10, 50])
def test_eps_for_neighbours__gives_so_many_on_average(sample_rows, neighbours):
    points = twin.cube(size(1500), 2, random())
    eps = fit_epsilon(points, sample_rows=size(sample_rows)).eps_for(neighbours=neighbours)
    found = 2 * len(self_join(points, eps).left) / len(points)
    # From all rows the curve is exact but for interpolation; from a third 5 % to 20 % of scatter are left.
    assert found == about(neighbours, 0.02 if sample_rows == 1500 else 0.2)


@examples(60)
@given(st.floats(-1, 7.5))
def test_eps_for_pairs__is_the_inverse_of_expected_pairs(log_pairs):
    pairs = 10**log_pairs
    found = FIT.expected_pairs(FIT.eps_for(pairs=pairs))
    # a pair of the sample stands for many; where these are fewer than 30, the law has no steps
    step = 10_000 * 9_999 / (500 * 499)
    assert found == pytest.approx(
        pairs, rel=2e-5 if pairs < 29 * step else 2e-3, abs=step * (pairs > 29 * step)
    )


def test_eps_for_pairs__is_the_least_distance_of_a_lattice_where_no_smaller_eps_has_a_pair():
    corners = np.random.default_rng(4).integers(0, 2, (300, 40))
    eps = fit_epsilon(corners).eps_for(pairs=5)
    assert min(self_join(corners, 3.0).distance) <= eps <= 3.001


@examples(60)
@given(st.floats(-12, 3), st.floats(-12, 3))
def test_expected_pairs__rises_with_eps(one, other):
    low, high = sorted((10**one, 10**other))
    assert FIT.expected_pairs(low) <= FIT.expected_pairs(high) <= 10_000 * 9_999 / 2


def test_expected_pairs__is_the_measured_curve_within_its_range_and_the_law_below():
    curve, scale = FIT.curve, 10_000 * 9_999 / (500 * 499)
    for radius, pairs in zip(curve.radius.tolist(), curve.pairs.tolist(), strict=True):
        assert FIT.expected_pairs(radius) == pytest.approx(pairs * scale)
    tenth = FIT.expected_pairs(curve.radius[0] / 10)
    assert tenth == pytest.approx(curve.pairs[0] * scale * 0.1**FIT.exponent)


def test_eps_for__is_rounded_so_that_it_can_be_typed():
    for eps in (
        FIT.eps_for(neighbours=10),
        FIT.eps_for(pairs=12345),
        FIT.eps_for(k_distance_quantile=0.9, k=4),
    ):
        assert eps == float(f"{eps:.6g}")


@pytest.mark.parametrize("digits", [1, 3, 6, 17])
def test_eps_for__has_as_many_digits_as_asked_for_and_is_the_nearest_such_number(digits):
    exact = FIT.eps_for(neighbours=10, digits=17)
    rounded = FIT.eps_for(neighbours=10, digits=digits)
    assert rounded == float(f"{exact:.{digits}g}")
    assert (rounded == exact) == (digits == 17), "what was found has all digits"


def test_eps_for__of_the_farthest_quantile_is_the_largest():
    quantiles = [FIT.eps_for(k_distance_quantile=each, k=64) for each in (0.5, 0.9, 0.999999)]
    assert quantiles == sorted(set(quantiles))


@pytest.mark.parametrize("digits", [0, 18])
def test_eps_for__refuses_digits_that_a_double_has_not(digits):
    with pytest.raises(ArgumentError, match="digits must be"):
        FIT.eps_for(neighbours=10, digits=digits)


def test_n_rows__scales_pairs_by_the_pairs_of_rows():
    points = twin.cube(500, 2, random())
    small, large = fit_epsilon(points), fit_epsilon(points, n_rows=1_000_000)
    assert large.exponent == small.exponent
    assert large.expected_pairs(0.01) == pytest.approx(
        small.expected_pairs(0.01) * (1e6 * (1e6 - 1)) / (500 * 499)
    )
    assert large.eps_for(neighbours=10) < small.eps_for(neighbours=10)


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ({}, "exactly one of neighbours, different_neighbours, pairs, k_distance_quantile, not none"),
        ({"neighbours": 1, "pairs": 1}, "not neighbours, pairs"),
        ({"neighbours": 0}, "neighbours must be above 0"),
        ({"neighbours": 1, "k": 3}, "k_distance_quantile and k belong together"),
        ({"k_distance_quantile": 0.5}, "k_distance_quantile and k belong together"),
        ({"k_distance_quantile": 1.0, "k": 3}, "k_distance_quantile must be above 0 and below 1"),
        ({"k_distance_quantile": 0.5, "k": 65}, "k must be at most 64"),
        (
            {"pairs": 1e9},
            r"^1,000,000,000 pairs \(200,000 neighbours\) .* 10,000 points have 49,995,000; choose fewer",
        ),
        ({"pairs": 5e-324}, "is too small or too large for exact euclidean decisions"),
    ],
)
def test_eps_for__refuses_what_no_eps_fulfils(wish, says):
    with pytest.raises(ArgumentError, match=says):
        FIT.eps_for(**wish)


def test_eps_for__refuses_fewer_neighbours_than_equal_points_make():
    points = twin.cube(size(1000), 2, random())
    points[: size(500)] = 0.5
    fit = fit_epsilon(points)
    with pytest.raises(ArgumentError, match=r"pairs are of equal points.* \(10 neighbours\) are too few"):
        fit.eps_for(neighbours=10)
    with pytest.raises(ArgumentError, match="k_distance_quantile.*, or in the library different_neighbours"):
        fit.eps_for(neighbours=10)
    with pytest.raises(ArgumentError, match="has 4 equal points: the k-distance is 0"):
        fit.eps_for(k_distance_quantile=0.3, k=4)
    distances = self_join(points, fit.eps_for(different_neighbours=10)).distance
    assert 2 * np.count_nonzero(distances) / len(points) == pytest.approx(10, rel=0.1)
    assert fit.eps_for(neighbours=size(300)) > 0


def test_expected_pairs__refuses_what_is_no_eps():
    with pytest.raises(ArgumentError, match="eps must be a finite number above 0"):
        FIT.expected_pairs(0.0)
