"""Semi and anti joins in which many rows are equal, or near one another: few pairs are met."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epsjoin import Equi, JoinKind, Similarity, progressive_join
from epsjoin.local.progressive.equal_rows import find_equal_rows
from epsjoin.local.progressive.kinds.kind import JoinCondition


@pytest.mark.parametrize("columns", [1, 3])
def test_find_equal_rows__finds_the_first_of_each_kind(columns: int) -> None:
    random = np.random.default_rng(columns)
    for n in (0, 1, 2, 200, 5000):
        values = random.integers(0, 4, (n, columns)) * 0.1
        asked = random.random(n) < 0.8
        first: dict[tuple[float, ...], int] = {}
        expected = {}
        for row, key in enumerate(map(tuple, values.tolist())):
            if asked[row] and first.setdefault(key, row) != row:
                expected[row] = first[key]
        of, later = find_equal_rows(values, asked)
        assert len(later) == len(expected)
        assert dict(zip(later.tolist(), of.tolist(), strict=True)) == expected


def test_find_equal_rows__takes_no_two_numbers_for_one() -> None:
    values = np.array([[0, 2**53], [0, 2**53 + 1], [1, 2**53], [0, 2**53 + 1]])
    assert [places.tolist() for places in find_equal_rows(values, np.ones(4, np.bool_))] == [[1], [3]]


def joined(
    *tables: Any, on: JoinCondition, how: Any, memory: str = "2MB"
) -> tuple[list[int], dict[str, Any]]:
    counters: dict[str, Any] = {}
    with progressive_join(*tables, on=on, how=how, memory=memory, counters=counters) as found:
        return sorted(row for batch in found for row in batch.pairs.left.tolist()), counters


HOT = 30_000
"""Equal rows, which are those of several runs."""
DENSE = 12_000
"""Rows that are all near one another, and of several runs of less memory."""


@pytest.mark.parametrize("on", [Equi(), Similarity(0.5)], ids=["equi", "similarity"])
@pytest.mark.parametrize("two", [False, True], ids=["one", "two"])
def test_semi_and_anti__of_many_equal_rows_look_at_few_pairs(on: JoinCondition, two: bool) -> None:
    single = np.arange(100.0, 2100.0)  # rows without a partner, or with a single one
    table = np.random.default_rng(0).permutation(np.concatenate([np.zeros(HOT), single]))[:, np.newaxis]
    others = np.concatenate([np.zeros(HOT), single[:50]])[:, np.newaxis]
    has_partner = (table[:, 0] == 0) | (two & (table[:, 0] < 150))
    for how, wanted in (("semi", has_partner), ("anti", ~has_partner)):
        rows, counters = joined(*((table, others) if two else (table,)), on=on, how=how)
        assert rows == np.flatnonzero(wanted).tolist()
        assert counters["candidates"] <= 4 * (len(table) + len(others))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("two", [False, True], ids=["one", "two"])
def test_semi_and_anti__of_dense_rows_look_at_few_pairs(two: bool, metric: str) -> None:
    """No two are equal, and each is near thousands: one partner suffices."""
    random = np.random.default_rng(0)
    angle = np.concatenate([random.uniform(0.0, 0.001, DENSE), np.linspace(0.5, 1.5, 100)])
    table = np.column_stack((np.cos(angle), np.sin(angle)))[random.permutation(DENSE + 100)]
    others = table[::2] + 1e-7
    is_hot = np.arctan2(table[:, 1], table[:, 0]) < 0.1
    has_partner = is_hot | (two & (np.arange(len(table)) % 2 == 0))
    on = Similarity({"euclidean": 0.002, "cosine": 2e-6}[metric], metric)
    for how, wanted in (("semi", has_partner), ("anti", ~has_partner)):
        tables = (table, others) if two else (table,)
        rows, counters = joined(*tables, on=on, how=how, memory="1.5MB")
        assert rows == np.flatnonzero(wanted).tolist()
        assert counters["merges"]
        assert counters["distance_computations"] <= 4 * len(table)  # of 72 million pairs


def test_semi_and_anti__of_integers_join_no_null_with_another(tmp_path: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": pa.array([None, 0, None, 7, 7, 7])}), tmp_path / "rows.parquet")
    assert joined(tmp_path / "rows.parquet", on=Equi(), how="semi")[0] == [3, 4, 5]
    assert joined(tmp_path / "rows.parquet", on=Equi(), how="anti")[0] == [0, 1, 2]
    floats = np.array([np.nan, 0.0, np.nan, -0.0])
    assert joined(floats, on=Equi(), how="semi")[0] == [1, 3]


class Above(JoinKind):
    """Rows of which one is above the other, by less than 1: no two equal ones."""

    def key(self, values: Any) -> Any:
        return values[:, 0]

    def expire(self, values: Any, is_right: Any) -> Any:  # noqa: ARG002  # as of JoinKind
        return values[:, 0] + 1.0

    def joins(self, left: Any, right: Any) -> Any:
        return (left[:, 0] != right[:, 0]) & (np.abs(left[:, 0] - right[:, 0]) < 1.0)


class Odd(Equi):
    """Rows with the same odd number."""

    def joins(self, left: Any, right: Any) -> Any:
        return super().joins(left, right) & (left[:, 0] % 2 == 1)


def test_semi__of_a_subclass_that_joins_fewer_rows_looks_at_each() -> None:
    assert joined(np.array([2, 2, 3, 3]), on=Odd(), how="semi")[0] == [2, 3]


def test_semi__of_a_kind_that_does_not_join_equal_rows_looks_at_each() -> None:
    assert joined(np.array([[5.0], [5.0], [9.0], [9.5], [9.5]]), on=Above(), how="semi")[0] == [2, 3, 4]
