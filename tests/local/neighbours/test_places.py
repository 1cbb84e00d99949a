"""Nearest places on the sphere, also where many are at a pole or within rounding of one another."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epsjoin
from epsjoin.kernels.distances import are_surely_beyond, latitude_cosine
from epsjoin.kernels.neighbours.boxes import BoxTree
from epsjoin.kernels.neighbours.tree import reaches
from epsjoin.local.cluster import spanning
from epsjoin.local.metric import METRICS, get_metric
from epsjoin.local.neighbours import search
from epsjoin.local.neighbours.tree import widen
from oracles import examples
from oracles import join as join_twin
from oracles.spanning_tree import prim

KINDS = ["poles", "near a pole", "spot", "origin", "antipodes", "seam", "anywhere"]
NAMES = st.sampled_from(["haversine", "haversine_radians"])
SEEDS = st.integers(0, 10**6)


def places(kind, n, seed, name="haversine"):
    """Places (latitude, longitude) of one kind, some of them equal."""
    random = np.random.default_rng(seed)
    size = 10.0 ** -random.integers(0, 20)
    lat, lon = random.uniform(-90.0, 90.0, n), random.uniform(-180.0, 180.0, n)
    if kind == "poles":
        lat = random.choice([90.0, 90.0, -90.0], n)
    if kind == "near a pole":
        lat = 90.0 - np.abs(random.normal(0.0, size, n))
    if kind == "spot":
        lat, lon = 48.2 + random.normal(0.0, size, n), 16.4 + random.normal(0.0, size, n)
    if kind == "origin":
        lat, lon = random.normal(0.0, size, n), random.normal(0.0, size, n)
    if kind == "antipodes":
        far = random.integers(0, 2, n)
        lat = np.where(far, -30.0, 30.0) + random.normal(0.0, size, n)
        lon = np.where(far, -120.0, 60.0) + random.normal(0.0, size, n)
    if kind == "seam":
        lat = random.normal(0.0, size, n)
        lon = random.choice([-180.0, 180.0], n) + random.normal(0.0, size, n)
    found = np.column_stack((np.clip(lat, -90.0, 90.0), np.clip(lon, -360.0, 360.0)))
    found[n // 2 :] = found[random.integers(0, n, n - n // 2)]
    if name == "haversine_radians":
        found = np.clip(np.radians(found), [-math.pi / 2, -2 * math.pi], [math.pi / 2, 2 * math.pi])
    return found


@examples(300)
@given(st.sampled_from(KINDS), NAMES, st.integers(1, 24), SEEDS)
def test_reach__is_at_least_the_gap_between_the_widened_boxes_of_two_places(kind, name, n, seed):
    points, metric = places(kind, n, seed, name), get_metric(name)
    embedded = metric.embed(points)
    boxes = widen(BoxTree(np.arange(n), points, embedded, embedded), metric)
    distance = join_twin.all_distances(points, points, name)
    limit = reaches(metric.decision(math.inf), metric.norm, distance.ravel(), 2).reshape(n, n)
    gap = np.maximum(np.maximum(boxes.low[None] - embedded[:, None], embedded[:, None] - boxes.high[None]), 0)
    assert ((gap * gap).sum(axis=2) <= limit).all()


@examples(150)
@given(st.sampled_from(KINDS), NAMES, st.integers(2, 80), st.integers(1, 9), SEEDS)
def test_knn_join__of_places_is_the_definition(kind, name, n, k, seed):
    points, k = places(kind, n, seed, name), min(k, n - 1)
    distance = join_twin.all_distances(points, points, name)
    np.fill_diagonal(distance, math.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :k]
    with mock.patch.object(search, "_are_few", return_value=False):  # by the tree
        found = epsjoin.knn_join(None, points, k, name)
    assert found.neighbour.tolist() == nearest.tolist()
    assert found.distance.tolist() == np.take_along_axis(distance, nearest, axis=1).tolist()


@examples(80)
@given(
    st.sampled_from(KINDS),
    NAMES,
    st.integers(2, 60),
    st.integers(1, 5),
    st.sampled_from([1.0, 0.6]),
    SEEDS,
)
def test_hdbscan__of_places_has_the_tree_of_prims(kind, name, n, samples, alpha, seed):
    points, samples = places(kind, n, seed, name), min(samples, n)
    found = epsjoin.hdbscan(points, 2, samples, name, alpha=alpha)
    assert found.tree.weight.tolist() == prim(points.tolist(), samples, name, 0.0, alpha)


@pytest.mark.parametrize("seed", range(20))
def test_hdbscan__of_places_at_the_seam_has_the_tree_of_prims(seed):
    """In some boxes, between which the formula rounds by more than the coordinates on the sphere."""
    points = places("seam", 120, seed)
    found = epsjoin.hdbscan(points, 2, 1 + seed % 5, "haversine")
    assert found.tree.weight.tolist() == prim(points.tolist(), 1 + seed % 5, "haversine", 0.0, 1.0)


@examples(300)
@given(st.sampled_from(KINDS), NAMES, st.integers(1, 24), SEEDS)
def test_bound__is_never_beyond_the_distance(kind, name, n, seed):
    points, metric = places(kind, n, seed, name), METRICS[name]
    distance = join_twin.all_distances(points, points, name)
    for x in range(n):
        cosine = latitude_cosine(metric, points, x)
        for y in range(n):
            assert not are_surely_beyond(metric, points, x, points, y, cosine, distance[x, y])


def crowds(n):
    """Places of which boxes with an absolute slack tell nothing, and comparisons of each that are enough."""
    random = np.random.default_rng(2)
    lon = random.uniform(-180.0, 180.0, n)
    return {
        "pole": (np.column_stack((np.full(n, 90.0), lon)), 40),
        "other pole": (np.column_stack((np.full(n, -90.0), lon)), 40),
        "origin": (random.normal(0.0, 1e-16, (n, 2)), 300),
        "spot": (np.array([48.0, 16.0]) + random.normal(0.0, 1e-11, (n, 2)), 60),
        "spot of neighbouring numbers": (np.array([48.0, 16.0]) + random.normal(0.0, 1e-13, (n, 2)), 250),
    }


@pytest.mark.parametrize("kind", crowds(1))
def test_knn_join__of_places_in_a_crowd_compares_few(kind):
    points, enough = crowds(5000)[kind]
    counters: dict[str, int] = {}
    found = epsjoin.knn_join(None, points, 5, "haversine", counters=counters)
    assert counters["comparisons"] < enough * 5000
    for row in range(0, 5000, 1000):
        distance = join_twin.all_distances(points[row : row + 1], points, "haversine")[0]
        distance[row] = math.inf
        assert found.neighbour[row].tolist() == np.argsort(distance, kind="stable")[:5].tolist()


@pytest.mark.parametrize("kind", ["pole", "other pole", "spot"])
def test_hdbscan__of_places_in_a_crowd_compares_few(kind, monkeypatch):
    points, compared, grow = crowds(5000)[kind][0], [], spanning.grow_forest

    def counted(*of):
        found, begin, more = grow(*of)
        compared.append(more)
        return found, begin, more

    monkeypatch.setattr(spanning, "grow_forest", counted)
    epsjoin.hdbscan(points, 5, metric="haversine")
    assert sum(compared) < 400 * 5000
