"""What a stream of best matches refuses or leaves out: late rows, too many pairs, wrong arguments."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from epsjoin.errors import ArgumentError, BudgetError, DataRefusedError
from epsjoin.local.bestmatch.batch import bestmatch_join
from epsjoin.local.bestmatch.orders import Closest, Subset
from epsjoin.local.bestmatch.stream import BestmatchStream
from epsjoin.local.bestmatch.watermarks import Order, Punctuated, Within
from oracles import seeds
from tests.local.bestmatch.streams import ORDERS, as_set, lattice, run


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


@seeds(50, 100)
@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_stream__leaves_late_rows_out_and_counts_them(order: Order, seeds: range) -> None:
    dropped = 0
    for seed in seeds:
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
        (lambda: BestmatchStream(1.0).punctuate_left(math.nan), "must be a number or a time, not nan"),
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


def test_push__after_which_too_many_pairs_would_wait_is_refused_and_takes_nothing() -> None:
    stream = BestmatchStream(eps=[1.0, 1.0], max_candidates=100)
    stream.push_left(np.ones((10, 2)))
    # of the filter
    with pytest.raises(BudgetError, match="more than max_candidates = 100 candidates; about"):
        stream.push_right(np.ones((11, 2)))
    stream.push_right(np.ones((6, 2)))
    with pytest.raises(BudgetError, match="110 pairs would wait, more than max_candidates = 100, .* Nothing"):
        stream.push_right(np.ones((5, 2)))
    stream.push_right(np.ones((4, 2)))
    assert len(stream.finish().left) == 100


def test_push__counts_only_pairs_that_wait_once_it_is_taken() -> None:
    stream = BestmatchStream([1.0], max_candidates=1)
    for at in (0.0, 10.0, 20.0):
        stream.push_left([[at]])
        stream.push_right([[at]])  # the pair before is final now
    recent = BestmatchStream([1.0], max_age=1.0, max_candidates=4)
    recent.push_left(np.zeros((2, 2)))
    recent.push_right(np.zeros((2, 2)))
    recent.push_left([[100.0, 0.0]])
    assert len(recent.push_right([[100.0, 0.0]]).new.left) == 1


def test_push__refuses_another_number_of_columns() -> None:
    stream = BestmatchStream(1.0)
    stream.push_left([[1.0, 2.0]])
    with pytest.raises(ArgumentError, match="right rows must have 2 columns as those before, not 1"):
        stream.push_right([[1.0]])


def test_push__after_a_time_takes_times_alone() -> None:
    stream = BestmatchStream(1.0)
    stream.punctuate_left(np.datetime64("2024-01-01"))
    with pytest.raises(ArgumentError, match="left rows must hold times as the rows before, not numbers"):
        stream.push_left([[1.0]])
    stream.push_left(np.array([["2024-01-02"]], "M8[D]"))


def test_push__that_is_refused_does_not_say_how_many_columns_others_have() -> None:
    stream = BestmatchStream(1.0)
    with pytest.raises(ArgumentError, match="equally long"):
        stream.push_left([[1.0, 2.0, 3.0]], ids=[1, 2])
    with pytest.raises(DataRefusedError, match="is late"):
        stream.push_left([[1.0, 2.0, 3.0], [0.0, 2.0, 3.0]])
    stream.push_left([[1.0, 2.0]])
    stream.push_right([[1.0, 2.5]])
    assert stream.finish().values.tolist() == [[0.0, 0.5]]
