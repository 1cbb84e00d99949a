"""The parameters of a run as a form that Airflow checks, by the same schema as the jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from airflow.sdk import Param

from project import REPOSITORY

_SCHEMA = json.loads((REPOSITORY / "jobs" / "epsjoin" / "params.schema.json").read_text(encoding="utf-8"))

EMPTY = "the data set's default"


def _make_field(rule: dict[str, Any]) -> Param:
    """Make a field of the form; it accepts what the rule accepts, and says at once what is no number.

    A field of a single type of number is a browser's own: what is no number, "abc" or "1,5", arrives as
    empty, and empty means the default. Of two types Airflow makes a field that refuses such a text.
    """
    empty = "none" if "items" in rule else EMPTY
    rule = rule | {"description_md": f"{rule['description_md']} Empty: {empty}."}
    if "integer" in rule["type"]:
        rule |= {"type": [*rule["type"], "number"], "multipleOf": 1}
    elif "number" in rule["type"]:
        rule |= {"type": [*rule["type"], "integer"]}
    elif "enum" in rule:
        rule |= {"values_display": {"null": EMPTY}}
    return Param(None, **rule)


RUN_PARAMS = {name: _make_field(rule) for name, rule in _SCHEMA["properties"].items()}
"""A field of the form for each parameter; a field that stays empty means the data set's default.

A description must hold no code: Airflow's form draws code as a box over the line above.
"""


def name_unknown(given: Iterable[str]) -> str | None:
    """Say which of the given names are no parameters; Airflow takes them as parameters all the same."""
    unknown = sorted(set(given) - {*RUN_PARAMS, "openlineage"})  # a DAG that triggers ours may add the last
    if not unknown:
        return None
    return (
        f"the run's conf has {', '.join(map(repr, unknown))}, which is no parameter; "
        f"known are {', '.join(RUN_PARAMS)}"
    )
