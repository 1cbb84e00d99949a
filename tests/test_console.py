"""Numbers in the sentences of jobs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from epsjoin.console import counted, exactly_in_unit, in_unit, percent, percents

SPARK = Path(__file__).resolve().parents[1] / "jobs" / "epsjoin" / "spark"


def test_counted__has_a_noun_that_fits() -> None:
    assert [counted(n, "row") for n in (0, 1, 1.0, 1234.6)] == ["0 rows", "1 row", "1 row", "1,235 rows"]
    assert [counted(n, "match", "matches") for n in (1, 2)] == ["1 match", "2 matches"]


def test_in_unit__leaves_no_hole_without_a_unit() -> None:
    assert [in_unit(0.02, unit) for unit in ("", "km")] == ["0.02", "0.02 km"]


def test_exactly_in_unit__has_all_digits_that_tell_two_apart() -> None:
    assert [exactly_in_unit(value, "km") for value in (20, 20.0, 0.1 + 0.2)] == [
        *("20 km", "20 km", "0.30000000000000004 km")
    ]


def test_in_unit__of_one_edit_has_no_plural() -> None:
    assert [in_unit(value, "edits") for value in (1.0, 2, 0)] == ["1 edit", "2 edits", "0 edits"]
    assert in_unit(1.0, "degrees Celsius") == "1 degrees Celsius"


def test_percent__of_a_tiny_fraction_is_not_0() -> None:
    assert [percent(n / 3905) for n in (0, 1, 3904, 3905)] == ["0%", "0.0256%", "100%", "100%"]
    assert percent(7e-7) == "0.00007%"
    assert percent(12.345) == "1230%"


def test_percents__of_what_is_above_its_limit_do_not_look_like_it() -> None:
    assert percents(101 / 10_000, 0.01) == ("1.01%", "1%")
    assert percents(100_010 / 10_000_000, 0.01) == ("1.0001%", "1%")
    assert percents(1 / 10_000_000, 0) == ("0.00001%", "0%")


@pytest.mark.parametrize("file", sorted(SPARK.rglob("*.py")), ids=lambda file: file.stem)
def test_sentences__of_the_jobs_have_units_by_in_unit(file: Path) -> None:
    """``{eps:g} {unit}`` has a hole where there is no unit."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            shown = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            assert not [each for each in shown if isinstance(each, ast.Attribute) and each.attr == "unit"]
