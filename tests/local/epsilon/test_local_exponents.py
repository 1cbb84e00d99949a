"""Exponents region by region: sets may have different dimensions in different places."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.local.epsilon.fit import fit_epsilon
from epsjoin.local.epsilon.local_exponents import _cut_at_medians, local_exponents
from epsjoin.local.join.arrays import self_join
from oracles import examples
from oracles import fractal as twin
from tests.local.epsilon.samples import SEEDS, about, random


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


@pytest.mark.filterwarnings("error")
def test_regions__are_cut_across_the_widest_axis_of_the_largest_numbers():
    points = random().random((400, 2)) * [1.2, 1.7] - [0.6, 0.85]
    expected = _cut_at_medians(points, 2)
    assert set(expected[points[:, 1] < np.median(points[:, 1])]) != {0, 1}
    assert (_cut_at_medians(points * 2.0 * 2.0**1023, 2) == expected).all()


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
