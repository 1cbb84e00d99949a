"""A window over values against its definition."""

from __future__ import annotations

import csv
import gzip
import json
import math
import statistics
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.local.windows.batches import Counts
from epsjoin.local.windows.value_window import ValueWindow
from oracles import examples
from oracles.windows import NAN, Window, plain
from tests.local.windows.histories import HISTORIES, NUMBERS, histories, items, listed
from tests.open_sets import DATA

LARGE = st.integers(-(2**63), 2**63 - 1) | st.integers(2**60, 2**60 + 9) | st.integers(2**53 - 4, 2**53 + 4)


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


@pytest.mark.parametrize("n_batches", [1, 4])
def test_value_window__of_many_numbers_far_from_0_has_their_variance(n_batches: int) -> None:
    n, step = 200_000, 2.0**-20
    window = ValueWindow(n_batches)
    for places in np.array_split(np.arange(n), n_batches):
        window.push(1e9 + places * step)
    assert window.mean() == pytest.approx(1e9 + (n - 1) * step / 2, rel=2.0**-52)
    assert window.var() == pytest.approx(step**2 * (n**2 - 1) / 12, rel=1e-9)


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
