from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.local.bestmatch.watermarks import Order, Punctuated, ReadAhead, Sorted, Watermark, Within
from oracles import examples


def may_follow(order: Order, before: list[float], value: float) -> bool:
    """Whether a value may come after the others, by the definition of the order."""
    if isinstance(order, ReadAhead):
        windows = (before[end - order.c : end] for end in range(order.c, len(before) + 1))
        return not any(all(other > value for other in window) for window in windows)
    c = {Sorted: 0.0, Punctuated: math.inf}.get(type(order), getattr(order, "c", 0.0))
    return all(value >= other - c for other in before)


orders = st.one_of(
    st.just(Sorted()),
    st.sampled_from([0, 1, 2.5]).map(Within),
    st.integers(1, 4).map(ReadAhead),
    st.just(Punctuated()),
)
values = st.lists(st.integers(-4, 4).map(float), max_size=12)


@examples(500)
@given(orders, values)
def test_observe__finds_late_what_the_definition_forbids(order: Order, rows: list[float]) -> None:
    before, after = Watermark(order).observe(np.array(rows, np.float64))
    is_late = [value < mark for value, mark in zip(rows, before.tolist(), strict=True)]
    assert is_late == [not may_follow(order, rows[:place], value) for place, value in enumerate(rows)]
    if math.isfinite(after.at):  # an adversary appends a row exactly at the watermark, and one just below it
        assert may_follow(order, rows, after.at)
        assert not may_follow(order, rows, math.nextafter(after.at, -math.inf))


@examples(200)
@given(orders, values, st.lists(st.integers(0, 12)))
def test_observe__is_the_same_for_any_division_into_calls(
    order: Order, rows: list[float], cuts: list[int]
) -> None:
    whole, mark = Watermark(order).observe(np.array(rows, np.float64))
    later, pieces = Watermark(order), []
    for piece in np.split(np.array(rows, np.float64), sorted(min(cut, len(rows)) for cut in cuts)):
        before, later = later.observe(piece)
        pieces.append(before)
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    assert (later.at, later.highest, later.disorder) == (mark.at, mark.highest, mark.disorder)


@examples(300)
@given(st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 2)), min_size=2, max_size=9))
def test_disorder__is_the_least_c_that_would_have_held(rows: list[float]) -> None:
    disorder = Watermark(Punctuated()).observe(np.array(rows))[1].disorder

    def holds(c: float) -> bool:
        before, _ = Watermark(Within(c)).observe(np.array(rows))
        return bool((np.array(rows) >= before).all())

    assert holds(disorder)
    assert disorder == 0 or not holds(disorder - 0.001)  # the values have two decimals


def test_disorder__holds_where_the_difference_was_rounded() -> None:
    draw = np.random.default_rng(0)
    pairs = np.sort(draw.random((20_000, 2)) * [1.0, 1e3], axis=1)[:, ::-1]
    short = 0
    for highest, value in pairs:
        disorder = Watermark(Sorted()).observe(np.array([highest, value]))[1].disorder
        short += highest - (highest - value) > value
        assert highest - disorder <= value
    assert short, "no difference was rounded down: the test shows nothing"


def test_punctuate__lets_a_row_just_above_come_and_none_at_it() -> None:
    mark = Watermark(Within(1.0)).observe(np.array([5.0]))[1]
    assert mark.at == 4.0
    assert mark.punctuate(3.0).at == 4.0
    assert mark.punctuate(7.0).at == math.nextafter(7.0, math.inf)
    assert mark.punctuate(7.0).observe(np.array([7.5]))[1].at == math.nextafter(7.0, math.inf)
    assert mark.punctuate(math.inf).at == math.inf


def test_observe__of_no_rows_changes_nothing() -> None:
    for order in (Sorted(), Within(2.0), ReadAhead(3), Punctuated()):
        before, after = Watermark(order).observe(np.empty(0))
        assert len(before) == 0
        assert after.at == -math.inf


def test_read_ahead__of_more_rows_than_come_takes_no_memory_for_them() -> None:
    before, after = Watermark(ReadAhead(10**12)).observe(np.array([1.0, 0.0]))
    assert before.tolist() == [-math.inf] * 2
    before, after = after.observe(np.array([5.0]))
    assert (before.tolist(), after.at) == ([-math.inf], -math.inf)
    assert (after.highest, after.disorder) == (5.0, 1.0)


@pytest.mark.parametrize("c", [-1, math.inf, math.nan, True, "5", None])
def test_within__refuses_what_is_no_lateness(c: object) -> None:
    with pytest.raises(ArgumentError, match=r"Within needs a finite c of at least 0, not"):
        Within(c)


@pytest.mark.parametrize("c", [0, -1, 2.5, True])
def test_read_ahead__refuses_what_is_no_number_of_rows(c: object) -> None:
    with pytest.raises(ArgumentError, match="c of ReadAhead must be a whole number, at least 1"):
        ReadAhead(c)
