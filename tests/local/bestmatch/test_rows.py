"""Rows that are times: seconds, exact or refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin import ArgumentError, BestmatchStream, Closest, Punctuated, bestmatch_join
from epsjoin.local.bestmatch.rows import check_rows
from oracles import examples

PER_SECOND = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9, "m": Fraction(1, 60), "D": Fraction(1, 86_400)}


@examples(300)
@given(
    st.sampled_from(sorted(PER_SECOND)),
    st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-(10**6), 10**6).map(lambda n: n * 5**9 * 2**4),
    st.sampled_from("mM"),
)
def test_times__are_their_seconds_or_refused_where_float64_does_not_hold_them(unit, ticks, kind):
    exact = ticks / Fraction(PER_SECOND[unit])
    times = np.array([[0, ticks]], f"{kind}8[{unit}]")
    if abs(exact) <= 2**52 and Fraction(float(exact)) == exact:
        assert check_rows("left", times).tolist() == [[0.0, float(exact)]]
    elif Fraction(float(exact)) != exact:
        with pytest.raises(ArgumentError, match="^left: the time in row 0, column 1 is no number of"):
            check_rows("left", times)


def test_bestmatch_join__of_times_is_that_of_their_seconds():
    seconds = np.random.default_rng(0).integers(1_700_000_000, 1_700_000_400, (2, 50, 2))
    for how in ("left", "outer"):
        expected = bestmatch_join(*seconds, eps=[5.0, 90.0], how=how)
        found = bestmatch_join(*seconds.astype("M8[s]").astype("M8[ns]"), eps=[5.0, 90.0], how=how)
        assert len(expected.left) > 20
        assert all(np.array_equal(*both, equal_nan=True) for both in zip(found, expected, strict=True))
    stream = BestmatchStream(eps=[5.0, 90.0])
    order = [side[np.argsort(side[:, 0])] for side in seconds]
    parts = [
        stream.push_left(order[0].astype("M8[s]")),
        stream.push_right(order[1].astype("M8[s]").astype("M8[ms]")),
    ]
    expected = bestmatch_join(*order, eps=[5.0, 90.0])
    found = [pair for part in (*parts, stream.finish()) for pair in zip(part.left, part.right, strict=True)]
    assert sorted(found) == sorted(zip(expected.left, expected.right, strict=True))


def test_bestmatch_join__of_times_takes_durations_as_eps():
    times = np.array([[0, 0], [50, 0], [130, 0]], "M8[s]")
    expected = bestmatch_join(times, times[1:], eps=[60.0, 2.0])
    for eps in ([np.timedelta64(1, "m"), np.timedelta64(2000, "ms")], np.array([60_000, 2000], "m8[ms]")):
        assert np.array_equal(bestmatch_join(times, times[1:], eps=eps).values, expected.values)
        assert Closest(0, eps=eps[0]).eps == 60.0
    assert expected.right.tolist() == [0, 0, 1]
    assert Closest(0, eps=np.timedelta64(100, "ms")).eps == 0.1, "as the number; a threshold may be rounded"
    for wrong in (np.datetime64("1970-01-01T00:01"), np.timedelta64(1, "M"), np.timedelta64("NaT")):
        with pytest.raises(ArgumentError, match="^eps must be a number of at least 0, which may be infinite"):
            Closest(0, eps=wrong)


def test_bestmatch__refuses_times_beside_numbers_and_durations():
    times = np.array([[1], [2]], "M8[s]")
    durations, numbers, nothing = times.astype("m8[s]"), [[1.0], [2.0]], np.empty((0, 1))
    for left, right, says in (
        (times, durations, "right must hold times as left, not durations"),
        (times, numbers, "right must hold times as left, not numbers"),
        (numbers, durations, "right must hold numbers as left, not durations"),
    ):
        with pytest.raises(ArgumentError, match=says):
            bestmatch_join(left, right, 1.0)
        stream = BestmatchStream(1.0)
        stream.push_right(nothing)
        stream.push_left(left)
        with pytest.raises(
            ArgumentError, match=f"{says[:5]} rows{says[5:]}".replace("left", "the rows before")
        ):
            stream.push_right(right)
        stream.push_right(left)  # nothing of the refused push was taken
    assert len(bestmatch_join(times, nothing, 1.0).left) == 2


def test_bestmatch__refuses_durations_beside_rows_of_numbers():
    minute, numbers = np.timedelta64(1, "m"), [[1.0, 2.0], [2.0, 3.0]]
    for eps in (minute, [minute, 1.0], np.array([1, 1], "m8[s]")):
        with pytest.raises(ArgumentError, match="^eps must be numbers as the rows, not durations"):
            bestmatch_join(numbers, numbers, eps)
    for stream in (BestmatchStream(minute), BestmatchStream(1.0, max_age=minute)):
        with pytest.raises(ArgumentError, match="must be numbers as the rows, not durations"):
            stream.push_left(numbers)
    stream = BestmatchStream(1.0)
    stream.push_left(np.array([[1, 2], [2, 3]], "M8[s]"))
    with pytest.raises(ArgumentError, match="a punctuation must hold times as the rows before"):
        stream.punctuate_right(minute)
    stream = BestmatchStream(1.0)
    stream.push_left(numbers)
    with pytest.raises(ArgumentError, match="a punctuation must hold numbers as the rows before"):
        stream.punctuate_right(np.datetime64("2020-01-01"))


def test_stream__takes_a_time_for_a_punctuation_and_a_duration_for_an_age():
    times = np.array([["2020-01-01T00:00:01", "2020-01-01T00:00:03"]], "M8[s]")
    stream = BestmatchStream(2.0, left_order=Punctuated(), right_order=Punctuated())
    assert len(stream.push_left(times).left) == 0
    assert len(stream.punctuate_right(np.datetime64("2020-01-01T00:00:03.500")).left) == 1
    with pytest.raises(ArgumentError, match="must be a number or a time, not 'noon'"):
        stream.punctuate_left("noon")
    with pytest.raises(ArgumentError, match="must be a time that float64 holds in seconds, not "):
        stream.punctuate_left(np.datetime64("2020-01-01T00:00:00.100"))
    for age, is_young in ((np.timedelta64(1, "m"), True), (60.0, True), (np.timedelta64(59, "s"), False)):
        stream = BestmatchStream(2.0, max_age=age)
        stream.push_left(times)
        later = stream.push_right(times + np.array([[60, 0]], "m8[s]"))
        assert (len(later.new.left) == 1) is is_young


@pytest.mark.parametrize(
    ("times", "says"),
    [
        ([["2020-01-01", "NaT"]], "left: the time in row 0, column 1 is missing; leave such rows out"),
        (
            np.array([["2020-01"]], "M8[M]"),
            r"in units from weeks to nanoseconds, not datetime64\[M\]",
        ),
        (np.array([[1]], "m8[25s]"), r"from weeks to nanoseconds, not timedelta64\[25s\]"),
        (np.array(["2020-01-01"], "M8[s]"), r"left must have the shape \(n, d\)"),
    ],
)
def test_times__are_refused_where_they_are_no_seconds(times, says):
    with pytest.raises(ArgumentError, match=says):
        bestmatch_join(np.array(times, "M8[s]") if isinstance(times, list) else times, [[1.0]], 1.0)
