"""Sums of the clusters' centres, which are exact."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.spark.report.clusters import add_exactly
from oracles import examples


@given(st.lists(st.lists(st.floats(-1e15, 1e15)), min_size=1))
@examples(100)
def test_add_exactly__has_the_same_sum_in_every_grouping(groups: list[list[float]]) -> None:
    terms = [term for group in groups for term in add_exactly(group)]
    exact = sum((Fraction(value) for group in groups for value in group), Fraction(0))
    assert math.fsum(terms) == float(exact)
    assert sum(map(Fraction, add_exactly(terms)), Fraction(0)) == exact


@pytest.mark.parametrize("values", [[1e308, 1e308], [math.nan], [math.nan, 1.0], [1.0, math.nan, math.nan]])
def test_add_exactly__beyond_float64_is_nan_and_stays_so(values: list[float]) -> None:
    assert [repr(term) for term in add_exactly(values)] == ["nan"]
