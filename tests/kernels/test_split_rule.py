"""The predicates of GESS and the joins they stand for."""

from __future__ import annotations

import math

import pytest

from epsjoin.kernels.split_rule import make_split_rule, may_split


@pytest.mark.parametrize(
    ("k", "msl", "budget", "level", "crossed", "rows", "expected"),
    [
        (2, 1, math.inf, 0, 2, 1, True),
        (2, 1, math.inf, 0, 3, 1, False),  # more dimensions than k
        (2, 1, math.inf, 1, 1, 1, True),  # msl itself may still be split
        (2, 1, math.inf, 2, 1, 1, False),
        (0, 62, math.inf, 0, 1, 1, False),  # MSJ
        (9, 62, math.inf, 61, 9, 10**6, True),  # ORE
        (2, 5, 4.0, 0, 2, 1, True),  # 1 row becomes 4
        (2, 5, 3.99, 0, 2, 1, False),
        (2, 5, 4.0, 1, 1, 4, False),  # 4 rows would become 5
        (2, 5, 1.0, 0, 1, 1, False),
        (2, 5, 2.0, 0, 1, 1, True),
    ],
)
def test_may_split__needs_all_three_predicates(k, msl, budget, level, crossed, rows, expected):
    assert may_split(make_split_rule(k, msl, budget), level, crossed, rows) == expected


def test_may_split__does_not_overflow_on_hundreds_of_crossed_dimensions():
    assert not may_split(make_split_rule(512, 62, math.inf), 0, 512, 1)
