"""Joins of boxes, and of points with an eps of their own, equal brute force, pair by pair."""

from __future__ import annotations

import contextlib
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.join import objects as join_objects
from epsjoin.local.join.arrays import self_join
from epsjoin.local.join.boxes import Boxes, ball_join, box_join, iter_ball_join, iter_box_join
from epsjoin.local.metric import get_metric
from epsjoin.local.plan import box_tree
from oracles import boxes as twin
from oracles import examples
from oracles.join import KINDS as POINT_KINDS
from oracles.join import awkward_points

SEEDS = st.integers(0, 10**6)
DATA = Path(__file__).parents[2] / "data" / "boxes"
METRICS = {"euclidean": 0.0, "manhattan": 0.0, "chebyshev": 0.0, "minkowski": 3.0}


@contextlib.contextmanager
def many_cuts():
    """Rows cost nothing and few are swept together, so that few rows have many leaves and groups too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_tree, "_MIN_ROWS", 2)
        patch.setattr(join_objects, "BOX_NS_PER_ROW", 0.01)
        patch.setattr(join_objects, "_MAX_ROWS_AT_ONCE", 16)
        yield


def the_metric(name, p):
    return get_metric(name, p) if name == "minkowski" else name


def assert_are(pairs, expected):
    assert list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == sorted(expected)
    assert pairs.distance.tolist() == pytest.approx([expected[pair] for pair in sorted(expected)], rel=1e-14)
    assert (pairs.left.dtype, pairs.right.dtype, pairs.distance.dtype) == (np.int64, np.int64, np.float64)


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


def test_ball_join__takes_pairs_at_exactly_half_the_sum():
    points = np.arange(6.0)[:, None]
    of_each = np.array([0.0, 2.0, 0.0, 2.0, 6.0, 0.0])
    pairs = ball_join(points, of_each)
    assert list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == [
        *((0, 1), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4), (4, 5))
    ]


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
        sides = np.loadtxt(DATA / f"tiger_{name}_mbr.csv.gz", delimiter=",", skiprows=1)
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


@pytest.mark.parametrize(
    "convert",
    [lambda x: x.astype(np.float32), lambda x: x.astype(np.int16), np.asfortranarray, np.ndarray.tolist],
)
def test_box_join__takes_any_array_and_does_not_modify_it(convert):
    lower, upper, _ = twin.awkward_boxes("lattice", 50, 3, 1)
    boxes = convert(lower), convert(upper)
    before = [np.array(side, copy=True) for side in boxes]
    assert_are(box_join(boxes, eps=3.0), twin.box_pairs((lower, upper), eps=3.0))
    assert_are(ball_join(boxes[0], np.full(50, 3)), twin.ball_pairs(lower, np.full(50, 3.0)))
    for side, was in zip(boxes, before, strict=True):
        assert (np.array(side) == was).all()


def test_box_join__takes_read_only_views():
    lower, upper, _ = twin.awkward_boxes("small", 60, 4, 1)
    for side in (lower, upper):
        side.setflags(write=False)
    boxes = lower[::2, ::-2], upper[::2, ::-2]
    assert_are(box_join(boxes, eps=0.1), twin.box_pairs(boxes, eps=0.1))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_box_join__takes_few_boxes(n):
    none = np.zeros((0, 2))
    boxes = np.zeros((n, 2)), np.ones((n, 2))
    assert_are(box_join(boxes), {(0, 1): 0.0} if n == 2 else {})
    assert_are(box_join(boxes, (none, none)), {})
    assert_are(box_join((none, none), boxes), {})
    assert_are(box_join(boxes, boxes), {(i, j): 0.0 for i in range(n) for j in range(n)})
    assert_are(ball_join(boxes[0], np.zeros(n)), {(0, 1): 0.0} if n == 2 else {})


def test_box_join__refuses_more_pairs_than_allowed():
    boxes = np.zeros((20, 2)), np.ones((20, 2))
    assert len(box_join(boxes, max_pairs=190).left) == 190
    with pytest.raises(BudgetError, match="more than max_pairs = 189 pairs within eps = 0"):
        box_join(boxes, max_pairs=189)
    with pytest.raises(BudgetError, match="max_pairs = 189 pairs within half the sum of their eps"):
        ball_join(boxes[0], np.ones(20), max_pairs=189)
    batches = iter_box_join(boxes, max_pairs=100, batch_rows=60)
    assert len(next(batches).left) == 60
    with pytest.raises(BudgetError):
        next(batches)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_box_join__reports_progress_to_the_end(n_jobs):
    lower, upper, _ = twin.awkward_boxes("small", 150, 2, 5)
    calls: list[float] = []
    with many_cuts():
        batches = iter_box_join(
            (lower, upper),
            n_jobs=n_jobs,
            batch_rows=2,
            progress=calls.append,
        )
        assert len(list(batches)) > 2
    assert len(calls) > 3
    assert calls == sorted(set(calls))
    assert calls[-1] == 1.0


ONE = [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("given_arguments", "options", "message"),
    [
        ([([[0.0, 1.0], [2.0, 3.0]], [[0.0, 1.0], [2.0, 2.5]])], {}, "in row 1, column 1 3.0 is above 2.5"),
        ([([[0.0, math.nan]], ONE)], {}, "left.lower must be finite; row 0, column 1 is nan"),
        ([(ONE, ONE), (ONE, [[math.inf, 0.0]])], {}, "right.upper must be finite; row 0, column 0 is inf"),
        ([(ONE, ONE), ([[0.0]], [[0.0]])], {}, "as many dimensions, not 2 and 1"),
        ([(ONE, [[0.0]])], {}, r"left.lower and left.upper must have one shape, not \(1, 2\) and \(1, 1\)"),
        ([(np.empty((3, 0)), np.empty((3, 0)))], {}, r"left.lower must have the shape \(n, d\)"),
        ([([0.0], [0.0])], {}, r"left.lower must have the shape \(n, d\)"),
        ([([["a"]], [["b"]])], {}, "left.lower must be floats of at most 64 bits or integers"),
        ([np.zeros((2, 3, 2))], {}, "left must be Boxes"),
        ([(ONE, ONE, ONE)], {}, "left must be Boxes"),
        ([(ONE, ONE)], {"eps": -1.0}, "eps must be a finite number of at least 0, not -1.0"),
        ([(ONE, ONE)], {"eps": math.nan}, "eps must be a finite number of at least 0, not nan"),
        ([(ONE, ONE)], {"eps": math.inf}, "eps must be a finite number"),
        ([(ONE, ONE)], {"eps": 1e-200}, "too small or too large for exact euclidean"),
        ([(ONE, ONE)], {"eps": True}, "eps must be"),
        ([(ONE, ONE)], {"metric": "l2"}, "unknown metric 'l2'"),
        ([(ONE, ONE)], {"metric": "cosine"}, "metric must be .* for boxes, not cosine"),
        ([(ONE, ONE)], {"metric": "haversine"}, "metric must be .* for boxes, not haversine"),
        ([(ONE, ONE)], {"n_jobs": 0}, "n_jobs must be"),
        ([(ONE, ONE)], {"max_pairs": -1}, "max_pairs must be"),
        ([(ONE, ONE)], {"sample_rows": 0}, "sample_rows must be"),
        ([(ONE, ONE)], {"batch_rows": 0}, "batch_rows must be"),
        ([(ONE, ONE)], {"replication_budget": 0.5}, "replication_budget must be .* at least 1, not 0.5"),
        ([(ONE, ONE)], {"replication_budget": math.inf}, "replication_budget must be a finite number"),
    ],
)
def test_iter_box_join__says_what_is_wrong_at_the_call(given_arguments, options, message):
    with pytest.raises(ArgumentError, match=message):
        iter_box_join(*given_arguments, **options)


@pytest.mark.parametrize(
    ("given_arguments", "options", "message"),
    [
        ([ONE, 1.0], {}, r"eps_of_each must be one number per row, 1, not float64 \(\)"),
        ([ONE, [1.0, 2.0]], {}, r"eps_of_each must be one number per row, 1, not float64 \(2,\)"),
        ([ONE, ["a"]], {}, "eps_of_each must be one number per row"),
        ([ONE * 2, [1.0, -2.0]], {}, "eps_of_each must be finite and at least 0; row 1 is -2.0"),
        ([ONE * 2, [math.nan, 1.0]], {}, "eps_of_each must be finite and at least 0; row 0 is nan"),
        ([ONE * 3, [1.0, 0.0, 1.5e-150]], {}, "eps_of_each: row 2 is 1.5e-150, too small or too large"),
        ([ONE * 2, [1.0, 1e151]], {}, "eps_of_each: row 1 is 1e[+]151, too small or too large"),
        ([ONE, [1.0], ONE], {}, "right and right_eps belong together"),
        ([ONE, [1.0], None, [1.0]], {}, "right and right_eps belong together"),
        ([ONE, [1.0], ONE, [-1.0]], {}, "right_eps must be finite and at least 0; row 0 is -1.0"),
        ([ONE, [1.0], [[0.0]], [1.0]], {}, "as many dimensions, not 2 and 1"),
        ([[[math.inf]], [1.0]], {}, "points must be finite; row 0, column 0 is inf"),
        ([ONE, [1.0], [0.0], [1.0]], {}, r"right must have the shape \(n, d\)"),
        ([ONE, [1.0]], {"metric": "cosine"}, "cosine needs vectors with a length"),
        ([[[91.0, 0.0]], [1.0]], {"metric": "haversine"}, "haversine needs a latitude"),
        ([ONE, [1.0]], {"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_iter_ball_join__says_what_is_wrong_at_the_call(given_arguments, options, message):
    with pytest.raises(ArgumentError, match=message):
        iter_ball_join(*given_arguments, **options)


def test_iter_ball_join__gives_what_ball_join_gives():
    points = np.random.default_rng(0).random((50, 2))
    of_each = np.linspace(0.0, 0.4, 50)
    batches = list(iter_ball_join(points, of_each, batch_rows=7))
    assert max(len(pairs.left) for pairs in batches) == 7
    found = sorted(
        zip(*(np.concatenate(column).tolist() for column in zip(*batches, strict=True)), strict=True)
    )
    assert found == list(zip(*(column.tolist() for column in ball_join(points, of_each)), strict=True))
