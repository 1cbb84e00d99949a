"""The form of a run's parameters takes exactly what jobs take."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from epsjoin.errors import ArgumentError
from epsjoin.params import CUTS, RunParams
from run_params import RUN_PARAMS


@pytest.mark.parametrize("name", RUN_PARAMS)
def test_form__says_what_is_no_number_and_what_empty_means(name: str) -> None:
    schema = RUN_PARAMS[name].schema
    if "enum" in schema:
        assert schema["values_display"] == {"null": "the data set's default"}, "it would be drawn as null"
    elif "pattern" in schema:
        assert schema["type"] == ["null", "string"], "the form takes the text of a split rule"
    elif "items" in schema:
        assert schema["examples"] == schema["items"]["enum"], "these are what the field lets one choose"
    else:
        types = set(schema["type"]) - {"null"}
        assert types == {"integer", "number"}, "of one type, the form takes 'abc' for an empty field"


def test_params__have_the_names_of_run_params() -> None:
    assert set(RUN_PARAMS) == set(RunParams.__dataclass_fields__)


EDGES = (-1, -0.5, 0, 1e-9, 0.5, 0.999, 1, 1.5, 2, 62, 63, 99, 100, 2**15, 2**15 + 1, 2**20, 2**20 + 1, 10**7)
WHOLE = (-1.0, 0.0, 1.0, 100.0, 2.0**31, 2.0**62, 2.0**64)
MORE_EDGES = (
    10**7 + 1,
    2**31,
    2**31 + 1,
    2**62,
    2**62 + 1,
    2**63,
    2**63 + 1,
    1e300,
    *CUTS,
    "other",
    True,
    "k<=2",
    "k<=2 or\n",
)
LISTS = ([], ["lost"], ["lost", "keys"], ["lost", "lost"], ["order"], "lost", [1], [None])


@pytest.mark.parametrize("name", RUN_PARAMS)
def test_params__take_exactly_what_run_params_takes(name: str) -> None:
    def job_takes(value: Any) -> bool:
        try:
            # the others refuse k, rule, ...
            RunParams.from_json(json.dumps({"cuts": "regular"} | {name: value}))
        except ArgumentError:
            return False
        return True

    def form_takes(value: Any) -> bool:
        try:
            deepcopy(RUN_PARAMS[name]).resolve(value)  # it keeps what it is given
        except ValueError:
            return False
        return True

    values = [*EDGES, *MORE_EDGES, *WHOLE, *LISTS]
    assert [value for value in values if form_takes(value) != job_takes(value)] == [], (
        f"{name}: the form of the DAG and RunParams read params.schema.json in two ways"
    )
