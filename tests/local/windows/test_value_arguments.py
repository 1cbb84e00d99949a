"""What a window over values takes: columns of every library; and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from epsjoin.errors import ArgumentError
from epsjoin.local.windows.batches import Counts
from epsjoin.local.windows.row_window import RowWindow
from epsjoin.local.windows.value_window import ValueWindow
from tests.local.windows.histories import items


def test_value_window__has_nothing_of_a_batch_that_is_refused() -> None:
    window = ValueWindow(2)
    window.push(["VOR"])
    window.push(["NDB"])
    for bad in (
        [1],
        ["a", 1],
        [["a"]],
        [object()],
        Counts(np.array(["a", "a"]), np.ones(2, np.int64), 0),
        Counts(np.array(["a"]), np.array(1), 0),
    ):
        with pytest.raises(ArgumentError, match="values"):
            window.push(bad)
        assert items(window.counts()) == [("NDB", 1), ("VOR", 1)]
        assert window.new().tolist() == ["NDB"]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (["a", 1], "not integers and texts"),
        ([1, 2.5], "not floats and integers"),
        ([True, 1], "not booleans and integers"),
        ([2**63], "integers that int64 holds"),
        (np.array([2**63], np.uint64), "integers that int64 holds"),
        ([1j], "not complex"),
        (np.array(["2023-01-01"], "M8[D]"), "not datetime64"),
        ([[1, 2], [3, 4]], "one-dimensional"),
    ],
)
def test_value_window__says_which_values_it_does_not_hold(values: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        ValueWindow(1).push(values)


@pytest.mark.parametrize(
    "groups",
    [[], [2, 1], [1, 1], [None], [1, "a"], [math.nan], [1.0, math.nan]],
    ids=["none", "descending", "equal", "missing", "mixed", "NaN", "NaN at the end"],
)
def test_value_window__refuses_groups_that_are_no_ranges(groups: list[Any]) -> None:
    with pytest.raises(ArgumentError, match="groups"):
        ValueWindow(1, groups=groups)


@pytest.mark.parametrize(
    ("kind", "groups", "sentence"),
    [
        ("LIST", None, "without groups, one of LIST L, LIST T, .* not 'LIST'"),
        ("GROUP G", None, "without groups, one of LIST L"),
        ("AGGR T", [1], "with groups, one of GROUP G, not 'AGGR T'"),
    ],
)
def test_value_window__refuses_kinds_that_there_are_not(kind: str, groups: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=f"kind must be merged or, {sentence}"):
        ValueWindow(1, groups, kind=kind)


@pytest.mark.parametrize("q", ["a", None, [0.5], np.array([0.2, 0.3]), math.nan, 1.5, True])
def test_quantile__refuses_what_is_no_fraction(q: Any) -> None:
    window = ValueWindow(1)
    window.push([1, 2, 3])
    assert window.quantile(np.float32(0.5)) == 2
    with pytest.raises(ArgumentError, match="q must be between 0 and 1, not"):
        window.quantile(q)


@pytest.mark.parametrize("missing", [None, "a", 1.5, -1, True])
def test_value_window__refuses_counts_whose_missing_are_no_number_of_rows(missing: Any) -> None:
    with pytest.raises(ArgumentError, match="missing of counts must be a whole number, at least 0, not"):
        ValueWindow(1).push(Counts(np.array([1]), np.array([1]), missing))


def test_value_window__compares_only_what_can_be_compared() -> None:
    one, other, grouped, texts = ValueWindow(1), ValueWindow(1), ValueWindow(1, groups=[1]), ValueWindow(1)
    for window, values in ((one, [1]), (other, [1.0]), (grouped, [1]), (texts, ["a"])):
        window.push(values)
    for wrong, says in (
        (other, "of one kind"),
        (grouped, "the same groups"),
        (texts, "of one kind"),
        ([1], "with a ValueWindow, not list"),
    ):
        with pytest.raises(ArgumentError, match=says):
            one & wrong
    for ask in (texts.mean, texts.var):
        with pytest.raises(ArgumentError, match="texts have no"):
            ask()
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        one.quantile(1.5)
    with pytest.raises(ArgumentError, match="both be numbers, or both texts"):
        ValueWindow(1, groups=[1]).push(["a"])


def test_value_window__takes_batches_that_are_counted_in_any_order() -> None:
    counted, pushed = ValueWindow(2), ValueWindow(2)
    counted.push(Counts(np.array(["b", "a"]), np.array([2, 1]), 3))
    pushed.push(["b", "a", None, "b", None, None])
    assert items(counted.counts()) == items(pushed.counts())
    assert counted.counts().missing == pushed.counts().missing == 3


INTEGERS = [2**53 + 1, None, 2**53]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (polars.Series(INTEGERS), INTEGERS),
        (pa.array(INTEGERS), INTEGERS),
        (pa.chunked_array([INTEGERS[:1], INTEGERS[1:]]), INTEGERS),
        (pd.Series(INTEGERS, index=[5, 5, 6], dtype="Int64"), INTEGERS),
        (pd.Index(INTEGERS, dtype="Int64"), INTEGERS),
        (pd.array(INTEGERS, "Int64"), INTEGERS),
        (pd.Series(INTEGERS, dtype=pd.ArrowDtype(pa.int64())), INTEGERS),
        (pa.array([None, None], pa.int64()), [None, None]),
        (pa.array(["a", None, "b"], pa.string_view()), ["a", None, "b"]),
        (pa.array([], pa.int64()), []),
        (polars.Series([1.5, None, math.nan]), [1.5, None, math.nan]),
        (pa.array([1.5, None, math.nan]), [1.5, None, math.nan]),
        (pd.Series([True, None], dtype="boolean"), [True, None]),
        (pd.Series(["a", None, "b"], dtype="string"), ["a", None, "b"]),
        (pd.Series(["a", None, "b"], dtype="category"), ["a", None, "b"]),
        (polars.Series(["a", None, "b"], dtype=polars.Categorical), ["a", None, "b"]),
        (np.array(["a", None, "b"], np.dtypes.StringDType(na_object=None)), ["a", None, "b"]),
        (np.array(["a", np.nan, "b"], np.dtypes.StringDType(na_object=np.nan)), ["a", None, "b"]),
        (np.array(["a", "b"], np.dtypes.StringDType()), ["a", "b"]),
        (pd.Series([1.5, math.nan]), [1.5, math.nan]),  # of NumPy's floats, which have no nulls
    ],
)
def test_windows__have_the_nulls_of_columns_as_missing(column: Any, values: list[Any]) -> None:
    counts, expected = ValueWindow.count(column), ValueWindow.count(values)
    assert items(counts) == items(expected)
    assert counts.values.dtype == expected.values.dtype or not len(counts.values)
    assert counts.missing == expected.missing
    window = RowWindow(1)
    window.push(column, range(len(values)))
    for row, value in enumerate(values):
        if value is not None:
            assert window.of(value).tolist() == [row]


@pytest.mark.parametrize(
    "table", [pd.DataFrame({"a": pd.array([1, None])}), polars.DataFrame({"a": [1, None]})]
)
def test_value_window__takes_no_tables(table: Any) -> None:
    with pytest.raises(ArgumentError, match="values must be one-dimensional, not 2-dimensional"):
        ValueWindow.count(table)
