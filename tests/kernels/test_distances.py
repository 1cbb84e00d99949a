"""Decisions and distances, metric by metric, bit for bit as the twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels import distances
from epsjoin.local.metric import METRICS
from oracles import examples
from oracles import join as twin

COORDINATES = st.one_of(st.floats(-100, 100), st.integers(-5, 5).map(float))


def decide(decision, x, y):
    return distances.decide(decision, np.array([x]), 0, np.array([y]), 0)


def haversine(x, y):
    return distances.haversine(np.array([x]), 0, np.array([y]), 0)


@examples(300)
@given(
    st.sampled_from(["euclidean", "manhattan", "chebyshev", "minkowski", "cosine"]),
    st.lists(st.tuples(COORDINATES, COORDINATES), min_size=1, max_size=9),
    st.sampled_from([1.0, 1.5, 2.0, 3.0, 7.0]),
    st.one_of(st.floats(1e-3, 50), st.sampled_from([1.0, 2.0, 3.0, 5.0])),
)
def test_decide__is_the_metrics_formula(metric, coordinates, p, eps):
    x, y = (list(column) for column in zip(*coordinates, strict=True))
    if metric == "cosine" and (sum(v * v for v in x) < 1e-9 or sum(v * v for v in y) < 1e-9):
        return
    decision = distances.make_decision(METRICS[metric], p, eps)
    got = decide(decision, x, y)
    assert got == decide(decision, y, x)
    if twin.is_within(x, y, eps, metric, p):
        assert got == twin.distance(x, y, metric, p)
    else:
        assert got == -1.0


@pytest.mark.parametrize(
    ("metric", "p", "y", "distance"),
    [
        ("euclidean", 0.0, [3.0, 4.0], 5.0),
        ("manhattan", 0.0, [3.0, -4.0], 7.0),
        ("chebyshev", 0.0, [3.0, -4.0], 4.0),
        ("minkowski", 3.0, [3.0, 4.0], 91.0 ** (1 / 3)),
    ],
)
def test_decide__counts_exactly_eps_as_within(metric, p, y, distance):
    x = np.zeros(2)
    at = distances.make_decision(METRICS[metric], p, distance)
    assert decide(at, x, y) == distance
    below = distances.make_decision(METRICS[metric], p, distance * (1 - 1e-9))
    above = distances.make_decision(METRICS[metric], p, distance * (1 + 1e-9))
    assert decide(below, x, y) == -1.0
    assert decide(above, x, y) == pytest.approx(distance)


@examples(500)
@given(
    st.sampled_from(sorted(METRICS)),
    st.lists(st.tuples(st.floats(-1.5, 1.5), st.floats(-1.5, 1.5)), min_size=2, max_size=12),
    st.sampled_from([1.0, 1.5, 3.0, 7.0, 40.0, 300.0]),
)
def test_decide__takes_the_distance_that_it_reported_as_eps(metric, coordinates, p):
    if metric.startswith("haversine"):
        coordinates = coordinates[:2]
    x, y = (list(column) for column in zip(*coordinates, strict=True))
    if metric == "cosine" and (sum(v * v for v in x) < 1e-9 or sum(v * v for v in y) < 1e-9):
        return
    everything = distances.make_decision(METRICS[metric], p, math.inf)
    distance = decide(everything, x, y)
    assert decide(distances.make_decision(METRICS[metric], p, distance), x, y) == distance
    if distance > 1e-100:
        below = math.nextafter(distance, 0.0)
        assert decide(distances.make_decision(METRICS[metric], p, below), x, y) == -1.0


@examples(300)
@given(st.floats(1e-150, 1e150))
def test_make_decision__bounds_the_square_by_the_largest_whose_root_is_eps(eps):
    bound = distances.make_decision(distances.EUCLIDEAN, 0.0, eps).bound
    assert math.sqrt(bound) <= eps < math.sqrt(math.nextafter(bound, math.inf))
    assert bound >= eps * eps


@pytest.mark.parametrize(
    ("x", "y", "km"),
    [
        ([0.0, 0.0], [0.0, 180.0], 20015.1),  # half around
        ([90.0, 0.0], [90.0, 123.0], 0.0),  # the pole is one point
        ([0.0, 179.5], [0.0, -179.5], 111.195),  # over the date line
        ([52.5200, 13.4050], [48.8566, 2.3522], 877.46),  # Berlin, Paris
        ([90.0, 0.0], [-90.0, 0.0], 20015.1),
    ],
)
def test_haversine__in_km(x, y, km):
    assert haversine(x, y) == pytest.approx(km, abs=0.06)


@examples(200)
@given(st.floats(-90, 90), st.floats(-180, 180), st.floats(-90, 90), st.floats(-180, 180))
def test_haversine__is_the_twins(lat_x, lon_x, lat_y, lon_y):
    got = haversine([lat_x, lon_x], [lat_y, lon_y])
    assert got == pytest.approx(
        twin.distance([lat_x, lon_x], [lat_y, lon_y], "haversine"), rel=1e-12, abs=1e-9
    )
    assert got == haversine([lat_y, lon_y], [lat_x, lon_x])
