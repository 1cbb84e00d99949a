"""Shapes of contracts: what others rely on in each contract of a folder, and what of it is not valid."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from epsjoin.contracts.load_source import load_partner, load_source
from epsjoin.contracts.odcs import Column, read_contract
from epsjoin.contracts.sources import COMMA, GUARD
from epsjoin.contracts.tables import Rule, load_table
from epsjoin.errors import ContractError

Shape: TypeAlias = Mapping[str, Any]
"""What others rely on in one contract, as it stands in ``published.json``."""

_PARTS = {"version", "of", "fixed", "columns", "rules"}
"""What each shape has."""

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


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


def parse_version(name: str, version: str) -> tuple[int, int, int]:
    """Parse the version of the contract of a name.

    Raises
    ------
    ContractError
        It is not three numbers.
    """
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ContractError(f"{name}: version must be three numbers such as 1.0.0, not {version!r}")
    return int(found[1]), int(found[2]), int(found[3])


def is_shape(value: object) -> bool:
    """Whether a part of a file is the shape of a contract, as :func:`read_shapes` makes it."""
    if not isinstance(value, dict) or not value.keys() >= _PARTS:
        return False
    version, parts = value["version"], [value[part] for part in ("fixed", "columns", "rules")]
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        return False
    if not all(isinstance(part, dict) for part in parts):
        return False
    return all(isinstance(each, dict) for part in parts[1:] for each in part.values())


def read_shapes(contracts: Path, known: Mapping[str, Shape]) -> Read:
    """Read all contracts in a folder; of those that are not valid, say why.

    Parameters
    ----------
    known : what was published; a draft of one of these names is no draft any more.

    Raises
    ------
    ContractError
        There is no contract.
    """
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
                parse_version(name, str(body["version"]))
            except ContractError as error:
                found.invalid[name] = str(error)
                continue
            if body["status"] != "draft" or name in known:
                found.shapes[name] = {"version": str(body["version"]), "of": kind, **shape}
            else:
                found.drafts.add(name)
    _refuse_shared_ids(found, owners.items())
    return found


def _refuse_shared_ids(found: Read, owners: Iterable[tuple[str, list[tuple[str, Path]]]]) -> None:
    """Make contracts that have the id of another one invalid."""
    for id_, several in owners:
        for at, (name, file) in enumerate(several if len(several) > 1 else ()):
            other = several[1 if at == 0 else 0][1]
            found.invalid[name] = f"{file}: id {id_} is that of {other}, too; each contract has its own"
            found.shapes.pop(name, None)
            found.drafts.discard(name)


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
    # a point has every coordinate; in the files that are delivered, an optional one may be missing
    columns = [replace(c, required=c.required and c.name not in source.optional) for c in source.columns]
    where = Rule("where", source.where, 0.0, "error")
    guard = {check: _plain(limit) for check, limit in source.guard.items() if limit != GUARD[check]}
    match = {"match": json.loads(json.dumps(asdict(source.match)))} if source.match else {}
    delimiter = {"delimiter": json.dumps(source.delimiter)} if source.delimiter != COMMA else {}
    return {
        "fixed": {what: _plain(getattr(source, what)) for what in fixed} | delimiter | match,
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
