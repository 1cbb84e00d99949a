"""The power law of pair counts: known dimensions are found, intervals hold, eps gives what was asked for.

Tolerances. A fit errs by sampling, for which it gives an interval: 2 to 4 % with the rows taken here. It errs
by the border, where balls are cut off, which lowers the slope of a d-dimensional cube: its exact curve under
L∞ is known, so the measured slope is compared with that of the exact curve, the corrected one with d. And by
the steps of self-similar sets: their curves swing around a line, evenly over the many steps of the range, so
that 1 % is left.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.local.epsilon.box_count import fit_box_count
from epsjoin.local.epsilon.fit import fit_epsilon
from epsjoin.local.epsilon.local_exponents import _cut_at_medians, local_exponents
from epsjoin.local.epsilon.power_law import fit_power_law, pair_count_curve
from epsjoin.local.epsilon.radius import choose_r_max
from epsjoin.local.join.arrays import self_join
from epsjoin.local.metric import get_metric
from oracles import INTERPRETED, examples
from oracles import fractal as twin

SEEDS = st.integers(0, 10**6)
DATA = Path(__file__).parents[2] / "data"


# Kernels that are not compiled take fewer rows: pairs are quadratic, errors grow with the root alone.
SLACK = 2.5 if INTERPRETED else 1.0


def random():
    return np.random.default_rng(11)


def size(n):
    return n // 4 if INTERPRETED else n


def about(value, rel):
    return pytest.approx(value, rel=rel * SLACK)


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
    ("points", "dimension"),
    [
        (twin.line(size(1500), 16, random()), 1.0),
        (twin.circle(size(1500), random()), 1.0),
        (twin.sierpinski(size(1500), random()), math.log(3) / math.log(2)),
        (twin.cantor_dust(size(1500), 1, random()), math.log(2) / math.log(3)),
        (twin.cantor_dust(size(1500), 2, random()), 2 * math.log(2) / math.log(3)),
        (twin.cantor_dust(size(1500), 3, random()), 3 * math.log(2) / math.log(3)),
    ],
    ids=[
        "line in 16-d",
        "circle",
        "sierpinski",
        "cantor 1-d",
        "cantor 2-d",
        "cantor 3-d",
    ],
)
def test_exponent__is_the_known_dimension(points, dimension):
    fit = fit_epsilon(points)
    law = fit.power_law
    assert law.exponent == about(dimension, 0.04)
    assert law.interval_high - law.interval_low < 0.2 * SLACK * dimension
    if not INTERPRETED:  # of few rows a self-similar set shows too few of its steps
        assert law.interval_low <= dimension <= law.interval_high
        assert law.r_squared >= 0.999
    # Only a set that fills its box has the border of the box.
    assert (law == fit.measured_law) == (points.shape[1] > 1 or dimension < 1)


@pytest.mark.parametrize(("d", "below"), [(1, 0.08), (2, 0.12), (3, 0.15), (5, 0.18)])
def test_measured_exponent__of_a_cube_is_the_slope_of_its_exact_curve(d, below):
    fit = fit_epsilon(twin.cube(size(1500), d, random()), "chebyshev")
    law = fit.measured_law
    radius = fit.curve.radius[
        (fit.curve.radius >= law.range_low) & (fit.curve.radius <= law.range_high)
    ].tolist()
    exact = twin.slope([math.log(r) for r in radius], [math.log(twin.share_of_cube(r, d)) for r in radius])
    assert law.interval_low <= exact <= law.interval_high
    assert law.exponent == about(exact, 0.03)
    # What the border takes: log-slope 2 d (1 - r) / (2 - r) at r, the more the larger the radii of the fit.
    assert (1 - below) * d <= exact <= d


@pytest.mark.parametrize("d", range(1, 9))
def test_exponent__of_a_cube_has_no_border_effect(d):
    fit = fit_epsilon(twin.cube(size(1500), d, random()))
    law = fit.power_law
    assert law.exponent == about(d, 0.05)
    assert law.interval_low <= d <= law.interval_high
    assert law.interval_high - law.interval_low < 0.2 * SLACK * d
    assert fit.measured_law.exponent < law.exponent
    assert law.r_squared >= 0.999


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev"])
def test_border__is_corrected_for_every_lp_and_for_a_box_that_is_no_cube(metric):
    points = np.column_stack((twin.cube(size(1000), 3, random()) * [2.0, 1.0, 3.0], np.full(size(1000), 5.0)))
    fit = fit_epsilon(points, metric)
    assert fit.exponent == about(3.0, 0.04)
    assert fit.measured_law.exponent < 0.96 * fit.exponent


def test_border__is_not_corrected_where_there_is_no_box():
    lat_lon = twin.cube(size(800), 2, random()) * 40
    for metric in ("haversine", "cosine"):
        fit = fit_epsilon(lat_lon + 1, metric)
        assert fit.power_law == fit.measured_law


def test_border__is_corrected_within_the_shortest_side_only():
    # Wider than a strip is thick, pairs are those of a line: only the smaller radii see two dimensions.
    fit = fit_epsilon(twin.cube(size(1000), 2, random()) * [1.0, 0.02])
    assert fit.power_law.range_high < 0.02 or fit.power_law == fit.measured_law
    assert fit.curve.radius[-1] > 0.02


def test_interval__holds_the_exponent_and_is_not_idle():
    # A circle has no border, so the law holds. 95 of 100 are promised, and the jackknife errs wide.
    laws = [fit_epsilon(twin.circle(150, np.random.default_rng(seed))).power_law for seed in range(40)]
    assert sum(law.interval_low <= 1.0 <= law.interval_high for law in laws) >= 38
    scatter = np.std([law.exponent for law in laws])
    half_widths = [(law.interval_high - law.interval_low) / 2 for law in laws]
    assert 1.9 * scatter < np.mean(half_widths) < 4.5 * scatter


def test_interval__is_unknown_without_the_ends_of_pairs():
    pairs = self_join(twin.circle(500, random()), 0.5)
    law = fit_power_law(pair_count_curve([pairs.distance], 500, 0.5), 500)
    assert math.isnan(law.interval_low)
    assert math.isnan(law.interval_high)


def test_exponent__is_the_same_for_every_lp_and_for_a_sample():
    points = twin.sierpinski(size(1500), random())
    laws = [fit_epsilon(points, metric).power_law for metric in ("euclidean", "manhattan", "chebyshev")]
    laws.append(fit_epsilon(points, sample_rows=size(700)).power_law)
    for law in laws:
        assert law.exponent == about(math.log(3) / math.log(2), 0.05)
        assert law.interval_low <= laws[0].exponent <= law.interval_high


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_exponent__does_not_depend_on_the_unit(scale):
    points = twin.cube(size(1000), 2, random())
    law, scaled = fit_epsilon(points).power_law, fit_epsilon(points * scale).power_law
    assert scaled.exponent == pytest.approx(law.exponent, rel=1e-3)
    assert scaled.range_low == pytest.approx(law.range_low * scale, rel=1e-2)


def test_exponent__of_points_on_the_globe_is_two():
    points = twin.sphere(size(1500), random())
    lat_lon = np.degrees(np.column_stack((np.arcsin(points[:, 2]), np.arctan2(points[:, 1], points[:, 0]))))
    fit = fit_epsilon(lat_lon, "haversine")
    assert fit.exponent == about(2.0, 0.05)
    assert fit.power_law.interval_low <= 2 <= fit.power_law.interval_high
    # A cap of radius r km has the share (1 - cos(r / R)) / 2 of the globe.
    eps = fit.eps_for(neighbours=30)
    assert len(points) * (1 - math.cos(eps / 6371.0088)) / 2 == about(30, 0.05)


def test_exponent__is_not_that_of_the_plateau_that_equal_points_make():
    points = twin.cube(size(1500), 2, random())
    points[: size(300)] = points[size(300) : 2 * size(300)]
    fit = fit_epsilon(points)
    assert fit.curve.equal_pairs == size(300)
    assert fit.exponent == about(2.0, 0.05)


def test_exponent__is_not_that_of_the_plateau_that_nearly_equal_points_make():
    points = twin.cube(size(1500), 2, random())
    few = size(75)
    points[:few] = points[few : 2 * few] + random().normal(scale=1e-9, size=(few, 2))
    law = fit_epsilon(points).power_law
    assert law.exponent == about(2.0, 0.06)
    assert law.range_low > 1e-3


@pytest.mark.parametrize(("d", "values"), [(1, 1000), (2, 100)])
def test_exponent__of_a_lattice_is_its_dimension(d, values):
    # Its curve is a staircase, so over a few octaves a slope is only about that of the ramp under it.
    points = random().integers(0, values, (size(1500), d))
    assert fit_epsilon(points).exponent == about(d, 0.1)


@pytest.mark.parametrize("copies", [0.5, 0.9, 0.99])
def test_heavy_duplicates__leave_a_join_that_stays_small(copies):
    points = twin.cube(5_000, 2, random())
    points[: int(copies * 5_000)] = 0.5
    random().shuffle(points)
    r_max, rows = choose_r_max(points, get_metric("euclidean"), 20_000)
    found = len(self_join(points[:rows], r_max).left)
    assert found < 60_000
    assert rows < 500


def test_choose_r_max__takes_many_distances_of_a_lattice_and_fewer_rows():
    points = random().integers(0, 1000, (5_000, 1)).astype(float)
    r_max, rows = choose_r_max(points, get_metric("euclidean"), 20_000)
    assert r_max == 32.0
    assert rows < 2000
    assert len(self_join(points[:rows], r_max).left) < 60_000


def test_heavy_duplicates__still_have_the_exponent_of_the_rest():
    points = twin.cube(size(4400), 2, random())
    points[: size(2200)] = 2.0  # off the square, so that nothing else is near
    fit = fit_epsilon(points)
    # Half of 4400 make more than two million equal pairs, half of a quarter do not.
    assert (fit.n_sample < len(points)) == (not INTERPRETED)
    assert fit.exponent == about(2.0, 0.06)


@pytest.mark.parametrize("d", [1, 2, 5, 8])
def test_choose_r_max__finds_about_the_pairs_wished(d):
    points = twin.cube(800, d, random())
    r_max, rows = choose_r_max(points, get_metric("chebyshev"), 10_000)
    assert rows == 800
    assert len(self_join(points, r_max, "chebyshev").left) == pytest.approx(10_000, rel=0.2)


@pytest.mark.parametrize(
    ("d", "rows_within"), [(2, (20_000, 20_000)), (8, (10_954, 17_000)), (16, (10_954, 12_000))]
)
def test_choose_r_max__takes_fewer_rows_where_a_join_would_compare_nearly_all(d, rows_within):
    # All pairs of 10,954 rows are 60 million; the neighbours of a row stay about 200.
    points = twin.cube(20_000, d, random())
    r_max, rows = choose_r_max(points, get_metric("euclidean"))
    assert rows_within[0] <= rows <= rows_within[1]
    few = np.linalg.norm(points[:100, None] - points[None, :rows], axis=2) <= r_max
    assert few.sum() / 100 - 1 == pytest.approx(200, rel=0.3)


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
    assert FIT.expected_pairs(FIT.eps_for(pairs=10**log_pairs)) == pytest.approx(10**log_pairs, rel=2e-5)


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


def test_n_rows__scales_pairs_by_the_pairs_of_rows():
    points = twin.cube(500, 2, random())
    small, large = fit_epsilon(points), fit_epsilon(points, n_rows=1_000_000)
    assert large.exponent == small.exponent
    assert large.expected_pairs(0.01) == pytest.approx(
        small.expected_pairs(0.01) * (1e6 * (1e6 - 1)) / (500 * 499)
    )
    assert large.eps_for(neighbours=10) < small.eps_for(neighbours=10)


def test_fit__is_the_same_for_the_same_seed_and_another_for_another():
    points = twin.cube(size(1000), 2, random())
    one, again, other = (fit_epsilon(points, sample_rows=size(500), seed=seed) for seed in (1, 1, 2))
    assert one.power_law == again.power_law
    assert one.power_law != other.power_law


FEW = "choose eps by hand"


@pytest.mark.parametrize(
    ("points", "says"),
    [
        (np.empty((0, 2)), "at least two points, not 0; " + FEW),
        (np.zeros((1, 2)), "at least two points, not 1; " + FEW),
        (np.zeros((5000, 2)), "no two different points were met among 5000 sampled; " + FEW),
        (
            np.arange(12.0).reshape(6, 2),
            "6 sampled points have too few pairs at different distances.*; " + FEW,
        ),
        (np.repeat([[0.0], [1.0]], 500, axis=0), "too few pairs at different distances.*; " + FEW),
        (np.zeros(5), "shape"),
        (np.array([[1.0, 2.0], [1.0, math.nan]]), "points must be finite; row 1, column 1 is nan"),
        (np.array([[-math.inf], [1.0]]), "row 0, column 0 is -inf"),
        (np.array([["a"], ["b"]]), "points must be floats of at most 64 bits or integers"),
        (np.zeros((5, 0)), "d at least 1"),
    ],
    ids=["none", "one", "equal", "six", "two values", "one-dimensional", "nan", "inf", "text", "no axis"],
)
def test_degenerate_points__are_refused_in_one_sentence(points, says):
    with pytest.raises(ArgumentError, match=says):
        fit_epsilon(points)


def test_one_point_among_many_equal_ones__is_refused():
    points = np.zeros((20_000, 2))
    points[77] = 1.0
    with pytest.raises(ArgumentError, match=FEW):
        fit_epsilon(points)


def test_a_constant_dimension__does_no_harm():
    points = np.column_stack((twin.cube(600, 1, random()), np.full(600, 3.0)))
    assert fit_epsilon(points).exponent == about(1.0, 0.05)


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ({}, "exactly one of neighbours, pairs, k_distance_quantile, not none"),
        ({"neighbours": 1, "pairs": 1}, "not neighbours, pairs"),
        ({"neighbours": 0}, "neighbours must be above 0"),
        ({"neighbours": 1, "k": 3}, "k_distance_quantile and k belong together"),
        ({"k_distance_quantile": 0.5}, "k_distance_quantile and k belong together"),
        ({"k_distance_quantile": 1.0, "k": 3}, "k_distance_quantile must be above 0 and below 1"),
        ({"k_distance_quantile": 0.5, "k": 65}, "k must be at most 64"),
        ({"pairs": 1e9}, "10000 points have 49995000"),
        ({"k_distance_quantile": 0.999999, "k": 64}, None),
    ],
)
def test_eps_for__refuses_what_no_eps_fulfils(wish, says):
    if says is None:
        assert FIT.eps_for(**wish) > 0
        return
    with pytest.raises(ArgumentError, match=says):
        FIT.eps_for(**wish)


def test_eps_for__refuses_fewer_neighbours_than_equal_points_make():
    points = twin.cube(size(1000), 2, random())
    points[: size(500)] = 0.5
    fit = fit_epsilon(points)
    with pytest.raises(ArgumentError, match=r"pairs are of equal points.* \(10 neighbours\) are too few"):
        fit.eps_for(neighbours=10)
    with pytest.raises(ArgumentError, match="has 4 equal points: the k-distance is 0"):
        fit.eps_for(k_distance_quantile=0.3, k=4)
    assert fit.eps_for(neighbours=size(300)) > 0


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


def test_local_exponents__are_the_dimensions_of_the_regions():
    points, dimension = twin.line_patch_cube(400, random())
    order = random().permutation(1600)
    found = local_exponents(points[order], n_regions=4)
    of_row = np.array(dimension)[order]
    assert found.rows.tolist() == [400] * 4
    for region in range(4):
        (d,) = set(of_row[found.region == region].tolist())
        assert found.exponent[region] == about(d, 0.06)
        assert found.interval_low[region] <= d <= found.interval_high[region]
        assert found.r_squared[region] > 0.99
        inside = points[order][found.region == region]
        neighbours = 2 * len(self_join(inside, found.eps[region]).left) / 400
        assert neighbours == pytest.approx(10, rel=0.03)


def test_local_exponents__of_labels_are_fits_of_their_points():
    points, dimension = twin.line_patch_cube(300, random())
    labels = 10 * np.array(dimension) - 25
    found = local_exponents(points, labels=labels, neighbours=5)
    assert found.rows.tolist() == [300, 300, 600]
    for region, label in enumerate((-15, -5, 5)):
        assert (found.region[labels == label] == region).all()
        fit = fit_epsilon(points[labels == label])
        assert found.exponent[region] == fit.exponent
        assert found.range_low[region] == fit.power_law.range_low
        assert found.eps[region] == fit.eps_for(neighbours=5)


@examples(40)
@given(st.integers(0, 900), st.integers(1, 6), st.sampled_from([1, 3, 1000]), SEEDS)
def test_regions__are_boxes_side_by_side(n, n_regions, values, seed):
    points = np.random.default_rng(seed).integers(0, values, (n, 2)).astype(float)
    region = _cut_at_medians(points, n_regions)
    assert region.shape == (n,)
    sizes = np.bincount(region).tolist()
    assert len(sizes) <= n_regions
    assert 0 not in sizes
    if values == 1000 and n:
        assert len(sizes) == n_regions or max(sizes) < 200
        assert min(sizes) >= min(n, 80)
    # Two boxes do not share a point: on one axis all of one lie below all of the other.
    for one in range(len(sizes)):
        for other in range(one):
            a, b = points[region == one], points[region == other]
            assert ((a.max(axis=0) < b.min(axis=0)) | (b.max(axis=0) < a.min(axis=0))).any()


def test_local_exponents__are_unknown_where_there_is_no_power_law():
    points = np.vstack((twin.cube(300, 1, random()), np.full((50, 1), 7.0)))
    found = local_exponents(points, labels=np.repeat([0, 1], [300, 50]))
    assert found.exponent[0] == about(1.0, 0.08)
    assert np.isnan([column[1] for column in found[2:]]).all()
    assert found.rows.tolist() == [300, 50]


def test_local_exponents__of_no_points_are_none():
    found = local_exponents(np.empty((0, 2)))
    assert found.region.shape == found.rows.shape == found.exponent.shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"n_regions": 0}, "n_regions must be a whole number, at least 1, not 0"),
        ({"labels": [1, 2]}, "labels must be one per point, 4, not 2"),
        ({"labels": [1.5] * 4}, "labels must be a one-dimensional array of int64"),
        ({"neighbours": 0}, "neighbours must be above 0 and below infinity, not 0"),
        ({"neighbours": "ten"}, "neighbours must be above 0 and below infinity, not 'ten'"),
        ({"metric": "no such"}, "unknown metric"),
        ({"metric": "haversine"}, "latitude from -90 to 90.*row 3"),
        ({"sample_rows": 1}, "sample_rows must be a whole number, at least 2, not 1"),
        ({"seed": -1}, "seed must be a whole number, at least 0, not -1"),
    ],
)
def test_local_exponents__refuse_wrong_arguments(arguments, says):
    points = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [100.0, 0.0]])
    with pytest.raises(ArgumentError, match=says):
        local_exponents(points, **arguments)
    with pytest.raises(ArgumentError, match="row 2, column 0 is nan"):
        local_exponents([[0.0], [1.0], [math.nan]])


def test_exponent__of_landmarks_lies_between_a_line_and_the_plane():
    # Landmarks follow rivers, coasts and towns: not one law, so the exponent depends on the scale looked at.
    points = np.loadtxt(DATA / "landmarks" / "tiger_arealm_points.csv.gz", delimiter=",", skiprows=1)
    fit = fit_epsilon(points, sample_rows=size(1500))
    boxes = fit_box_count(points).correlation
    assert 1.3 < boxes.exponent < 1.45
    assert 1.3 < fit.exponent < 1.7
    assert fit.power_law == fit.measured_law
    assert min(boxes.r_squared, fit.power_law.r_squared) >= 0.99


def test_exponent__of_pen_written_digits_is_far_below_their_16_dimensions():
    # The dissertation, section 3.7.1, has 2.9 (CAD), 3.8 (CH) and 5.7 (CT) for sets of 16 and 64 dimensions.
    path = DATA / "vectors" / "adbench_28_pendigits.csv.gz"
    points = np.loadtxt(path, delimiter=",", skiprows=1)[:, 1:17]
    for law in (fit_epsilon(points, sample_rows=size(1500)).power_law, fit_box_count(points).correlation):
        assert 4.5 < law.exponent < 6.2
        assert law.r_squared >= 0.99


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: pair_count_curve([np.array([2.0])], 2, 1.0), "distance 2.0 is beyond r_max = 1.0"),
        (lambda: pair_count_curve([np.array([math.nan])], 2, 1.0), "never NaN"),
        (lambda: pair_count_curve([], 2, 0.0), "r_max must be a finite number above 0"),
        (lambda: pair_count_curve([([0], [2], [0.5])], 2, 1.0), "right must be rows of the sample, 0 to 1"),
        (lambda: fit_power_law(pair_count_curve([], 100, 1.0), 100), FEW),
        (lambda: fit_epsilon(np.zeros((10, 1)), n_rows=9), "n_rows must be a whole number, at least 10"),
        (
            lambda: fit_epsilon(np.zeros((10, 1)), sample_rows=1),
            "sample_rows must be a whole number, at least 2",
        ),
        (lambda: fit_epsilon(np.zeros((10, 1)), "no such"), "unknown metric"),
        (lambda: fit_epsilon(np.zeros((10, 1)), seed=-1), "seed must be a whole number, at least 0, not -1"),
        (lambda: fit_epsilon(np.zeros((10, 1)), max_k=0), "max_k must be a whole number, at least 1, not 0"),
        (lambda: FIT.expected_pairs(0.0), "eps must be a finite number above 0"),
    ],
)
def test_fractal__refuses_wrong_arguments(call, says):
    with pytest.raises(ArgumentError, match=says):
        call()


FIT = fit_epsilon(twin.cube(500, 2, random()), n_rows=10_000)
