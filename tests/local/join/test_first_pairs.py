"""The first pairs of a join in parts: some of its pairs, with its distances, which the parts leave out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsjoin.local.join.first_pairs import MAX_FIRST_PAIRS, LeftOut, find_first_pairs
from epsjoin.local.metric import get_metric
from epsjoin.local.sweep.pairs import Pairs
from oracles import join as slow

RNG = np.random.default_rng(0)
IDS = RNG.permutation(10_000)[:400].astype(np.int64)
POINTS = RNG.random((400, 3))
EPS = 0.2


def true_pairs(metric: str, n_left: int) -> dict[tuple[int, int], float]:
    """Every pair of the first rows with the others, or of all with one another, by ids."""
    rows, found = POINTS.tolist(), dict[tuple[int, int], float]()
    for i in range(n_left or len(rows)):
        for j in range(n_left or i + 1, len(rows)):
            distance = slow.distance(rows[i], rows[j], metric)
            if distance <= EPS:
                pair = (int(IDS[i]), int(IDS[j]))
                found[pair if n_left else (min(pair), max(pair))] = distance
    return found


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev"])
@pytest.mark.parametrize("n_left", [0, 100])
def test_find_first_pairs__are_a_tenth_of_the_pairs_of_one_table_or_two(metric: str, n_left: int) -> None:
    truth = true_pairs(metric, n_left)
    sides = [slice(0, n_left), slice(n_left, None)] if n_left else [slice(None)]
    samples = [(IDS[side], POINTS[side]) for side in sides]
    n_rows = [len(ids) for ids, _ in samples]
    found = find_first_pairs(samples, n_rows, EPS, get_metric(metric), len(truth))
    keys = list(zip(found.left.tolist(), found.right.tolist(), strict=True))
    assert keys == sorted(set(keys))
    assert [truth[key] for key in keys] == found.distance.tolist(), "of the join, bit for bit"
    assert 0.05 * len(truth) < len(keys) < 0.2 * len(truth)
    smaller = [(ids[:20], points[:20]) for ids, points in samples]  # of a sample as much as it has
    few = find_first_pairs(smaller, n_rows, EPS, get_metric(metric), len(truth))
    known = {int(each) for ids, _ in smaller for each in ids}
    assert {*few.left.tolist(), *few.right.tolist()} <= known
    nothing = find_first_pairs(smaller, n_rows, EPS, get_metric(metric), 0.0)
    assert len(nothing.left) == 0


def test_find_first_pairs__are_no_more_than_the_maximum_where_the_plan_was_misled() -> None:
    equal = np.zeros((600, 2))
    found = find_first_pairs([(np.arange(600), equal)], [600], 1.0, get_metric("euclidean"), 10.0)
    assert math.comb(190, 2) > MAX_FIRST_PAIRS
    assert len(found.left) == MAX_FIRST_PAIRS
    assert len(set(zip(found.left.tolist(), found.right.tolist(), strict=True))) == MAX_FIRST_PAIRS


@pytest.mark.parametrize("step", [1, 1 << 20, -3])
def test_left_out__keeps_all_other_pairs_in_their_order(step: int) -> None:
    """Also where all left ids have one mark."""
    left, right = (RNG.integers(0, 30, 2000) * step for _ in range(2))
    pairs = Pairs(left, right, RNG.random(2000))
    some = Pairs(*(column[::7] for column in pairs))
    out = set(zip(some.left.tolist(), some.right.tolist(), strict=True))
    rows = list(zip(*(column.tolist() for column in pairs), strict=True))
    kept = LeftOut(some).of(pairs)
    assert list(zip(*(column.tolist() for column in kept), strict=True)) == [
        row for row in rows if row[:2] not in out
    ]
    assert 0 < len(kept.left) < len(pairs.left)
