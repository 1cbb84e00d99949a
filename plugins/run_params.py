"""The parameters of a run as a form that Airflow checks, by the same schema as the jobs."""

from __future__ import annotations

import json

from airflow.sdk import Param

from lake import REPOSITORY

_SCHEMA = json.loads((REPOSITORY / "jobs" / "epsjoin" / "params.schema.json").read_text(encoding="utf-8"))

RUN_PARAMS = {
    name: Param(None, **rule | {"description_md": f"{rule['description_md']} Empty: the data set's default."})
    for name, rule in _SCHEMA["properties"].items()
}
"""A field of the form for each parameter; a field that stays empty means the data set's default.

A description must hold no code: Airflow's form draws code as a box over the line above.
"""
