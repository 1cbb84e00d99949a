"""Rounded columns: by the column and one by one the same bits, and those of Python's own round."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from epsjoin.contracts.source_columns import MAX_DECIMALS
from epsjoin.source import rules
from epsjoin.source.rules import round_numbers
from oracles import examples
from tests.source.tiny_source import SOURCE, read

DECIMALS = st.integers(0, MAX_DECIMALS)


@st.composite
def near_a_middle(draw: st.DrawFn) -> float:
    """A number between two decimals, or one of the next float64 on either side."""
    middle = (draw(st.integers(-(10**9), 10**9)) + 0.5) / 10 ** draw(DECIMALS)
    return float(np.nextafter(middle, draw(st.sampled_from([-np.inf, middle, np.inf]))))


@examples(1000)
@given(st.lists(st.one_of(near_a_middle(), st.floats()), min_size=1, max_size=20), DECIMALS)
@example([2.675, 0.5, 1.5, 0.125, -0.04, -0.0, 5e-324, 1.7976931348623157e308, 2.0**52 + 1], 1)
@example([1.005, 2.675, 0.285, 1.115], 2)
def test_round_numbers__gives_the_bits_of_pythons_round(values: list[float], decimals: int) -> None:
    expected = [round(value, decimals) if np.isfinite(value) else value for value in values]
    found = round_numbers(np.array(values), decimals).tolist()
    assert [struct.pack("d", value) for value in found] == [struct.pack("d", value) for value in expected]


def test_round_numbers__asks_python_for_what_is_near_a_middle_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def counting(value: float, decimals: int) -> float:
        asked.append(value)
        return round(value, decimals)

    monkeypatch.setattr(rules, "round", counting, raising=False)
    values = np.random.default_rng(0).uniform(-180, 180, 100_000)
    round_numbers(np.append(values, 12.3456785), 6)
    assert asked == [12.3456785]


def test_records__of_a_rounded_column_are_held_against_its_range_when_they_are_rounded() -> None:
    rounded = replace(SOURCE.columns[1], decimals=2)
    source = replace(SOURCE, columns=(SOURCE.columns[0], rounded))
    taken, refused, halves = read("id,x\n1,1.004\n2,1.006\n3,0.125\n", source)
    assert taken.values == (1, 1.0)
    assert refused.reason == "x: above 1: '1.006'", "with the text as it stands in the file"
    assert halves.values == (3, 0.12), "a half goes to the even neighbour"
