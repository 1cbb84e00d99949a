"""The predicates of GESS and the joins they stand for."""

from __future__ import annotations

import itertools
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.errors import ArgumentError
from epsjoin.kernels.plan import rules as join_rules
from epsjoin.kernels.plan.rules import YES, decide_split, tabulate
from epsjoin.local.plan.split_rules import rules as plan_rules
from epsjoin.local.plan.split_rules.own_rule import OwnRule
from epsjoin.local.plan.split_rules.rules import make_split_rule, parse_split_rule, rule_from_json
from oracles import examples


def may_split(rule, level, n_crossed, rows, is_local=False):
    """As the replicator asks."""
    answers = tabulate(rule.operations, rule.operands, rule.generations, level + 1, n_crossed)
    return decide_split(answers, rule.max_rows, level, n_crossed, rows, 0, is_local) == YES


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


@pytest.mark.parametrize(
    ("k", "msl", "budget", "level", "splits", "rows", "expected"),
    [
        (2, 1, math.inf, 0, 2, 1, True),
        (2, 1, math.inf, 0, 3, 1, False),  # two splits were made at this level
        (2, 1, math.inf, 2, 1, 1, False),
        (2, 5, 4.0, 0, 2, 3, True),  # 3 rows become 4: one cut adds one row
        (2, 5, 4.0, 0, 2, 4, False),
        (2, 5, 1.0, 0, 1, 1, False),
        (512, 62, math.inf, 0, 512, 513, True),
    ],
)
def test_may_split__adds_one_row_for_a_local_decision(k, msl, budget, level, splits, rows, expected):
    assert may_split(make_split_rule(k, msl, budget), level, splits, rows, True) == expected


def equal(rule, predicate):
    """A rule holds where a plain predicate does, asked one by one and tabulated."""
    table = join_rules.tabulate(rule.operations, rule.operands, rule.generations, 6, 5)
    for level, crossed, generation in itertools.product(range(6), range(6), range(8)):
        expected = bool(predicate(level, crossed, 1, generation))
        assert rule.holds(level, crossed, 1, generation) == expected, (str(rule), level, crossed, generation)
        answer = table[0, min(generation, rule.generations - 1), level, crossed]
        assert (answer == join_rules.YES) == expected


@st.composite
def rules(draw, depth=4):
    """A rule and the same as a lambda, made side by side."""
    kind = draw(st.sampled_from(["k", "level", "generation"] + ["and", "or", "not"] * (depth > 0)))
    if kind == "k":
        k = draw(st.integers(0, 6))
        return plan_rules.max_splits_per_level(k), lambda _level, crossed, *_: crossed <= k
    if kind == "level":
        msl = draw(st.integers(-1, 6))
        return plan_rules.max_split_level(msl), lambda level, _crossed, *_: level <= msl
    if kind == "generation":
        last = draw(st.integers(-1, 5))
        return plan_rules.max_generation(last), lambda *asked: asked[3] <= last
    a, is_a = draw(rules(depth=depth - 1))
    if kind == "not":
        return ~a, lambda *asked: not is_a(*asked)
    b, is_b = draw(rules(depth=depth - 1))
    if kind == "and":
        return a & b, lambda *asked: is_a(*asked) and is_b(*asked)
    return a | b, lambda *asked: is_a(*asked) or is_b(*asked)


@examples(200)
@given(rules(), st.one_of(st.just(math.inf), st.floats(1, 1e6)))
def test_rules__are_an_algebra_and_survive_text_and_json(made, budget):
    rule, predicate = made
    equal(rule, predicate)
    text = str(rule)
    again = parse_split_rule(text)
    equal(again, predicate)
    assert str(again) == text
    limited = rule.within(budget)
    stored = rule_from_json(limited.to_json())
    equal(stored, predicate)
    assert stored.max_rows == limited.max_rows == (math.floor(budget) if budget < math.inf else 1 << 40)
    equal(~~rule, predicate)


@pytest.mark.parametrize(
    ("text", "canonical", "predicate"),
    [
        ("k<=3 and not level>2", "k<=3 and level<=2", lambda level, k, _: k <= 3 and level <= 2),
        (" k < 3 ", "k<=2", lambda _level, k, _: k < 3),
        ("level >= 1 or k < 0", "level>0 or k<0", lambda level, _k, _: level >= 1),
        ("not k>=0", "k<0", lambda _level, _k, _: False),
        ("k>=0", "k>=0", lambda _level, _k, _: True),
        ("not (k<=1 or level<=1)", "not (k<=1 or level<=1)", lambda level, k, _: k > 1 and level > 1),
        (
            "(k<=1 or level<=0) and k<=2",
            "(k<=1 or level<=0) and k<=2",
            lambda level, k, _: (k <= 1 or level == 0) and k <= 2,
        ),
        (
            "generation < 2 and k<=1",
            "generation<=1 and k<=1",
            lambda _level, k, generation: generation < 2 and k <= 1,
        ),
        (
            "not generation>=1 or level>1",
            "generation<=0 or level>1",
            lambda level, _k, generation: generation < 1 or level > 1,
        ),
        (
            "k<=1 and level<=3 or k<=4 and level<=0",
            "k<=1 and level<=3 or k<=4 and level<=0",
            lambda level, k, _: (k <= 1 and level <= 3) or (k <= 4 and level == 0),
        ),
    ],
)
def test_parse_split_rule__reads_what_a_person_writes(text, canonical, predicate):
    rule = parse_split_rule(text)
    assert str(rule) == canonical
    equal(rule, lambda level, crossed, _rows, generation: predicate(level, crossed, generation))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "k",
        "k<=",
        "k<=1.5",
        "k<=True",
        "k<=-1",
        "3>=k",
        "1<=k<=3",
        "k==1",
        "rows<=3",
        "k<=1 and 1",
        "f(k)<=1",
        "k<=1; k<=2",
        "not",
        "k<=level",
        "k<=1 and\0",
    ],
)
def test_parse_split_rule__says_what_it_reads(text):
    with pytest.raises(
        ArgumentError, match=re.escape("split rule must be comparisons of k, level or generation with")
    ):
        parse_split_rule(text)


def test_rules__nested_beyond_the_stack_are_refused():
    text = "k<=1 and (" * 60 + "k<=1" + ")" * 60
    with pytest.raises(ArgumentError, match="nested less deeply than 60"):
        parse_split_rule(text)
    equal(parse_split_rule("k<=1 and (" * 59 + "k<=1" + ")" * 59), lambda _level, crossed, *_: crossed <= 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k<=1", "must be JSON"),
        ("[]", "must be {"),
        ('{"split": "k<=1"}', "must be {"),
        ('{"split": 1, "max_rows": null}', "must be {"),
        ('{"split": "k<=1", "max_rows": 1.5}', "max_rows must be a whole number or null, not 1.5"),
        ('{"split": "k<=1", "max_rows": true}', "max_rows must be a whole number or null, not True"),
        ('{"split": "k<=1", "max_rows": 0}', "at least 1 row per cube, not 0"),
        ('{"split": "j<=1", "max_rows": null}', "comparisons of k, level or generation"),
    ],
)
def test_rule_from_json__says_what_is_wrong(text, message):
    with pytest.raises(ArgumentError, match=message):
        rule_from_json(text)


def test_rules__take_the_smaller_budget_of_two():
    a, b = make_split_rule(1, 1, 8.9), make_split_rule(2, 2, 3.0)
    assert (a & b).max_rows == (a | b).max_rows == (b & a).max_rows == (~b).max_rows == 3
    own = OwnRule(lambda _level, _crossed, _rows: True, 5.0)
    assert (own & a).max_rows == (a & own).max_rows == (own | a).max_rows == (a | own).max_rows == 5
    assert (own & b).max_rows == (~(own & b)).max_rows == 3
    assert b.within(100).max_rows == 3


@examples(100)
@given(rules(), rules(), st.integers(0, 5), st.integers(0, 5), st.integers(1, 9), st.integers(0, 6))
def test_own_rule__joins_in_the_algebra(made_a, made_b, level, crossed, rows, generation):
    (a, is_a), (b, is_b) = made_a, made_b

    def coin(level, crossed, rows, _generation=0):
        return (level * 7 + crossed * 3 + rows) % 2 == 0

    own = OwnRule(coin)
    asked = (level, crossed, rows, generation)
    assert (own & a).generations == a.generations
    assert (own & a).holds(*asked) == (a & own).holds(*asked) == (coin(*asked) and is_a(*asked))
    assert (own | a).holds(*asked) == (a | own).holds(*asked) == (coin(*asked) or is_a(*asked))
    assert (~own & (a | b)).holds(*asked) == (not coin(*asked) and (is_a(*asked) or is_b(*asked)))


@pytest.mark.parametrize("budget", [0.99, 0, -1, math.nan])
def test_rules__refuse_a_budget_below_one_row(budget):
    for make in (lambda: make_split_rule(1, 1, budget), lambda: OwnRule(lambda *_asked: True, budget)):
        with pytest.raises(ArgumentError, match="replication_budget must be at least 1 row per cube, not"):
            make()


def test_rules__refuse_what_is_no_rule():
    with pytest.raises(ArgumentError, match="k must be at least 0, not -1"):
        plan_rules.max_splits_per_level(-1)
    with pytest.raises(ArgumentError, match="msl must be at least -1, not -2"):
        plan_rules.max_split_level(-2)
    for generation in (-2, 255):
        with pytest.raises(ArgumentError, match=f"generation must be from -1 to 254, not {generation}"):
            plan_rules.max_generation(generation)
    with pytest.raises(ArgumentError, match="generation must be from -1 to 254, not 255"):
        parse_split_rule("generation<=255")
    with pytest.raises(
        ArgumentError, match="function must be a function of level, n_crossed and rows, not 'k<=1'"
    ):
        OwnRule("k<=1")
    with pytest.raises(TypeError):
        plan_rules.max_splits_per_level(1) & 3
