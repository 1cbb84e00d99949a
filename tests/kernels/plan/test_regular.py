"""Rows of the replicator and where they are carried."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.kernels.codes import (
    BITS,
    code_bits,
    code_order,
    cube_corners,
    deepest_level,
    hold_cubes,
    is_prefix,
)
from epsjoin.kernels.plan.regular import carry, owner_parts
from epsjoin.local.plan.split_rules.encode import replicate_cubes
from epsjoin.local.plan.split_rules.own_rule import OwnRule
from epsjoin.local.plan.split_rules.rules import make_split_rule, parse_split_rule
from epsjoin.params import DECISIONS
from oracles import examples, papers
from oracles import join as twin


def encode(points, eps, k, msl, budget=math.inf, rule=None, decisions="global"):
    low = points.min(axis=0)
    width = float((points.max(axis=0) - low).max())
    axes = np.arange(points.shape[1])
    lower, upper = cube_corners(points, axes, low, width, eps)
    levels = deepest_level(width, eps, points.shape[1])
    rule = make_split_rule(k, msl, budget) if rule is None else rule
    return replicate_cubes(lower, upper, levels, rule, decisions), lower, upper, levels


def digits(code):
    bits = np.unpackbits(code[:-2])[: code_bits(code)]
    return tuple(bits.tolist())


def twin_codes(points, eps, k, msl, budget=math.inf, rule=None, decisions="global"):
    low = [Fraction(v) for v in points.min(axis=0).tolist()]
    width = max(Fraction(v) - low[i] for i, v in enumerate(points.max(axis=0).tolist()))
    levels = papers.deepest_level(width, Fraction(eps))
    return [
        papers.replicate(papers.cube(row, Fraction(eps)), low, width, levels, k, msl, budget, rule, decisions)
        for row in points.tolist()
    ]


@pytest.mark.parametrize("decisions", DECISIONS)
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
def test_replicate_cubes__gives_the_codes_of_figure_3_4(d, eps, k, msl, budget, decisions):
    points = np.random.default_rng(d).random((40, d))
    rows, *_ = encode(points, eps, k, msl, budget, decisions=decisions)
    most = math.floor(budget) if math.isfinite(budget) else math.inf
    same_codes(rows, twin_codes(points, eps, k, msl, most, decisions=decisions))


def same_codes(rows, expected):
    for number, codes in enumerate(expected):
        of_point = rows.row == number
        assert sorted(digits(code) for code in rows.codes[of_point]) == sorted(codes)
        assert (rows.is_replica[of_point] == (len(codes) > 1)).all()


RULES = {  # text or own rule, and the twin's
    "and": ("k<=2 and level<=1", lambda level, crossed, *_: crossed <= 2 and level <= 1),
    "or": ("k<=1 or level<=0", lambda level, crossed, *_: crossed <= 1 or level <= 0),
    "not": ("not k<=1 and not level>2", lambda level, crossed, *_: crossed > 1 and level <= 2),
    "generation": (
        "k<=2 and generation<=1 or level>2",
        lambda level, crossed, _rows, generation: (crossed <= 2 and generation <= 1) or level > 2,
    ),
    "never": ("k<0", lambda *_: False),
    "own": (None, lambda level, crossed, rows, *_: (level + crossed + rows) % 3 != 0),
    "own of rows": (None, lambda level, crossed, rows, *_: crossed <= 2 and rows < 20 - 3 * level),
}


def rule_of(name, budget=math.inf):
    text, predicate = RULES[name]
    return OwnRule(predicate, budget) if text is None else parse_split_rule(text).within(budget)


@pytest.mark.parametrize("budget", [math.inf, 24, 5, 1])
@pytest.mark.parametrize("decisions", DECISIONS)
@pytest.mark.parametrize("name", RULES)
def test_replicate_cubes__obeys_any_rule(name, decisions, budget):
    points = np.random.default_rng(11).random((30, 3))
    rows, *_ = encode(points, 0.06, 0, 0, rule=rule_of(name, budget), decisions=decisions)
    same_codes(rows, twin_codes(points, 0.06, 0, 0, budget, RULES[name][1], decisions))
    assert np.bincount(rows.row).max() <= budget


@pytest.mark.parametrize("decisions", DECISIONS)
def test_replicate_cubes__asks_the_users_rule_once_for_each_question(decisions):
    asked = []

    def moody(level, crossed, rows):  # no function of the three, but asked once for each it is one
        assert (level, crossed, rows) not in asked
        asked.append((level, crossed, rows))
        return len(asked) % 8

    points = np.random.default_rng(5).random((100, 5))
    rows, lower, upper, _ = encode(points, 0.04, 0, 0, rule=OwnRule(moody, 50), decisions=decisions)
    assert 10 < len(asked) < len(rows.row)
    assert np.bincount(rows.row).max() > 16  # the table of answers has grown
    assert (rows.is_replica == ~hold_cubes(rows.codes, lower[rows.row], upper[rows.row])).all()


def test_replicate_cubes__lets_the_users_rule_fail():
    def broken(level, crossed, rows):
        raise KeyError("my own error")

    with pytest.raises(KeyError, match="my own error"):
        encode(np.random.default_rng(5).random((20, 2)), 0.1, 0, 0, rule=OwnRule(broken))


def test_replicate_cubes__splits_everywhere_into_the_same_cells_all_ways():
    points = np.random.default_rng(6).random((50, 3))
    all_ways = [encode(points, 0.08, 3, 62, decisions=decisions)[0] for decisions in DECISIONS]
    keys = [sorted(zip(rows.row.tolist(), map(bytes, rows.codes), strict=True)) for rows in all_ways]
    assert keys[0] == keys[1] == keys[2]


def test_replicate_cubes__ends_local_codes_before_the_first_cut_that_is_crossed():
    points = np.random.default_rng(8).random((400, 3))
    of_levels = encode(points, 0.1, 0, 62)[0].codes
    of_cuts = encode(points, 0.1, 0, 62, decisions="local")[0].codes
    more = [code_bits(b) - code_bits(a) for a, b in zip(of_levels, of_cuts, strict=True)]
    assert set(more) == {0, 1, 2}
    assert all(is_prefix(a, b) for a, b in zip(of_levels, of_cuts, strict=True))


def test_replicate_cubes__inside_extends_each_global_code_up_to_the_first_cut_that_is_crossed():
    points = np.random.default_rng(8).random((200, 4))
    for k in (0, 1, 3):
        of_levels, lower, upper, _ = encode(points, 0.1, k, 1)
        inside = encode(points, 0.1, k, 1, decisions="inside")[0]
        assert (inside.row == of_levels.row).all()
        assert all(is_prefix(a, b) for a, b in zip(of_levels.codes, inside.codes, strict=True))
        more = [code_bits(b) - code_bits(a) for a, b in zip(of_levels.codes, inside.codes, strict=True)]
        assert set(more) == {0, 1, 2, 3}
        assert (inside.is_replica == ~hold_cubes(inside.codes, lower[inside.row], upper[inside.row])).all()


def test_replicate_cubes__counts_the_splits_of_the_path_at_the_level():
    # x crosses both cuts of level 0, y one of level 0 and one of level 1
    points = np.array([[0.0, 0.0], [0.5, 0.5], [0.5, 0.25], [1.0, 1.0]])
    rows, *_ = encode(points, 0.2, 1, 62, decisions="local")
    codes = [sorted(digits(code) for code in rows.codes[rows.row == point]) for point in (1, 2)]
    assert codes == [[(0,), (1,)], [(0, 0, 1, 0), (0, 0, 1, 1), (1, 0, 0, 0), (1, 0, 0, 1)]]
    rows, *_ = encode(points, 0.2, 1, 0, decisions="local")
    assert sorted(digits(code) for code in rows.codes[rows.row == 2]) == [(0, 0, 1), (1, 0, 0)]


def test_replicate_cubes__refuses_other_decisions():
    with pytest.raises(ArgumentError, match="decisions must be one of inside, global, local, not 'binary'"):
        encode(np.random.default_rng(0).random((5, 2)), 0.1, 0, 0, decisions="binary")


def test_replicate_cubes__really_replicates_and_msj_does_not():
    points = np.random.default_rng(7).random((500, 2))
    assert len(encode(points, 0.05, 2, 62)[0].row) > 2 * len(points)
    assert len(encode(points, 0.05, 1, 0)[0].row) > len(points)
    msj = encode(points, 0.05, 0, 62)[0]
    assert msj.row.tolist() == list(range(500))
    assert not msj.is_replica.any()


@examples(60)
@given(
    *(st.sampled_from(twin.KINDS), st.integers(1, 4), st.integers(0, 4), st.integers(0, 6)),
    *(st.floats(1, 40), st.integers(0, 10**6), st.sampled_from(DECISIONS)),
)
def test_replicate_cubes__cells_are_disjoint_and_cover_the_cube_within_the_budget(
    kind, d, k, msl, budget, seed, decisions
):
    points, eps = twin.awkward_points(kind, 12, d, seed)
    rows, lower, upper, levels = encode(points, eps, k, msl, budget, decisions=decisions)
    assert (rows.is_replica == ~hold_cubes(rows.codes, lower[rows.row], upper[rows.row])).all()
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
                sides = [digits(code)[i::d] for i in range(d)]
                cell = [int("0" + "".join(map(str, side)), 2) for side in sides]
                holding += all(int(corner[i]) >> (BITS - len(sides[i])) == cell[i] for i in range(d))
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
@given(
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(1, 12),
    st.integers(0, 10**6),
    st.sampled_from(DECISIONS),
)
def test_carry__brings_every_prefix_to_the_owner_of_its_extension(d, k, n_boundaries, seed, decisions):
    random = np.random.default_rng(seed)
    rows, *_ = encode(random.random((30, d)), 0.05, k, 9, decisions=decisions)
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
