"""Parts of the power law that whole fits do not show alone: weights at a border, lines, checks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.local.epsilon.border import border_weights
from epsjoin.local.epsilon.power_law import fit_line, jackknife_groups, pair_count_curve
from oracles import examples
from oracles import fractal as twin


@examples(30)
@given(st.lists(st.integers(2, 5), min_size=1, max_size=3))
def test_border_weights__make_every_difference_equally_frequent(sides):
    # On a full lattice of L points per axis a difference h has prod(L - |h|) pairs; weighted, prod(L).
    points = np.stack(np.meshgrid(*[np.arange(side) for side in sides], indexing="ij"), -1).reshape(
        -1, len(sides)
    )
    difference = (points[:, None] - points[None]).reshape(-1, len(sides)).astype(float)
    weight = border_weights(difference.T.copy(), np.array(sides, dtype=float))
    total: dict[tuple[float, ...], float] = {}
    for h, each in zip(map(tuple, difference.tolist()), weight.tolist(), strict=True):
        total[h] = total.get(h, 0.0) + each
    assert list(total.values()) == pytest.approx([math.prod(sides)] * len(total))


def test_weights__are_summed_in_the_curve_and_without_each_group():
    points = twin.cube(20, 2, np.random.default_rng(5))  # 20 groups, so one point in each
    pairs = twin.distances(points)
    left, right, distance = (np.array(column) for column in zip(*pairs, strict=True))
    weight = 1.0 + left + right / 7
    curve = pair_count_curve([(left, right, distance, weight)], 20, 2.0)
    for place, radius in enumerate(curve.radius.tolist()):
        assert curve.pairs[place] == pytest.approx(weight[distance <= radius].sum())
        rest = [
            weight[(distance <= radius) & (left != point) & (right != point)].sum() for point in range(20)
        ]
        assert sorted(curve.pairs_without[:, place]) == pytest.approx(sorted(rest))
    assert pair_count_curve([(left, right, distance)], 20, 2.0).pairs.dtype == np.int64


def test_fit_line__finds_a_power_law_among_what_is_usable():
    radius = np.geomspace(0.01, 1.0, 30)
    counts = 500.0 * radius**1.7
    counts[:5] = 7.0
    law = fit_line(radius, counts, np.zeros((0, 30)), np.arange(30) >= 5)
    assert law.exponent == pytest.approx(1.7)
    assert math.exp(law.log_c) == pytest.approx(500.0)
    assert (law.range_low, law.range_high) == (radius[5], 1.0)
    assert law.r_squared == pytest.approx(1.0)
    assert math.isnan(law.interval_low)
    assert fit_line(radius, counts, np.zeros((0, 30)), np.arange(30) >= 25) is None
    assert fit_line(radius, np.full(30, 9.0), np.zeros((0, 30)), np.arange(30) >= 0) is None


def test_jackknife_groups__are_equally_large():
    assert np.bincount(jackknife_groups(105, 3)).tolist() == [6] * 5 + [5] * 15
