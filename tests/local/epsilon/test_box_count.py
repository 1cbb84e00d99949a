"""Box counts equal a loop over boxes, and known dimensions come out of them.

Tolerances: boxes fill a uniform cube exactly, so sampling alone is left, 1 to 3 %. On self-similar sets the
place of box borders counts as well: up to 5 % for D2. D0 needs whole boxes, so it is exact for cubes only.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.local.epsilon.box_count import box_counts, fit_box_count
from epsjoin.local.epsilon.fit import fit_epsilon
from oracles import examples
from oracles import fractal as twin

SEEDS = st.integers(0, 10**6)


def random():
    return np.random.default_rng(11)


@examples(40)
@given(st.integers(20, 120), st.sampled_from([1, 2, 3, 64, 512]), st.sampled_from([3, 9, 10**6]), SEEDS)
def test_box_counts__are_those_of_a_loop_over_boxes(n, d, values, seed):
    # Few values give equal rows and rows on box borders; the last axis is constant.
    points = np.random.default_rng(seed).integers(-values, values, (n, d)) * 0.25
    points = np.column_stack((points, np.full(n, 7.0)))
    counts = box_counts(points, seed)
    width = np.ptp(points, axis=0).max()
    for level, side in enumerate(counts.curve.radius.tolist()):
        rows = twin.boxes(points, round(width / side))
        assert counts.boxes[level] == len(rows)
        assert counts.squares[level] == sum(len(box) ** 2 for box in rows)
        assert counts.curve.pairs[level] == sum(math.comb(len(box), 2) for box in rows)
    copies = Counter(map(tuple, points.tolist()))
    assert counts.distinct_rows == len(copies)
    assert counts.curve.equal_pairs == sum(math.comb(each, 2) for each in copies.values())
    assert counts.curve.radius[-1] == width
    assert (np.diff(counts.curve.radius) > 0).all()
    assert (counts.curve.different_pairs >= 30).all()


def test_box_counts__leave_out_one_group_of_rows_after_the_other():
    points = random().integers(0, 6, (20, 2)).astype(float)  # 20 groups, so one point in each
    counts = box_counts(points)
    for level, side in enumerate(counts.curve.radius.tolist()):
        boxes = twin.boxes(points, round(np.ptp(points, axis=0).max() / side))
        rest = [[[row for row in box if row != without] for box in boxes] for without in range(20)]
        pairs = [sum(math.comb(len(box), 2) for box in each) for each in rest]
        occupied = [sum(1 for box in each if box) for each in rest]
        assert sorted(counts.curve.pairs_without[:, level].tolist()) == sorted(pairs)
        assert sorted(counts.boxes_without[:, level].tolist()) == sorted(occupied)


def test_box_counts__go_on_until_hardly_two_rows_share_a_box():
    points = twin.cube(2000, 2, random())
    counts = box_counts(points)
    next_parts = round(np.ptp(points, axis=0).max() / counts.curve.radius[0] * 2**0.25)
    assert sum(math.comb(len(box), 2) for box in twin.boxes(points, next_parts)) < 30
    assert len(counts.curve.radius) <= 4 * math.log2(next_parts) + 1


def test_box_counts__take_minus_zero_for_zero():
    points = np.column_stack((twin.cube(50, 1, random()), np.repeat([0.0, -0.0], 25)))
    assert box_counts(np.vstack((points, points * [1, -1]))).distinct_rows == 50


@pytest.mark.parametrize(("d", "within"), [(1, 0.02), (2, 0.02), (3, 0.02), (5, 0.02), (6, 0.02), (8, 0.03)])
def test_box_count__of_a_cube_has_no_border_effect(d, within):
    law = fit_box_count(twin.cube(20_000, d, random())).correlation
    assert law.exponent == pytest.approx(d, rel=within)
    assert law.interval_low <= d <= law.interval_high
    assert law.interval_high - law.interval_low < 0.08 * d
    assert law.r_squared >= 0.999


@pytest.mark.parametrize(
    ("points", "dimension"),
    [
        (twin.line(10_000, 16, random()), 1.0),
        (twin.sphere(10_000, random()), 2.0),
        (twin.sierpinski(10_000, random()), math.log(3) / math.log(2)),
        (twin.cantor_dust(10_000, 1, random()), math.log(2) / math.log(3)),
        (twin.cantor_dust(10_000, 2, random()), math.log(4) / math.log(3)),
    ],
    ids=["line in 16-d", "sphere", "sierpinski", "cantor 1-d", "cantor 2-d"],
)
def test_box_count__is_the_known_dimension(points, dimension):
    law = fit_box_count(points).correlation
    assert law.exponent == pytest.approx(dimension, rel=0.05)
    assert law.r_squared >= 0.99


def test_exponent__of_few_points_in_512_dimensions_is_found():
    # The borders of 512 axes cut a line at many places, of which the coarsest boxes have too few yet.
    assert fit_box_count(twin.line(1000, 512, random())).correlation.exponent == pytest.approx(1.0, rel=0.15)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_capacity__of_a_cube_is_its_dimension(d):
    law = fit_box_count(twin.cube(20_000, d, random())).capacity
    assert law.exponent == pytest.approx(d, rel=0.01)
    assert law.range_low < law.range_high
    assert law.interval_low <= law.exponent <= law.interval_high


def test_capacity__is_unknown_where_too_few_levels_fill():
    assert fit_box_count(twin.cube(20_000, 5, random())).capacity is None


def test_fit__leaves_out_lonely_rows_and_coarse_boxes():
    points = twin.cube(5000, 2, random())
    fit = fit_box_count(points)
    curve, law = fit.counts.curve, fit.correlation
    used = curve.pairs[(curve.radius >= law.range_low) & (curve.radius <= law.range_high)]
    assert used.min() >= 30
    assert used.max() <= 5000 * 4999 / 2 / 10
    boxes = fit.counts.boxes[
        (1 / curve.radius >= fit.capacity.range_low) & (1 / curve.radius <= fit.capacity.range_high)
    ]
    assert boxes.min() >= 30
    assert boxes.max() <= 500


def test_fit__takes_equal_points_off():
    points = twin.cube(10_000, 2, random())
    points[:3000] = points[3000:6000]
    assert fit_box_count(points).correlation.exponent == pytest.approx(2.0, rel=0.03)


@pytest.mark.parametrize("points", [twin.sierpinski(5000, random()), twin.cube(5000, 3, random())])
def test_box_count__agrees_with_the_pair_count(points):
    boxes, pairs = fit_box_count(points).correlation, fit_epsilon(points, sample_rows=700).power_law
    assert boxes.exponent == pytest.approx(pairs.exponent, rel=0.06)
    assert boxes.interval_low <= pairs.interval_high
    assert pairs.interval_low <= boxes.interval_high


def test_box_count__has_the_exponent_in_an_interval_that_is_not_idle():
    laws = [fit_box_count(twin.cube(1000, 2, np.random.default_rng(seed))).correlation for seed in range(40)]
    assert sum(law.interval_low <= 2.0 <= law.interval_high for law in laws) >= 36
    scatter = np.std([law.exponent for law in laws])
    assert 1.5 * scatter < np.mean([(law.interval_high - law.interval_low) / 2 for law in laws]) < 5 * scatter


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_box_count__does_not_depend_on_the_unit(scale):
    points = twin.cube(1000, 2, random())
    law, scaled = fit_box_count(points).correlation, fit_box_count(points * scale).correlation
    assert scaled.exponent == pytest.approx(law.exponent, rel=1e-3)


@pytest.mark.parametrize(
    ("points", "says"),
    [
        (np.empty((0, 2)), "0 points span 0; choose eps by hand"),
        (np.zeros((1, 2)), "1 points span 0"),
        (np.ones((100, 2)), "100 points span 0"),
        (np.arange(5.0)[:, None], "5 points have fewer than 30 pairs"),
        (np.arange(40.0).reshape(20, 2), "20 points share boxes of .* sides only"),
        (twin.cube(5000, 20, random()), "5,000 points share boxes of . sides only"),
        (np.array([[-1e308], [1e308]]), "span inf"),
        (np.array([[1.0, 2.0], [3.0, math.nan]]), "row 1, column 1 is nan"),
        (np.zeros(5), r"shape \(n, d\).*not \(5,\)"),
        (np.array([["a"]]), "points must be floats of at most 64 bits or integers"),
    ],
    ids=["none", "one", "equal", "five", "twenty", "20-d", "too wide", "nan", "one-dimensional", "text"],
)
def test_box_count__refuses_what_it_cannot_fit(points, says):
    with pytest.raises(ArgumentError, match=says):
        fit_box_count(points)


@pytest.mark.filterwarnings("error")
def test_capacity__of_boxes_too_small_to_be_inverted_is_that_of_the_others():
    points = random().integers(0, 1000, (3000, 2))
    fit, same = fit_box_count(points * 2.0**-1030), fit_box_count(points)
    assert fit.correlation.exponent == pytest.approx(same.correlation.exponent)
    assert fit.counts.boxes.tolist() == same.counts.boxes.tolist()
    assert fit.capacity is None or math.isfinite(fit.capacity.range_high)


def test_box_count__refuses_a_wrong_seed():
    with pytest.raises(ArgumentError, match="seed must be a whole number, at least 0, not -1"):
        fit_box_count(twin.cube(100, 2, random()), seed=-1)
