from __future__ import annotations

import csv
import gzip
import json
import math
import statistics
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.local.windows.batches import Counts
from epsjoin.local.windows.kinds import VALUE_KINDS
from epsjoin.local.windows.row_window import RowWindow
from epsjoin.local.windows.value_window import ValueWindow
from tests.open_sets import DATA
from tests.oracles import examples
from tests.oracles.windows import NAN, Window, plain

NUMBERS = st.sampled_from([0, 1, -1, 2, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]) | st.none()
LARGE = st.integers(-(2**63), 2**63 - 1) | st.integers(2**60, 2**60 + 9) | st.integers(2**53 - 4, 2**53 + 4)
FLOATS = st.sampled_from([0.0, -0.0, 1.0, 1.5, math.nan, -2.0]) | st.none()
TEXTS = (
    st.sampled_from(["", "a", "ä", "a\0", "\ud800", "\U0001f600", "\uffff", "x" * 40, "x" * 41]) | st.none()
)
BOOLS = st.booleans() | st.none()


def histories(values: Any) -> Any:
    return st.lists(st.lists(values, max_size=8), max_size=14)


HISTORIES = st.one_of(histories(NUMBERS), histories(FLOATS), histories(TEXTS), histories(BOOLS))


def listed(values: Any) -> list[Any]:
    return [plain(value) for value in values.tolist()]


def items(counts: Counts) -> list[tuple[Any, int]]:
    return list(zip(listed(counts.values), counts.rows.tolist(), strict=True))


@given(HISTORIES, st.sampled_from([1, 2, 3, 7, 11]))
@examples(400)
def test_value_window__answers_as_its_definition(history: list[list[Any]], n_batches: int) -> None:
    counters: dict[str, int] = {}
    window, by_definition = ValueWindow(n_batches, counters=counters), Window(n_batches)
    for batch in history:
        window.push(batch)
        by_definition.push(batch)
        counts = window.counts()
        assert items(counts) == by_definition.counts()
        assert counts.missing == by_definition.missing()
        assert window.distinct() == len(counts.values)
        assert listed(window.new()) == by_definition.new()
        assert listed(window.gone()) == by_definition.gone()
    kind = window.counts().values.dtype.kind
    for q in (0, Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), 1):
        expected = by_definition.quantile(Fraction(q))
        assert plain(window.quantile(float(q))) == expected
    if kind in "ifb":
        mean, variance = by_definition.moments()
        scale = max((abs(float(value)) for value in by_definition.values() if value != NAN), default=1.0)
        assert window.mean() == pytest.approx(mean, rel=1e-12, abs=1e-12 * scale, nan_ok=True)
        assert window.var() == pytest.approx(variance, rel=1e-9, abs=1e-9 * scale**2, nan_ok=True)
    distinct = [len({plain(value) for value in batch} - {None}) for batch in history]
    assert counters.get("values_added", 0) == sum(distinct)
    assert counters.get("values_expired", 0) == sum(distinct[: max(0, len(history) - n_batches)])


@given(histories(NUMBERS), histories(NUMBERS))
@examples(300)
def test_windows__are_compared_as_sets(one: list[list[Any]], other: list[list[Any]]) -> None:
    left, right = ValueWindow(3), ValueWindow(5)
    sets = []
    for window, history in ((left, one), (right, other)):
        by_definition = Window(3 if window is left else 5)
        for batch in history:
            window.push(batch)
            by_definition.push(batch)
        sets.append(by_definition.values())
    assert (left & right).tolist() == sorted(sets[0] & sets[1])
    assert (left | right).tolist() == sorted(sets[0] | sets[1])
    assert (left - right).tolist() == sorted(sets[0] - sets[1])


def test_value_window__counts_no_masked_value() -> None:
    found = ValueWindow.count(np.ma.array([1, 99], mask=[False, True]))
    assert found.values.tolist() == [1]
    assert found.missing == 1


def test_windows__have_nan_in_common_and_nothing_with_an_empty_one() -> None:
    one, other, empty = ValueWindow(2), ValueWindow(2), ValueWindow(2)
    one.push([1.0, math.nan])
    other.push([math.nan, 2.0])
    assert listed(one & other) == [NAN]
    assert listed(one | other) == [1.0, 2.0, NAN]
    assert listed(one - other) == [1.0]
    assert (one & empty).tolist() == (empty - one).tolist() == []
    assert listed(empty | one) == listed(one | empty) == listed(one - empty) == [1.0, NAN]


@given(histories(st.integers(-5, 5)), st.sampled_from([1, 3]), st.sampled_from([[0], [-3, 0, 2], [5]]))
@examples(300)
def test_value_window__of_groups_counts_ranges(
    history: list[list[int]], n_batches: int, edges: list[int]
) -> None:
    window, exact = ValueWindow(n_batches, groups=edges), Window(n_batches)
    by_group = Window(n_batches)
    for batch in history:
        window.push(batch)
        exact.push(batch)
        by_group.push([sum(edge <= value for edge in edges) for value in batch])
        assert items(window.counts()) == by_group.counts()
        assert window.new().tolist() == by_group.new()
        assert window.gone().tolist() == by_group.gone()
    assert window.mean() == pytest.approx(exact.moments()[0], nan_ok=True)


@given(HISTORIES, st.sampled_from([1, 2, 6]))
@examples(100)
def test_the_papers_stores_and_indices__answer_as_the_definition(
    history: list[list[Any]], n_batches: int
) -> None:
    kinds = [kind for kind in VALUE_KINDS if kind != "GROUP G"]
    windows = [ValueWindow(n_batches, kind=kind) for kind in kinds]
    by_definition = Window(n_batches)
    for batch in history:
        for window in (by_definition, *windows):
            window.push(batch)
    for kind, window in zip(kinds, windows, strict=True):
        assert items(window.counts()) == by_definition.counts(), kind
        assert window.counts().missing == by_definition.missing()
        assert listed(window.new()) == by_definition.new()
        assert listed(window.gone()) == by_definition.gone()


@given(histories(st.integers(0, 20)), st.sampled_from([1, 2, 6]))
@examples(50)
def test_the_papers_groups__have_the_counts_of_the_ranges(history: list[list[int]], n_batches: int) -> None:
    edges = [4, 9]
    window, by_definition = ValueWindow(n_batches, edges, kind="GROUP G"), Window(n_batches)
    for batch in history:
        window.push(batch)
        by_definition.push([sum(edge <= value for edge in edges) for value in batch])
    assert items(window.counts()) == by_definition.counts()
    assert window.gone().tolist() == by_definition.gone()


def test_the_papers_indices__halve_lists_where_they_are_said_to() -> None:
    probes = {}
    for kind in ("AGGR L", "AGGR T", "AGGR H"):
        work: dict[str, int] = {}
        window = ValueWindow(2, kind=kind, counters=work)
        window.push(list(range(0, 400, 2)))
        work.clear()
        window.push([301] * 7)
        probes[kind] = work["probes"] - 7  # of the store: a list of one value
    assert probes.pop("AGGR H") <= 8
    assert probes == {"AGGR L": 152, "AGGR T": 8}


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


def test_value_window__forgets_values_five_times_while_its_batches_are_replaced() -> None:
    counters: dict[str, int] = {}
    window = ValueWindow(10, counters=counters)
    for batch in range(40):
        window.push([batch, 0])
        assert len(window._index.values) <= 10 + 1 + 10 // 5
    assert counters["purges"] == 40 // (10 // 5)
    assert counters["index_inserts"] == 40  # 0 is inserted once, and stays


@pytest.mark.parametrize("n_batches", [1, 2, 3])
@pytest.mark.parametrize("unit", [1.0, 1e154, 2.0**1023])
def test_value_window__has_a_mean_and_a_variance_of_any_numbers(n_batches: int, unit: float) -> None:
    most = np.finfo(np.float64).max
    for values, mean, variance in (
        ([1.0, 1.0, 1.0], 1.0, 0.0),
        ([1.5, 1.5, 0.0], 1.0, 0.5),
        ([-1.5, 1.5, 1.5], 0.5, 2.0),
        ([most / unit] * 3, most / unit, 0.0),
    ):
        window = ValueWindow(n_batches)
        for batch in np.array_split(np.array(values) * unit, n_batches):
            window.push(batch)
        assert window.mean() == pytest.approx(mean * unit, rel=1e-15)
        assert window.var() == pytest.approx(variance and variance * unit * unit, rel=1e-15)
    assert math.isnan(ValueWindow(1).mean())


@examples(100)
@given(st.lists(st.lists(LARGE, max_size=4), max_size=4))
def test_value_window__of_integers_beyond_float64_has_their_moments(batches: list[list[int]]) -> None:
    window = ValueWindow(4)
    for batch in batches:
        window.push(np.array(batch, np.int64))
    values = [value for batch in batches for value in batch]
    if values:
        exact = [Fraction(value) for value in values]
        assert window.mean() == pytest.approx(
            float(statistics.mean(exact)), abs=1e-12 * max(map(abs, values))
        )
        assert window.var() == pytest.approx(float(statistics.pvariance(exact)), rel=1e-9)


def test_value_window__of_variance_loses_nothing_to_a_large_mean() -> None:
    window = ValueWindow(2)
    window.push([1e15])  # leaves: what is subtracted from sums would leave its rounding behind
    window.push([1.0, 2.0])
    window.push([3.0])
    assert window.mean() == 2.0
    assert window.var() == pytest.approx(2 / 3, rel=1e-15)


EXPECTED = json.loads((DATA / "histories" / "expected_windows.json").read_text(encoding="utf-8"))


def test_types_of_frequencies__are_new_and_gone_as_other_programs_found() -> None:
    path = DATA / "histories" / "airport_frequency_types.csv.gz"
    runs: dict[str, tuple[list[str], list[int]]] = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            values, rows = runs.setdefault(row["run"], ([], []))
            values.append(row["type"])
            rows.append(int(row["rows"]))
    assert sorted(runs) == [expected["run"] for expected in EXPECTED["runs"]]
    window = ValueWindow(EXPECTED["w"])
    for expected in EXPECTED["runs"]:
        values, rows = runs[expected["run"]]
        window.push(Counts(np.array(values), np.array(rows), 0))
        counts = window.counts()
        assert window.new().tolist() == expected["new"]
        assert window.gone().tolist() == expected["gone"]
        assert window.distinct() == expected["distinct_in_window"]
        assert counts.rows.sum() == expected["rows_in_window"]
        most = np.lexsort((np.arange(len(counts.rows)), -counts.rows))[:3]
        assert [[counts.values[place], counts.rows[place]] for place in most] == expected[
            "most_frequent_in_window"
        ]


LARGE = [2**53 + 1, None, 2**53]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (polars.Series(LARGE), LARGE),
        (pa.array(LARGE), LARGE),
        (pa.chunked_array([LARGE[:1], LARGE[1:]]), LARGE),
        (pd.Series(LARGE, index=[5, 5, 6], dtype="Int64"), LARGE),
        (pd.Index(LARGE, dtype="Int64"), LARGE),
        (pd.array(LARGE, "Int64"), LARGE),
        (pd.Series(LARGE, dtype=pd.ArrowDtype(pa.int64())), LARGE),
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


def test_value_window__has_one_zero() -> None:
    window = ValueWindow(1)
    window.push([-0.0])
    assert not np.signbit(window.counts().values[0])


@pytest.mark.parametrize(("values", "kind"), [(["a"], object), ([1], np.int64), ([1.5], np.float64)])
def test_value_window__has_values_of_its_kind_also_where_there_are_none(values: list[Any], kind: Any) -> None:
    window = ValueWindow(2)
    for batch in (values, [], [], []):
        window.push(batch)
        assert window.gone().dtype == window.new().dtype == kind
    grouped = ValueWindow(1, groups=[0.0, 1.0, 2.0])
    for batch in ([0.5], []):
        grouped.push(batch)
    assert grouped.new().dtype == grouped.gone().dtype == np.int64
