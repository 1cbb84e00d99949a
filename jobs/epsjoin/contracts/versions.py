"""Whether contracts keep their word: each is compared with what was last published under its version.

``data_contracts/published.json`` holds, of every contract, its version and what others rely on. A change
that breaks something needs a new major version, one that adds something a new minor version; texts are free.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from epsjoin.contracts.odcs import Column, load_source, load_table, read_contract
from epsjoin.errors import ContractError

FILE = "published.json"
DEGREES = ("", "minor", "major")
"""What a change asks of the version, rising."""

Degree = Literal["minor", "major"]
Shape = Mapping[str, Any]
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Change:
    """One difference between a contract and what was published: what it asks of the version, and in words."""

    degree: Degree
    words: str


def check(contracts: Path) -> list[str]:
    """What is wrong with the versions of the contracts in a folder, a sentence each; nothing if all is well.

    Raises
    ------
    ContractError
        A contract is not valid, or has no version of three numbers; ``published.json`` is not JSON.
    """
    known, now = _published(contracts), _shapes(contracts)
    wrong = _breaches(known, now)
    if wrong:
        return wrong
    behind = [name for name in sorted(known.keys() | now.keys()) if known.get(name) != now.get(name)]
    return [
        f"{name}: {_what(known.get(name), now.get(name))}; 'bin/epsjoin contract publish' writes it to {FILE}"
        for name in behind
    ]


def publish(contracts: Path) -> list[str]:
    """Write down what the contracts of a folder say now; a contract whose file is gone is forgotten.

    Returns
    -------
    What was published, a line each.

    Raises
    ------
    ContractError
        As :func:`check`; or a version is too low for what has changed: nothing is written then.
    """
    known, now = _published(contracts), _shapes(contracts)
    wrong = _breaches(known, now)
    if wrong:
        raise ContractError("; ".join(wrong))
    text = json.dumps(now, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    (contracts / FILE).write_text(text, encoding="utf-8")
    names = [name for name in sorted(known.keys() | now.keys()) if known.get(name) != now.get(name)]
    return [f"{name}: {_what(known.get(name), now.get(name))}" for name in names]


def _what(known: Shape | None, now: Shape | None) -> str:
    if now is None:
        return "the contract is gone"
    before = "" if known is None else f", after {known['version']}"
    return f"version {now['version']} is new{before}"


def _breaches(known: Mapping[str, Shape], now: Mapping[str, Shape]) -> list[str]:
    wrong = []
    for name in sorted(known.keys() & now.keys()):
        changes = list(changes_between(known[name], now[name]))
        before, version = _numbers(name, known[name]["version"]), _numbers(name, now[name]["version"])
        degree = max((change.degree for change in changes), key=DEGREES.index, default="")
        lowest = {"": before, "minor": (before[0], before[1] + 1, 0), "major": (before[0] + 1, 0, 0)}[degree]
        if version < lowest:
            said = "; ".join(change.words for change in changes if change.degree == degree)
            why = {
                "major": f"{said}: this breaks what was published",
                "minor": f"{said}: this adds to what was published",
                "": "the version has gone back",
            }[degree]
            wrong.append(
                f"{name}: {why} as version {known[name]['version']}; undo it, or set the contract's version "
                f"(now {now[name]['version']}) to {'.'.join(map(str, lowest))} or above"
            )
    return wrong


def _numbers(name: str, version: str) -> tuple[int, int, int]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ContractError(f"{name}: version must be three numbers such as 1.0.0, not {version!r}")
    return int(found[1]), int(found[2]), int(found[3])


def changes_between(known: Shape, now: Shape) -> Iterator[Change]:
    """What a contract says otherwise than the one that was published.

    Major is what readers of a table, deliverers of a source, or rows that are there may break on: something
    is gone, is of another type or meaning, or more is demanded. Of a table also that a column may be empty
    now. Minor is what leaves all of them as they are.
    """
    is_source = now["of"] == "source"
    for name in known["fixed"]:
        before, after = known["fixed"][name], now["fixed"].get(name)
        if before != after:
            yield Change("major", f"{name} was {_said(before)} and is {_said(after)}")
    for name in sorted(known["columns"].keys() | now["columns"].keys()):
        before, after = known["columns"].get(name), now["columns"].get(name)
        if after is None:
            yield Change("major", f"column {name} is gone or has another name")
        elif before is None:
            degree: Degree = "major" if after["required"] or after["role"] != "payload" else "minor"
            kind = "a required" if after["required"] else "an optional"
            yield Change(degree, f"column {name} is new, {kind} one")
        else:
            yield from _of_column(name, before, after, is_source)
    for name in sorted(known["rules"].keys() | now["rules"].keys()):
        before, after = known["rules"].get(name), now["rules"].get(name)
        if before != after:
            yield _of_rule(name, before, after)
    if is_source and known["max_quarantine_share"] != now["max_quarantine_share"]:
        old, new = known["max_quarantine_share"], now["max_quarantine_share"]
        yield Change("major" if new < old else "minor", f"max_quarantine_share was {old:g} and is {new:g}")


def _of_column(name: str, before: Shape, after: Shape, is_source: bool) -> Iterator[Change]:
    for what in ("type", "role"):
        if before[what] != after[what]:
            yield Change("major", f"column {name}: {what} was {before[what]} and is {after[what]}")
    if after["required"] and not before["required"]:
        yield Change("major", f"column {name} was optional and is required")
    if before["required"] and not after["required"]:
        yield Change("minor" if is_source else "major", f"column {name} was required and is optional")
    for what, sign in (("minimum", 1), ("maximum", -1)):
        old, new = before[what], after[what]
        if old != new:
            is_tighter = old is None or (new is not None and sign * new > sign * old)
            yield Change(
                "major" if is_tighter else "minor",
                f"column {name}: {what} was {_said(old)} and is {_said(new)}",
            )
    old, new = set(before["values"]), set(after["values"])
    if old != new:
        is_looser = not new or (bool(old) and old < new)
        yield Change(
            "minor" if is_looser else "major",
            f"column {name}: values were {_said(before['values'])} and are {_said(after['values'])}",
        )


def _of_rule(name: str, before: Shape | None, after: Shape | None) -> Change:
    if before is None:
        what = "is new"
    elif after is None:
        what = "is gone"
    else:
        parts = (part for part in ("query", "must_be", "severity") if before[part] != after[part])
        what = f"has another {' and '.join(parts)}"
    # whether another query asks for more or for less, nobody can tell
    stops = after is not None and after["severity"] == "error"
    return Change("major" if stops else "minor", f"rule {name} {what}")


def _said(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)


def _published(contracts: Path) -> dict[str, Shape]:
    file = contracts / FILE
    if not file.is_file():
        return {}
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ContractError(f"{file}: not JSON ({error}); take the last one that was committed") from error


def _shapes(contracts: Path) -> dict[str, Shape]:
    """What others rely on, of every contract of a folder; drafts that were never published are left out."""
    known = _published(contracts)
    shapes: dict[str, Shape] = {}
    for place, kind in ((contracts, "source"), (contracts / "tables", "table")):
        for file in sorted(place.glob("*.odcs.yaml")):
            name, body = file.name.removesuffix(".odcs.yaml"), read_contract(file)
            shape = _of_source(contracts, name) if kind == "source" else _of_table(contracts, name)
            if body["status"] != "draft" or f"{kind} {name}" in known:
                shapes[f"{kind} {name}"] = {"version": str(body["version"]), "of": kind, **shape}
                _numbers(f"{kind} {name}", str(body["version"]))
    return shapes


def _of_source(contracts: Path, name: str) -> Shape:
    source = load_source(contracts, name)
    roles = dict.fromkeys(source.coordinates, "coordinate")
    roles |= {source.latitude: "latitude", source.longitude: "longitude"}
    fixed = ("key", "coordinates", "metric", "unit", "interval", "format")
    return {
        "fixed": {what: _plain(getattr(source, what)) for what in fixed},
        "columns": {c.name: _shape_of(c, roles.get(c.name, "payload")) for c in source.columns},
        "rules": {},
        "max_quarantine_share": float(source.max_quarantine_share),
    }


def _of_table(contracts: Path, name: str) -> Shape:
    table = load_table(contracts, name)
    rules = {
        rule.name: {
            "query": " ".join(rule.query.split()),
            "must_be": rule.must_be,
            "severity": rule.severity,
        }
        for rule in table.rules
    }
    return {
        "fixed": {"key": list(table.key), "partitioned": list(table.partitioned)},
        "columns": {column.name: _shape_of(column, "payload") for column in table.columns},
        "rules": rules,
    }


def _shape_of(column: Column, role: str) -> Shape:
    return {
        "type": column.type,
        "required": column.required,
        "minimum": column.minimum,
        "maximum": column.maximum,
        "values": list(column.values),
        "role": role,
    }


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
