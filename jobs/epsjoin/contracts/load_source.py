"""The contract of a data set, read from its file and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from epsjoin.contracts.lists import expand_lists
from epsjoin.contracts.matches import Match, check_partner, read_match
from epsjoin.contracts.names import DATA_SET
from epsjoin.contracts.odcs import (
    Column,
    check_choice,
    custom_properties,
    key_of,
    read_contract,
    to_column,
)
from epsjoin.contracts.source_checks import check_source
from epsjoin.contracts.sources import CUSTOM, GUARD, MAX_DEGREES, OF_COLUMNS, ROLES, SourceContract
from epsjoin.contracts.trees import METRIC, ROLE, UNIT
from epsjoin.errors import ContractError
from epsjoin.params import is_finite

UNITS = {"haversine": "km", METRIC: UNIT}
"""Units of distances that a metric decides."""


def load_source(contracts: Path, name: str) -> SourceContract:
    """Read and check the contract of a data set.

    Raises
    ------
    ContractError
        No such file, not an ODCS file, or a value that is not allowed; the message names file and key.
    """
    check_name(name)
    file = contracts / f"{name}.odcs.yaml"
    body = read_contract(file)
    servers = body.get("servers") or []
    if len(servers) != 1:
        raise ContractError(f"{file}: servers must name exactly one place, it names {len(servers)}")
    custom = _custom_of(file, body)
    properties = expand_lists(file, body["schema"][0].get("properties") or [])
    own = {p["name"]: _own_properties(file, p) for p in properties}
    roles = {column: of_column["role"] for column, of_column in own.items()}
    columns = tuple(_to_source_column(file, p, own[p["name"]]) for p in properties)
    place = {role: name for name, role in roles.items() if role in MAX_DEGREES}
    source = SourceContract(
        name=name,
        title=str(body.get("name") or name),
        path=str(servers[0].get("path") or servers[0].get("location") or ""),
        format=str(servers[0].get("format") or ""),
        interval=str(custom["interval"]),
        columns=columns,
        key=key_of(properties),
        coordinates=_coordinates_of(roles, place, str(custom["metric"])),
        latitude=place.get("latitude", ""),
        longitude=place.get("longitude", ""),
        metric=str(custom["metric"]),
        unit=str(custom["unit"]),
        max_quarantine_share=custom["max_quarantine_share"],
        defaults=custom["defaults"],
        where=custom["where"],
        optional=tuple(
            p["name"] for p in properties if p.get("required") is False and roles[p["name"]] != "payload"
        ),
        guard={**GUARD, **_limits(file, custom["guard"])},
        missing=_texts(file, "missing_values", custom["missing_values"]),
        windowed=tuple(column for column, of_column in own.items() if _is_windowed(file, column, of_column)),
        window_runs=custom["window_runs"],
        tree=next((name for name, role in roles.items() if role == ROLE), ""),
        delimiter=custom["delimiter"],
    )
    check_source(file, source, roles)
    if custom["match"] is not None:
        source = replace(source, match=read_match(file, custom["match"], source))
    return source


def check_name(name: str) -> None:
    """Check that a data set may have a name.

    Raises
    ------
    ContractError
        It may not; a path, or the name of no file, could be made of it.
    """
    if not DATA_SET.fullmatch(name):
        raise ContractError(
            f"data set {name!r}: a name is lower-case letters, digits and _, a letter first, 245 at most"
        )


def load_partner(contracts: Path, source: SourceContract) -> tuple[Match, SourceContract]:
    """The match of a data set, with all columns named, and the contract of the data set it is matched with.

    Raises
    ------
    ContractError
        The contract has no section ``match``; or the other one is wrong, or does not fit.
    """
    if source.match is None:
        raise ContractError(
            f"{source.name}: its contract has no section match (customProperties), which says with what its "
            "records are matched"
        )
    partner = load_source(contracts, source.match.partner)
    return check_partner(f"{contracts / source.name}.odcs.yaml", source.match, partner, source), partner


def _custom_of(file: Path, body: Mapping[str, Any]) -> dict[str, Any]:
    """The customProperties of a contract, with the defaults of those that it does not have."""
    given = custom_properties(file, body)
    if unknown := sorted(given.keys() - CUSTOM.keys()):
        raise ContractError(f"{file}: unknown customProperties {unknown}; known are {', '.join(CUSTOM)}")
    custom = {**CUSTOM, **given}
    if not isinstance(custom["unit"], str):
        raise ContractError(f"{file}: unit must be a text, not {custom['unit']!r}")
    if "unit" not in given:
        custom["unit"] = UNITS.get(str(custom["metric"]), custom["unit"])
    return custom


def _coordinates_of(roles: Mapping[str, str], place: Mapping[str, str], metric: str) -> tuple[str, ...]:
    """Names of the coordinates: as in the file, but latitude and longitude in that order for haversine."""
    names = tuple(name for name, role in roles.items() if role not in ("payload", ROLE))
    is_position = metric == "haversine" and len(names) == len(place) == 2
    return (place["latitude"], place["longitude"]) if is_position else names


def _is_windowed(file: Path, column: str, of_column: Mapping[str, Any]) -> bool:
    windowed = of_column["windowed"]
    if not isinstance(windowed, bool):
        raise ContractError(f"{file}: column {column}: windowed must be true or false, not {windowed!r}")
    return windowed


def _own_properties(file: Path, body: Mapping[str, Any]) -> dict[str, Any]:
    """The customProperties of a column, with the defaults of those that it does not have."""
    column, given = body["name"], custom_properties(file, body)
    if strange := sorted(given.keys() - OF_COLUMNS.keys()):
        known = ", ".join(OF_COLUMNS)
        raise ContractError(f"{file}: column {column}: unknown customProperties {strange}; known are {known}")
    if "max_nodes" in given and given.get("role") != ROLE:
        raise ContractError(f"{file}: column {column}: max_nodes is for a column of the role {ROLE}")
    found = {**OF_COLUMNS, **given}
    check_choice(f"{file}: column {column}", "role", found["role"], ROLES)
    return found


def _to_source_column(file: Path, body: Mapping[str, Any], own: Mapping[str, Any]) -> Column:
    column = _apply_role(to_column(file, body, body.get("logicalType", "")), own["role"])
    in_file = body.get("physicalName") or column.name
    form = str((body.get("logicalTypeOptions") or {}).get("format") or "")
    name = "" if in_file == column.name else in_file
    max_nodes = own["max_nodes"] if own["role"] == ROLE else None
    return replace(
        column,
        physical_name=name,
        decimals=own["decimals"],
        form=form,
        max_nodes=max_nodes,
        item=body.get("item"),
    )


def _apply_role(column: Column, role: str) -> Column:
    """The column with the conditions of its role: a point has all its coordinates, degrees have a range."""
    if role != "payload":
        column = replace(column, required=True)
    limit = MAX_DEGREES.get(role)
    if limit is None:
        return column
    low = -limit if column.minimum is None else column.minimum
    return replace(column, minimum=low, maximum=limit if column.maximum is None else column.maximum)


def _texts(file: Path, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ContractError(f"{file}: {key} must be a list of texts (in quotes), not {value!r}")
    return tuple(value)


def _limits(file: Path, value: object) -> dict[str, float | None]:
    if not isinstance(value, dict):
        raise ContractError(f"{file}: guard must map checks to limits, not {value!r}")
    for check, limit in value.items():
        if check not in GUARD:
            raise ContractError(f"{file}: guard has no check {check!r}; known are {', '.join(GUARD)}")
        if limit is not None and not (is_finite(limit) and 0 <= limit <= 1):
            raise ContractError(f"{file}: guard: {check} must be a number in [0, 1] or null, not {limit!r}")
    return value
