"""The self join equals brute force: no pair missed, none twice, none too far."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.kernels.distances import EARTH_RADIUS_KM
from epsjoin.local.join.arrays import iter_self_join, join, self_join
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.rules import OwnRule, max_split_level, max_splits_per_level
from epsjoin.local.plan.spread import replicate
from oracles import examples
from oracles import join as twin

SEEDS = st.integers(0, 10**6)


def found_pairs(pairs):
    return list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))


CUT_FIELDS = ("n_parts", "k", "msl", "replication_budget", "sample_rows", "seed")


def join_by(points, eps, metric="euclidean", cuts=None, **options):
    """The self join in one part, or cut as the options say."""
    fields = {name: options.pop(name) for name in CUT_FIELDS if name in options}
    if cuts is not None or fields:
        options["cuts"] = Cuts(cuts or "planned", **fields)
    return self_join(points, eps, metric, **options)


def assert_is_brute_force(points, eps, metric="euclidean", p=0.0, **options):
    expected = twin.brute_force(points, eps, metric, p)
    if metric == "minkowski":
        metric = get_metric("minkowski", p)
    pairs = join_by(points, eps, metric, **options)
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
    pairs = join_by(points, eps, cuts=cuts, n_parts=5, k=2, msl=9)
    at_eps = int((pairs.distance == eps).sum())
    # 3-4-5: 12 vectors of length 5; along the axes 84 neighbours at 1 and 28 pairs at 5
    assert at_eps == (84 if eps == 1.0 else 28 + 2 * 2 * 4 * 3)


def test_self_join__loses_no_tie_on_a_cut():
    # two cubes that touch in one point, which lies on the first cut
    points = np.array([[0.0], [0.375], [0.625], [1.0]])
    for k in (0, 1):
        assert found_pairs(join_by(points, 0.25, cuts="regular", k=k)) == [(1, 2)]


@examples(60)
@given(st.sampled_from(["planned", "regular"]), st.integers(0, 5), SEEDS)
def test_self_join__does_not_depend_on_rows_ids_parts_or_seed(cuts, n_cuts, seed):
    random = np.random.default_rng(seed)
    points, eps = twin.awkward_points("hot", 60, 3, seed)
    ids = random.choice(10**6, 60, replace=False) - 500_000
    reference = join_by(points, eps, ids=ids)
    order = random.permutation(60)
    again = join_by(
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
    pairs = join_by(points, eps, cuts=cuts, n_parts=4)
    mirrored = join_by(-points[:, ::-1], eps, cuts=cuts, n_parts=4)
    assert found_pairs(pairs) == found_pairs(mirrored)


@pytest.mark.parametrize(
    "convert",
    [lambda x: x.astype(np.float32), lambda x: x.astype(np.int16), np.asfortranarray, np.ndarray.tolist],
)
def test_self_join__takes_any_array_and_does_not_modify_it(convert):
    points = np.random.default_rng(0).integers(0, 20, (50, 3)).astype(np.float64)
    given_points = convert(points)
    before = np.array(given_points, copy=True)
    assert found_pairs(join_by(given_points, 3.0)) == sorted(twin.brute_force(points, 3.0))
    assert (np.array(given_points) == before).all()


def test_self_join__takes_a_view_with_steps_and_a_read_only_array():
    points = np.random.default_rng(0).random((80, 6))
    points.setflags(write=False)
    view = points[::2, ::-2]
    assert found_pairs(join_by(view, 0.3)) == sorted(twin.brute_force(view, 0.3))


@pytest.mark.parametrize("cuts", ["planned", "regular"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_self_join__takes_few_points(cuts, n):
    pairs = join_by(np.zeros((n, 4)), 0.5, cuts=cuts, n_parts=3)
    assert found_pairs(pairs) == [(0, 1)][: n // 2]
    assert pairs.left.dtype == pairs.right.dtype == np.int64
    assert pairs.distance.dtype == np.float64


def test_iter_self_join__keeps_to_its_batches():
    points = np.zeros((60, 2))
    batches = list(iter_self_join(points, 1.0, batch_rows=100))
    assert max(len(batch.left) for batch in batches) <= 100
    assert len(batches) <= 1770 / (100 - 31) + 1
    found = [pair for batch in batches for pair in found_pairs(batch)]
    assert sorted(found) == [(i, j) for i in range(60) for j in range(i + 1, 60)]


def test_self_join__is_refused_beyond_max_pairs():
    points = np.zeros((20, 2))
    assert len(join_by(points, 1.0, max_pairs=190).left) == 190
    with pytest.raises(BudgetError, match="more than max_pairs = 189 pairs"):
        join_by(points, 1.0, max_pairs=189)


def test_self_join__counts_its_work():
    counters: dict[str, int] = {"pairs": 1}
    points = np.random.default_rng(0).random((300, 2))
    pairs = join_by(points, 0.05, n_parts=4, counters=counters)
    assert counters["pairs"] == len(pairs.left) + 1
    assert counters["rows"] > 300
    assert counters["candidates"] >= counters["distance_computations"] >= len(pairs.left)
    assert set(counters) == {
        *("rows", "carried_rows", "candidates", "distance_computations", "largest_stack", "pairs")
    }


def test_self_join__unlimited_splitting_is_refused_before_memory_ends():
    points = np.random.default_rng(0).random((30, 60))
    with pytest.raises(BudgetError, match="more than 1048576 rows"):
        join_by(points, 0.45, "chebyshev", cuts="regular", k=60, msl=62, replication_budget=math.inf)


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        ([[0.0, 1.0], [math.nan, 0.0]], {}, "row 1, column 0 is nan"),
        ([[0.0, math.inf]], {}, "row 0, column 1 is inf"),
        ([0.0, 1.0], {}, r"shape \(n, d\)"),
        (np.empty((3, 0)), {}, r"shape \(n, d\)"),
        ([["a"]], {}, "floats of at most 64 bits or integers"),
        ([[1, 2**53 + 1]], {}, "row 0, column 1 is 9007199254740993"),
        ([[0.0]], {"eps": 0.0}, "eps must be a finite number above 0"),
        ([[0.0]], {"eps": -1.0}, "eps must be"),
        ([[0.0]], {"eps": math.inf}, "eps must be"),
        ([[0.0]], {"metric": "l2"}, "unknown metric 'l2'"),
        ([[0.0]], {"cuts": "other"}, "cuts must be one of planned, regular"),
        ([[0.0]], {"n_parts": 0}, "n_parts must be a whole number, at least 1, not 0"),
        ([[0.0]], {"k": -1}, "k must be"),
        ([[0.0]], {"msl": -1}, "msl must be"),
        ([[0.0]], {"replication_budget": 0.9}, "replication_budget must be"),
        ([[0.0]], {"ids": [1, 2]}, "ids must be one per point, 1, not 2"),
        ([[0.0]], {"ids": [0.5]}, "ids must be a one-dimensional array of int64"),
        ([[0.0]], {"ids": np.array([2**63], np.uint64)}, "ids must be a one-dimensional array of int64"),
        ([[0.0]], {"sample_rows": 0}, "sample_rows must be"),
        ([[0.0, 0.0, 0.0]], {"metric": "haversine"}, "haversine needs 2 coordinates"),
        ([[True], [False]], {}, "points must be floats of at most 64 bits or integers, not bool"),
        ([[1j]], {}, "points must be floats of at most 64 bits or integers, not complex128"),
        (np.array([[2**53], [2**53 + 1]], np.uint64), {}, "float64 can hold; row 1, column 0 is 900"),
        ([[-(2**53) - 1]], {}, "float64 can hold; row 0, column 0 is -9007199254740993"),
        ([[0.0]], {"max_pairs": -1}, "max_pairs must be a whole number, at least 0, not -1"),
        ([[0.0]], {"max_pairs": 1.5}, "max_pairs must be a whole number"),
        ([[0.0]], {"n_jobs": 0}, "n_jobs must be a whole number, at least 1, not 0"),
        ([[0.0]], {"n_jobs": True}, "n_jobs must be a whole number, at least 1, not True"),
        ([[0.0]], {"metric": "minkowski"}, "minkowski needs a finite p of at least 1, not None"),
        ([[0.0]], {"eps": True}, "eps must be a finite number above 0, not True"),
        (
            [[0.0, 0.0]],
            {"eps": [1.0]},
            r"eps must be one number, or one per dimension \(2\), finite and above",
        ),
        (
            [[0.0, 0.0]],
            {"eps": [1.0, -1.0]},
            r"one per dimension \(2\), finite and above 0, not \[1.0, -1.0\]",
        ),
        ([[0.0, 0.0]], {"eps": [1.0, math.inf]}, r"one per dimension \(2\), finite and above 0"),
        ([[0.0, 0.0]], {"eps": [1.0, 1e-310]}, "must have a quotient that float64 can hold"),
        (
            [[0.0, 1e300]],
            {"eps": [1.0, 1e-20]},
            "divided by eps per dimension, times weights, must be finite",
        ),
        ([[0.0, 0.0]], {"eps": [1.0, 1.0], "metric": "cosine"}, "cosine has no eps per dimension"),
        ([[0.0, 0.0]], {"eps": [1.0, 1.0], "metric": "haversine"}, "haversine has no eps per dimension"),
        ([[0.0, 0.0]], {"weights": [1.0]}, r"weights must be one per dimension \(2\), finite and at least 0"),
        ([[0.0, 0.0]], {"weights": [1.0, -1.0]}, "weights must be .* at least 0, not "),
        ([[0.0, 0.0]], {"weights": [1.0, math.nan]}, "weights must be .* finite"),
        ([[0.0, 0.0]], {"weights": 2.0}, r"weights must be one per dimension \(2\).* not 2.0"),
        ([[1.0, 0.0]], {"weights": [1.0, 1.0], "metric": "cosine"}, "cosine has no .* and no weights"),
        (
            [[1.0, 0.0], [0.0, 0.0]],
            {"metric": "cosine"},
            "points: cosine needs vectors .*; row 1 breaks this",
        ),
        (
            [[0.0, 0.0], [-90.1, 0.0]],
            {"metric": "haversine"},
            "haversine needs a latitude from .*; row 1 breaks",
        ),
    ],
)
def test_self_join__says_what_is_wrong(points, options, message):
    with pytest.raises(ArgumentError, match=message):
        join_by(points, **{"eps": 1.0, **options})


def test_iter_self_join__says_what_is_wrong_at_the_call():
    with pytest.raises(ArgumentError, match="batch_rows"):
        iter_self_join([[0.0]], 1.0, batch_rows=31)


RULES = {
    "or": Cuts("regular", rule="k<=1 or level<=1", replication_budget=9.0, n_parts=3),
    "not": Cuts("regular", rule="not k<=1", replication_budget=7.9),
    "not, local": Cuts("regular", rule="not level<1", replication_budget=5.0, decisions="local", n_parts=2),
    "own": Cuts(
        "regular", rule=OwnRule(lambda level, _crossed, rows: (level + rows) % 2 == 0), replication_budget=6.0
    ),
    "own, local": Cuts(
        "regular", rule=OwnRule(lambda *_: True), replication_budget=11.0, decisions="local", n_parts=4
    ),
    "own and not": Cuts(
        "regular",
        rule=~OwnRule(lambda _level, crossed, _rows: crossed > 2) & ~max_split_level(0)
        | max_splits_per_level(1),
        replication_budget=4.0,
    ),
}


@pytest.mark.parametrize("rule", RULES)
@examples(25)
@given(st.sampled_from(twin.KINDS), st.integers(0, 50), st.integers(1, 4), st.sampled_from([1, 2]), SEEDS)
def test_self_join__by_any_rule_is_brute_force_within_the_budget(rule, kind, n, d, n_jobs, seed):
    points, eps = twin.awkward_points(kind, n, d, seed)
    cuts = RULES[rule]
    counters: dict[str, int] = {}
    pairs = self_join(points, eps, cuts=cuts, n_jobs=n_jobs, counters=counters)
    assert found_pairs(pairs) == sorted(twin.brute_force(points, eps))
    budget = math.floor(cuts.replication_budget)
    assert n <= counters["rows"] - counters["carried_rows"] <= budget * n
    plan = plan_join(points, np.arange(n), n, eps, get_metric("euclidean"), cuts)
    rows = replicate(points, np.arange(n), plan)
    assert counters["rows"] == len(rows.row)
    if cuts.n_parts == 1:
        assert np.bincount(rows.row, minlength=n).max(initial=0) <= budget


@pytest.mark.parametrize("rule", RULES)
def test_self_join__by_any_rule_spends_its_budget(rule):
    counters: dict[str, int] = {}
    self_join(np.random.default_rng(7).random((200, 4)), 0.2, cuts=RULES[rule], counters=counters)
    assert counters["rows"] - counters["carried_rows"] > 1.5 * 200


METRIC_WORDS = {"euclidean": "euclidean", "manhattan": "cityblock", "chebyshev": "chebyshev"}


def of_name(metric):
    return get_metric("minkowski", 3.0) if metric == "minkowski" else metric


@examples(150)
@given(
    st.sampled_from([*METRIC_WORDS, "minkowski"]),
    st.sampled_from(["uniform", "lattice", "dyadic", "few", "mixed_scale"]),
    st.integers(0, 40),
    st.integers(1, 4),
    st.sampled_from([None, Cuts(n_parts=3), Cuts("regular", k=2)]),
    SEEDS,
)
def test_self_join__with_eps_per_dimension_is_brute_force_in_units_of_eps(metric, kind, n, d, cuts, seed):
    points, one = twin.awkward_points(kind, n, d, seed)
    eps = one * np.random.default_rng(seed).choice([0.5, 1.0, 1.5, 4.0], d)
    expected = twin.brute_force(points / eps, 1.0, metric, 3.0)
    pairs = self_join(points, eps.tolist(), of_name(metric), cuts=cuts)
    assert found_pairs(pairs) == sorted(expected)
    assert pairs.distance.tolist() == pytest.approx([expected[pair] for pair in sorted(expected)], rel=1e-12)


@examples(100)
@given(
    st.sampled_from([*METRIC_WORDS, "minkowski"]), st.integers(2, 60), st.integers(1, 5), st.booleans(), SEEDS
)
def test_self_join__with_weights_is_that_of_scipy(metric, n, d, has_zero, seed):
    random = np.random.default_rng(seed)
    points, weights = random.random((n, d)), random.uniform(0.1, 5.0, d)
    if has_zero:
        weights[random.integers(d)] = 0.0
    if metric == "minkowski":
        distances = cdist(points, points, "minkowski", p=3.0, w=weights)
    elif metric == "chebyshev":  # for SciPy weights there only say which dimensions count
        distances = (np.abs(points[:, None] - points) * weights).max(axis=2)
    else:
        distances = cdist(points, points, METRIC_WORDS[metric], w=weights)
    eps = float(np.quantile(distances, 0.3)) + 1e-4
    rows, others = np.triu_indices(n, 1)
    distances = distances[rows, others]
    sure = np.abs(distances - eps) > 1e-9 * eps
    pairs = self_join(points, eps, of_name(metric), weights=weights)
    expected = distances <= eps
    if sure.all():
        assert found_pairs(pairs) == list(
            zip(rows[expected].tolist(), others[expected].tolist(), strict=True)
        )
        assert pairs.distance == pytest.approx(distances[expected], rel=1e-9, abs=1e-15)
    assert sure.mean() > 0.9


def test_self_join__with_chebyshev_weights_of_zero_and_one_is_that_of_scipy():
    points = np.random.default_rng(2).random((50, 4))
    weights = [1.0, 0.0, 1.0, 0.0]
    distances = cdist(points, points, "chebyshev", w=weights)
    rows, others = np.nonzero(np.triu(distances <= 0.2, 1))
    pairs = self_join(points, 0.2, "chebyshev", weights=weights)
    assert found_pairs(pairs) == list(zip(rows.tolist(), others.tolist(), strict=True))


def test_self_join__with_weights_of_zero_alone_has_all_pairs_at_0():
    pairs = self_join(np.random.default_rng(2).random((20, 3)), 1e-9, weights=[0, 0, 0])
    assert len(pairs.left) == 190
    assert not pairs.distance.any()


def test_self_join__with_weights_and_eps_per_dimension_multiplies_both():
    points = np.random.default_rng(4).random((80, 3))
    eps, weights = np.array([0.5, 0.25, 1.0]), np.array([4.0, 1.0, 0.25])
    expected = twin.brute_force(points * np.sqrt(weights) / eps, 1.0)
    assert found_pairs(self_join(points, eps, weights=weights)) == sorted(expected)
    assert 20 < len(expected) < 3000


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_self_join__takes_numbers_of_any_size(dtype):
    points = np.random.default_rng(0).integers(0, 100, (60, 3))
    given_points = points.astype(dtype)
    assert found_pairs(self_join(given_points, 15.0)) == sorted(twin.brute_force(points, 15.0))
    assert (given_points == points).all()
    assert given_points.dtype == dtype


def test_self_join__does_not_wrap_small_integers():
    points = np.array([[-128, 0], [127, 0]], np.int8)
    assert found_pairs(self_join(points, 254.0)) == []
    assert found_pairs(self_join(points, 255.0)) == [(0, 1)]


def test_self_join__modifies_nothing_that_it_is_given():
    points, ids = np.random.default_rng(0).random((200, 3)), np.arange(200)[::-1].copy()
    eps, weights = np.array([0.2, 0.3, 0.1]), np.array([1.0, 2.0, 0.0])
    given_arrays = points, ids, eps, weights
    before = [array.copy() for array in given_arrays]
    for array in given_arrays:
        array.setflags(write=False)
    for cuts in (None, Cuts(n_parts=3), Cuts("regular")):
        self_join(points, eps, weights=weights, ids=ids, cuts=cuts)
        join(points, points, 0.1, cuts=cuts)
    for array, old in zip(given_arrays, before, strict=True):
        assert (array == old).all()


def test_self_join__allows_no_pairs():
    assert len(self_join([[0.0], [9.0]], 1.0, max_pairs=0).left) == 0
    with pytest.raises(
        BudgetError, match=r"more than max_pairs = 0 pairs within eps = 1; about 1 are expected"
    ):
        self_join([[0.0], [1.0]], 1.0, max_pairs=0)


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
