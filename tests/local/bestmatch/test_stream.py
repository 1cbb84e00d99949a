from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.local.bestmatch.answers import Changes
from epsjoin.local.bestmatch.batch import BestPairs, bestmatch_join
from epsjoin.local.bestmatch.orders import Closest, Own, OwnOrder, Subset
from epsjoin.local.bestmatch.stream import BestmatchStream
from epsjoin.local.bestmatch.watermarks import Order, Punctuated, ReadAhead, Sorted, Within
from tests.oracles import examples, matwin

Rows = np.ndarray[Any, np.dtype[np.float64]]
HOWS = ("left", "right", "outer")
ORDERS = (Sorted(), Within(2.0), ReadAhead(3), Punctuated())


def as_set(best: BestPairs) -> set[tuple[object, ...]]:
    columns = (best.left.tolist(), best.right.tolist(), best.best_for.tolist(), best.values.tolist())
    rows = {(i, j, who, *map(repr, values)) for i, j, who, values in zip(*columns, strict=True)}
    assert len(rows) == len(best.left), "something came twice"
    return rows


def put_in_order(rows: Rows, order: Order, random: np.random.Generator) -> Rows:
    """The rows in some sequence that the order allows."""
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if isinstance(order, Sorted):
        return rows
    if isinstance(order, Within):  # each row is delayed by at most c
        return rows[np.argsort(rows[:, 0] + random.uniform(0, order.c, len(rows)), kind="stable")]
    if isinstance(
        order, ReadAhead
    ):  # blocks of c rows in any sequence: fewer than c above any row come before it
        blocks = [rows[first : first + order.c] for first in range(0, len(rows), order.c)]
        return np.concatenate([rows[:0], *(random.permutation(block) for block in blocks)])
    return random.permutation(rows)


def interleave(
    left: Rows, right: Rows, orders: tuple[Order, Order], random: np.random.Generator
) -> Iterator[Any]:
    """Pushes of random size from random sides; punctuated sides say what they know after some of them."""
    rows, places = {"left": left, "right": right}, {"left": 0, "right": 0}
    while any(places[side] < len(rows[side]) for side in places):
        side = str(random.choice(["left", "right"]))
        size = int(random.integers(0, 4))
        yield side, rows[side][places[side] : places[side] + size]
        places[side] = min(places[side] + size, len(rows[side]))
        rest = rows[side][places[side] :, 0]
        order = orders[side == "right"]
        if isinstance(order, Punctuated) and random.random() < 0.5:
            yield f"punctuate_{side}", math.nextafter(rest.min(), -math.inf) if len(rest) else math.inf


def run(stream: BestmatchStream[BestPairs], pushes: Iterator[Any]) -> Iterator[BestPairs]:
    for what, value in pushes:
        if what.startswith("punctuate"):
            yield getattr(stream, what)(value)
        else:
            yield getattr(stream, f"push_{what}")(value)
    yield stream.finish()


def lattice(random: np.random.Generator, n: int, d: int, span: int) -> Rows:
    points = random.integers(0, 5, (n, d)).astype(np.float64)
    points[:, 0] = random.integers(-span, span + 1, n)
    return points


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


def test_stream__of_inner_ends_with_the_batch_and_its_changes_add_up() -> None:
    retracted = 0
    for seed in range(100):
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


def test_stream__answers_nothing_before_its_time() -> None:
    """An adversary appends a right row exactly at the watermark, at the least distance in all criteria."""
    for seed in range(300):
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


@examples(200)
@given(st.data())
def test_stream__of_sorted_streams_is_matwin(data: st.DataObject) -> None:
    """A second opinion: the paper's algorithm, in fractions; it leaves out rows without a partner."""
    d = data.draw(st.integers(1, 3))
    row = st.tuples(*[st.integers(-6, 6).map(float)] * d)
    left, right = (sorted(data.draw(st.lists(row, max_size=10)), key=lambda r: r[0]) for _ in range(2))
    eps = data.draw(st.tuples(*[st.integers(1, 3).map(float)] * d))
    pairs = [pair for step in matwin.matwin(left, right, eps) for pair in step.done]
    assert set(pairs) == matwin.nested_loops(left, right, eps)
    assert len(pairs) == len(set(pairs))
    stream = BestmatchStream(eps)
    shape = (-1, d)
    done = [
        stream.push_left(np.array(left).reshape(shape)),
        stream.push_right(np.array(right).reshape(shape)),
    ]
    done.append(stream.finish())
    found = [pair for part in done for pair in zip(part.left.tolist(), part.right.tolist(), strict=True)]
    assert sorted(pair for pair in found if pair[1] >= 0) == sorted(pairs)


def test_matwin__as_printed_never_ends_on_four_digits() -> None:
    """(v - eps) + eps is below v, so that v is never read; the stream ends."""
    assert (0.4227 - 0.1) + 0.1 < 0.4227
    with pytest.raises(matwin.EndlessError, match=r"the next row is at 0\.4227"):
        list(matwin.matwin([[0.4227]], [[0.4]], [0.1], mended=False))
    assert [step.done for step in matwin.matwin([[0.4227]], [[0.4]], [0.1])][-1] == [(0, 0)]
    stream = BestmatchStream([0.1])
    parts = [stream.push_left([[0.4227]]), stream.push_right([[0.4]]), stream.finish()]
    assert [pair for part in parts for pair in zip(part.left.tolist(), part.right.tolist(), strict=True)] == [
        (0, 0)
    ]
    values = np.arange(1000, 10_000) / 10_000
    assert 0.08 < np.mean((values - 0.1) + 0.1 < values) < 0.10


def test_matwin__as_printed_loses_pairs_below_zero() -> None:
    """The first window begins at 0 at least, and a bound of 0 means a new window."""
    left, right = [[-3.0], [-2.0]], [[-3.5], [-2.0]]
    mended = [pair for step in matwin.matwin(left, right, [1.0]) for pair in step.done]
    printed = [pair for step in matwin.matwin(left, right, [1.0], mended=False) for pair in step.done]
    assert set(mended) == {(0, 0), (1, 1)}
    assert set(printed) != set(mended)
    stream = BestmatchStream([1.0])
    parts = [stream.push_left(left), stream.push_right(right), stream.finish()]
    assert {
        pair for part in parts for pair in zip(part.left.tolist(), part.right.tolist(), strict=True)
    } == set(mended)


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


def test_push__refuses_a_late_row_and_takes_nothing() -> None:
    stream = BestmatchStream(5.0, left_order=Within(1.0))
    stream.push_left([[10.0, 0.0]], [7])
    with pytest.raises(
        DataRefusedError,
        match=r"left row 1 of this push \(id 9\) is late: column 0 is 8\.5, 1\.5 below the watermark 10\.0; "
        r"Within\(c=1\.0\) has not held, Within\(2\.5\) would have for all left rows so far\. "
        r'Nothing of this push was taken; late="count" leaves such rows out and counts them',
    ):
        stream.push_left([[11.0, 0.0], [8.5, 0.0]], [8, 9])
    stream.push_left([[9.5, 0.0]], [10])
    assert stream.finish().left.tolist() == [7, 10]
    stream = BestmatchStream(5.0, left_order=Within(2.5))
    stream.push_left([[10.0], [11.0], [8.5]])


def test_push__refuses_a_row_against_a_punctuation() -> None:
    stream = BestmatchStream(5.0, right_order=Punctuated())
    stream.punctuate_right(4.0)
    with pytest.raises(DataRefusedError, match=r"it was said that no right row at or below 4\.0 comes"):
        stream.push_right([[4.0]])
    assert len(stream.push_right([[math.nextafter(4.0, 5.0)]]).left) == 0


@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_stream__leaves_late_rows_out_and_counts_them(order: Order) -> None:
    dropped = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        left, right = lattice(random, 15, 2, 6), lattice(random, 15, 2, 6)
        counters: dict[str, int] = {}
        stream = BestmatchStream(
            2.0, "outer", left_order=order, right_order=order, late="count", counters=counters
        )
        pushes = [("left", left[:9]), ("right", right[:6]), ("left", left[9:]), ("right", right[6:])]
        parts = list(run(stream, iter(pushes)))
        rows = {row for part in parts for row in part.left.tolist()} - {-1}
        others = {row for part in parts for row in part.right.tolist()} - {-1}
        assert counters["late_left"] == 15 - len(rows)
        assert counters["late_right"] == 15 - len(others)
        kept, kept_right = np.array(sorted(rows)), np.array(sorted(others))
        expected = bestmatch_join(left[kept], right[kept_right], 2.0, "outer")
        names = np.concatenate((kept, [-1])), np.concatenate((kept_right, [-1]))
        renamed = expected._replace(left=names[0][expected.left], right=names[1][expected.right])
        assert set().union(*map(as_set, parts)) == as_set(renamed)
        dropped += counters["late_left"]
    assert (dropped > 100) == (not isinstance(order, Punctuated))


def test_stream__whose_clock_steps_back_is_refused_from_there_on() -> None:
    stream = BestmatchStream(1.0, right_order=Within(0.5))
    stream.push_right([[100.0], [99.5], [101.0]])
    with pytest.raises(DataRefusedError, match=r"right row 0 of this push \(id 3\).* 39\.5 below"):
        stream.push_right([[61.0], [62.0]])


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BestmatchStream(math.inf), "a criterion must bound column 0"),
        (lambda: BestmatchStream(orders=[Closest(1, eps=1.0)]), "a criterion must bound column 0"),
        (
            lambda: BestmatchStream(orders=[Closest(0, eps=1.0), Subset([1], [1])]),
            "Subset holds the marks of two",
        ),
        (lambda: BestmatchStream(1.0, "full"), "how must be one of inner, left, right, outer, not 'full'"),
        (lambda: BestmatchStream(1.0, late="drop"), "late must be one of refuse, count, not 'drop'"),
        (
            lambda: BestmatchStream(1.0, left_order=5.0),
            "left_order must be Sorted, Within, ReadAhead or Punctuated",
        ),
        (lambda: BestmatchStream(1.0, max_age=-1), "max_age must be a finite number of at least 0, not -1"),
        (lambda: BestmatchStream(1.0).punctuate_left(math.nan), "a punctuation must be a number, not nan"),
        (
            lambda: BestmatchStream(1.0).push_left([[math.nan]]),
            "left rows must be finite; row 0, column 0 is nan",
        ),
        (
            lambda: BestmatchStream(1.0).push_left([[1.0]], ["a"]),
            "ids must be a one-dimensional array of int64",
        ),
        (
            lambda: BestmatchStream(1.0).push_left([[1.0]], [1, 2]),
            "columns of one table must be equally long",
        ),
        (
            lambda: BestmatchStream([1.0, 2.0]).push_left([[1.0]]),
            r"eps must be one number, or one per column \(1\)",
        ),
    ],
)
def test_stream__refuses_what_it_cannot_do(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


def test_push__refuses_another_number_of_columns() -> None:
    stream = BestmatchStream(1.0)
    stream.push_left([[1.0, 2.0]])
    with pytest.raises(ArgumentError, match="right rows must have 2 columns as those before, not 1"):
        stream.push_right([[1.0]])
