"""Parameters: checked once, with a sentence that says what is allowed."""

from __future__ import annotations

import importlib.resources
import json
from typing import Any

import jsonschema
import pytest

from epsjoin.errors import ArgumentError
from epsjoin.local.guard.judge import HOLDING
from epsjoin.local.plan.cuts import Cuts
from epsjoin.params import ACCEPTABLE, WAYS_TO_EPS, RunParams


def test_from_json__puts_the_persons_values_over_the_data_sets() -> None:
    params = RunParams.from_json('{"min_pts": 7, "eps": null}', {"min_pts": 5, "eps": 2.5, "seed": 3})
    assert (params.min_pts, params.eps, params.seed, params.cuts) == (7, 2.5, 3, "planned")


def test_from_json__takes_a_whole_number_however_it_is_written() -> None:
    """To JSON, 2.0 and 2 are one number, and so to the form, which reads the same schema."""
    params = RunParams.from_json('{"min_pts": 2.0, "eps": 3.0}', {"seed": 7.0})
    assert [(type(value), value) for value in (params.min_pts, params.seed, params.eps)] == [
        (int, 2),
        (int, 7),
        (float, 3.0),
    ]


def test_schema__is_valid_and_has_a_rule_for_every_parameter() -> None:
    schema = json.loads((importlib.resources.files("epsjoin") / "params.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert list(schema["properties"]) == list(RunParams.__dataclass_fields__)


def test_from_json__of_a_data_set_that_cuts_regularly_planned_cuts_may_be_asked_for() -> None:
    assert RunParams.from_json('{"cuts": "planned"}', {"cuts": "regular", "k": 3}).cuts == "planned"
    assert RunParams.from_json('{"k": 2}', {"cuts": "regular"}).k == 2


def test_run_params__without_k_and_msl_leave_them_to_the_plan() -> None:
    params = RunParams.from_json('{"cuts": "regular", "k": null}', {"msl": 4})
    assert (params.k, params.msl, RunParams().msl) == (None, 4, None)


def test_from_json__of_a_rule_and_k_the_run_that_gives_one_forgets_the_data_sets_other() -> None:
    by_rule = RunParams.from_json('{"rule": "generation<=1"}', {"cuts": "regular", "k": 3, "msl": 2})
    assert (by_rule.rule, by_rule.k, by_rule.msl) == ("generation<=1", None, None)
    by_k = RunParams.from_json('{"k": 2}', {"cuts": "regular", "rule": "k<=1", "decisions": "local"})
    assert (by_k.rule, by_k.k, by_k.decisions) == (None, 2, "local")


@pytest.mark.parametrize(
    ("rule", "is_one"),
    [
        *(("k<=3", True), ("not (k<2 or generation >= 1)and level>0", True), ("((k<=1))", True)),
        *(("", False), ("k", False), ("k<=1 and", False), ("k<=1 k<=1", False)),
        *(("k<=123456", False), ("__import__('os')", False), ("k<=1 and " * 50 + "k<=1", False)),
    ],
)
def test_run_params__take_the_text_of_a_rule_and_nothing_like_it(rule: str, is_one: bool) -> None:
    try:
        found = RunParams(cuts="regular", rule=rule)
    except ArgumentError:
        assert not is_one
    else:
        assert is_one
        Cuts("regular", rule=found.rule)


@pytest.mark.parametrize("way", ["neighbours", "pairs", "k_distance_quantile"])
def test_from_json__a_way_to_choose_eps_beats_the_data_sets_own_eps(way: str) -> None:
    params = RunParams.from_json(f'{{"{way}": 0.5}}', {"eps": 2.5, "pairs": 7.0, "min_pts": 5})
    assert (params.eps, getattr(params, way), params.min_pts) == (None, 0.5, 5)
    assert way == "pairs" or params.pairs is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "--params is not JSON"),
        (f'{{"eps": 1{"0" * 5000}}}', "--params is not JSON: Exceeds the limit"),
        (f'{{"eps": {"[" * 100_000}{"]" * 100_000}}}', "--params is not JSON: maximum recursion depth"),
        ("[1]", "must be a JSON object, not list"),
        ('{"epsilon": 1}', "unknown parameter 'epsilon'; known are accept, cuts, decisions, eps"),
        ('{"eps": 0}', "eps must be a number above 0"),
        ('{"eps": "1"}', "eps must be a number above 0"),
        ('{"eps": Infinity}', "eps must be a number above 0"),
        ('{"eps": true}', "eps must be a number above 0"),
        ('{"neighbours": -1}', "neighbours must be a number above 0"),
        ('{"k_distance_quantile": 1}', "k_distance_quantile must be a number above 0 and below 1"),
        ('{"eps_digits": 18}', "eps_digits must be a whole number from 1 to 17"),
        ('{"min_pts": 0}', "min_pts must be a whole number from 1"),
        ('{"min_pts": 2.5}', "min_pts must be a whole number from 1"),
        ('{"eps": 1' + "0" * 400 + "}", "eps must be a number above 0"),
        ('{"worker_memory_mb": 767}', "worker_memory_mb must be a whole number from 768"),
        ('{"seed": true}', "seed must be a whole number from 0"),
        ('{"replication_budget": 0.5}', "replication_budget must be a number of rows per point, at least 1"),
        ('{"eps": 1, "eps": 2}', "--params has 'eps' more than once"),
        ('{"k": 5}', 'k is for regular cuts: add "cuts": "regular", or leave k out'),
        ('{"msl": 0, "cuts": "planned"}', "msl is for regular cuts"),
        ('{"rule": "k<=1"}', "rule is for regular cuts"),
        ('{"decisions": "local"}', "decisions is for regular cuts"),
        ('{"cuts": "regular", "decisions": "quick"}', "decisions must be one of inside, global, local, not"),
        ('{"cuts": "regular", "rule": "k=1"}', "rule must be comparisons of k, level .* not 'k=1'"),
        ('{"cuts": "regular", "rule": 3}', "rule must be comparisons"),
        (
            '{"cuts": "regular", "rule": "k<=1", "msl": 3}',
            "a rule stands in place of k and msl: .* rule or msl",
        ),
        ('{"k": -1}', "k must be a whole number from 0"),
        ('{"msl": 63}', "msl must be a whole number from 0 to 62"),
        (
            '{"accept": ["lots"]}',
            r"accept must be a list of some of keys, .*, moved, each once at most, not \['lots'\]",
        ),
        ('{"accept": ["lost", "lost"]}', "accept must be a list of some of"),
        ('{"accept": [{}]}', "accept must be a list of some of"),
        ('{"accept": "lost"}', "accept must be a list of some of .*, not 'lost'"),
        ('{"cuts": "random"}', "cuts must be one of planned, regular, not 'random'"),
    ],
)
def test_from_json__refuses_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        RunParams.from_json(text)


def test_from_json__accepts_findings_for_one_run_only() -> None:
    params = RunParams.from_json('{"accept": ["lost", "new"]}')
    assert params.accept == ("lost", "new")
    assert params.in_use()["accept"] == ("lost", "new")
    assert "accept" not in RunParams.from_json('{"accept": null}').in_use()
    with pytest.raises(ArgumentError, match="accept is for one run"):
        RunParams.from_json("{}", {"accept": ["lost"]})


def test_acceptable__are_the_checks_that_hold() -> None:
    assert ACCEPTABLE == HOLDING


@pytest.mark.parametrize(
    ("given", "k"), [({"min_pts": 1}, 1), ({"min_pts": 5}, 4), ({"min_pts": 5, "lof_k": 20}, 20)]
)
def test_n_neighbours__is_what_makes_a_point_core_unless_given(given: dict[str, Any], k: int) -> None:
    assert RunParams(**given).n_neighbours == k


@pytest.mark.parametrize(
    ("given", "way"),
    [
        ({}, "neighbours"),
        ({"eps": 1.0}, "eps"),
        ({"eps": 1.0, "pairs": 7.0, "neighbours": 3.0}, "eps"),
        ({"pairs": 7.0, "k_distance_quantile": 0.9}, "pairs"),
        ({"k_distance_quantile": 0.9}, "k_distance_quantile"),
    ],
)
def test_in_use__has_the_one_way_to_eps_that_counts(given: dict[str, Any], way: str) -> None:
    used = RunParams(**given).in_use()
    assert {name for name in used if name in WAYS_TO_EPS} == {way}
    assert used["min_pts"] == 5
    assert "lof_k" in used, "what follows from others is no less in use"


@pytest.mark.parametrize(("given", "is_used"), [({"eps": 1.0}, False), ({}, True), ({"pairs": 7.0}, True)])
def test_in_use__has_the_digits_of_an_eps_that_is_chosen_only(given: dict[str, Any], is_used: bool) -> None:
    assert ("eps_digits" in RunParams(**given).in_use()) == is_used


@pytest.mark.parametrize(("cuts", "is_used"), [("planned", False), ("regular", True)])
def test_in_use__has_k_and_msl_with_regular_cuts_only(cuts: str, is_used: bool) -> None:
    used = RunParams(cuts=cuts, k=3, msl=2).in_use()
    assert ("k" in used, "msl" in used, "decisions" in used, "rule" in used) == (*[is_used] * 3, False)
    used = RunParams(cuts=cuts, rule="k<=1").in_use()
    assert ("k" in used, "msl" in used, "decisions" in used, "rule" in used) == (False, False, *[is_used] * 2)
