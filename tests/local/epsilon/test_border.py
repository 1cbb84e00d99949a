"""The border of the bounding box: what it takes from a slope, and its correction."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsjoin.local.epsilon.fit import fit_epsilon
from oracles import fractal as twin
from tests.local.epsilon.samples import SLACK, about, random, size


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
    lat_lon = twin.cube(size(800), 2, random()) * 40 + 1
    for points, metric in (
        (lat_lon, "haversine"),
        (np.radians(lat_lon), "haversine_radians"),
        (lat_lon, "cosine"),
    ):
        fit = fit_epsilon(points, metric)
        assert fit.power_law == fit.measured_law


def test_border__of_places_is_not_corrected_in_degrees_nor_in_radians():
    places = twin.cube(size(800), 2, random()) * 5 + 1
    degrees, radians = fit_epsilon(places, "haversine"), fit_epsilon(np.radians(places), "haversine_radians")
    assert degrees.power_law == degrees.measured_law
    assert radians.power_law == radians.measured_law
    assert radians.exponent == pytest.approx(degrees.exponent, rel=1e-6)


def test_border__is_corrected_within_the_shortest_side_only():
    # Wider than a strip is thick, pairs are those of a line: only the smaller radii see two dimensions.
    fit = fit_epsilon(twin.cube(size(1000), 2, random()) * [1.0, 0.02])
    assert fit.power_law.range_high < 0.02 or fit.power_law == fit.measured_law
    assert fit.curve.radius[-1] > 0.02
