"""Versions of contracts: each contract is compared with what was last published of it.

``data_contracts/published.json`` holds the version of every contract and what others rely on. A change that
breaks something needs a new major version, a change that adds something a new minor version. Titles and
descriptions may change freely.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from epsjoin.contracts.odcs import Column, read_contract
from epsjoin.contracts.sources import GUARD, load_partner, load_source
from epsjoin.contracts.tables import Rule, load_table
from epsjoin.errors import ContractError

FILE = "published.json"
"""Name of the file of published contracts, in the folder of the contracts."""

BUMPS = ("", "minor", "major")
"""Semver bumps that a change can require, ascending; empty: none."""

OF_FILES = ("physicalName", "decimals", "format", "item")
"""How a source's column is read from its files, where the contract says so."""

Bump: TypeAlias = Literal["minor", "major"]

Shape: TypeAlias = Mapping[str, Any]
"""What others rely on in one contract, as it stands in ``published.json``."""

_PARTS = {"version", "of", "fixed", "columns", "rules"}
"""What each shape has."""

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


class Read(NamedTuple):
    """What was found in a folder of contracts, by their names: "source navaids" or "table pairs".

    Parameters
    ----------
    shapes : of contracts that are valid, without drafts that were never published.
    drafts : names of these drafts.
    invalid : sentences about contracts that are not valid, or have the id of another one.
    """

    shapes: dict[str, Shape]
    drafts: set[str]
    invalid: dict[str, str]


def check(contracts: Path, names: Sequence[str] = ()) -> list[str]:
    """Check the versions of contracts in a folder.

    Parameters
    ----------
    names : of the data sets and tables to check; by default all.

    Returns
    -------
    A sentence for each contract that is not valid, or has the id of another one, and for each whose version
    is too low; if there are none, for each that is not published; empty if all is well.

    Raises
    ------
    ContractError
        There is no contract, or none of a name; ``published.json`` is not JSON.
    """
    known = _read_published(contracts)
    found = _read_shapes(contracts, known)
    chosen = _choose(names, known, found)
    faults = _find_faults(known, found, chosen)
    news = _find_news(known, found, chosen - faults.keys())
    publishing = f"'bin/epsjoin contract publish' writes it to {FILE}"
    return [*faults.values(), *(f"{line}; {publishing}" for line in news)]


def publish(contracts: Path, names: Sequence[str] = ()) -> list[str]:
    """Write contracts of a folder to ``published.json``; a contract without a file is removed from it.

    Parameters
    ----------
    names : of the data sets and tables to publish; by default all. Others stay as they were published.

    Returns
    -------
    A line for each contract that is new, changed or removed.

    Raises
    ------
    ContractError
        As :func:`check`; or one of these contracts is not valid, has the id of another one, is a draft that
        was named, or its version is too low for what has changed. Then nothing is written.
    """
    known = _read_published(contracts)
    found = _read_shapes(contracts, known)
    chosen = _choose(names, known, found)
    faults = list(_find_faults(known, found, chosen).values())
    if names:
        drafts = sorted(found.drafts & chosen)
        faults += [f"{name} is a draft; set its status to active to publish it" for name in drafts]
    elif faults and len(faults) < len(chosen):
        faults.append("to publish others, name them")
    if faults:
        raise ContractError("; ".join(faults))
    news = _find_news(known, found, chosen)
    others = {name: shape for name, shape in known.items() if name not in chosen}
    now = others | {name: shape for name, shape in found.shapes.items() if name in chosen}
    text = json.dumps(now, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    beside = contracts / f"{FILE}.new"  # the old one is whole until the new one is
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(contracts / FILE)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise ContractError(f"{contracts / FILE} is not written: {error.strerror}") from error
    return news


def _choose(names: Sequence[str], known: Mapping[str, Shape], found: Read) -> set[str]:
    """The contracts of these names, which may be a data set's or a table's; all if there are no names."""
    there = known.keys() | found.shapes.keys() | found.drafts | found.invalid.keys()
    chosen = {each for each in there if not names or each.partition(" ")[2] in names}
    unknown = sorted(set(names) - {each.partition(" ")[2] for each in chosen})
    if unknown:
        others = ", ".join(sorted({each.partition(" ")[2] for each in there}))
        raise ContractError(f"no contract {', '.join(unknown)} is there; there are {others}")
    return chosen


def _find_news(known: Mapping[str, Shape], found: Read, chosen: Set[str]) -> list[str]:
    """Describe those of the chosen contracts that are not as they were published."""
    names = [name for name in sorted(chosen) if known.get(name) != found.shapes.get(name)]
    return [f"{name}: {_describe_version(known.get(name), found.shapes.get(name))}" for name in names]


def _find_faults(known: Mapping[str, Shape], found: Read, chosen: Set[str]) -> dict[str, str]:
    """Say what is wrong with chosen contracts, first of those that are not valid."""
    invalid = {name: sentence for name, sentence in found.invalid.items() if name in chosen}
    return invalid | _find_breaches(known, {n: s for n, s in found.shapes.items() if n in chosen})


def _describe_version(known: Shape | None, now: Shape | None) -> str:
    if now is None:
        return "the contract is gone"
    before = "" if known is None else f", after {known['version']}"
    return f"version {now['version']} is new{before}"


def _find_breaches(known: Mapping[str, Shape], now: Mapping[str, Shape]) -> dict[str, str]:
    wrong = {}
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
            wrong[name] = (
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
    for name in known["fixed"] | now["fixed"]:
        before, after = known["fixed"].get(name), now["fixed"].get(name)
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
    for name, shape in published.items():
        if not _is_shape(shape):
            raise ContractError(
                f"{file}: {name} is not as it was published; take the last file that was committed"
            )
    return published


def _is_shape(value: object) -> bool:
    """Whether a part of the file is one of a contract, as :func:`publish` writes it."""
    if not isinstance(value, dict) or not value.keys() >= _PARTS:
        return False
    version, parts = value["version"], [value[part] for part in ("fixed", "columns", "rules")]
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        return False
    if not all(isinstance(part, dict) for part in parts):
        return False
    return all(isinstance(each, dict) for part in parts[1:] for each in part.values())


def _read_shapes(contracts: Path, known: Mapping[str, Shape]) -> Read:
    """Read all contracts in a folder, those that are not valid for their sentences."""
    if not any(contracts.rglob("*.odcs.yaml")):
        raise ContractError(f"{contracts}: no contract (*.odcs.yaml) is there")
    found = Read({}, set(), {})
    owners: dict[str, list[tuple[str, Path]]] = {}
    for place, kind in ((contracts, "source"), (contracts / "tables", "table")):
        for file in sorted(place.glob("*.odcs.yaml")):
            stem = file.name.removesuffix(".odcs.yaml")
            name = f"{kind} {stem}"
            try:
                body = read_contract(file)
                owners.setdefault(body["id"], []).append((name, file))
                shape = (_shape_of_source if kind == "source" else _shape_of_table)(contracts, stem)
                _parse_version(name, str(body["version"]))
            except ContractError as error:
                found.invalid[name] = str(error)
                continue
            if body["status"] != "draft" or name in known:
                found.shapes[name] = {"version": str(body["version"]), "of": kind, **shape}
            else:
                found.drafts.add(name)
    for id_, several in owners.items():
        for at, (name, file) in enumerate(several if len(several) > 1 else ()):
            other = several[1 if at == 0 else 0][1]
            found.invalid[name] = f"{file}: id {id_} is that of {other}, too; each contract has its own"
            found.shapes.pop(name, None)
            found.drafts.discard(name)
    return found


def _shape_of_source(contracts: Path, name: str) -> Shape:
    source = load_source(contracts, name)
    if source.match is not None:
        try:
            load_partner(contracts, source)
        except ContractError as error:
            raise ContractError(f"{name} is matched with {source.match.partner}: {error}") from error
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
        "item": column.item,
    }
    return (
        {name: _plain(getattr(column, name)) for name in names}
        | {"role": role}
        | {name: value for name, value in of_files.items() if value is not None}
    )


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
