"""The power law of pair counts: known dimensions are found, intervals hold, degenerate points are refused.

Tolerances. A fit errs by sampling, for which it gives an interval: 2 to 4 % with the rows taken here. It errs
by the border, where balls are cut off, which lowers the slope of a d-dimensional cube: its exact curve under
L∞ is known, so the measured slope is compared with that of the exact curve, the corrected one with d. And by
the steps of self-similar sets: their curves swing around a line, evenly over the many steps of the range, so
that 1 % is left.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from epsjoin.errors import ArgumentError
from epsjoin.local.epsilon.box_count import fit_box_count
from epsjoin.local.epsilon.fit import fit_epsilon
from epsjoin.local.epsilon.power_law import fit_power_law, pair_count_curve
from epsjoin.local.join.arrays import self_join
from oracles import INTERPRETED
from oracles import fractal as twin
from tests import open_sets
from tests.local.epsilon.samples import SLACK, about, random, size


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
        (np.zeros((5000, 2)), "no two different points were met among 5,000 sampled; " + FEW),
        (
            np.arange(12.0).reshape(6, 2),
            "6 sampled points have too few pairs at different distances.*; " + FEW,
        ),
        (np.repeat([[0.0], [1.0]], 500, axis=0), "too few pairs at different distances.*; " + FEW),
        (
            np.arange(1200.0)[:, None] % 2,
            r"the 1,200 sampled points have too few pairs .*\(360,000 pairs of different points within 1\); ",
        ),
        (np.zeros(5), "shape"),
        (np.array([[1.0, 2.0], [1.0, math.nan]]), "points must be finite; row 1, column 1 is nan"),
        (np.array([[-math.inf], [1.0]]), "row 0, column 0 is -inf"),
        (np.array([["a"], ["b"]]), "points must be floats of at most 64 bits or integers"),
        (np.zeros((5, 0)), "d at least 1"),
    ],
    ids=[
        "none",
        "one",
        "equal",
        "six",
        "two values",
        "many of two",
        "one-dimensional",
        "nan",
        "inf",
        "text",
        "no axis",
    ],
)
def test_degenerate_points__are_refused_in_one_sentence(points, says):
    with pytest.raises(ArgumentError, match=says):
        fit_epsilon(points)


@pytest.mark.parametrize(
    ("scale", "says"),
    [
        (1e300, "points are farther apart than float64 holds, which is no eps for exact euclidean decisions"),
        (
            1e152,
            r"points are about \d.*e\+15[01] apart, which is no eps for exact euclidean decisions; divide",
        ),
        (
            1e-152,
            r"points are about \d.*e-15[34] apart, which is no eps for exact euclidean decisions; divide",
        ),
    ],
)
def test_points_too_far_or_too_near_for_their_metric__are_refused_in_one_sentence(scale, says):
    random = np.random.default_rng(0)
    points, others = scale * random.random((2, 300, 2))
    for right in (None, others):
        with pytest.raises(ArgumentError, match=says):
            fit_epsilon(points, right=right)
        assert fit_epsilon(points, metric="chebyshev", right=right).exponent == pytest.approx(2, abs=0.3)


def test_a_side_that_float64_does_not_hold__is_no_warning():
    points = np.random.default_rng(0).random((300, 1))
    points[:2] = [[-1.7e308], [1.7e308]]
    with warnings.catch_warnings(action="error"):
        assert fit_epsilon(points).exponent == pytest.approx(1, abs=0.2)


def test_one_point_among_many_equal_ones__is_refused():
    points = np.zeros((20_000, 2))
    points[77] = 1.0
    with pytest.raises(ArgumentError, match=FEW):
        fit_epsilon(points)


def test_a_constant_dimension__does_no_harm():
    points = np.column_stack((twin.cube(600, 1, random()), np.full(600, 3.0)))
    assert fit_epsilon(points).exponent == about(1.0, 0.05)


def test_exponent__of_landmarks_lies_between_a_line_and_the_plane():
    # Landmarks follow rivers, coasts and towns: not one law, so the exponent depends on the scale looked at.
    points = open_sets.numbers("landmarks")
    fit = fit_epsilon(points, sample_rows=size(1500))
    boxes = fit_box_count(points).correlation
    assert 1.3 < boxes.exponent < 1.45
    assert 1.3 < fit.exponent < 1.7
    assert fit.power_law == fit.measured_law
    assert min(boxes.r_squared, fit.power_law.r_squared) >= 0.99


def test_exponent__of_pen_written_digits_is_far_below_their_16_dimensions():
    # The dissertation, section 3.7.1, has 2.9 (CAD), 3.8 (CH) and 5.7 (CT) for sets of 16 and 64 dimensions.
    points = open_sets.numbers("pendigits")
    for law in (fit_epsilon(points, sample_rows=size(1500)).power_law, fit_box_count(points).correlation):
        assert 4.5 < law.exponent < 6.2
        assert law.r_squared >= 0.99


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: fit_epsilon(np.zeros((10, 1)), n_rows=9), "n_rows must be a whole number, at least 10"),
        (
            lambda: fit_epsilon(np.zeros((10, 1)), sample_rows=1),
            "sample_rows must be a whole number, at least 2",
        ),
        (lambda: fit_epsilon(np.zeros((10, 1)), "no such"), "unknown metric"),
        (lambda: fit_epsilon(np.eye(2), "cosine", right=np.diag([1.0, 0.0])), "right: cosine .*; row 1"),
        (lambda: fit_epsilon(np.zeros((10, 1)), seed=-1), "seed must be a whole number, at least 0, not -1"),
        (lambda: fit_epsilon(np.zeros((10, 1)), max_k=0), "max_k must be a whole number, at least 1, not 0"),
    ],
)
def test_fit__refuses_wrong_arguments(call, says):
    with pytest.raises(ArgumentError, match=says):
        call()
