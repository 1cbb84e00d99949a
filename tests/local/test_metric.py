"""Metrics by name, and embedded coordinates that never lose a pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin import Band, Similarity, Spatial, ball_join, estimate, fit_epsilon, progressive_join, update_join
from epsjoin.errors import ArgumentError
from epsjoin.kernels.projection import MAXIMUM, SQUARES, SUM
from epsjoin.local.join.arrays import self_join
from epsjoin.local.metric import METRICS, Metric, get_metric
from oracles import examples
from oracles import join as twin

SQUARE = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]


def chosen(name):
    return get_metric(name, 2.5 if name == "minkowski" else None)


def random_points(name, d, random, n=2):
    if name == "haversine":
        return np.stack((random.uniform(-90, 90, n), random.uniform(-180, 180, n)), axis=1)
    if name == "haversine_radians":
        return np.radians(random_points("haversine", d, random, n))
    return random.normal(size=(n, d)) * 10.0 ** random.integers(-3, 4)


@examples(400)
@given(
    st.sampled_from(sorted(METRICS)),
    st.integers(1, 20),
    st.integers(0, 10**9),
    st.sampled_from([1.0, 1e-3, 1e-7, 1e-12]),
)
def test_embed__keeps_pairs_at_exactly_eps_within_embedded_eps(name, d, seed, nearness):
    random = np.random.default_rng(seed)
    metric = chosen(name)
    points = random_points(name, d, random)
    points[1] = points[0] + nearness * (points[1] - points[0])
    eps = twin.distance(*points.tolist(), name, 2.5)
    if eps < 1e-100:
        return
    embedded = metric.embed(points)
    assert embedded.shape == (2, metric.dimensions(points.shape[1]))
    assert np.abs(embedded[0] - embedded[1]).max() <= metric.embedded_eps(eps)


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "chebyshev", "minkowski"])
def test_embed__gives_the_points_themselves_for_lp(name):
    points = np.random.default_rng(0).random((5, 3))
    assert chosen(name).embed(points) is points
    assert chosen(name).embedded_eps(0.5) == pytest.approx(0.5)
    assert chosen(name).embedded_eps(0.5) > 0.5


def test_haversine__reaches_everything_from_half_the_circumference_on():
    metric = get_metric("haversine")
    assert metric.unit == "km"
    assert metric.embedded_eps(math.pi * 6371.0088) >= 2.0
    assert metric.embedded_eps(1e9) >= 2.0
    assert metric.embedded_eps(6371.0088) == pytest.approx(2 * math.sin(0.5))
    poles = metric.embed(np.array([[90.0, 17.0], [90.0, -99.0]]))
    assert np.abs(poles[0] - poles[1]).max() < 1e-15


def test_haversine_radians__is_the_angle_of_haversine():
    metric = get_metric("haversine_radians")
    assert metric.unit == "rad"
    assert metric.embedded_eps(1.0) == pytest.approx(2 * math.sin(0.5))
    degrees = np.array([[48.0, 11.0], [-33.0, 151.0]])
    assert np.allclose(metric.embed(np.radians(degrees)), get_metric("haversine").embed(degrees), atol=1e-15)


def test_norm__bounds_the_distance_from_below():
    random = np.random.default_rng(0)
    norms = {
        SQUARES: lambda z: math.sqrt((z * z).sum()),
        SUM: lambda z: np.abs(z).sum(),
        MAXIMUM: lambda z: np.abs(z).max(),
    }
    for name, p in [(name, None) for name in METRICS if name != "minkowski"] + [
        ("minkowski", p) for p in (1.0, 1.5, 2.0, 2.5, 9.0)
    ]:
        metric = get_metric(name, p)
        for _ in range(50):
            points = random_points(name, 4, random)
            eps = twin.distance(*points.tolist(), name, p or 0.0)
            embedded = metric.embed(points)
            assert norms[metric.norm](embedded[0] - embedded[1]) <= metric.embedded_eps(eps) * (1 + 1e-9)


def test_cosine__embeds_directions():
    metric = get_metric("cosine")
    embedded = metric.embed(np.array([[2.0, 0.0], [0.0, 5.0]]))
    assert embedded.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert metric.embedded_eps(1.0) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: get_metric("cosinus"), "unknown metric 'cosinus'; known are euclidean, manhattan"),
        (lambda: get_metric(["cosine"]), "unknown metric .'cosine'.; known are"),
        (lambda: get_metric(np.ones(2)), r"unknown metric array\(\[1., 1.\]\); known are"),
        (lambda: self_join([[1.0], [2.0]], [[0.1], [0.1, 0.2]]), "eps must have rows of one length"),
        (
            lambda: self_join([[1.0]], 1.0, weights=[[1], [1, 2]]),
            "weights must have rows of one length",
        ),
        (lambda: get_metric("minkowski"), "minkowski needs a finite p of at least 1"),
        (lambda: get_metric("minkowski", 0.5), "not 0.5"),
        (lambda: get_metric("minkowski", math.inf), "p = inf is chebyshev"),
        (lambda: get_metric("euclidean", 2.0), "p belongs to minkowski only"),
        (lambda: get_metric(Metric("minkowski", 3.0), 2.0), "p belongs to the name of a metric, not"),
        (lambda: Metric("l2"), "unknown metric 'l2'"),
        (lambda: Metric("minkowski"), "minkowski needs a finite p of at least 1, not 0.0"),
        (lambda: Metric("minkowski", math.inf), "minkowski needs a finite p"),
        (lambda: Metric("cosine", 2.0), "p belongs to minkowski only, not to cosine"),
        (lambda: Metric(["l2"]), r"unknown metric \['l2'\]"),
        (lambda: Metric("minkowski", None), "minkowski needs a finite p of at least 1, not None"),
        (lambda: estimate(SQUARE, 0.1, cuts="x"), r"cuts must be epsjoin.Cuts\(...\) or None, not 'x'"),
        (lambda: estimate(SQUARE, 0.1, right_rows=9), "right_rows are those of right, which is not given"),
        (lambda: fit_epsilon(SQUARE, right_rows=9), "right_rows are those of right, which is not given"),
        (
            lambda: ball_join(SQUARE, np.ma.array([0.1] * 4, mask=[0, 0, 0, 1])),
            "eps_of_each must have no masked",
        ),
        (lambda: ball_join(SQUARE, [[1.0], [1.0, 2.0]]), "eps_of_each must have rows of one length"),
        (lambda: Band(None), "eps must be a finite number of at least 0, not None"),
        (lambda: Spatial(axis=0.5), "axis must be a whole number"),
        (
            lambda: progressive_join(iter([(SQUARE, SQUARE, 1)]), on=Similarity(1)),
            r"a chunk must be \(ids, rows\) or rows, not a tuple of 3",
        ),
        (
            lambda: update_join(None, SQUARE, SQUARE, range(4), range(4), 1.0),
            r"pairs must be \(left, right, distance\), as joins return it, not None",
        ),
        (lambda: get_metric("haversine").dimensions(3), r"needs 2 coordinates \(lat, lon\), not 3"),
        (lambda: get_metric("euclidean").dimensions(0), "at least one coordinate"),
        (lambda: get_metric("euclidean").check_eps(0.0), "eps must be a finite number above 0, not 0.0"),
        (lambda: get_metric("euclidean").check_eps(math.nan), "eps must be"),
        (lambda: get_metric("euclidean").check_eps("1"), "eps must be"),
        (lambda: get_metric("euclidean").check_eps(1e-160), "too small or too large"),
        (lambda: get_metric("minkowski", 300.0).check_eps(1e20), "too small or too large"),
        (lambda: get_metric("cosine").embed(np.array([[1.0, 2.0], [0.0, 0.0]])), "row 1 breaks this"),
        (lambda: get_metric("haversine").embed(np.array([[91.0, 2.0]])), "latitude from -90 to 90.*row 0"),
        (
            lambda: get_metric("haversine_radians").embed(np.array([[np.float32(np.pi / 2), 2.0]])),
            r"latitude from -1\.5707963267948966 to 1\.5707963267948966 and.*row 0",
        ),
    ],
)
def test_metric__refuses_what_has_no_meaning(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_cosine__of_many_coordinates_keeps_what_rounding_moves():
    # each term of the sums rounds up: together by far more than a few 2**-53
    d, b = 1 << 17, 1 + 2.0**-37 + 2.0**-50
    points = np.stack((np.ones(d), np.full(d, b)))
    points[1, 0] = b + math.sqrt(2 * d * 5e-12)
    eps = twin.distance(*points.tolist(), "cosine")
    assert self_join(points, eps, "cosine").left.tolist() == [0]
    with pytest.raises(ArgumentError, match="cosine is exact for up to 1048576 coordinates, not for 1048577"):
        get_metric("cosine").dimensions((1 << 20) + 1)
