"""The join of two tables equals brute force, whichever rows it keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.join.arrays import HOW, iter_join, join, self_join
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.split_rules.own_rule import OwnRule
from epsjoin.local.sweep import sweeping
from oracles import examples
from oracles import join as twin
from tests.local.join.brute_force import as_metric, found_pairs

SEEDS = st.integers(0, 10**6)
OFTEN = OwnRule(lambda level, crossed, rows: (level + crossed + rows) % 3 != 0)
CUTS = {
    "none": None,
    "planned": Cuts(),
    "planned 7": Cuts(n_parts=7, replication_budget=1e9),
    "regular": Cuts("regular", n_parts=3, k=2, msl=3),
    "text": Cuts("regular", n_parts=2, rule="k<=1 or not level>2", replication_budget=8.0),
    "local": Cuts("regular", n_parts=4, rule="not k>2", decisions="local"),
    "own": Cuts("regular", n_parts=5, rule=OFTEN, replication_budget=6.5),
}


@examples(300)
@given(
    st.sampled_from(HOW),
    st.sampled_from([(kind, "euclidean") for kind in twin.KINDS])
    | st.tuples(
        st.sampled_from(["uniform", "lattice", "dyadic", "few", "hot", "constant"]),
        st.sampled_from(["manhattan", "chebyshev", "minkowski", "cosine"]),
    ),
    st.tuples(st.integers(0, 40), st.integers(0, 40)),
    st.integers(1, 4),
    st.sampled_from(sorted(CUTS)),
    st.sampled_from([1, 2]),
    SEEDS,
)
def test_join__is_brute_force(how, kind, sizes, d, cuts, n_jobs, seed):
    (kind, metric), (n_left, n_right) = kind, sizes
    points, eps = twin.awkward_points(kind, n_left + n_right, d, seed)
    points = points[np.random.default_rng(seed).permutation(len(points))]
    if metric == "cosine":
        points, eps = points + 0.01, eps / 100
    left, right = points[:n_left], points[n_left:]
    pairs = twin.between(left, right, eps, metric, 3.0)
    expected = twin.joined(pairs, n_left, n_right, how)
    options = {"how": how, "cuts": CUTS[cuts], "n_jobs": n_jobs}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeping, "_CHUNK_ROWS", 7)  # many chunks of few rows: work for two threads
        found = join(left, right, eps, as_metric(metric), **options)
        if how in ("semi", "anti"):
            assert found.left.tolist() == [row for row, _ in expected]
            assert found.left.dtype == np.int64
            return
        batches = list(iter_join(left, right, eps, as_metric(metric), batch_rows=32, **options))
    assert found_pairs(found) == expected
    distances = [pairs.get(pair, math.nan) for pair in expected]
    np.testing.assert_allclose(found.distance, distances, rtol=1e-12, atol=0.0, equal_nan=True)
    assert [column.dtype for column in found] == [np.int64, np.int64, np.float64]
    assert sorted(pair for batch in batches for pair in found_pairs(batch)) == sorted(expected)
    assert all(len(batch.left) for batch in batches)
    n_lonely = len(expected) - len(pairs)
    if n_lonely:
        assert found_pairs(batches[-1]) == expected[-n_lonely:]


@pytest.mark.parametrize("cuts", CUTS)
def test_join__of_a_table_with_itself_holds_the_self_join_both_ways(cuts):
    points, eps = twin.awkward_points("lattice", 70, 2, 3)
    both = found_pairs(join(points, points, eps, cuts=CUTS[cuts]))
    one_way = found_pairs(self_join(points, eps, cuts=CUTS[cuts]))
    assert [pair for pair in both if pair[0] < pair[1]] == one_way
    assert len(both) == 2 * len(one_way) + len(points)


@pytest.mark.parametrize("cuts", CUTS)
def test_join__on_the_sphere_is_brute_force(cuts):
    random = np.random.default_rng(8)
    points = np.stack((90.0 - np.abs(random.normal(size=80)) * 5, random.uniform(-180, 180, 80)), 1)
    points[40:, 0] -= 2.0
    expected = twin.between(points[:50], points[50:], 400.0, "haversine")
    assert 50 < len(expected) < 1400
    assert found_pairs(join(points[:50], points[50:], 400.0, "haversine", cuts=CUTS[cuts])) == sorted(
        expected
    )


def test_join__with_eps_per_dimension_is_brute_force():
    random = np.random.default_rng(5)
    left, right, eps = random.integers(0, 12, (60, 3)), random.integers(0, 12, (50, 3)), [4.0, 0.5, 8.0]
    expected = twin.between(left / np.array(eps), right / np.array(eps), 1.0)
    assert found_pairs(join(left, right, eps)) == sorted(expected)
    assert len(expected) > 30


@pytest.mark.parametrize(
    "convert", [np.float32, np.int8, np.uint8, np.int64, np.asfortranarray, np.ndarray.tolist]
)
def test_join__takes_tables_of_different_types_and_modifies_none(convert):
    random = np.random.default_rng(6)
    left, right = random.integers(0, 20, (40, 2)).astype(np.float64), random.integers(0, 20, (30, 2))
    given_left = convert(left) if not isinstance(convert, type) else left.astype(convert)
    before = np.array(given_left, copy=True), right.copy()
    assert found_pairs(join(given_left, right, 3.0)) == sorted(twin.between(left, right, 3.0))
    assert (np.array(given_left) == before[0]).all()
    assert (right == before[1]).all()


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("how", HOW)
def test_join__takes_empty_tables(how, cuts):
    some, none = np.zeros((3, 2)), np.zeros((0, 2))
    for left, right in ((some, none), (none, some), (none, none)):
        found = join(left, right, 1.0, how=how, cuts=CUTS[cuts])
        expected = twin.joined([], len(left), len(right), how)
        assert found.left.tolist() == [row for row, _ in expected]
        if how not in ("semi", "anti"):
            assert found.right.tolist() == [row for _, row in expected]


def test_join__counts_all_its_work_whatever_the_threads():
    points = np.random.default_rng(2).random((30_000, 2))
    counted = []
    for n_jobs in (1, 3):
        counters: dict[str, int] = {}
        pairs = join(points[:10_000], points[10_000:], 0.004, n_jobs=n_jobs, counters=counters)
        counted.append((counters, [column.tolist() for column in pairs]))
    assert counted[0] == counted[1]
    assert counted[0][0]["pairs"] == len(counted[0][1][0]) > 1000
    assert counted[0][0]["rows"] == 30_000


def test_join__tells_how_many_pairs_between_the_tables_are_expected():
    # each table alone has five million pairs; between them there are 10,000
    left = np.zeros((3000, 1))
    right = np.full((3000, 1), 10.0)
    right[:10] = 0.0
    assert len(join(left, right, 1.0, max_pairs=30_000).left) == 30_000
    with pytest.raises(
        BudgetError, match=r"more than max_pairs = 29999 pairs within eps = 1; about 3e\+04 are"
    ):
        join(left, right, 1.0, max_pairs=29_999)
    assert len(join(left, right, 1.0, how="anti", max_pairs=0, cuts=Cuts(n_parts=3)).left) == 0


def test_join__expects_from_a_sample_what_there_is():
    random = np.random.default_rng(1)
    left, right = random.random((60_000, 2)), random.random((40_000, 2))
    with pytest.raises(BudgetError, match="about ") as refused:
        join(left, right, 0.01, max_pairs=0)
    expected = 60_000 * 40_000 * math.pi * 0.01**2
    assert float(str(refused.value).split("about ")[1].split()[0]) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("left", "right", "options", "message"),
    [
        ([[0.0]], [[0.0, 1.0]], {}, "left and right must have the same dimensions, not 1 and 2"),
        ([[math.nan]], [[0.0]], {}, "left must be finite; row 0, column 0 is nan"),
        ([[0.0, 1.0]], [[0.0, 1.0], [2.0, -math.inf]], {}, "right must be finite; row 1, column 1 is -inf"),
        (
            [[0]],
            [[0], [2**53 + 1]],
            {},
            "right must be integers that float64 can hold; row 1, column 0 is 9007199254740993",
        ),
        ([[1j]], [[0.0]], {}, "left must be floats of at most 64 bits or integers, not complex128"),
        ([[0.0]], [0.0], {}, r"right must have the shape \(n, d\)"),
        (
            [[0.0]],
            [[0.0]],
            {"how": "cross"},
            "how must be one of inner, left, right, outer, semi, anti, not 'cro",
        ),
        ([[0.0]], [[0.0]], {"n_jobs": 0}, "n_jobs must be a whole number, at least 1, not 0"),
        ([[0.0]], [[0.0]], {"max_pairs": -1}, "max_pairs must be a whole number, at least 0, not -1"),
        ([[0.0]], [[0.0]], {"metric": "minkowski"}, "minkowski needs a finite p of at least 1"),
        ([[0.0]], [[0.0]], {"progress": "yes"}, "progress must be True, False or a function, not 'yes'"),
        ([[0.0]], [[0.0]], {"cuts": "planned"}, r"cuts must be epsjoin.Cuts\(...\) or None, not 'planned'"),
        ([[1.0, 1]], [[1.0, 1], [0.0, 0]], {"metric": "cosine"}, "right: cosine needs .*; row 1 breaks this"),
        ([[1.0, 1], [0.0, 0]], [[1.0, 1]], {"metric": "cosine"}, "left: cosine needs .*; row 1 breaks this"),
        (
            [[0.0, 0]],
            [[91.0, 0]],
            {"metric": "haversine"},
            "right: haversine needs a latitude .*; row 0 breaks",
        ),
        ([[0.0, 0]], [[0.0, 0]], {"eps": [1.0, 0.0]}, r"eps must be one number, or one per dimension \(2\)"),
    ],
)
def test_join__says_what_is_wrong(left, right, options, message):
    options = {"eps": 1.0, **options}
    eps = options.pop("eps")
    with pytest.raises(ArgumentError, match=message):
        join(left, right, eps, **options)
    with pytest.raises(ArgumentError, match=message):
        iter_join(left, right, eps, **options)


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_iter_join__has_no_batches_of_rows(how):
    with pytest.raises(ArgumentError, match=f"how = '{how}' returns rows, not batches of pairs: call join"):
        iter_join([[0.0]], [[0.0]], 1.0, how=how)
