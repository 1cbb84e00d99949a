"""Corners in fixed point and the order of codes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels import codes as join_codes
from epsjoin.kernels.codes import BITS, TOP
from epsjoin.kernels.sorting import FEW
from oracles import examples
from tests.kernels.helpers import make_code

BITSTRINGS = st.text("01", max_size=37)


@examples(300)
@given(st.lists(BITSTRINGS, min_size=1, max_size=12))
def test_code_order__is_that_of_strings_with_a_prefix_first(texts):
    codes = np.array([make_code(text, 7) for text in texts])
    assert [texts[i] for i in join_codes.code_order(codes)] == sorted(texts)


@pytest.mark.parametrize("width", [1, 8, 11])
def test_code_order__of_many_is_that_of_few(width):
    codes = np.random.default_rng(width).choice(np.array([0, 1, 255], np.uint8), (2 * FEW, width))
    keys = join_codes.as_keys(codes)
    assert join_codes.code_order(codes).tolist() == np.argsort(keys, kind="stable").tolist()


@examples(300)
@given(BITSTRINGS, BITSTRINGS)
def test_is_prefix__is_that_of_strings(a, b):
    assert join_codes.is_prefix(make_code(a, 7), make_code(b, 7)) == b.startswith(a)
    assert join_codes.is_prefix(make_code(a, 12), make_code(a + b, 12))
    assert join_codes.is_prefix(make_code(a + b, 12), make_code(a, 12)) == (b == "")


@examples(300)
@given(BITSTRINGS, BITSTRINGS)
def test_range_ends__lie_behind_all_extensions_and_before_all_else(a, b):
    begin, key = make_code(a, 7), make_code(b, 7)
    end = join_codes.range_ends(begin[None])[0]
    assert (begin.tobytes() <= key.tobytes() <= end.tobytes()) == b.startswith(a)


@examples(200)
@given(st.integers(1, 70), st.integers(0, 12), st.integers(0, 10**9))
def test_write_code__interleaves_the_highest_bits_level_by_level(d, level, seed):
    corner = np.random.default_rng(seed).integers(0, TOP, d, endpoint=True)
    code = np.full(join_codes.code_width(12 * d), 255, np.uint8)
    join_codes.write_code(corner, level, code, 0)
    paths = [f"{value:0{BITS}b}" for value in corner.tolist()]
    expected = "".join(path[depth] for depth in range(level) for path in paths)
    assert (code == make_code(expected, len(code))).all()
    assert join_codes.owns_pair(code, corner, corner)


@examples(200)
@given(st.integers(1, 9), st.integers(0, 5), st.integers(0, 8), st.integers(0, 10**9))
def test_write_code__may_end_inside_a_level(d, level, more, seed):
    more %= d
    random = np.random.default_rng(seed)
    corner = random.integers(0, TOP, d, endpoint=True)
    code = np.full(join_codes.code_width(6 * d), 255, np.uint8)
    join_codes.write_code(corner, level, code, more)
    paths = [f"{value:0{BITS}b}" for value in corner.tolist()]
    expected = "".join(path[depth] for depth in range(level + 1) for path in paths)[: level * d + more]
    assert (code == make_code(expected, len(code))).all()
    assert join_codes.owns_pair(code, corner, corner)
    # the cell is halved at this level in the first axes only
    for axis in range(d):
        other = corner.copy()
        other[axis] ^= 1 << (BITS - 1 - level)
        assert join_codes.owns_pair(code, other, other) == (axis >= more)
        assert join_codes.hold_cubes(
            code[None], np.minimum(corner, other)[None], np.maximum(corner, other)[None]
        )[0] == (axis >= more)


VALUES = st.one_of(
    st.floats(-1e12, 1e12, allow_subnormal=True),
    st.floats(-1, 1),
    st.integers(-(10**6), 10**6).map(float),
    st.floats(1e9, 1e9 + 1e-3),
)


@examples(400)
@given(VALUES, st.one_of(st.floats(1e-12, 1e6), st.integers(1, 64).map(lambda i: i / 16)), st.floats(-1, 1))
def test_cube_corners__of_two_points_within_eps_meet(x, eps, share):
    y = x + share * eps
    if abs(Fraction(x) - Fraction(y)) > Fraction(eps):
        y = x
    points = np.array([[x], [y]])
    for low, width in ((min(x, y), abs(x - y)), (x - 1e3, 2e3), (0.0, 1.0), (y, eps)):
        lower, upper = join_codes.cube_corners(points, np.array([0]), np.array([low]), width, eps)
        assert upper[0, 0] >= lower[1, 0]
        assert upper[1, 0] >= lower[0, 0]
        assert 0 <= lower.min() <= upper.max() <= TOP


@examples(300)
@given(VALUES, st.floats(1e-12, 1e6))
def test_cube_sides__lie_outside_the_exact_cube_but_not_far(x, eps):
    low, high = join_codes.cube_lower(x, eps / 2), join_codes.cube_upper(x, eps / 2)
    exact_low, exact_high = Fraction(x) - Fraction(eps / 2), Fraction(x) + Fraction(eps / 2)
    assert Fraction(low) <= exact_low
    assert Fraction(high) >= exact_high
    tolerance = 2.0**-48 * (abs(x) + eps)
    assert float(exact_low) - low <= tolerance
    assert high - float(exact_high) <= tolerance


@examples(300)
@given(VALUES, VALUES, st.floats(1e-9, 1e6))
def test_cube_corners__are_monotone(x, y, eps):
    points = np.sort(np.array([[x], [y], [np.nextafter(x, np.inf)]]), axis=0)
    lower, upper = join_codes.cube_corners(points, np.array([0]), np.array([-3.0]), 1e4, eps)
    assert (np.diff(lower[:, 0]) >= 0).all()
    assert (np.diff(upper[:, 0]) >= 0).all()
    assert (lower <= upper).all()


def test_cube_corners__take_one_scale_for_all_axes_and_survive_a_space_without_width():
    points = np.array([[0.0, 0.0], [1.0, 0.25]])
    lower, _ = join_codes.cube_corners(points, np.array([0, 1]), np.zeros(2), 1.0, 1e-9)
    assert abs(lower[1, 1] / 2**BITS - 0.25) < 1e-8
    assert lower[1, 0] / 2**BITS > 0.99
    lower, upper = join_codes.cube_corners(points, np.array([1]), np.zeros(2), 0.0, 0.1)
    assert not lower.any()
    assert not upper.any()


def test_deepest_level__is_the_last_with_cells_of_at_least_eps():
    assert join_codes.deepest_level(1.0, 0.25, 2) == 2
    assert join_codes.deepest_level(1.0, 0.2500001, 2) == 1
    assert join_codes.deepest_level(1.0, 3.0, 2) == 0
    assert join_codes.deepest_level(0.0, 1.0, 2) == 0
    assert join_codes.deepest_level(1.0, 1e-30, 2) == BITS
    assert join_codes.deepest_level(1.0, 1e-30, 3000) * 3000 <= join_codes.MAX_CODE_BITS


def test_hold_cubes__tells_replicas_by_the_row_alone():
    lower = np.array([[0], [0]])
    upper = np.array([[TOP // 4], [TOP - 3]])
    codes = np.array([make_code("0", 7), make_code("0", 7)])
    assert join_codes.hold_cubes(codes, lower, upper).tolist() == [True, False]
