"""Streams of best matches: equal to the batch under any interleaving, early, and within their promises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from epsjoin.errors import ArgumentError
from epsjoin.local.bestmatch.batch import bestmatch_join
from epsjoin.local.bestmatch.orders import Closest, Own, OwnOrder
from epsjoin.local.bestmatch.stream import BestmatchStream
from epsjoin.local.bestmatch.watermarks import Order, Punctuated, Sorted, Within
from oracles import seeds
from tests.local.bestmatch.streams import HOWS, ORDERS, Rows, as_set, interleave, lattice, put_in_order, run


def assert_is_batch(how: Any, order: Order, seeds: range, most_rows: int) -> None:
    """One interleaving per seed: the stream gives what the batch does, once, and not all of it at the end."""
    early = 0
    for seed in seeds:
        random = np.random.default_rng(seed)
        d, span = int(random.integers(1, 4)), int(random.integers(1, 15))
        orders = (order, ORDERS[int(random.integers(4))])
        left, right = (
            put_in_order(lattice(random, int(random.integers(0, most_rows)), d, span), side, random)
            for side in orders
        )
        eps = random.integers(0, 4, d).astype(np.float64)
        counters: dict[str, int] = {}
        stream = BestmatchStream(eps, how, left_order=orders[0], right_order=orders[1], counters=counters)
        answers = list(run(stream, interleave(left, right, orders, random)))
        expected = bestmatch_join(left, right, eps, how)
        parts = [as_set(answer) for answer in answers]
        assert set().union(*parts) == as_set(expected), seed
        assert sum(map(len, parts)) == len(expected.left), seed
        early += counters["emitted_before_end"]
        assert counters["emitted_before_end"] == sum(map(len, parts[:-1]))
    assert early > len(seeds), "hardly anything came before the end: the test shows little"


@pytest.mark.parametrize("order", ORDERS, ids=repr)
@pytest.mark.parametrize("how", HOWS)
def test_stream__is_the_batch_under_any_interleaving(how: Any, order: Order) -> None:
    assert_is_batch(how, order, range(28), most_rows=16)


@pytest.mark.long
@pytest.mark.parametrize("order", ORDERS, ids=repr)
@pytest.mark.parametrize("how", HOWS)
def test_stream__is_the_batch_under_a_thousand_interleavings(how: Any, order: Order) -> None:
    """1,008 in all: 84 for each kind of join and order."""
    assert_is_batch(how, order, range(100, 184), most_rows=40)


CRITERIA: dict[str, list[Any]] = {
    "two closest": [Closest(1, eps=2.0), Closest(0, eps=3.0)],
    "own": [Closest(0, eps=3.0), Own(lambda left, right: -np.maximum(left[:, 0], right[:, 0])), Closest(1)],
    "own order": [Closest(0, eps=3.0), OwnOrder(lambda x, y: x[1][:, 1] % 2 <= y[1][:, 1] % 2)],
    "metric": [Closest((1, 2), eps=2.0, metric="manhattan"), Closest(0, eps=2.0)],
}


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("how", HOWS)
def test_stream__is_the_batch_with_any_criteria(how: Any, name: str) -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        left, right = (put_in_order(lattice(random, 20, 3, 8), Sorted(), random) for _ in range(2))
        stream = BestmatchStream(how=how, orders=CRITERIA[name])
        answers = list(run(stream, interleave(left, right, (Sorted(), Sorted()), random)))
        expected = bestmatch_join(left, right, how=how, orders=CRITERIA[name])
        assert set().union(*map(as_set, answers)) == as_set(expected), seed


@seeds(40, 100)
def test_stream__of_inner_ends_with_the_batch_and_its_changes_add_up(seeds: range) -> None:
    retracted = 0
    for seed in seeds:
        random = np.random.default_rng(seed)
        orders = (ORDERS[int(random.integers(4))], ORDERS[int(random.integers(4))])
        left, right = (put_in_order(lattice(random, 12, 3, 6), order, random) for order in orders)
        stream = BestmatchStream(2.0, "inner", left_order=orders[0], right_order=orders[1])
        standing: set[tuple[object, ...]] = set()
        seen: dict[str, list[Rows]] = {"left": [left[:0]], "right": [right[:0]]}
        for what, value in interleave(left, right, orders, random):
            if what.startswith("punctuate"):
                changes = getattr(stream, what)(value)
            else:
                changes = getattr(stream, f"push_{what}")(value)
                seen[what].append(value)
            gone, new = as_set(changes.retracted), as_set(changes.new)
            assert gone <= standing
            assert not new & standing
            standing = standing - gone | new
            retracted += len(gone)
            so_far = bestmatch_join(np.concatenate(seen["left"]), np.concatenate(seen["right"]), 2.0, "inner")
            assert standing == as_set(so_far)
        assert as_set(stream.finish()) == standing
    assert retracted > 100


@seeds(100, 300)
def test_stream__answers_nothing_before_its_time(seeds: range) -> None:
    """An adversary appends a right row exactly at the watermark, at the least distance in all criteria."""
    for seed in seeds:
        random = np.random.default_rng(seed)
        order = ORDERS[seed % 3]
        left, right = (put_in_order(lattice(random, 12, 2, 10), order, random) for _ in range(2))
        stream = BestmatchStream(2.0, left_order=order, right_order=order)
        done = [stream.push_left(left), stream.push_right(right)]
        emitted = {int(row) for answer in done for row in answer.left}
        at = stream._right.mark.at
        better = np.array([[at, value] for value in range(5)])
        expected = bestmatch_join(left, np.concatenate((right, better)), 2.0)
        done += [stream.push_right(better), stream.finish()]
        assert set().union(*map(as_set, done)) == as_set(expected), seed
        for row in emitted:
            assert at - left[row, 0] > 2.0


def test_stream__waits_for_a_row_that_is_just_at_eps() -> None:
    """Released with >= in place of >, the pair (0, 5) would be lost."""
    stream = BestmatchStream(5.0)
    assert len(stream.push_left([[0.0]]).left) == 0
    assert len(stream.push_right([[5.0]]).left) == 0
    assert len(stream.push_right([[5.0]]).left) == 0
    done = stream.push_right([[5.5]])
    assert (done.left.tolist(), done.right.tolist()) == ([0, 0], [0, 1])


def test_stream__drops_no_partner_that_rounding_puts_within_eps() -> None:
    """r + eps is rounded down below a row that is within eps of r by the subtraction that decides."""
    random = np.random.default_rng(0)
    found = 0
    for eps in (0.1, 0.3, 1.1):
        left = random.random(4000)
        sums = left + eps
        x, y = np.tile(left, 2), np.concatenate((sums, np.nextafter(sums, math.inf)))
        tricky = (y - x <= eps) & (x + eps < y)
        found += int(tricky.sum())
        for r, s in zip(x[tricky][:50], y[tricky][:50], strict=True):
            stream = BestmatchStream(eps)
            # the first right row moves the watermark to s: left rows that wait are judged, and s comes again
            parts = [
                stream.push_right([[s]]),
                stream.push_left([[r]]),
                stream.push_right([[s]]),
                stream.finish(),
            ]
            pairs = [
                row for part in parts for row in zip(part.left.tolist(), part.right.tolist(), strict=True)
            ]
            assert pairs == [(0, 0), (0, 1)]
    assert found > 50


@pytest.mark.parametrize("eps", [2e300, 1e300, 5e-324, 1e-300])
def test_stream__takes_any_eps_that_a_criterion_may_have(eps: float) -> None:
    keys = np.array([0.0, 1e-323, 1e-300, 1e300, 1.5e300, 4e300])
    rows = np.column_stack((keys, keys[::-1]))
    others = rows + np.array([0.0, 1e-323])
    for of_each in (eps, [eps, math.inf], [eps, 5e300], [eps, 1e-301]):
        expected = bestmatch_join(rows, others, of_each, "left")
        stream = BestmatchStream(of_each)
        answers = [stream.push_left(rows), stream.push_right(others), stream.finish()]
        assert set().union(*map(as_set, answers)) == as_set(expected)
        gaps = np.abs(rows[:, None] - others)
        is_near = (gaps <= of_each).all(axis=2)
        assert sorted(set(expected.left[expected.right >= 0])) == np.flatnonzero(is_near.any(axis=1)).tolist()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("order", [Sorted(), Within(1e308), Punctuated()], ids=repr)
def test_stream__of_the_largest_numbers_is_the_batch_without_a_warning(how: Any, order: Order) -> None:
    rows = np.array([[-1.7e308], [-1e308], [0.0], [1e308], [1.7e308]])
    for eps in (1.0, 8e307):
        stream = BestmatchStream(eps, how, left_order=order, right_order=order)
        answers = [stream.push_left(rows[:2]), stream.push_right(rows[::2]), stream.push_left(rows[2:])]
        answers += [stream.punctuate_left(1.75e308), stream.finish()]
        expected = as_set(bestmatch_join(rows, rows[::2], eps, how))
        assert set().union(*map(as_set, answers if how != "inner" else answers[-1:])) == expected
    stream = BestmatchStream(1.0, left_order=order, late="count")
    assert [len(stream.push_left(rows[[row]]).left) for row in (4, 0)] == [0, 0]
    assert bestmatch_join(rows[:1], rows[4:], math.inf).values.tolist() == [[math.inf]]


def test_stream__does_not_take_the_next_row_read_for_the_next_row() -> None:
    """Fuzzy windows: after 15 was read, 12 may still come; its partner must not have gone."""
    order = Within(10.0)
    stream = BestmatchStream(2.0, left_order=order, right_order=Sorted())
    parts = [
        stream.push_right([[10.0], [15.0], [40.0]]),
        stream.push_left([[15.0]]),
        stream.push_left([[12.0]]),
    ]
    parts.append(stream.finish())
    found = {pair for part in parts for pair in zip(part.left.tolist(), part.right.tolist(), strict=True)}
    assert found == {(0, 1), (1, 0)}


def test_stream__that_is_silent_lets_the_other_wait_until_it_is_punctuated() -> None:
    counters: dict[str, int] = {}
    stream = BestmatchStream(1.0, counters=counters)
    for hour in range(50):
        assert len(stream.push_left([[60.0 * hour]]).left) == 0
    assert counters["peak_rows"] == 50
    assert stream.punctuate_right(1000.0).left.tolist() == list(range(17))
    assert len(stream._left.rows.ids) == 33
    assert stream.punctuate_right(math.inf).left.tolist() == list(range(17, 50))
    assert stream.push_left([[3000.0]]).left.tolist() == [50]


def test_stream__holds_no_more_rows_than_lie_within_eps_the_lateness_and_a_push() -> None:
    random = np.random.default_rng(3)
    n, eps, c, push = 4000, 40.0, 5.0, 50  # eps is 1 % of the span
    left, right = (
        put_in_order(np.column_stack((np.arange(n) + 0.0, random.random(n))), Within(c), random)
        for _ in range(2)
    )
    counters: dict[str, int] = {}
    stream = BestmatchStream(
        [eps, 0.2], "outer", left_order=Within(c), right_order=Within(c), counters=counters
    )
    parts = []
    for first in range(0, n, push):
        parts += [
            stream.push_left(left[first : first + push]),
            stream.push_right(right[first : first + push]),
        ]
    parts.append(stream.finish())
    assert set().union(*map(as_set, parts)) == as_set(bestmatch_join(left, right, [eps, 0.2], "outer"))
    # a row per unit: each side holds eps + c, what the other side lags behind by a push, and the push itself
    assert counters["peak_rows"] <= 2 * (eps + 2 * c + push)
    assert counters["emitted_before_end"] >= 0.95 * sum(len(part.left) for part in parts)


def test_stream__keeps_rows_with_equal_ids_apart() -> None:
    stream = BestmatchStream([1.0])
    stream.push_left([[0.0], [0.5], [5.0]], [4, 4, 4])
    done = [stream.push_right([[0.0], [5.0]], [9, 9]), stream.finish()]
    pairs = [
        row
        for part in done
        for row in zip(part.left.tolist(), part.right.tolist(), part.values[:, 0], strict=True)
    ]
    assert pairs == [(4, 9, 0.0), (4, 9, 0.5), (4, 9, 0.0)]


def test_stream__that_ends_early_or_never_begins_leaves_the_rest_unmatched() -> None:
    stream = BestmatchStream(1.0, "outer")
    stream.push_right([[0.0, 1.0]])
    assert stream.punctuate_right(math.inf).right.tolist() == []
    done = stream.push_left([[1.5, 1.0], [2.0, 1.0]])
    assert (done.left.tolist(), done.right.tolist()) == ([0, 1, -1], [-1, -1, 0])
    assert len(stream.finish().left) == 0
    with pytest.raises(ArgumentError, match="the stream is finished"):
        stream.push_left([[3.0, 1.0]])
    with pytest.raises(ArgumentError, match="the stream is finished"):
        stream.finish()
    assert BestmatchStream([1.0, 2.0]).finish().values.shape == (0, 2)
