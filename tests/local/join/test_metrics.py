"""Joins of arrays under metrics other than Euclid's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.distances import EARTH_RADIUS_KM
from epsjoin.local.join.arrays import join, self_join
from epsjoin.local.join.boxes import ball_join, box_join
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from oracles import examples
from oracles import join as twin
from tests.local.join.brute_force import SEEDS, assert_is_brute_force, found_pairs, join_by


@examples(150)
@given(
    st.sampled_from(["manhattan", "chebyshev", "minkowski", "cosine"]),
    st.sampled_from(["planned", "regular"]),
    st.sampled_from(["uniform", "lattice", "dyadic", "few", "hot", "constant"]),
    st.integers(1, 5),
    st.sampled_from([1, 7]),
    SEEDS,
)
def test_self_join__under_other_metrics_is_brute_force(metric, cuts, kind, d, n_parts, seed):
    points, eps = twin.awkward_points(kind, 40, d, seed)
    if metric == "cosine":
        points, eps = points + 0.01, eps / 100
    assert_is_brute_force(points, eps, metric, 3.0, cuts=cuts, n_parts=n_parts, k=2)


@examples(60)
@given(
    st.sampled_from(["euclidean", "manhattan", "chebyshev", "minkowski", "cosine", "haversine"]),
    st.sampled_from([None, Cuts(n_parts=3), Cuts("regular", k=2)]),
    st.integers(2, 6),
    SEEDS,
)
def test_self_join__finds_a_pair_again_at_the_distance_that_it_reported(metric, cuts, d, seed):
    points = np.random.default_rng(seed).uniform(-1.0, 1.0, (5, 2 if metric == "haversine" else d))
    chosen = get_metric(metric, 2.5 if metric == "minkowski" else None)
    for left, right, distance in zip(*self_join(points, 1000.0, chosen), strict=True):
        pairs = self_join(points, float(distance), chosen, cuts=cuts)
        assert (left, right) in found_pairs(pairs)
        assert pairs.distance.max() == distance
        assert distance in join(points[[left]], points[[right]], float(distance), chosen, cuts=cuts).distance
        if chosen.name not in ("cosine", "haversine"):
            assert box_join((points, points), eps=float(distance), metric=chosen).distance.max() == distance
        assert ball_join(points, np.full(5, distance), metric=chosen).distance.max() == distance


@pytest.mark.parametrize("cuts", ["planned", "regular"])
def test_self_join__finds_directions_that_the_cosine_cannot_tell_apart(cuts):
    # 1 - cos rounds to 0 here, while the chord of 1e-8 is far above sqrt(2 eps)
    points = np.array([[1.0, 0.0], [1.0, 1e-8], [0.0, 1.0]])
    assert found_pairs(join_by(points, 1e-18, "cosine", cuts=cuts)) == [(0, 1)]


@examples(100)
@given(
    st.sampled_from(["planned", "regular"]),
    st.sampled_from(["poles", "date line", "anywhere"]),
    st.sampled_from([5.0, 300.0, 4000.0, 20015.0, 30000.0]),
    st.sampled_from([1, 7]),
    SEEDS,
)
def test_self_join__on_the_sphere_is_brute_force(cuts, where, eps, n_parts, seed):
    random = np.random.default_rng(seed)
    spread = min(60.0, eps / 50)
    if where == "poles":
        points = np.stack((90 - np.abs(random.normal(size=40)) * spread, random.uniform(-180, 180, 40)), 1)
        points[:2] = [[90.0, 0.0], [90.0, 100.0]]
        points[20:, 0] *= -1
    elif where == "date line":
        lon = 180 + random.normal(size=40) * spread
        points = np.stack((random.normal(size=40) * spread, (lon + 180) % 360 - 180), 1)
    else:
        points = np.stack((random.uniform(-90, 90, 40), random.uniform(-180, 180, 40)), 1)
    points[:, 0] = points[:, 0].clip(-90, 90)
    assert_is_brute_force(points, eps, "haversine", cuts=cuts, n_parts=n_parts, replication_budget=9.0)


def test_self_join__takes_minkowski_with_its_p():
    points = [[0.0, 0.0], [1.0, 1.0]]
    assert found_pairs(self_join(points, 1.3, get_metric("minkowski", 3.0))) == [(0, 1)]
    assert found_pairs(self_join(points, 1.3, get_metric("minkowski", 2.0))) == []


def test_self_join__of_parallel_and_opposite_vectors():
    points = np.array([[1.0, 2.0], [2.0, 4.0], [-0.5, -1.0], [2.0, -1.0]])
    assert found_pairs(self_join(points, 1e-15, "cosine")) == [(0, 1)]
    assert found_pairs(self_join(points, 1.0 + 1e-15, "cosine")) == [(0, 1), (0, 3), (1, 3), (2, 3)]
    everything = self_join(points, 2.0, "cosine")
    assert len(everything.left) == 6
    assert everything.distance == pytest.approx([0.0, 2.0, 1.0, 2.0, 1.0, 1.0], abs=1e-15)


def test_self_join__within_a_cosine_distance_of_2_is_everything():
    points = np.array([[-0.2602751789756352, 0.22373109237921587], [4.429359971415481, -3.807453130359103]])
    assert self_join(points, 2.0, "cosine").distance.tolist() == [2.0]


HALF_ROUND = math.pi * EARTH_RADIUS_KM
PLACES = {
    "one pole": ([[90.0, 0.0], [90.0, 123.0], [-90.0, 5.0]], 1e-6, [(0, 1)]),
    "both poles": ([[90.0, 0.0], [90.0, 123.0], [-90.0, 5.0]], HALF_ROUND, [(0, 1), (0, 2), (1, 2)]),
    "not quite both poles": ([[90.0, 0.0], [-90.0, 5.0]], HALF_ROUND * (1 - 1e-9), []),
    "date line": ([[0.0, 179.99], [0.0, -179.99], [0.0, 179.0]], 2.3, [(0, 1)]),
    "date line, beyond": ([[0.0, 179.99], [0.0, -179.99]], 2.2, []),
    "antipodes": ([[12.0, 34.0], [-12.0, -146.0]], HALF_ROUND, [(0, 1)]),
    "equal": ([[51.0, 7.0], [51.0, 7.0]], 1e-12, [(0, 1)]),
    "two turns on": ([[51.0, -360.0], [51.0, 360.0], [51.0, 0.0]], 1e-9, [(0, 1), (0, 2), (1, 2)]),
    "one turn on": ([[51.0, 7.0], [51.0, -353.0], [51.0, 8.0]], 1e-9, [(0, 1)]),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("cuts", [None, Cuts(n_parts=2), Cuts("regular", n_parts=2)])
def test_self_join__of_places_on_the_sphere(place, cuts):
    points, eps, expected = PLACES[place]
    assert found_pairs(self_join(points, eps, "haversine", cuts=cuts)) == expected
    assert expected == sorted(twin.brute_force(np.array(points), eps, "haversine"))
    left, right = points[:1], points[1:]
    found = found_pairs(join(left, right, eps, "haversine", cuts=cuts))
    assert found == [(0, j - 1) for i, j in expected if i == 0]


@examples(40)
@given(st.sampled_from([1.0, 100.0, 3000.0, 19_000.0]), SEEDS)
def test_self_join__in_radians_is_that_in_degrees(eps, seed):
    random = np.random.default_rng(seed)
    spread = min(60.0, eps / 60.0)
    points = random.normal(size=(60, 2)) * spread + random.uniform(-80, 80, 2)
    points[:, 0] = points[:, 0].clip(-90, 90)
    in_km = self_join(points, eps, "haversine")
    in_radians = self_join(np.radians(points), eps / EARTH_RADIUS_KM, "haversine_radians")
    assert found_pairs(in_km) == found_pairs(in_radians)
    assert len(in_km.left) > 10
    assert in_km.distance == pytest.approx(in_radians.distance * EARTH_RADIUS_KM, rel=1e-9, abs=1e-9)
