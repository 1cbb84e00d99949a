"""What a self join of arrays takes, and by which sentence it refuses the rest."""

from __future__ import annotations

import math
import os
from decimal import Decimal

import numpy as np
import pytest

from epsjoin.errors import ArgumentError
from epsjoin.local.join.arrays import iter_self_join, join, self_join
from epsjoin.local.join.boxes import box_join
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.sweep.sweeping import check_n_jobs
from oracles import join as twin
from tests.local.join.brute_force import found_pairs, join_by


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


@pytest.mark.parametrize("kind", ["planned", "regular"])
def test_cuts__of_numpys_short_integers_are_those_of_pythons(kind):
    counts = {"n_parts": 2, "sample_rows": 100, "most_part_rows": 100}
    if kind == "regular":
        counts |= {"k": 1, "msl": 3}
    short = Cuts(kind, **{name: np.uint8(count) for name, count in counts.items()})
    assert repr(short) == repr(Cuts(kind, **counts))


@pytest.mark.parametrize("name", ["replication_budget", "least_part_seconds"])
def test_cuts__take_a_decimal_as_the_number_that_it_is(name):
    points = np.random.default_rng(0).random((80, 2))
    cuts = Cuts(n_parts=2, **{name: Decimal(2)})
    assert found_pairs(self_join(points, 0.3, cuts=cuts)) == found_pairs(self_join(points, 0.3))


def test_self_join__takes_a_view_with_steps_and_a_read_only_array():
    points = np.random.default_rng(0).random((80, 6))
    points.setflags(write=False)
    view = points[::2, ::-2]
    assert found_pairs(join_by(view, 0.3)) == sorted(twin.brute_force(view, 0.3))


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
        ([[0.0]], {"metric": "l3"}, "unknown metric 'l3'"),
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
        ([[0.0]], {"n_jobs": -2}, "at least 1, not -2; -1 is one thread per processor"),
        ([[0.0]], {"counters": []}, r"counters must be a dictionary, .* not \[\]"),
        (
            [[0.0]],
            {"eps": np.array(0.0)},
            r"above 0, not 0.0; box_join\(\(points, points\)\) finds equal points",
        ),
        ([[0.0]], {"ids": ["a"]}, r"not 1-dimensional <U1; for ids of another type .* names\[pairs.left\]"),
        ([[1j]], {}, "points must be floats of at most 64 bits or integers, not complex128"),
        (np.array([[2**53], [2**53 + 1]], np.uint64), {}, "float64 can hold; row 1, column 0 is 900"),
        ([[-(2**53) - 1]], {}, "float64 can hold; row 0, column 0 is -9007199254740993"),
        ([[0.0]], {"max_pairs": -1}, "max_pairs must be a whole number, at least 0, not -1"),
        ([[0.0]], {"max_pairs": 1.5}, "max_pairs must be a whole number"),
        ([[0.0]], {"n_jobs": 0}, "n_jobs must be a whole number, at least 1, not 0"),
        ([[0.0]], {"n_jobs": True}, "n_jobs must be a whole number, at least 1, not True"),
        (
            [[0.0]],
            {"metric": "minkowski"},
            "minkowski needs a finite p of at least 1, not None; give get_metric",
        ),
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
        (np.zeros((2, 12)), {"eps": [[1.0], [1.0, 2.0]]}, "eps must have rows of one length"),
        ([[0.0, 0.0]], {"eps": [1.0, math.inf]}, r"one per dimension \(2\), finite and above 0"),
        (
            [[0.0, 0.0]],
            {"eps": [1.0, 1e-310]},
            "dimension 1 has eps = 1e-310 and the weight 1: too small or too large for exact euclidean",
        ),
        ([[0.0, 0.0]], {"eps": 1e-100, "weights": [1e300, 1.0]}, "dimension 0 .* weight 1e.300: too small"),
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


def test_batches__may_be_asked_to_be_larger_than_any_array():
    (batch,) = iter_self_join([[0.0], [1.0], [3.0]], 1.0, batch_rows=10**15)
    assert (batch.left.tolist(), batch.right.tolist()) == ([0], [1])


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


@pytest.mark.parametrize("n_jobs", [None, -1, np.int64(2)])
def test_self_join__takes_numbers_of_threads_as_scikit_learn_does(n_jobs):
    points = np.random.default_rng(8).random((5000, 2))
    assert found_pairs(self_join(points, 0.01, n_jobs=n_jobs)) == found_pairs(self_join(points, 0.01))


def test_check_n_jobs__of_minus_one_is_one_thread_per_processor():
    assert check_n_jobs(-1) == len(os.sched_getaffinity(0))
    assert check_n_jobs(None) == 1


@pytest.mark.parametrize("eps", [np.array(0.1), np.float32(0.5), np.array(1)])
def test_self_join__takes_eps_as_an_array_of_one_number(eps):
    points = np.random.default_rng(8).random((50, 2))
    assert found_pairs(self_join(points, eps)) == found_pairs(self_join(points, float(eps)))
    assert found_pairs(box_join((points, points), None, eps)) == found_pairs(self_join(points, float(eps)))


@pytest.mark.parametrize(
    ("alias", "name"), [("l1", "manhattan"), ("cityblock", "manhattan"), ("l2", "euclidean")]
)
def test_self_join__knows_metrics_by_the_names_of_scikit_learn(alias, name):
    assert get_metric(alias) == get_metric(name)
    assert self_join([[0.0], [1.0]], 1.0, alias).distance.tolist() == [1.0]
