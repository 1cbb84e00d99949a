"""MatWin of the paper beside our streams, and where it fails as it is printed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.local.bestmatch.stream import BestmatchStream
from oracles import examples, matwin


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
