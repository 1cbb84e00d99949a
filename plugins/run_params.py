"""The parameters of a run as Airflow's checked form, from the schema that the jobs check them by, too."""

from __future__ import annotations

import json

from airflow.sdk import Param

from lake import REPOSITORY

_SCHEMA = json.loads((REPOSITORY / "jobs" / "epsjoin" / "params.schema.json").read_text(encoding="utf-8"))

RUN_PARAMS = {
    name: Param(None, **rule | {"description_md": f"{rule['description_md']} Empty: the data set's default."})
    for name, rule in _SCHEMA["properties"].items()
}
"""A field for each parameter; every field may stay empty, then the data set's default holds.

No code in a description: Airflow's form draws that as a box, over the line above.
"""
