"""Balls: points with an eps of their own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.local.join.boxes import ball_join, iter_ball_join
from oracles import boxes as twin
from oracles import examples
from oracles.join import KINDS as POINT_KINDS
from oracles.join import awkward_points
from tests.local.join.many_boxes import METRICS, SEEDS, assert_are, many_cuts, the_metric


@examples(200)
@given(
    st.sampled_from(sorted(METRICS)),
    st.sampled_from([kind for kind in POINT_KINDS if kind != "mixed_scale"]),
    st.integers(0, 40),
    st.integers(1, 5),
    st.booleans(),
    SEEDS,
)
def test_ball_join__is_brute_force(metric, kind, n, d, is_self, seed):
    points, eps = awkward_points(kind, n, d, seed)
    of_each = eps * np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0, 3.0], n)
    half = n if is_self else n // 2
    right = (None, None) if is_self else (points[half:], of_each[half:])
    with many_cuts():
        pairs = ball_join(points[:half], of_each[:half], *right, the_metric(metric, METRICS[metric]))
    assert_are(pairs, twin.ball_pairs(points[:half], of_each[:half], *right, metric, METRICS[metric]))


@examples(100)
@given(
    st.sampled_from(["directions", "near", "tiny angles"]),
    st.integers(2, 5),
    st.booleans(),
    SEEDS,
)
def test_ball_join__of_directions_is_brute_force(kind, d, is_self, seed):
    random = np.random.default_rng(seed)
    points = random.normal(size=(40, d))
    of_each = random.choice([0.0, 0.01, 0.2, 1.0, 2.5], 40)
    if kind == "near":
        points = 1.0 + 0.1 * points
        of_each /= 100
    elif kind == "tiny angles":  # the cosine cannot tell them apart, the chord can
        points = 1.0 + 1e-8 * points
        of_each = random.choice([0.0, 1e-18, 1e-16, 1e-15], 40)
    right = (None, None) if is_self else (points[20:], of_each[20:])
    n = 40 if is_self else 20
    with many_cuts():
        pairs = ball_join(points[:n], of_each[:n], *right, "cosine")
    assert_are(pairs, twin.ball_pairs(points[:n], of_each[:n], *right, "cosine"))


@examples(100)
@given(
    st.sampled_from(["poles", "date line", "anywhere"]),
    st.sampled_from([5.0, 300.0, 4000.0, 20015.0, 30000.0]),
    SEEDS,
)
def test_ball_join__on_the_sphere_is_brute_force(where, eps, seed):
    random = np.random.default_rng(seed)
    spread = min(60.0, eps / 50)
    points = np.stack((random.uniform(-90, 90, 40), random.uniform(-180, 180, 40)), 1)
    if where == "poles":
        points[:, 0] = 90 - np.abs(random.normal(size=40)) * spread
        points[20:, 0] *= -1
    elif where == "date line":
        points[:, 0] = random.normal(size=40) * spread
        points[:, 1] = (360 + random.normal(size=40) * spread) % 360 - 180
    points[:, 0] = points[:, 0].clip(-90, 90)
    of_each = eps * random.choice([0.0, 0.3, 1.0, 1.7], 40)
    with many_cuts():
        pairs = ball_join(points, of_each, metric="haversine")
    assert_are(pairs, twin.ball_pairs(points, of_each, metric="haversine"))


def test_iter_ball_join__gives_what_ball_join_gives():
    points = np.random.default_rng(0).random((50, 2))
    of_each = np.linspace(0.0, 0.4, 50)
    batches = list(iter_ball_join(points, of_each, batch_rows=7))
    assert max(len(pairs.left) for pairs in batches) == 7
    found = sorted(
        zip(*(np.concatenate(column).tolist() for column in zip(*batches, strict=True)), strict=True)
    )
    assert found == list(zip(*(column.tolist() for column in ball_join(points, of_each)), strict=True))
