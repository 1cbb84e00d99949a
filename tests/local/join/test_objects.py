"""Boxes and balls as arguments: what is taken, and what is refused with a sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsjoin.errors import ArgumentError, BudgetError
from epsjoin.local.join.boxes import ball_join, box_join, iter_ball_join, iter_box_join
from oracles import boxes as twin
from tests.local.join.many_boxes import assert_are, many_cuts


def test_ball_join__takes_pairs_at_exactly_half_the_sum():
    points = np.arange(6.0)[:, None]
    of_each = np.array([0.0, 2.0, 0.0, 2.0, 6.0, 0.0])
    pairs = ball_join(points, of_each)
    assert list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == [
        *((0, 1), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4), (4, 5))
    ]


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
        ([(ONE, ONE), ([[0.0]], [[0.0]])], {}, "left and right must have the same dimensions, not 2 and 1"),
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
        ([(ONE, ONE)], {"metric": "l3"}, "unknown metric 'l3'"),
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
        ([ONE, [1.0], [[0.0]], [1.0]], {}, "left and right must have the same dimensions, not 2 and 1"),
        ([[[math.inf]], [1.0]], {}, "points must be finite; row 0, column 0 is inf"),
        ([ONE, [1.0], [0.0], [1.0]], {}, r"right must have the shape \(n, d\)"),
        ([ONE, [1.0]], {"metric": "cosine"}, "points: cosine needs vectors with a length"),
        ([[[91.0, 0.0]], [1.0]], {"metric": "haversine"}, "points: haversine needs a latitude"),
        ([ONE, [1.0]], {"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_iter_ball_join__says_what_is_wrong_at_the_call(given_arguments, options, message):
    with pytest.raises(ArgumentError, match=message):
        iter_ball_join(*given_arguments, **options)
