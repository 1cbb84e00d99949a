"""Hashes of rows: equal for equal rows wherever they are, different for all others."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from epsjoin.spark.report.digests import digest_rows

TEXTS = ["", "a", "a\0", "b", "ab", "1234567", "12345678", "123456789", "ä" * 9, "x" * 4097, "x" * 4098]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), TEXTS),
    "double": (pa.float64(), [0.0, 1.0, -1.0, 1e-300, np.nan, np.inf, 5e-324]),
    "long": (pa.int64(), [0, 1, -1, 2**62, -(2**63)]),
    "boolean": (pa.bool_(), [False, True]),
    "date": (pa.date32(), [date(1970, 1, 1), date(2023, 6, 4)]),
    "timestamp": (pa.timestamp("us", tz="UTC"), [datetime(1970, 1, 1, tzinfo=UTC), datetime.now(UTC)]),
}


def _digest(rows: list[tuple[Any, ...]], *types: pa.DataType) -> list[int]:
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]
    found: list[int] = digest_rows(pa.record_batch(columns, [f"c{i}" for i in range(len(types))])).tolist()
    return found


@pytest.mark.parametrize("kind", VALUES)
def test_digest_rows__differs_for_every_two_values_and_null(kind: str) -> None:
    type_, values = VALUES[kind]
    found = _digest([(value,) for value in [*values, None]], type_)
    for one, other in combinations(range(len(found)), 2):
        assert found[one] != found[other], ([*values, None][one], [*values, None][other])


@pytest.mark.parametrize("kind", VALUES)
def test_digest_rows__is_the_rows_own_whatever_batch_it_is_in(kind: str) -> None:
    type_, values = VALUES[kind]
    column = pa.array([*values, None, *values], type_)
    whole = digest_rows(pa.record_batch({"a": column}))
    for begin in range(len(column)):
        part = pa.record_batch({"a": column}).slice(begin, 2)
        assert digest_rows(part).tolist() == whole[begin : begin + 2].tolist()


def test_digest_rows__tells_columns_apart() -> None:
    text = pa.string()
    rows = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("a", None), (None, "a"), (None, None), ("", "")]
    assert len(set(_digest(rows, text, text))) == len(rows)


def test_digest_rows__takes_numbers_that_compare_equal_for_equal() -> None:
    zero, minus_zero, nan, other_nan = _digest([(0.0,), (-0.0,), (np.nan,), (-np.nan,)], pa.float64())
    assert zero == minus_zero
    assert nan == other_nan
