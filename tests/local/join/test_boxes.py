"""Joins of boxes, and of points with an eps of their own, equal brute force, pair by pair."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from epsjoin.local.join import objects as join_objects
from epsjoin.local.join.arrays import self_join
from epsjoin.local.join.boxes import Boxes, ball_join, box_join, iter_box_join
from oracles import boxes as twin
from oracles import examples
from oracles.join import KINDS as POINT_KINDS
from oracles.join import awkward_points
from tests import open_sets
from tests.local.join.many_boxes import METRICS, SEEDS, assert_are, many_cuts, the_metric


@examples(300)
@given(
    st.sampled_from(twin.KINDS),
    st.integers(0, 60),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([1.0, 1.5, 4.0, 1e9]),
    st.sampled_from([3, 20, 1000]),
    SEEDS,
)
def test_box_join__of_one_table_is_brute_force(kind, n, d, is_meeting, budget, sample_rows, seed):
    lower, upper, eps = twin.awkward_boxes(kind, n, d, seed)
    eps = 0.0 if is_meeting else eps
    counters: dict[str, int] = {}
    with many_cuts():
        pairs = box_join(
            (lower, upper), eps=eps, replication_budget=budget, sample_rows=sample_rows, counters=counters
        )
    assert_are(pairs, twin.box_pairs((lower, upper), eps=eps))
    assert n <= counters["rows"] <= budget * n


@examples(200)
@given(
    st.sampled_from(twin.KINDS),
    st.sampled_from(twin.KINDS),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([3, 1000]),
    SEEDS,
)
def test_box_join__of_two_tables_is_brute_force(
    kind, other, n_left, n_right, d, is_meeting, sample_rows, seed
):
    lower, upper, eps = twin.awkward_boxes(kind, n_left, d, seed)
    right_lower, right_upper, _ = twin.awkward_boxes(other, n_right, d, seed + 1)
    left, right = Boxes(lower, upper), Boxes(right_lower, right_upper)
    eps = 0.0 if is_meeting else eps
    with many_cuts():
        pairs = box_join(left, right, eps, sample_rows=sample_rows)
        mirrored = box_join(right, left, eps, sample_rows=sample_rows)
    expected = twin.box_pairs(left, right, eps)
    assert_are(pairs, expected)
    assert_are(mirrored, {(j, i): distance for (i, j), distance in expected.items()})


@examples(150)
@given(
    st.sampled_from(sorted(METRICS)),
    st.sampled_from([kind for kind in twin.KINDS if kind not in ("huge", "tiny", "tiniest")]),
    st.integers(1, 4),
    st.booleans(),
    SEEDS,
)
def test_box_join__under_other_metrics_is_brute_force(metric, kind, d, is_self, seed):
    lower, upper, eps = twin.awkward_boxes(kind, 40, d, seed)
    left = lower[:20], upper[:20]
    right = None if is_self else (lower[20:], upper[20:])
    with many_cuts():
        pairs = box_join(left, right, eps, the_metric(metric, METRICS[metric]))
    assert_are(pairs, twin.box_pairs(left, right, eps, metric, METRICS[metric]))


@pytest.mark.parametrize("right", [None, "a table"])
def test_box_join__counts_pairs_that_touch_and_pairs_at_exactly_eps(right):
    side = np.arange(7.0) * 2.0
    lower = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)  # unit squares, 1 apart
    squares = Boxes(lower, lower + 1.0)
    doubled = Boxes(lower, lower + 2.0)  # without gaps: each touches 8 others
    times = 1 if right is None else 2
    own = 0 if right is None else 49
    neighbours, diagonal = 2 * 6 * 7, 2 * 6 * 6
    for boxes, eps, expected in (
        (squares, 0.0, 0),
        (squares, np.nextafter(1.0, 0.0), 0),
        (squares, 1.0, neighbours),
        (squares, math.sqrt(2.0), neighbours + diagonal),
        (doubled, 0.0, neighbours + diagonal),
    ):
        pairs = box_join(boxes, boxes if right else None, eps)
        assert len(pairs.left) == times * expected + own
    # gaps of 3 and 4 are no gaps of this lattice; 3, 5 and 1, 1 are: sqrt(34) needs its exact square
    apart = box_join(squares, boxes if right is None else None, math.sqrt(34.0))
    assert len(apart.left) == len(twin.box_pairs(squares, boxes if right is None else None, math.sqrt(34.0)))


@examples(60)
@given(st.sampled_from(POINT_KINDS), st.integers(0, 60), st.integers(1, 6), SEEDS)
def test_box_join__of_boxes_without_extent_is_the_point_join(kind, n, d, seed):
    points, eps = awkward_points(kind, n, d, seed)
    of_points = self_join(points, eps)
    of_boxes = box_join((points, points), eps=eps)
    of_balls = ball_join(points, np.full(n, eps))
    for one, two, three in zip(of_points, of_boxes, of_balls, strict=True):
        assert (one == two).all()
        assert (one == three).all()


def test_box_join__of_boxes_without_extent_is_the_k_d_tree():
    points = np.random.default_rng(3).random((3000, 3))
    pairs = box_join((points, points), eps=0.05)
    tree = cKDTree(points).query_pairs(0.05, output_type="ndarray")
    assert len(pairs.left) == len(tree) > 1000
    assert set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == set(map(tuple, tree.tolist()))


@examples(40)
@given(st.sampled_from(["small", "lattice", "giant", "hot"]), SEEDS)
def test_box_join__does_not_depend_on_the_order_of_rows(kind, seed):
    lower, upper, eps = twin.awkward_boxes(kind, 60, 2, seed)
    order = np.random.default_rng(seed).permutation(60)
    reference = box_join((lower, upper), eps=eps)
    with many_cuts():
        shuffled = box_join((lower[order], upper[order]), eps=eps, sample_rows=1 + seed % 70)
    left, right = order[shuffled.left], order[shuffled.right]
    again = dict(
        zip(
            zip(np.minimum(left, right).tolist(), np.maximum(left, right).tolist(), strict=True),
            shuffled.distance.tolist(),
            strict=True,
        )
    )
    assert len(again) == len(shuffled.left)
    assert_are(reference, again)


@pytest.mark.parametrize("is_self", [True, False])
def test_iter_box_join__gives_the_same_batches_whatever_the_threads(is_self):
    lower, upper, _ = twin.awkward_boxes("small", 600, 2, 5)
    right = None if is_self else (lower[::2], upper[::2])
    runs = []
    with many_cuts():
        for n_jobs in (1, 2, 5):
            batches = list(iter_box_join((lower, upper), right, n_jobs=n_jobs, batch_rows=20))
            assert max(len(pairs.left) for pairs in batches) == 20
            assert min(len(pairs.left) for pairs in batches) > 0
            runs.append(batches)
    assert len(runs[0]) > 50
    for run in runs[1:]:
        assert len(run) == len(runs[0])
        for batch, reference in zip(run, runs[0], strict=True):
            assert all((a == b).all() for a, b in zip(batch, reference, strict=True))


def test_iter_box_join__runs_no_more_sweeps_at_once_than_threads(monkeypatch):
    lower, upper, _ = twin.awkward_boxes("small", 600, 2, 5)
    begun = []
    gather = join_objects.gather_rows
    monkeypatch.setattr(join_objects, "gather_rows", lambda *given: begun.append(given[2]) or gather(*given))
    with many_cuts():
        swept: list[float] = []
        batches = iter_box_join((lower, upper), n_jobs=2, batch_rows=5, progress=swept.append)
        for _ in range(12):
            next(batches)
            assert 2 <= len(begun) <= 3 + len(swept)  # the last one swept may not have been reported yet
        list(iter_box_join((lower, upper)))
    assert len(begun) > 20


def test_iter_box_join__needs_memory_for_the_batch_not_for_the_result():
    n = 2500
    spot = np.full((n, 2), 0.5)
    list(iter_box_join((spot[:2], spot[:2])))  # compiles
    tracemalloc.start()
    try:
        found = sum(len(pairs.left) for pairs in iter_box_join((spot, spot), batch_rows=10_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == n * (n - 1) // 2  # 75 MB of pairs
    assert peak < 5_000_000


def test_box_join__of_small_boxes_looks_at_few_candidates():
    n = 5000
    lower = np.random.default_rng(0).random((n, 2))
    counters: dict[str, int] = {"pairs": 1}
    pairs = box_join((lower, lower + 0.01), counters=counters)
    assert counters["pairs"] == len(pairs.left) + 1 > 1000
    assert counters["candidates"] < 0.005 * n * (n - 1) / 2
    assert n < counters["rows"] < 1.2 * n
    assert counters["distance_computations"] == len(pairs.left)
    assert counters["largest_stack"] < 100
    assert set(counters) == {"rows", "candidates", "distance_computations", "largest_stack", "pairs"}


def test_box_join__of_giants_among_small_boxes_stays_bounded():
    n, giants = 4000, 40
    random = np.random.default_rng(0)
    lower = random.random((n, 2))
    upper = lower + 0.005
    lower[:giants], upper[:giants] = -1.0, 2.0
    shuffled = random.permutation(n)
    counters: dict[str, int] = {}
    pairs = box_join((lower[shuffled], upper[shuffled]), counters=counters)
    of_giants = giants * (giants - 1) // 2 + giants * (n - giants)
    small = box_join((lower[giants:], upper[giants:]))
    assert len(pairs.left) == of_giants + len(small.left)
    assert counters["candidates"] < 1.6 * len(pairs.left)
    assert counters["rows"] < 1.5 * n


def test_box_join__prunes_a_tree_that_needs_more_rows_than_the_sample_showed(monkeypatch):
    lower = np.random.default_rng(2).random((3000, 2))
    pruned = []
    prune = join_objects.prune_tree
    monkeypatch.setattr(join_objects, "prune_tree", lambda tree, n: pruned.append(n) or prune(tree, n))
    counters: dict[str, int] = {}
    with many_cuts():  # the sample has cuts that cross none of its boxes, but some of all
        pairs = box_join((lower, lower + 0.001), replication_budget=1.0, sample_rows=200, counters=counters)
    assert pruned[-1] == 0
    assert counters["rows"] == 3000
    whole = box_join((lower, lower + 0.001))
    assert all((a == b).all() for a, b in zip(pairs, whole, strict=True))


@pytest.fixture(scope="module")
def census():
    found = []
    for name in ("zcta510", "primaryroads"):
        sides = open_sets.numbers(name)
        found.append(Boxes(sides[:, :2], sides[:, 2:]))
    return found


def test_box_join__of_census_boxes_has_the_known_counts(census):
    areas, roads = census
    for left, right, meeting, within in (
        (areas, None, 116_356, 215_938),
        (roads, None, 67_510, 145_301),
        (areas, roads, 87_184, 204_399),
    ):
        counters: dict[str, int] = {}
        assert len(box_join(left, right, counters=counters).left) == meeting
        assert counters["candidates"] < 7 * meeting
        assert len(box_join(left, right, eps=0.05).left) == within


def test_box_join__of_census_boxes_finds_the_roads_of_an_area(census):
    areas, roads = census
    pairs = box_join(areas, roads)
    for area in range(0, len(areas.lower), 3000):
        meet = (areas.lower[area] <= roads.upper).all(axis=1) & (roads.lower <= areas.upper[area]).all(axis=1)
        assert pairs.right[pairs.left == area].tolist() == np.flatnonzero(meet).tolist()
