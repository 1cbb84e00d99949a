"""Rows of the replicator and where they are carried."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.codes import BITS, code_bits, code_order, cube_corners, deepest_level, is_prefix
from epsjoin.kernels.replicate import carry, owner_parts, replicate_cubes
from epsjoin.kernels.split_rule import make_split_rule
from oracles import examples
from oracles import join as twin


def encode(points, eps, k, msl, budget=math.inf):
    low = points.min(axis=0)
    width = float((points.max(axis=0) - low).max())
    axes = np.arange(points.shape[1])
    lower, upper = cube_corners(points, axes, low, width, eps)
    levels = deepest_level(width, eps, points.shape[1])
    return replicate_cubes(lower, upper, levels, make_split_rule(k, msl, budget)), lower, upper, levels


def digits(code):
    bits = np.unpackbits(code[:-2])[: code_bits(code)]
    return tuple(bits.tolist())


def twin_codes(points, eps, k, msl, budget=math.inf):
    low = [Fraction(v) for v in points.min(axis=0).tolist()]
    width = max(Fraction(v) - low[i] for i, v in enumerate(points.max(axis=0).tolist()))
    levels = twin.deepest_level(width, Fraction(eps))
    return [
        twin.replicate(twin.cube(row, Fraction(eps)), low, width, levels, k, msl, budget)
        for row in points.tolist()
    ]


@pytest.mark.parametrize(
    ("d", "eps", "k", "msl", "budget"),
    [
        (1, 0.01, 1, 62, math.inf),
        (2, 0.05, 2, 62, math.inf),  # ORE
        (2, 0.05, 0, 62, math.inf),  # MSJ
        (2, 0.05, 1, 1, math.inf),
        (2, 0.03, 2, 62, 3.9),
        (3, 0.1, 3, 0, math.inf),
        (3, 0.06, 2, 2, 6.0),
        (5, 0.2, 5, 62, math.inf),
        (8, 0.1, 2, 1, 16.0),
    ],
)
def test_replicate_cubes__gives_the_codes_of_figure_3_4(d, eps, k, msl, budget):
    points = np.random.default_rng(d).random((40, d))
    rows, *_ = encode(points, eps, k, msl, budget)
    expected = twin_codes(points, eps, k, msl, math.floor(budget) if math.isfinite(budget) else math.inf)
    for number, codes in enumerate(expected):
        of_point = rows.row == number
        assert sorted(digits(code) for code in rows.codes[of_point]) == sorted(codes)
        assert (rows.is_replica[of_point] == (len(codes) > 1)).all()


def test_replicate_cubes__really_replicates_and_msj_does_not():
    points = np.random.default_rng(7).random((500, 2))
    assert len(encode(points, 0.05, 2, 62)[0].row) > 2 * len(points)
    assert len(encode(points, 0.05, 1, 0)[0].row) > len(points)
    msj = encode(points, 0.05, 0, 62)[0]
    assert msj.row.tolist() == list(range(500))
    assert not msj.is_replica.any()


@examples(60)
@given(
    st.sampled_from(twin.KINDS),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 6),
    st.floats(1, 40),
    st.integers(0, 10**6),
)
def test_replicate_cubes__cells_are_disjoint_and_cover_the_cube_within_the_budget(
    kind, d, k, msl, budget, seed
):
    points, eps = twin.awkward_points(kind, 12, d, seed)
    rows, lower, upper, levels = encode(points, eps, k, msl, budget)
    random = np.random.default_rng(seed)
    for number in range(len(points)):
        codes = rows.codes[rows.row == number]
        assert 1 <= len(codes) <= budget
        for i, a in enumerate(codes):
            assert code_bits(a) <= levels * d
            for b in codes[i + 1 :]:
                assert not is_prefix(a, b)
                assert not is_prefix(b, a)
        inside = random.integers(lower[number], upper[number], size=(20, d), endpoint=True)
        for corner in [lower[number], upper[number], *inside]:
            holding = 0
            for code in codes:
                level = code_bits(code) // d
                bits = np.array(digits(code), np.int64).reshape(level, d)
                cell = [int("0" + "".join(map(str, bits[:, i])), 2) for i in range(d)]
                holding += all(int(corner[i]) >> (BITS - level) == cell[i] for i in range(d))
            assert holding == 1


def test_replicate_cubes__spends_a_budget_on_the_first_cuts():
    # the cube crosses the first cut of both axes; of its four pieces some would be cut again
    points = np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]])
    rows, *_ = encode(points, 0.24, 2, 62, 4.0)
    assert sorted(digits(code)[:2] for code in rows.codes[rows.row == 1]) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_replicate_cubes__stops_before_a_million_rows_of_one_cube():
    corners = np.zeros((1, 24), np.int64), np.full((1, 24), (1 << BITS) - 1)
    with pytest.raises(OverflowError, match="row 0 would become more than"):
        replicate_cubes(*corners, 3, make_split_rule(24, 62, math.inf))


def test_replicate_cubes__takes_no_points():
    rows = replicate_cubes(
        np.empty((0, 3), np.int64), np.empty((0, 3), np.int64), 2, make_split_rule(3, 2, 4.0)
    )
    assert rows.codes.shape == (0, 3)


@examples(60)
@given(st.integers(1, 3), st.integers(0, 3), st.integers(1, 12), st.integers(0, 10**6))
def test_carry__brings_every_prefix_to_the_owner_of_its_extension(d, k, n_boundaries, seed):
    random = np.random.default_rng(seed)
    rows, *_ = encode(random.random((30, d)), 0.05, k, 9)
    codes = rows.codes[code_order(rows.codes)]
    boundaries = codes[np.unique(random.integers(0, len(codes), n_boundaries))]
    boundaries = np.unique(boundaries, axis=0)  # NumPy sorts rows of bytes from the left as well
    carried = carry(codes, boundaries)
    owner = owner_parts(codes, boundaries)
    assert (np.diff(owner) >= 0).all()
    parts = [set(carried.part[carried.coded == row].tolist()) for row in range(len(codes))]
    for a in range(len(codes)):
        assert min(parts[a]) == owner[a]
        touched = {owner[b] for b in range(len(codes)) if is_prefix(codes[a], codes[b])}
        assert touched <= parts[a]
        for part in parts[a] - {owner[a]}:  # carried only where the range reaches: to an extended boundary
            assert is_prefix(codes[a], boundaries[part - 1])


def test_carry__leaves_every_row_at_home_without_boundaries():
    rows, *_ = encode(np.random.default_rng(0).random((20, 2)), 0.1, 2, 2)
    carried = carry(rows.codes, rows.codes[:0])
    assert carried.coded.tolist() == list(range(len(rows.codes)))
    assert not carried.part.any()


def test_owner_parts__begin_at_their_boundary():
    rows, *_ = encode(np.random.default_rng(0).random((40, 2)), 0.05, 1, 9)
    boundaries = np.unique(rows.codes, axis=0)[::5]
    assert owner_parts(boundaries, boundaries).tolist() == list(range(1, len(boundaries) + 1))
