"""A contract of the project in which something is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from epsjoin.paths import CONTRACTS


def broken(tmp_path: Path, change: dict[str, Any], of: str = "landmarks") -> Path:
    body = yaml.safe_load((CONTRACTS / f"{of}.odcs.yaml").read_text())
    for path, value in change.items():
        *parents, last = path.split(".")
        place = body
        for parent in parents:
            place = place[int(parent) if parent.isdigit() else parent]
        place[int(last) if last.isdigit() else last] = value
    (tmp_path / "broken.odcs.yaml").write_text(yaml.safe_dump(body))
    return tmp_path


def decimals(value: object, **more: object) -> dict[str, Any]:
    role = {"property": "role", "value": "longitude"}
    return {
        "schema.0.properties.0.customProperties": [role, {"property": "decimals", "value": value}],
        **more,
    }


def where(condition: object, **more: object) -> dict[str, Any]:
    return {"customProperties.0": {"property": "where", "value": condition}, **more}
