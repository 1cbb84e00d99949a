"""Conditions under which records are taken: the same to pyarrow as to another engine's SQL."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given

from epsjoin.contracts.conditions import Filter, UnknownFormError
from oracles import examples
from tests.contracts.test_row_rules import CONDITIONS, ROWS, sqlite

TYPES = (("a", "integer"), ("b", "integer"), ("c", "string"))
MORE = ["a BETWEEN 1 AND b", "NOT a < b", "NOT (a < b OR c = 'x')", "a NOT BETWEEN -1 AND 2", "a IN (1, 2.0)"]


@pytest.mark.parametrize("condition", [*CONDITIONS, *MORE])
@examples(30)
@given(rows=ROWS)
def test_filter__takes_what_another_engine_takes(condition: str, rows: list[tuple[Any, ...]]) -> None:
    found = Filter(condition, TYPES)
    values = {name: [row[i] for row in rows] for i, name in enumerate("abc") if name in found.columns}
    assert found.takes(values) == [answer == 1 for answer in sqlite(condition, rows)]


@pytest.mark.parametrize(
    ("kind", "condition", "value", "other"),
    [
        ("boolean", "v", True, False),
        ("boolean", "v = FALSE", False, True),
        ("number", "v > 0.5", 0.6, 0.5),
        ("date", "v >= '2020-01-02'", date(2020, 1, 2), date(2020, 1, 1)),
        ("date", "v IN ('2020-01-02')", date(2020, 1, 2), date(2020, 1, 1)),
        ("timestamp", "'2020-01-02' < v", datetime(2020, 1, 2, 1, tzinfo=UTC), datetime(2020, 1, 2)),
        ("string", "`v` <> ''", "a", ""),
    ],
)
def test_filter__of_every_type(kind: str, condition: str, value: object, other: object) -> None:
    found = Filter(condition, (("v", kind),))
    sent = pickle.loads(pickle.dumps(found))  # as Spark sends it to the tasks
    assert sent.takes({"v": [value, other, None]}) == [True, False, False]


def test_filter__takes_zero_with_a_sign_for_zero() -> None:
    for condition, taken in (("v IN (0)", True), ("v NOT IN (0)", False), ("v = 0", True)):
        assert Filter(condition, (("v", "number"),)).takes({"v": [-0.0, 0.0]}) == [taken, taken]


LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("condition", "values", "taken"),
    [
        ("a + 1 > 0", [LARGEST, 5, -LARGEST], [True, True, False]),
        ("a + a + a > a", [LARGEST, 5, -LARGEST], [True, True, False]),
        ("a - 9 < 0", [LARGEST, 5, -LARGEST], [False, True, True]),
        ("a + a > a + 0.5", [LARGEST, 5, -LARGEST], [True, True, False]),
        ("a > 0.5", [LARGEST, 0, 2**60 + 1], [True, False, True]),
        ("a BETWEEN 0.5 AND 10", [LARGEST, 3, 0], [False, True, False]),
        ("a < 9223372036854775808", [LARGEST, -LARGEST], [True, True]),
        ("a > 99999999999999999999", [LARGEST, -LARGEST], [False, False]),
        (f"a > -1{'0' * 60}", [LARGEST, -LARGEST], [True, True]),
        ("x < 9007199254740993", [1.0, 1e16], [True, False]),
        ("x < 99999999999999999999999", [2.0**53, 1e300], [True, False]),
        (f"x < 1{'0' * 60}", [1e59, 1e300], [True, False]),
        (f"x > -1{'0' * 60}", [-1e59, -1e300], [True, False]),
        (f"x < 1{'0' * 400}", [1e308, -1e308], [True, True]),
    ],
)
def test_filter__of_numbers_beyond_64_bits_or_those_of_a_double(
    condition: str, values: list[float], taken: list[bool]
) -> None:
    """What a sum or the other side cannot hold decides as numbers do, and no sum has the other sign."""
    found = Filter(condition, (("a", "integer"), ("x", "number")))
    assert found.takes(dict.fromkeys(found.columns, values)) == taken


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        ("boolean", "v IN (2)"),
        ("boolean", "v IN ('true')"),
        ("string", "v IN (1)"),
        ("string", "v IN ('1', TRUE)"),
        ("integer", "v IN (TRUE)"),
        ("integer", "v NOT IN ('1')"),
        ("number", "v IN ('1')"),
        ("timestamp", "v IN (1704067200000000)"),
    ],
)
def test_filter__lists_no_values_of_another_type(kind: str, condition: str) -> None:
    """As ``=`` has none: 2 is not TRUE, and 1 is not the text 1."""
    with pytest.raises(UnknownFormError, match=rf"v = .* is not for {kind} and"):
        Filter(condition, (("v", kind),))


@pytest.mark.parametrize(
    "condition",
    [
        "a",
        "a IS TRUE",
        "1 = 1",
        "a < ",
        "a + 1",
        "c > 1",
        "a = '1'",
        "c LIKE 'x'",
        "upper(c) = 'X'",
        "a IN (b)",
        "a IN (1.5)",
        "c IN ('x', NULL)",
        "a = (SELECT 1)",
        "t.a = 1",
        "d = 1",
        "a BETWEEN SYMMETRIC 5 AND 1",
        "a = 1; DROP TABLE points",
    ],
)
def test_filter__is_no_condition_of_another_form(condition: str) -> None:
    with pytest.raises(UnknownFormError):
        Filter(condition, TYPES)
