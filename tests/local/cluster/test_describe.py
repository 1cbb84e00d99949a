"""What sets clusters apart: against the definition, and on the circle of longitudes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epsjoin
from epsjoin.errors import ArgumentError
from oracles import deviations as twin
from oracles import examples


def told(found):
    """The result as the oracle gives it."""
    return {
        label: list(zip(dimension, z, strict=True))
        for label, dimension, z in zip(
            found.label.tolist(), found.dimension.tolist(), found.z.tolist(), strict=True
        )
    }


@examples(200)
@given(st.integers(1, 60), st.integers(1, 5), st.integers(1, 8), st.integers(0, 10**6))
def test_describe__is_the_definition(n, d, n_labels, seed):
    """Many values are equal, so that spreads are 0 and deviations are tied."""
    random = np.random.default_rng(seed)
    points = random.integers(-3, 4, (n, d)) * np.where(random.random(d) < 0.3, 0, 1)
    labels = random.choice([-1, -7, 0, 3, 2**62, 5, 6, 8][:n_labels], n)
    found = epsjoin.describe_clusters(points, labels)
    assert told(found) == twin.deviations(points.tolist(), labels.tolist())
    assert found.label.tolist() == sorted({*labels.tolist()} - {-1})
    for label, size, median in zip(found.label, found.size, found.median, strict=True):
        assert size == (labels == label).sum()
        assert median.tolist() == np.median(points[labels == label], axis=0).tolist()
    assert found.centre.tolist() == np.median(points, axis=0).tolist()


def test_describe__says_what_a_person_sees():
    random = np.random.default_rng(0)
    points = random.normal(0, 1, (400, 4))
    points[:40, 2] += 9
    points[40:70, [0, 3]] += (-20, 12)
    labels = np.repeat([7, 4, -1], [40, 30, 330])
    found = epsjoin.describe_clusters(points, labels)
    assert found.label.tolist() == [4, 7]
    assert found.dimension[0].tolist() == [0, 3]
    assert found.dimension[1, 0] == 2
    np.testing.assert_allclose(found.z[0], [-20, 12], rtol=0.15)
    np.testing.assert_allclose(found.z[1, 0], 9, rtol=0.15)


def test_describe__without_clusters_is_empty():
    for n in (0, 4):
        found = epsjoin.describe_clusters(np.ones((n, 3)), np.full(n, epsjoin.NOISE))
        assert [found.median.shape, found.dimension.shape, found.z.shape] == [(0, 3), (0, 2), (0, 2)]
        assert found.label.dtype == found.size.dtype == found.dimension.dtype == np.int64
        assert found.centre.tolist() == [1.0 if n else 0.0] * 3


def test_describe__does_not_depend_on_units_nor_on_the_order_of_points():
    random = np.random.default_rng(3)
    points, labels = random.normal(0, 1, (90, 3)), random.integers(-1, 4, 90)
    found, order = epsjoin.describe_clusters(points, labels), random.permutation(90)
    scaled = epsjoin.describe_clusters((points * (0.25, 1, 1024))[order], labels[order])
    assert told(scaled) == told(found)


def wrapped(places, east):
    """The same places, turned to the east, with longitudes from -180 to 180."""
    turned = places + np.array([0.0, east])
    turned[:, 1] = (turned[:, 1] + 180.0) % 360.0 - 180.0
    return turned


@pytest.mark.parametrize("east", [0.0, 100.0, 150.0, 180.0, 210.0, -170.0])
def test_describe__puts_longitudes_together_across_180_degrees(east):
    random = np.random.default_rng(2)
    places = np.column_stack([random.normal(10, 2, 300), random.normal(0, 8, 300)])
    places[:50, 1] += 30
    labels = np.repeat([0, -1, 1], [50, 50, 200])
    found = epsjoin.describe_clusters(wrapped(places, east), labels, "haversine")
    plain = epsjoin.describe_clusters(places, labels)
    assert found.dimension.tolist() == plain.dimension.tolist()
    np.testing.assert_allclose(found.z, plain.z, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.median - found.centre, plain.median - plain.centre, atol=1e-9)
    assert found.dimension[0, 0] == 1
    unturned = epsjoin.describe_clusters(places, labels, "haversine")
    assert [column.tobytes() for column in unturned] == [column.tobytes() for column in plain]
    radians = epsjoin.describe_clusters(np.radians(wrapped(places, east)), labels, "haversine_radians")
    assert radians.dimension.tolist() == plain.dimension.tolist()
    np.testing.assert_allclose(radians.z, plain.z, rtol=1e-9, atol=1e-9)


@examples(200)
@given(st.integers(1, 80), st.integers(1, 5), st.integers(0, 10**6))
def test_describe__cuts_the_circle_for_each_cluster_by_itself(n, n_labels, seed):
    """Also for clusters of one size, which are looked at together; 180 is -180."""
    random = np.random.default_rng(seed)
    labels, middles = random.integers(0, n_labels, n), random.integers(-180, 180, n_labels)
    east = middles[labels] + random.integers(-20, 21, n)
    is_anywhere = random.random(n) < random.choice([0.1, 1.0])
    east = (np.where(is_anywhere, random.integers(-180, 180, n), east) + 180) % 360 - 180
    places = np.column_stack([random.integers(-90, 91, n), east])
    found = epsjoin.describe_clusters(places, labels, "haversine")
    centre = np.median(twin.together(east.tolist()))
    assert found.centre[1] == centre
    for label, median in zip(found.label, found.median, strict=True):
        alone = np.median(twin.together(east[labels == label].tolist()))
        assert median[0] == np.median(places[labels == label, 0])
        assert median[1] == centre + (alone - centre + 180.0) % 360.0 - 180.0
        assert abs(median[1] - centre) <= 180.0


def test_describe__of_a_cluster_on_the_other_side_of_the_globe_has_its_own_median():
    """Half of its points are 179.5 degrees to the east of the centre, half as far to the west: not 0."""
    here = np.column_stack([np.zeros(101), np.linspace(-1, 1, 101)])
    there = np.column_stack([np.zeros(20), np.repeat([179.5, -179.5], 10)])
    labels = np.repeat([0, 1], [101, 20])
    found = epsjoin.describe_clusters(np.concatenate([here, there]), labels, "haversine")
    assert abs(found.median[1, 1]) == pytest.approx(180.0)
    assert found.dimension[1, 0] == 1
    assert abs(found.z[1, 0]) > 100


def test_describe__looks_at_clusters_of_one_size_together(monkeypatch):
    """However many clusters there are, medians are asked for once for each size."""
    n_calls, median = [0], np.median

    def counting(*arguments, **named):
        n_calls[0] += 1
        return median(*arguments, **named)

    monkeypatch.setattr(np, "median", counting)
    labels = np.repeat(np.arange(3000), [2, 3, 5] * 1000)
    found = epsjoin.describe_clusters(np.arange(len(labels))[:, None], labels)
    assert n_calls[0] == 2 + 3
    assert found.median[:3, 0].tolist() == [0.5, 3.0, 7.0]


@pytest.mark.parametrize(
    ("points", "labels", "metric", "says"),
    [
        ([[1.0], [2.0]], [0], "euclidean", "labels must be one per point, 2, not 1"),
        ([[1.0]], [0.5], "euclidean", "labels must be a one-dimensional array of int64"),
        ([[1.0]], [[0]], "euclidean", "labels must be a one-dimensional array of int64, not 2-dimensional"),
        ([[math.nan]], [0], "euclidean", "points must be finite; row 0, column 0 is nan"),
        ([[1.0]], [0], "other", "metric"),
        ([[1.0, 2.0, 3.0]], [0], "haversine", "haversine"),
        ([[100.0, 2.0]], [0], "haversine", "latitude from -90 to 90"),
        (
            [[0.0, 1.5e308], [1.0, -1.5e308]] * 2,
            [0] * 4,
            "euclidean",
            "by so much in dimension 1 that float64 does not hold their spread; divide all coordinates by",
        ),
    ],
)
def test_describe__refuses(points, labels, metric, says):
    with pytest.raises(ArgumentError, match=says):
        epsjoin.describe_clusters(points, labels, metric)


@pytest.mark.filterwarnings("error")
def test_describe__takes_medians_of_the_largest_numbers():
    """The mean of two of them overflows."""
    points = np.array([[1.5e308], [1.7e308], [1.6e308], [1.75e308], [1.7e308], [1.65e308]])
    found = epsjoin.describe_clusters(points, [0, 0, 1, 1, -1, -1])
    assert found.median.ravel().tolist() == pytest.approx([1.6e308, 1.675e308])
    assert found.centre.tolist() == pytest.approx([1.675e308])
    assert np.isfinite(found.z).all()
