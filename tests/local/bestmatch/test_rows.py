"""Rows that are times: seconds, exact or refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin import ArgumentError, BestmatchStream, bestmatch_join
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
