"""Batches of values that windows move over, and what a window says of them."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from epsjoin.local.windows.batches import Counts
from oracles.windows import plain

NUMBERS = st.sampled_from([0, 1, -1, 2, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]) | st.none()
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
