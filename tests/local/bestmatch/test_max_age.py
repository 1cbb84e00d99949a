"""Best matches of what is young enough, and age as a criterion."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from epsjoin.errors import ArgumentError
from epsjoin.local.bestmatch.answers import Changes
from epsjoin.local.bestmatch.batch import bestmatch_join
from epsjoin.local.bestmatch.orders import Closest, Own
from epsjoin.local.bestmatch.stream import BestmatchStream
from epsjoin.local.bestmatch.watermarks import Sorted, Within
from tests.local.bestmatch.streams import Rows, as_set, interleave, lattice, put_in_order


def test_age__as_one_more_criterion_lets_the_younger_of_equals_dominate() -> None:
    """As printed, a pair that is equal in y and younger would dominate nothing, and (2, 1) would stay."""
    birth = Own(lambda left, right: -np.maximum(left[:, 0], right[:, 0]))
    stream = BestmatchStream(orders=[Closest(0, eps=10.0), Closest(1, eps=5.0), birth])
    stream.push_left([[5.0, 0.0]])
    stream.push_right([[2.0, 1.0], [8.0, 1.0], [9.0, 3.0], [9.5, 4.0]])
    done = stream.finish()
    assert done.right.tolist() == [1, 2, 3]
    assert done.values.tolist() == [[3.0, 1.0, -8.0], [4.0, 3.0, -9.0], [4.5, 4.0, -9.5]]


def recomputed(left: Rows, right: Rows, max_age: float, how: Any, orders: Any) -> set[tuple[object, ...]]:
    """Section 3.5.1 of the paper: the join of the windows, from the beginning whenever one has changed."""
    now = max(np.max(left[:, 0], initial=-math.inf), np.max(right[:, 0], initial=-math.inf))
    alive = [np.flatnonzero(now - rows[:, 0] <= max_age) for rows in (left, right)]
    best = bestmatch_join(left[alive[0]], right[alive[1]], how=how, orders=orders)
    names = [np.concatenate((rows, [-1])) for rows in alive]
    return as_set(best._replace(left=names[0][best.left], right=names[1][best.right]))


@pytest.mark.parametrize("how", ["left", "right", "outer", "inner"])
def test_max_age__is_the_evaluation_from_the_beginning_at_any_moment(how: Any) -> None:
    dropped = 0
    for seed in range(16):
        random = np.random.default_rng(seed)
        orders = [Closest(1, eps=3.0), Closest(2)]
        sides = (Sorted(), Within(3.0))
        left, right = (put_in_order(lattice(random, 15, 3, 10), side, random) for side in sides)
        stream = BestmatchStream(
            how=how, orders=orders, max_age=6.0, left_order=sides[0], right_order=sides[1]
        )
        standing: set[tuple[object, ...]] = set()
        seen: dict[str, list[Rows]] = {"left": [left[:0]], "right": [right[:0]]}
        for what, value in interleave(left, right, sides, random):
            changes = getattr(stream, f"push_{what}")(value)
            seen[what].append(value)
            assert isinstance(changes, Changes)
            gone, new = as_set(changes.retracted), as_set(changes.new)
            assert gone <= standing
            assert not new & standing
            standing = standing - gone | new
            rows = [np.concatenate(seen[side]) for side in ("left", "right")]
            assert standing == recomputed(rows[0], rows[1], 6.0, how, orders), seed
            alive = [rows[0][:, 0], rows[1][:, 0]]
            now = max(np.max(times, initial=-math.inf) for times in alive)
            living = [np.sum(now - times <= 6.0) for times in alive]
            dropped += int(living[0] * living[1]) - len(stream._answers.pairs.left)
        assert as_set(stream.finish()) == standing
    assert dropped > 0


@pytest.mark.parametrize("how", ["left", "right", "outer", "inner"])
def test_max_age__brings_a_pair_back_when_its_dominator_has_gone(how: Any) -> None:
    """The better row comes later and is older: it goes first, and what it dominated still lives."""
    order = Within(3.0)
    orders = [Closest(1, eps=3.0), Closest(2)]
    stream = BestmatchStream(how=how, orders=orders, max_age=6.0, left_order=order, right_order=order)
    push, push_partner = stream.push_left, stream.push_right
    if how == "right":
        push, push_partner = push_partner, push
    push([[5.0, 0.0, 0.0]])
    pair = as_set(push_partner([[5.0, 1.0, 1.0]]).new)
    assert len(pair) == 1
    assert pair <= as_set(push_partner([[2.0, 0.0, 0.0]]).retracted)
    assert pair <= as_set(push_partner([[9.0, 50.0, 0.0]]).new)


def test_max_age__without_orders_takes_the_other_columns() -> None:
    stream = BestmatchStream(2.0, max_age=10.0)
    assert len(stream.push_left([[0.0, 5.0]]).new.left) == 1
    changes = stream.push_right([[100.0, 5.0]])
    assert changes.retracted.left.tolist() == [0]
    assert len(changes.new.left) == 0
    with pytest.raises(ArgumentError, match="with max_age, column 0 is no criterion"):
        BestmatchStream(2.0, max_age=10.0).push_left([[0.0]])
