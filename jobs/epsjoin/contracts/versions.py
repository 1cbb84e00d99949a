"""Versions of contracts: each contract is compared with what was last published of it.

``data_contracts/published.json`` holds the version of every contract and what others rely on. A change that
breaks something needs a new major version, a change that adds something a new minor version. Titles and
descriptions may change freely.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from epsjoin.contracts.odcs import Column, read_contract
from epsjoin.contracts.sources import GUARD, load_source
from epsjoin.contracts.tables import Rule, load_table
from epsjoin.errors import ContractError

FILE = "published.json"
"""Name of the file of published contracts, in the folder of the contracts."""

BUMPS = ("", "minor", "major")
"""Semver bumps that a change can require, ascending; empty: none."""

OF_FILES = ("physicalName", "decimals", "format")
"""How a source's column is read from its files, where the contract says so."""

Bump: TypeAlias = Literal["minor", "major"]

Shape: TypeAlias = Mapping[str, Any]
"""What others rely on in one contract, as it stands in ``published.json``."""

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Change:
    """One difference between a contract and what was published.

    Parameters
    ----------
    bump : the semver bump that the change requires.
    words : the change in words.
    """

    bump: Bump
    words: str


def check(contracts: Path) -> list[str]:
    """Check the versions of all contracts in a folder.

    Returns
    -------
    A sentence for each contract whose version is too low or that is not published; empty if all is well.

    Raises
    ------
    ContractError
        A contract is not valid, has the id of another one, or has no version of three numbers;
        ``published.json`` is not JSON.
    """
    known, now = _read_published(contracts), _read_shapes(contracts)
    wrong = _find_breaches(known, now)
    if wrong:
        return wrong
    behind = [name for name in sorted(known.keys() | now.keys()) if known.get(name) != now.get(name)]
    return [
        f"{name}: {_describe_version(known.get(name), now.get(name))}; "
        f"'bin/epsjoin contract publish' writes it to {FILE}"
        for name in behind
    ]


def publish(contracts: Path) -> list[str]:
    """Write the contracts of a folder to ``published.json``; a contract without a file is removed from it.

    Returns
    -------
    A line for each contract that is new, changed or removed.

    Raises
    ------
    ContractError
        As :func:`check`; or a version is too low for what has changed, and nothing is written.
    """
    known, now = _read_published(contracts), _read_shapes(contracts)
    wrong = _find_breaches(known, now)
    if wrong:
        raise ContractError("; ".join(wrong))
    text = json.dumps(now, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    (contracts / FILE).write_text(text, encoding="utf-8")
    names = [name for name in sorted(known.keys() | now.keys()) if known.get(name) != now.get(name)]
    return [f"{name}: {_describe_version(known.get(name), now.get(name))}" for name in names]


def _describe_version(known: Shape | None, now: Shape | None) -> str:
    if now is None:
        return "the contract is gone"
    before = "" if known is None else f", after {known['version']}"
    return f"version {now['version']} is new{before}"


def _find_breaches(known: Mapping[str, Shape], now: Mapping[str, Shape]) -> list[str]:
    wrong = []
    for name in sorted(known.keys() & now.keys()):
        changes = list(changes_between(known[name], now[name]))
        before = _parse_version(name, known[name]["version"])
        version = _parse_version(name, now[name]["version"])
        bump = max((change.bump for change in changes), key=BUMPS.index, default="")
        lowest = {"": before, "minor": (before[0], before[1] + 1, 0), "major": (before[0] + 1, 0, 0)}[bump]
        if version < lowest:
            words = "; ".join(change.words for change in changes if change.bump == bump)
            why = {
                "major": f"{words}: this breaks what was published",
                "minor": f"{words}: this adds to what was published",
                "": "the version has gone back",
            }[bump]
            wrong.append(
                f"{name}: {why} as version {known[name]['version']}; undo it, or set the contract's version "
                f"(now {now[name]['version']}) to {'.'.join(map(str, lowest))} or above"
            )
    return wrong


def _parse_version(name: str, version: str) -> tuple[int, int, int]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ContractError(f"{name}: version must be three numbers such as 1.0.0, not {version!r}")
    return int(found[1]), int(found[2]), int(found[3])


def changes_between(known: Shape, now: Shape) -> Iterator[Change]:
    """Yield the differences between a published contract and its present state.

    A change is major if it can break a reader of a table, a supplier of a source, or rows that exist:
    something is gone, has another type or meaning, or a condition is stricter; in a table also a column that
    was required and is optional. Other changes are minor.
    """
    is_source = now["of"] == "source"
    for name in known["fixed"]:
        before, after = known["fixed"][name], now["fixed"].get(name)
        if before != after:
            yield Change("major", f"{name} was {_format(before)} and is {_format(after)}")
    for name in sorted(known["columns"].keys() | now["columns"].keys()):
        before, after = known["columns"].get(name), now["columns"].get(name)
        if after is None:
            yield Change("major", f"column {name} is gone or has another name")
        elif before is None:
            bump: Bump = "major" if after["required"] or after["role"] != "payload" else "minor"
            kind = "a required" if after["required"] else "an optional"
            yield Change(bump, f"column {name} is new, {kind} one")
        else:
            yield from _compare_column(name, before, after, is_source)
    for name in sorted(known["rules"].keys() | now["rules"].keys()):
        before, after = known["rules"].get(name), now["rules"].get(name)
        if before != after:
            yield _compare_rule(name, before, after)
    before, after = (_limits_of(shape) for shape in (known, now))
    for name, old in before.items() if is_source else ():
        new = after[name]
        if old != new:
            is_tighter = old is None or (new is not None and new < old)
            words = f"{name} was {_format(old)} and is {_format(new)}"
            yield Change("major" if is_tighter else "minor", words)


def _limits_of(source: Shape) -> dict[str, float | None]:
    """The limits above which a snapshot is refused, by name; ``None``: any."""
    guard = {**GUARD, **source.get("guard", {})}
    return {
        "max_quarantine_share": source.get("max_quarantine_share"),
        **{f"guard: {check}": limit for check, limit in guard.items()},
    }


def _compare_column(name: str, before: Shape, after: Shape, is_source: bool) -> Iterator[Change]:
    for what in ("type", "role", *OF_FILES):
        old, new = before.get(what), after.get(what)
        if old != new:
            yield Change("major", f"column {name}: {what} was {_format(old)} and is {_format(new)}")
    if after["required"] and not before["required"]:
        yield Change("major", f"column {name} was optional and is required")
    if before["required"] and not after["required"]:
        yield Change("minor" if is_source else "major", f"column {name} was required and is optional")
    for what, sign in (("minimum", 1), ("maximum", -1), ("max_nodes", -1)):
        old, new = before.get(what), after.get(what)  # only a tree's column has max_nodes
        if old != new:
            is_tighter = old is None or (new is not None and sign * new > sign * old)
            yield Change(
                "major" if is_tighter else "minor",
                f"column {name}: {what} was {_format(old)} and is {_format(new)}",
            )
    old, new = set(before["values"]), set(after["values"])
    if old != new:
        is_looser = not new or (bool(old) and old < new)
        yield Change(
            "minor" if is_looser else "major",
            f"column {name}: values were {_format(before['values'])} and are {_format(after['values'])}",
        )


def _compare_rule(name: str, before: Shape | None, after: Shape | None) -> Change:
    if before is None:
        what = "is new"
    elif after is None:
        what = "is gone"
    else:
        parts = (part for part in ("query", "must_be", "severity") if before[part] != after[part])
        what = f"has another {' and '.join(parts)}"
    # whether a changed query is stricter or looser cannot be known
    stops = after is not None and after["severity"] == "error"
    return Change("major" if stops else "minor", f"rule {name} {what}")


def _format(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)


def _read_published(contracts: Path) -> dict[str, Shape]:
    file = contracts / FILE
    if not file.is_file():
        return {}
    try:
        published = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ContractError(f"{file}: not JSON ({error}); take the last one that was committed") from error
    if not isinstance(published, dict):
        raise ContractError(f"{file}: no object of contracts; take the last one that was committed")
    return published


def _read_shapes(contracts: Path) -> dict[str, Shape]:
    """The shapes of all contracts in a folder, by name, without drafts that were never published."""
    known = _read_published(contracts)
    if not any(contracts.rglob("*.odcs.yaml")):
        raise ContractError(f"{contracts}: no contract (*.odcs.yaml) is there")
    shapes: dict[str, Shape] = {}
    files: dict[str, Path] = {}
    for place, kind in ((contracts, "source"), (contracts / "tables", "table")):
        for file in sorted(place.glob("*.odcs.yaml")):
            name, body = file.name.removesuffix(".odcs.yaml"), read_contract(file)
            if (other := files.setdefault(body["id"], file)) != file:
                raise ContractError(
                    f"{file}: id {body['id']} is that of {other}, too; each contract has its own"
                )
            shape_of = _shape_of_source if kind == "source" else _shape_of_table
            shape = shape_of(contracts, name)
            _parse_version(f"{kind} {name}", str(body["version"]))
            if body["status"] != "draft" or f"{kind} {name}" in known:
                shapes[f"{kind} {name}"] = {"version": str(body["version"]), "of": kind, **shape}
    return shapes


def _shape_of_source(contracts: Path, name: str) -> Shape:
    source = load_source(contracts, name)
    roles = dict.fromkeys(source.coordinates, "coordinate")
    roles |= {source.tree: "tree"}
    roles |= {source.latitude: "latitude", source.longitude: "longitude"}
    fixed = ("key", "coordinates", "metric", "unit", "interval", "format")
    # a point has every coordinate; to who delivers the files, an optional one may be missing
    columns = [replace(c, required=c.required and c.name not in source.optional) for c in source.columns]
    where = Rule("where", source.where, 0.0, "error")
    guard = {check: _plain(limit) for check, limit in source.guard.items() if limit != GUARD[check]}
    match = {"match": json.loads(json.dumps(asdict(source.match)))} if source.match else {}
    return {
        "fixed": {what: _plain(getattr(source, what)) for what in fixed} | match,
        "columns": {c.name: _shape_of_column(c, roles.get(c.name, "payload")) for c in columns},
        "rules": {where.name: _shape_of_rule(where)} if source.where else {},
        "max_quarantine_share": float(source.max_quarantine_share),
        **({"guard": guard} if guard else {}),
    }


def _shape_of_table(contracts: Path, name: str) -> Shape:
    table = load_table(contracts, name)
    return {
        "fixed": {"key": list(table.key), "partitioned": list(table.partitioned)},
        "columns": {column.name: _shape_of_column(column, "payload") for column in table.columns},
        "rules": {rule.name: _shape_of_rule(rule) for rule in table.rules},
    }


def _shape_of_rule(rule: Rule) -> Shape:
    return {"query": " ".join(rule.query.split()), "must_be": rule.must_be, "severity": rule.severity}


def _shape_of_column(column: Column, role: str) -> Shape:
    names = ("type", "required", "minimum", "maximum", "values")
    of_files = {
        "physicalName": column.physical_name or None,
        "decimals": column.decimals,
        "format": column.form or None,
        "max_nodes": column.max_nodes,
    }
    return (
        {name: _plain(getattr(column, name)) for name in names}
        | {"role": role}
        | {name: value for name, value in of_files.items() if value is not None}
    )


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
