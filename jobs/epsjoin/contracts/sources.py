"""Contracts of sources: what a data set's files hold, where they are, and how its runs are made.

A source's contract is ``data_contracts/<data set>.odcs.yaml``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from epsjoin.contracts.conditions import FORMS, Filter, UnknownFormError
from epsjoin.contracts.lists import expand_lists
from epsjoin.contracts.matches import Match, check_partner, read_match
from epsjoin.contracts.names import COLUMN_NAME, SNAKE_CASE
from epsjoin.contracts.odcs import (
    Column,
    check_choice,
    custom_properties,
    key_of,
    read_contract,
    to_column,
)
from epsjoin.contracts.source_columns import check_columns
from epsjoin.contracts.times import INTERVALS, interval_of
from epsjoin.contracts.trees import AXES, MAX_NODES, METRIC, ROLE, UNIT, check_tree
from epsjoin.errors import ArgumentError, ContractError
from epsjoin.params import RunParams, is_finite
from epsjoin.passwords import has_password

FORMATS = ("csv", "json", "parquet")
ROLES = ("payload", "coordinate", "latitude", "longitude", ROLE)
MAX_DEGREES = {"latitude": 90.0, "longitude": 180.0}
"""Largest absolute value of a coordinate in degrees, by its role."""

METRICS = ("euclidean", "manhattan", "chebyshev", "cosine", "haversine", METRIC)

CUSTOM: Mapping[str, Any] = {
    "interval": "day",
    "metric": "euclidean",
    "unit": "",
    "where": "",
    "missing_values": [],
    "max_quarantine_share": 0.0,
    "guard": {},
    "defaults": {},
    "match": None,
    "window_runs": 12,
}
"""The customProperties of a source's contract, each with its default."""

OF_COLUMNS: Mapping[str, Any] = {
    "role": "payload",
    "decimals": None,
    "windowed": False,
    "max_nodes": MAX_NODES,
}
"""The customProperties of its columns, each with its default."""

GUARD: Mapping[str, float | None] = {
    "lost": 0.05,
    "new": 0.5,
    "updated": 0.5,
    "moved": 0.2,
    "keys": 0.5,
    "scale": 0.9,
    "shift": 0.9,
    "sign": 0.9,
    "swapped": 0.5,
    "format": 0.05,
    "left_out": 0.01,
}
"""The guard's limits, which a contract may replace one by one; see :mod:`epsjoin.local.guard.judge`."""


@cache
def _to_filter(condition: str, types: tuple[tuple[str, str], ...]) -> Filter:
    """Make a filter, which tries its condition, once: each block of a file asks for it."""
    return Filter(condition, types)


@dataclass(frozen=True)
class SourceContract:
    """What a data set's files hold and how its runs are made.

    Parameters
    ----------
    path : place of the snapshots, relative to the project or a URI. With ``{date}`` in it there is one
        snapshot per date (a file, or a folder of files); without, the same files belong to every run.
    format : csv, json (one object per line) or parquet; ``.gz`` at the end of a name means gzip.
    interval : how long a run lasts; run 2023-06-01 of a monthly data set takes the last snapshot
        dated 2023-06-01 to 2023-06-30.
    columns : all columns that are read, in the contract's order.
    key : names of the key columns, in key order; empty: the position of a record in its files is its key.
    coordinates : names of the coordinate columns, in order.
    latitude, longitude : names of the coordinates that are a position on a map; empty if there are none.
    metric : name of the metric; ``unit`` is that of its distances.
    max_quarantine_share : largest fraction of bad rows, among those that are not left out, with which a run
        is not refused.
    defaults : the data set's own defaults of ``RunParams``.
    where : SQL on the columns; a record for which it is not true is left out. Empty: none is. ``{begin}`` and
        ``{end}`` in it are the first day of a run's interval and the first day after it, see :meth:`of_run`.
    optional : names of the coordinates with ``required: false``; a record without one of them is left out.
    guard : by the names of its checks, the limits of what the guard lets in; ``None``: anything.
    missing : texts that stand for a missing value in columns that are not texts; ``nan`` also for a NaN.
    match : how its records are matched with those of another data set; ``None``: they are not.
    windowed : names of the columns whose values are counted in each run, to be compared over the last runs.
    window_runs : number of those runs, with the run itself.
    is_of_interval : whether ``where`` speaks of the run's interval, so that a run may have no record.
    tree : name of the column of documents that are compared as trees; empty: points have coordinates.
    """

    name: str
    path: str
    format: str
    columns: tuple[Column, ...]
    coordinates: tuple[str, ...]
    key: tuple[str, ...] = ()
    title: str = ""
    interval: str = "day"
    latitude: str = ""
    longitude: str = ""
    metric: str = "euclidean"
    unit: str = ""
    max_quarantine_share: float = 0.0
    defaults: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""
    optional: tuple[str, ...] = ()
    guard: Mapping[str, float | None] = field(default_factory=lambda: dict(GUARD))
    missing: tuple[str, ...] = ()
    match: Match | None = None
    windowed: tuple[str, ...] = ()
    window_runs: int = 12
    is_of_interval: bool = False
    tree: str = ""

    def of_run(self, run: str) -> SourceContract:
        """The contract as it holds for one run: its condition speaks of the run's interval."""
        begin, end = interval_of(self.interval, date.fromisoformat(run))
        where = self.where.replace("{begin}", begin.isoformat()).replace("{end}", end.isoformat())
        return replace(self, where=where, is_of_interval=where != self.where)

    def column(self, name: str) -> Column:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)

    @property
    def chain(self) -> str:
        """The chain of jobs that its runs go through, one of :data:`epsjoin.pipeline.CHAINS`."""
        return "match" if self.match is not None else "trees" if self.tree else "join"

    @property
    def numbered_by(self) -> str:
        """What the number of a record in its file counts: ``row`` or ``line``."""
        return "row" if self.format == "parquet" else "line"

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the numbers of a point: its coordinates, or of a tree the bins of its histograms."""
        return AXES if self.tree else self.coordinates

    @property
    def point_metric(self) -> str:
        """Name of the metric of the points: that of the data set, or of trees the one that bounds it."""
        return "manhattan" if self.tree else self.metric

    @property
    def condition(self) -> str:
        """SQL that is true for the records that are taken: ``where``, and no optional coordinate is missing.

        Empty if every record is taken.
        """
        # of a list the first number tells whether it is there
        present = [f"`{name}` IS NOT NULL" for name in self.optional if not self.column(name).item]
        if not self.where:
            return " AND ".join(present)
        end = "\n)" if "--" in self.where else ")"  # it may end in a comment
        return " AND ".join([*present, f"({self.where}{end}"]) if present else self.where

    @property
    def filter(self) -> Filter | None:
        """What decides which records are taken; ``None`` if every record is."""
        types = tuple((column.name, column.type) for column in self.columns)
        return _to_filter(self.condition, types) if self.condition else None


def load_source(contracts: Path, name: str) -> SourceContract:
    """Read and check the contract of a data set.

    Raises
    ------
    ContractError
        No such file, not an ODCS file, or a value that is not allowed; the message names file and key.
    """
    if not SNAKE_CASE.fullmatch(name):
        raise ContractError(f"data set {name!r}: a name is lower-case letters, digits and _, a letter first")
    file = contracts / f"{name}.odcs.yaml"
    body = read_contract(file)
    servers = body.get("servers") or []
    if len(servers) != 1:
        raise ContractError(f"{file}: servers must name exactly one place, it names {len(servers)}")
    given = custom_properties(file, body)
    unknown = sorted(given.keys() - CUSTOM.keys())
    if unknown:
        raise ContractError(f"{file}: unknown customProperties {unknown}; known are {', '.join(CUSTOM)}")
    custom = {**CUSTOM, **given}
    properties = expand_lists(file, body["schema"][0].get("properties") or [])
    if not isinstance(custom["unit"], str):
        raise ContractError(f"{file}: unit must be a text, not {custom['unit']!r}")
    own = {p["name"]: _own_properties(file, p) for p in properties}
    roles = {column: of_column["role"] for column, of_column in own.items()}
    columns = tuple(_to_source_column(file, p, own[p["name"]]) for p in properties)
    place = {role: name for name, role in roles.items() if role in MAX_DEGREES}
    coordinates = tuple(name for name, role in roles.items() if role not in ("payload", ROLE))
    if custom["metric"] == METRIC:
        custom["unit"] = given.get("unit", UNIT)
    if custom["metric"] == "haversine":
        custom["unit"] = given.get("unit", "km")
        if len(coordinates) == len(place) == 2:  # whichever comes first in the file
            coordinates = (place["latitude"], place["longitude"])
    source = SourceContract(
        name=name,
        title=str(body.get("name") or name),
        path=str(servers[0].get("path") or servers[0].get("location") or ""),
        format=str(servers[0].get("format") or ""),
        interval=str(custom["interval"]),
        columns=columns,
        key=key_of(properties),
        coordinates=coordinates,
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
    )
    _check_source(file, source, roles)
    if custom["match"] is not None:
        source = replace(source, match=read_match(file, custom["match"], source))
    return source


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


def _check_source(file: Path, source: SourceContract, roles: Mapping[str, str]) -> None:
    def refuse(what: str) -> None:
        raise ContractError(f"{file}: {what}")

    for name, n in Counter(column.name.lower() for column in source.columns).items():
        if n > 1:
            refuse(f"two columns have the name {name!r} (upper and lower case are the same to Spark)")
    for name, role in roles.items():
        if not COLUMN_NAME.fullmatch(name):
            refuse(
                f"column {name!r}: a name begins with a letter, then come letters, digits, _ and -; what the "
                "file calls the column may stand in physicalName"
            )
        if role in MAX_DEGREES and list(roles.values()).count(role) > 1:
            refuse(f"two columns have the role {role}")
    if not source.path:
        refuse("servers[0].path says where the snapshots lie; it is missing")
    if has_password(source.path):
        refuse(
            "servers[0].path seems to hold a password, which logs would show; give the storage its "
            "credentials by its own environment variables or files (docs/clusters.md)"
        )
    if source.path.count("{date}") > 1:
        refuse("servers[0].path may have {date} once")
    if "{date}" in source.path.rpartition("/")[0]:
        refuse(f"servers[0].path may have {{date}} in its last part only, not in {source.path}")
    for name in re.findall(r"\{([^{}]*)\}", source.path):
        if name != "date" and ("date" in name.lower() or get_close_matches(name.lower(), ["date"])):
            refuse(f"servers[0].path: {{{name}}} stands for nothing, only {{date}} does")
    check_choice(str(file), "servers[0].format", source.format, FORMATS)
    check_choice(str(file), "interval", source.interval, INTERVALS)
    share = source.max_quarantine_share
    if not is_finite(share) or not 0 <= share < 1:
        refuse(f"max_quarantine_share must be a number in [0, 1), not {share!r}")
    if not isinstance(source.where, str):
        refuse(f"where must be a condition in SQL, not {source.where!r}")
    if not isinstance(source.defaults, dict):
        refuse(f"defaults must map parameters to values, not {source.defaults!r}")
    check_choice(str(file), "metric", source.metric, METRICS)
    check_tree(source, list(roles.values()).count(ROLE), refuse)
    if not source.axes:
        refuse("no column has the role coordinate, latitude or longitude (customProperties: role)")
    if bool(source.latitude) != bool(source.longitude):
        refuse("latitude and longitude come together")
    if source.metric == "haversine" and source.coordinates != (source.latitude, source.longitude):
        found = ", ".join(f"{name}: {roles[name]}" for name in source.coordinates[:4])
        found += ", …" if len(source.coordinates) > 4 else ""
        refuse(
            "haversine takes two coordinates, one of the role latitude and one of the role longitude "
            f"(customProperties: role), not {found}"
        )
    if source.metric == "haversine" and source.unit != "km":
        refuse(f"haversine distances are in km, unit cannot be {source.unit!r}")
    check_columns(source, refuse)
    try:
        RunParams.from_json("{}", source.defaults)
    except ArgumentError as error:
        refuse(f"defaults: {error}")
    try:
        for each in (replace(source, optional=()), source):  # its own text first, for the message has that
            _ = each.of_run("2000-01-01").filter
    except UnknownFormError as error:
        refuse(f"where {source.where!r} is not understood: {error}; {FORMS}")


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
