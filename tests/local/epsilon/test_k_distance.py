"""The k-distances of a fit: the curve, its knee, and exponents of single points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.local.cluster.dbscan import dbscan
from epsjoin.local.epsilon.fit import fit_epsilon
from epsjoin.local.epsilon.k_distance import quantile_of_all, round_up
from epsjoin.local.metric import get_metric
from oracles import examples
from oracles import fractal as twin
from tests.local.epsilon.samples import FIT, SEEDS, about, random, size


@pytest.mark.parametrize("k", [1, 4, 20])
def test_eps_for_k_distance__is_exact_when_all_rows_are_looked_at(k):
    points = twin.cube(400, 2, random())
    fit, rising = fit_epsilon(points), twin.k_distances(points, k)
    assert fit.k_distance_curve(k) == pytest.approx(rising, rel=1e-12)
    for share in (0.1, 0.5, 0.95):
        eps = fit.eps_for(k_distance_quantile=share, k=k)
        assert eps == pytest.approx(twin.quantile(rising, share), rel=1e-5)


@pytest.mark.parametrize("k", [1, 4, 20])
def test_eps_for_k_distance__from_a_sample_is_that_of_the_whole_set(k):
    # A tenth of the rows, so k * m / n is 0.1, 0.4 and 2: where the rank k * m / n would have to guess.
    # On a sphere, as near a border the larger balls of the sample would lack a part.
    points = twin.sphere(3000, random())
    fits = [fit_epsilon(points, sample_rows=300, seed=seed) for seed in range(5)]
    rising = twin.k_distances(points, k)
    for share in (0.1, 0.5, 0.9):
        eps = np.mean([fit.eps_for(k_distance_quantile=share, k=k) for fit in fits])
        assert eps == pytest.approx(twin.quantile(rising, share), rel=0.1)


def test_eps_for_k_distance__reaches_beyond_the_largest_radius():
    far = 1e6 * np.arange(1, 31)[:, None]
    points = np.concatenate((twin.cube(600, 1, random()), far))
    fit = fit_epsilon(points)
    assert fit.curve.radius[-1] < 1
    assert fit.eps_for(k_distance_quantile=0.99, k=4) == pytest.approx(
        twin.quantile(twin.k_distances(points, 4), 0.99), rel=1e-5
    )


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_k_distance_curve__counts_equal_points_and_not_the_point_itself(metric):
    points = np.repeat(twin.cube(60, 2, random()) + 0.1, 2, axis=0)
    fit = fit_epsilon(points, metric)
    assert fit.k_distance_curve(1) == pytest.approx(np.zeros(120), abs=1e-15)
    assert (fit.k_distance_curve(2) > 1e-12).all()


@examples(30)
@given(st.integers(1, 12), SEEDS)
def test_knee__is_the_place_farthest_below_the_chord(k, seed):
    points = np.random.default_rng(seed).normal(size=(60, 2)) ** 3
    fit, rising = fit_epsilon(points), twin.k_distances(points, k)
    at = twin.knee(rising)
    eps, share = fit.knee(k)
    assert eps == pytest.approx(rising[at], rel=1e-5)
    assert share == pytest.approx((at + 1) / 60)


@examples(30)
@given(st.integers(1, 12), st.booleans(), SEEDS, st.sampled_from([1, 3, 6, 17]))
def test_k_distances__as_eps_make_core_points_of_all_that_they_are_chosen_for(k, is_lattice, seed, digits):
    random_ = np.random.default_rng(seed)
    points = random_.integers(0, 90, (60, 2)) / 10 if is_lattice else random_.normal(size=(60, 2)) ** 3
    fit = fit_epsilon(points)
    curve = fit.k_distance_curve(k)
    if curve[30] > 0:
        eps = fit.eps_for(k_distance_quantile=0.7, k=k, digits=digits)
        assert eps == float(f"{eps:.{digits}g}")
        assert dbscan(points, eps, k + 1).is_core.mean() >= 0.7
    if curve[30] > 0 and curve[0] < curve[-1]:
        eps, share = fit.knee(k)
        assert dbscan(points, eps, k + 1).is_core.mean() == share


@pytest.mark.parametrize(
    ("distance", "eps"),
    [(math.sqrt(2), 1.41422), (0.1, 0.1), (0.1 + 0.2, 0.300001), (999999.5, 1e6), (1.5e-300, 1.5e-300)],
)
def test_round_up__has_6_digits_and_is_never_below(distance, eps):
    assert round_up(distance) == eps


def test_knee__lies_between_clusters_and_noise():
    random_ = random()
    clusters = [random_.normal(scale=0.01, size=(120, 2)) + centre for centre in twin.cube(5, 2, random_)]
    fit = fit_epsilon(np.vstack((*clusters, twin.cube(60, 2, random_))))
    eps, share = fit.knee(4)
    assert 600 / 660 - 0.05 < share < 600 / 660 + 0.05
    assert fit.k_distance_curve(4)[300] < eps < fit.k_distance_curve(4)[-30]


def test_knee__of_a_sample_is_that_of_the_whole_set():
    points = twin.sphere(3000, random()) * np.linspace(1.0, 3.0, 3000)[:, None]
    whole = twin.k_distances(points, 4)
    eps = np.mean([fit_epsilon(points, sample_rows=size(1000), seed=seed).knee(4).eps for seed in range(4)])
    assert eps == about(whole[twin.knee(whole)], 0.2)


@pytest.mark.parametrize(
    ("points", "k", "says"),
    [
        (np.repeat(twin.cube(50, 2, np.random.default_rng(11)), 3, axis=0), 2, "have? no knee|has no knee"),
        (twin.cube(50, 2, np.random.default_rng(11)), 50, "k must be at most 49 .*not 50"),
        (twin.cube(80, 2, np.random.default_rng(11)), 65, "k must be at most 64 .*not 65"),
        (twin.cube(50, 2, np.random.default_rng(11)), 0, "k must be a whole number, at least 1, not 0"),
    ],
    ids=["equal", "sample", "max_k", "zero"],
)
def test_knee__refuses_what_has_none(points, k, says):
    with pytest.raises(ArgumentError, match=says):
        fit_epsilon(points).knee(k)


@examples(20)
@given(st.integers(3, 30), SEEDS)
def test_point_exponents__are_those_of_the_definition(k, seed):
    random_ = np.random.default_rng(seed)
    points = np.vstack((twin.cube(60, 2, random_), np.zeros((2, 2))))
    row, exponent = fit_epsilon(points, seed=seed).point_exponents(k)
    assert sorted(row.tolist()) == list(range(62))
    for place, found in zip(row.tolist(), exponent.tolist(), strict=True):
        others = [math.dist(points[place], other) for i, other in enumerate(points) if i != place]
        if sum(each > 0 for each in sorted(others)[:k]) < 3:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(twin.likelihood_exponent(others, k), rel=1e-9)


def test_point_exponents__tell_a_line_from_a_patch_and_a_cube():
    points, dimension = twin.line_patch_cube(size(250), random())
    row, exponent = fit_epsilon(points).point_exponents(30)
    for d, within in ((1, 0.1), (2, 0.15), (3, 0.2)):  # borders, which lower it, are the wider the larger d
        assert exponent[np.array(dimension)[row] == d].mean() == about(d, within)


def test_point_exponents__need_three_neighbours():
    with pytest.raises(ArgumentError, match="k must be a whole number, at least 3, not 2"):
        FIT.point_exponents(2)


@pytest.mark.filterwarnings("error")
def test_knee_and_quantile__are_finite_where_some_k_distances_are_not():
    near = np.random.default_rng(0).random((200, 1))
    fit = fit_epsilon(np.concatenate((near, [[1e200], [-1e200], [1e250]])))
    assert fit.knee(2).eps <= 1.0
    assert fit.eps_for(k_distance_quantile=0.9, k=2) <= 1.0
    with pytest.raises(
        ArgumentError, match="the 2-distance at a fraction of 0.999 of the points is infinite"
    ):
        fit.eps_for(k_distance_quantile=0.999, k=2)


@pytest.mark.parametrize("k", [1, 4, 20])
@pytest.mark.parametrize("n", [400, 3000])
def test_quantile_of_all__is_that_of_the_fit_and_needs_none(k, n):
    points = twin.cube(n, 2, random())
    fit = fit_epsilon(points)
    for share, digits in ((0.1, 3), (0.5, 6), (0.95, 17)):
        eps = fit.eps_for(k_distance_quantile=share, k=k, digits=digits)
        assert quantile_of_all(points, fit.metric, share, k, digits) == eps
    lattice = np.arange(30.0)[:, None]
    with pytest.raises(ArgumentError, match="power law"):
        fit_epsilon(lattice)
    rising = twin.k_distances(lattice, k)
    assert quantile_of_all(lattice, fit.metric, 0.9, k) == twin.quantile(rising, 0.9)


def test_quantile_of_all__refuses_too_few_points():
    with pytest.raises(ArgumentError, match="a 3-distance needs at least 4 points, not 3"):
        quantile_of_all(np.arange(3.0)[:, None], get_metric("euclidean"), 0.5, 3)
