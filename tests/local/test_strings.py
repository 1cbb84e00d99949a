"""The join of strings, against the whole table of every pair."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from epsjoin import ArgumentError, BudgetError, Pairs, string_join
from oracles.strings import levenshtein

CITIES = Path(__file__).parents[1] / "data" / "cities" / "geonames_cities1000.csv.gz"


def names(number: int) -> list[str]:
    """Names of the first cities."""
    with gzip.open(CITIES, "rt", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        return [next(rows)["name"] for _ in range(number)]


def listed(pairs: Pairs) -> list[tuple[int, int, float]]:
    return list(zip(*(column.tolist() for column in pairs), strict=True))


def some(seed: int, number: int) -> list[str]:
    """Short strings of few characters, with equal and empty ones among them."""
    random = Random(seed)
    return ["".join(random.choices("ab\u00e9\U0001f600", k=random.randint(0, 7))) for _ in range(number)]


@pytest.mark.parametrize(("q", "bins"), [(1, 32), (2, 16), (3, 1)])
def test_join__is_all_pairs_of_the_whole_table(q: int, bins: int) -> None:
    strings, others = some(1, 80), some(2, 40)
    exact = {(i, j): levenshtein(a, b) for i, a in enumerate(strings) for j, b in enumerate(strings) if i < j}
    across = {(i, j): levenshtein(a, b) for i, a in enumerate(strings) for j, b in enumerate(others)}
    for k in (0, 1, 2, 5, 9):
        expected = [(i, j, d) for (i, j), d in exact.items() if d <= k]
        assert expected
        assert listed(string_join(strings, k, q=q, bins=bins)) == expected
        expected = [(i, j, d) for (i, j), d in across.items() if d <= k]
        assert expected
        assert listed(string_join(strings, k, others, q=q, bins=bins)) == expected


def test_join__of_names_of_cities_compares_few_pairs() -> None:
    given = names(700)
    counters: dict[str, int] = {}
    found = listed(string_join(given, 2, n_jobs=2, counters=counters))
    assert found == [
        (i, j, d)
        for i, a in enumerate(given)
        for j, b in enumerate(given[i + 1 :], i + 1)
        if abs(len(a) - len(b)) <= 2 and (d := levenshtein(a, b)) <= 2
    ]
    assert counters["pairs"] == len(found) == 225
    assert counters["strings"] == 700 > counters["different"]
    assert counters["candidates"] == 9123  # of 244,650 pairs


def test_join__of_many_equal_strings_is_refused_at_once() -> None:
    with pytest.raises(BudgetError, match="at least 4,999,950,000 pairs, and max_pairs = 100,000,000"):
        string_join(["a"] * 100_000, 0)
    with pytest.raises(BudgetError, match="at least 6 pairs, and max_pairs = 5"):
        string_join(["a", "b", "c", "d"], 1, max_pairs=5)


@pytest.mark.parametrize("k", [10**8, 10**19])
def test_join__of_a_k_beyond_all_lengths_is_that_of_the_longest(k: int) -> None:
    strings = ["a", "bb", "", "abc"]
    for found, expected in zip(string_join(strings, k), string_join(strings, 3), strict=True):
        assert found.tolist() == expected.tolist()
    assert len(string_join(strings, k).left) == 6


def test_join__of_none_is_empty() -> None:
    assert listed(string_join([], 2)) == []
    assert listed(string_join(["", ""], 0)) == [(0, 1, 0.0)]
    assert listed(string_join(["a"], 2, [])) == []


def test_join__reads_halves_of_surrogate_pairs() -> None:
    assert listed(string_join(["\ud800", "\ud801"], 1)) == [(0, 1, 1.0)]


@pytest.mark.parametrize(
    "make", [np.array, pd.Series, polars.Series, pa.array, lambda texts: pa.chunked_array([texts])]
)
def test_join__takes_columns_of_any_package(make: Callable[[list[str]], Any]) -> None:
    assert listed(string_join(make(["ab", "abc", "x"]), 1)) == [(0, 1, 1.0)]
    assert listed(string_join(["ab"], 1, make(["x", "b"]))) == [(0, 1, 1.0)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 1.0}, "k must be a whole number"),
        ({"q": 0}, "q must be a whole number, at least 1"),
        ({"bins": 0}, "bins must be"),
        ({"bins": 10**9}, "bins must be a whole number of at most 65,536"),
        ({"strings": "ab"}, "strings must be a list of strings, not one str"),
        ({"strings": 5}, "strings must be a list of strings, not one int"),
        ({"strings": np.array("ab")}, "strings must be a list of strings, not one ndarray"),
        ({"other": 5}, "other must be a list of strings, not one int"),
        ({"strings": ["a", None]}, "strings must be strings; row 1 is NoneType"),
        ({"other": [b"a"]}, "other must be strings; row 0 is bytes"),
        ({"other": pa.array(["a", None])}, "other must be strings; row 1 is NoneType"),
    ],
)
def test_join__refuses_wrong_arguments(change: dict[str, object], message: str) -> None:
    arguments = {"strings": ["a"], "k": 1, **change}
    with pytest.raises(ArgumentError, match=message):
        string_join(**arguments)
