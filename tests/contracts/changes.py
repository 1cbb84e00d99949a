"""Contracts that are published in a folder, and changes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

SOURCE, DOCUMENTS, TABLE = "navaids", "vega_specs", "tables/clusters"
Body = dict[str, Any]


def change(contracts: Path, name: str, by: Callable[[Body], object]) -> None:
    file = contracts / f"{name}.odcs.yaml"
    body = yaml.safe_load(file.read_text())
    by(body)
    file.write_text(yaml.safe_dump(body, sort_keys=False))


def column(body: Body, name: str) -> Body:
    return next(each for each in body["schema"][0]["properties"] if each["name"] == name)


def rule(body: Body, name: str) -> Body:
    return next(each for each in body["schema"][0]["quality"] if each["name"] == name)


def custom(body: Body, name: str, value: object) -> None:
    next(each for each in body["customProperties"] if each["property"] == name)["value"] = value


def drop_custom(body: Body, name: str) -> None:
    body["customProperties"] = [each for each in body["customProperties"] if each["property"] != name]


def put(of: Callable[[Body, str], Body], name: str, /, **values: Any) -> Callable[[Body], None]:
    """A change of some keys of a column or a rule; None takes a key away."""

    def by(body: Body) -> None:
        part = of(body, name)
        part.update(values)
        for key in [key for key, value in part.items() if value is None]:
            del part[key]

    return by


def new_column(**values: Any) -> Callable[[Body], None]:
    body = {"name": "new", "logicalType": "string", "physicalType": "string", **values}
    return lambda contract: contract["schema"][0]["properties"].append(body)


def new_rule(severity: str) -> Callable[[Body], None]:
    body = {"name": "new", "type": "sql", "severity": severity, "mustBe": 0, "query": "SELECT 0"}
    return lambda contract: contract["schema"][0]["quality"].append(body)


def with_custom(name: str, value: object) -> Callable[[Body], None]:
    return lambda contract: contract["customProperties"].append({"property": name, "value": value})


def without(kind: str, name: str) -> Callable[[Body], None]:
    def by(body: Body) -> None:
        parts = body["schema"][0][kind]
        parts[:] = [part for part in parts if part["name"] != name]

    return by


def values(*allowed: str) -> Callable[[Body], None]:
    return lambda body: column(body, "role")["quality"][0]["arguments"].update(validValues=list(allowed))
