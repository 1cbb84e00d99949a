"""The self join equals brute force: no pair missed, none twice, none too far."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.join import iter_self_join, self_join
from epsjoin.local.metric import get_metric
from oracles import examples
from oracles import join as twin

SEEDS = st.integers(0, 10**6)


def found_pairs(pairs):
    return list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))


def assert_is_brute_force(points, eps, metric="euclidean", p=0.0, **options):
    expected = twin.brute_force(points, eps, metric, p)
    if metric == "minkowski":
        metric = get_metric("minkowski", p)
    pairs = self_join(points, eps, metric, **options)
    assert found_pairs(pairs) == sorted(expected)
    assert pairs.distance.tolist() == pytest.approx([expected[pair] for pair in sorted(expected)], rel=1e-12)


@examples(250)
@given(
    st.sampled_from(twin.KINDS), st.integers(0, 60), st.integers(1, 8), st.sampled_from([1, 2, 7, 64]), SEEDS
)
def test_self_join__planned_is_brute_force(kind, n, d, n_parts, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    assert_is_brute_force(points, eps, n_parts=n_parts, replication_budget=1e9)


@examples(250)
@given(
    st.sampled_from(twin.KINDS),
    st.integers(0, 60),
    st.integers(1, 6),
    st.sampled_from([1, 2, 7, 64]),
    st.integers(0, 6),
    st.integers(0, 62),
    st.sampled_from([1.0, 2.0, 4.0, 5.5, 64.0]),
    SEEDS,
)
def test_self_join__regular_is_brute_force(kind, n, d, n_parts, k, msl, budget, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    assert_is_brute_force(
        points, eps, cuts="regular", n_parts=n_parts, k=k, msl=msl, replication_budget=budget
    )


@pytest.mark.parametrize("kind", twin.KINDS)
@pytest.mark.parametrize(("k", "msl"), [(0, 0), (2, 62)], ids=["MSJ", "ORE"])
def test_self_join__by_msj_and_ore_is_brute_force(kind, k, msl):
    points, eps = twin.awkward_points(kind, 80, 2, 11)
    if kind in ("far", "tiny_eps", "mixed_scale"):
        points = points[:30]
    for n_parts in (1, 5):
        assert_is_brute_force(
            points, eps, cuts="regular", n_parts=n_parts, k=k, msl=msl, replication_budget=math.inf
        )


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


@pytest.mark.parametrize("cuts", ["planned", "regular"])
def test_self_join__finds_directions_that_the_cosine_cannot_tell_apart(cuts):
    # 1 - cos rounds to 0 here, while the chord of 1e-8 is far above sqrt(2 eps)
    points = np.array([[1.0, 0.0], [1.0, 1e-8], [0.0, 1.0]])
    assert found_pairs(self_join(points, 1e-18, "cosine", cuts=cuts)) == [(0, 1)]


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


@pytest.mark.parametrize("d", [16, 64, 100, 512])
@pytest.mark.parametrize("cuts", ["planned", "regular"])
def test_self_join__in_many_dimensions_is_brute_force(d, cuts):
    random = np.random.default_rng(d)
    centres = random.random((8, d))
    points = centres[random.integers(0, 8, 60)] + random.normal(size=(60, d)) * 0.02
    eps = 0.02 * math.sqrt(2 * d)
    assert 100 < len(twin.brute_force(points, eps)) < 1000
    for n_parts in (1, 7):
        assert_is_brute_force(points, eps, cuts=cuts, n_parts=n_parts, k=3, msl=1)


@pytest.mark.parametrize("cuts", ["planned", "regular"])
@pytest.mark.parametrize("eps", [1.0, 5.0])
def test_self_join__counts_pairs_at_exactly_eps(cuts, eps):
    side = np.arange(7.0)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    pairs = self_join(points, eps, cuts=cuts, n_parts=5, k=2, msl=9)
    at_eps = int((pairs.distance == eps).sum())
    # 3-4-5: 12 vectors of length 5; along the axes 84 neighbours at 1 and 28 pairs at 5
    assert at_eps == (84 if eps == 1.0 else 28 + 2 * 2 * 4 * 3)


def test_self_join__loses_no_tie_on_a_cut():
    # two cubes that touch in one point, which lies on the first cut
    points = np.array([[0.0], [0.375], [0.625], [1.0]])
    for k in (0, 1):
        assert found_pairs(self_join(points, 0.25, cuts="regular", k=k)) == [(1, 2)]


@examples(60)
@given(st.sampled_from(["planned", "regular"]), st.integers(0, 5), SEEDS)
def test_self_join__does_not_depend_on_rows_ids_parts_or_seed(cuts, n_cuts, seed):
    random = np.random.default_rng(seed)
    points, eps = twin.awkward_points("hot", 60, 3, seed)
    ids = random.choice(10**6, 60, replace=False) - 500_000
    reference = self_join(points, eps, ids=ids)
    order = random.permutation(60)
    again = self_join(
        points[order],
        eps,
        ids=ids[order],
        cuts=cuts,
        n_parts=2**n_cuts,
        sample_rows=int(random.integers(1, 70)),
        seed=seed,
        replication_budget=8.0,
    )
    assert (reference.left < reference.right).all()
    for first, second in zip(reference, again, strict=True):
        assert (first == second).all()


@pytest.mark.parametrize("cuts", ["planned", "regular"])
def test_self_join__of_mirrored_points_is_the_same(cuts):
    points, eps = twin.awkward_points("lattice", 60, 3, 4)
    pairs = self_join(points, eps, cuts=cuts, n_parts=4)
    mirrored = self_join(-points[:, ::-1], eps, cuts=cuts, n_parts=4)
    assert found_pairs(pairs) == found_pairs(mirrored)


@pytest.mark.parametrize(
    "convert",
    [lambda x: x.astype(np.float32), lambda x: x.astype(np.int16), np.asfortranarray, np.ndarray.tolist],
)
def test_self_join__takes_any_array_and_does_not_modify_it(convert):
    points = np.random.default_rng(0).integers(0, 20, (50, 3)).astype(np.float64)
    given_points = convert(points)
    before = np.array(given_points, copy=True)
    assert found_pairs(self_join(given_points, 3.0)) == sorted(twin.brute_force(points, 3.0))
    assert (np.array(given_points) == before).all()


def test_self_join__takes_a_view_with_steps_and_a_read_only_array():
    points = np.random.default_rng(0).random((80, 6))
    points.setflags(write=False)
    view = points[::2, ::-2]
    assert found_pairs(self_join(view, 0.3)) == sorted(twin.brute_force(view, 0.3))


@pytest.mark.parametrize("cuts", ["planned", "regular"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_self_join__takes_few_points(cuts, n):
    pairs = self_join(np.zeros((n, 4)), 0.5, cuts=cuts, n_parts=3)
    assert found_pairs(pairs) == [(0, 1)][: n // 2]
    assert pairs.left.dtype == pairs.right.dtype == np.int64
    assert pairs.distance.dtype == np.float64


def test_iter_self_join__keeps_to_its_batches():
    points = np.zeros((60, 2))
    batches = list(iter_self_join(points, 1.0, batch_rows=100))
    assert [len(batch.left) for batch in batches] == [100] * 17 + [70]
    found = [pair for batch in batches for pair in found_pairs(batch)]
    assert sorted(found) == [(i, j) for i in range(60) for j in range(i + 1, 60)]


def test_self_join__is_refused_beyond_max_pairs():
    points = np.zeros((20, 2))
    assert len(self_join(points, 1.0, max_pairs=190).left) == 190
    with pytest.raises(BudgetError, match="more than max_pairs = 189 pairs"):
        self_join(points, 1.0, max_pairs=189)


def test_self_join__counts_its_work():
    counters: dict[str, int] = {"pairs": 1}
    points = np.random.default_rng(0).random((300, 2))
    pairs = self_join(points, 0.05, n_parts=4, counters=counters)
    assert counters["pairs"] == len(pairs.left) + 1
    assert counters["rows"] > 300
    assert counters["candidates"] >= counters["distance_computations"] >= len(pairs.left)
    assert set(counters) == {
        *("rows", "carried_rows", "candidates", "distance_computations", "largest_stack", "pairs")
    }


def test_self_join__unlimited_splitting_is_refused_before_memory_ends():
    points = np.random.default_rng(0).random((30, 60))
    with pytest.raises(BudgetError, match="more than 1048576 rows"):
        self_join(points, 0.45, "chebyshev", cuts="regular", k=60, msl=62, replication_budget=math.inf)


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        ([[0.0, 1.0], [math.nan, 0.0]], {}, "row 1, column 0 is nan"),
        ([[0.0, math.inf]], {}, "row 0, column 1 is inf"),
        ([0.0, 1.0], {}, r"shape \(n, d\)"),
        (np.empty((3, 0)), {}, r"shape \(n, d\)"),
        ([["a"]], {}, "floats or integers"),
        ([[0.0]], {"eps": 0.0}, "eps must be a finite number above 0"),
        ([[0.0]], {"eps": -1.0}, "eps must be"),
        ([[0.0]], {"eps": math.inf}, "eps must be"),
        ([[0.0]], {"metric": "l2"}, "unknown metric 'l2'"),
        ([[0.0]], {"cuts": "other"}, "cuts must be one of planned, regular"),
        ([[0.0]], {"n_parts": 0}, "n_parts must be at least 1"),
        ([[0.0]], {"k": -1}, "k must be"),
        ([[0.0]], {"msl": -1}, "msl must be"),
        ([[0.0]], {"replication_budget": 0.9}, "replication_budget must be"),
        ([[0.0]], {"ids": [1, 2]}, "ids must be one per point, 1, not 2"),
        ([[0.0]], {"ids": [0.5]}, "ids must be a one-dimensional array of int64"),
        ([[0.0]], {"ids": np.array([2**63], np.uint64)}, "ids must be a one-dimensional array of int64"),
        ([[0.0]], {"sample_rows": 0}, "sample_rows must be"),
        ([[0.0, 0.0, 0.0]], {"metric": "haversine"}, "haversine needs 2 coordinates"),
    ],
)
def test_self_join__says_what_is_wrong(points, options, message):
    with pytest.raises(ArgumentError, match=message):
        self_join(points, **{"eps": 1.0, **options})


def test_iter_self_join__says_what_is_wrong_at_the_call():
    with pytest.raises(ArgumentError, match="batch_rows"):
        iter_self_join([[0.0]], 1.0, batch_rows=0)
