"""What a source's contract may say of its files, its space and its runs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from epsjoin.contracts.conditions import FORMS, UnknownFormError
from epsjoin.contracts.names import COLUMN_NAME
from epsjoin.contracts.odcs import check_choice
from epsjoin.contracts.snapshot_names import DATE
from epsjoin.contracts.source_columns import Refuse, check_columns
from epsjoin.contracts.sources import COMMA, DELIMITERS, FORMATS, MAX_DEGREES, METRICS, SourceContract
from epsjoin.contracts.times import INTERVALS, pattern_of
from epsjoin.contracts.trees import ROLE, check_tree
from epsjoin.errors import ArgumentError, ContractError
from epsjoin.params import RunParams, is_finite
from epsjoin.passwords import has_password


def check_source(file: Path, source: SourceContract, roles: Mapping[str, str]) -> None:
    """Refuse a contract by which no run could be made, with one sentence.

    Parameters
    ----------
    file : the contract's file, for the sentence.
    source : what it says, but for the section ``match``.
    roles : the role of each column, by its name.

    Raises
    ------
    ContractError
        A value is not allowed, or does not fit another one.
    """

    def refuse(what: str) -> None:
        raise ContractError(f"{file}: {what}")

    _check_names(source, roles, refuse)
    _check_path(source.path, refuse)
    check_choice(str(file), "servers[0].format", source.format, FORMATS)
    check_choice(str(file), "interval", source.interval, INTERVALS)
    _check_delimiter(source, refuse)
    _check_kinds(source, refuse)
    check_choice(str(file), "metric", source.metric, METRICS)
    check_tree(source, list(roles.values()).count(ROLE), refuse)
    _check_space(source, roles, refuse)
    check_columns(source, refuse)
    _check_runs(source, refuse)


def _check_names(source: SourceContract, roles: Mapping[str, str], refuse: Refuse) -> None:
    """Refuse names that Spark could not tell apart or read, and a second latitude or longitude."""
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


def _check_path(path: str, refuse: Refuse) -> None:
    """Refuse a path with a password, or with braces that do not stand for the date of a snapshot."""
    if not path:
        refuse("servers[0].path says where the snapshots lie; it is missing")
    if has_password(path):
        refuse(
            "servers[0].path seems to hold a password, which logs would show; give the storage its "
            "credentials by its own environment variables or files (docs/clusters.md)"
        )
    if "://" in path:
        try:
            urlsplit(path)
        except ValueError:
            refuse(
                "servers[0].path has a character that no host may have, such as a [, "
                "between :// and the next /; correct it"
            )
    forms = DATE.findall(path)
    if len(forms) > 1:
        refuse("servers[0].path may have {date} once")
    if forms and DATE.search(path.rpartition("/")[2]) is None:
        refuse(f"servers[0].path may have {{date}} in its last part only, not in {path}")
    for form in filter(None, forms):
        try:
            pattern_of(form)
        except ValueError as error:
            refuse(f"servers[0].path: {error}")
    for name in re.findall(r"\{([^{}]*)\}", path):
        if not DATE.fullmatch(f"{{{name}}}") and (
            "date" in name.lower() or get_close_matches(name.lower(), ["date"])
        ):
            refuse(f"servers[0].path: {{{name}}} stands for nothing, only {{date}} does")


def _check_delimiter(source: SourceContract, refuse: Refuse) -> None:
    """Refuse a delimiter that is not among those allowed, or is given for files other than CSV."""
    if source.delimiter not in DELIMITERS:
        known = ", ".join(map(json.dumps, DELIMITERS))
        refuse(f"delimiter must be one of {known}, in double quotes, not {source.delimiter!r}")
    if source.delimiter != COMMA and source.format != "csv":
        refuse(f"delimiter is for files of the format csv, not {source.format}")


def _check_kinds(source: SourceContract, refuse: Refuse) -> None:
    """Refuse what is no number, no text or no map where there must be one."""
    share = source.max_quarantine_share
    if not is_finite(share) or not 0 <= share < 1:
        refuse(f"max_quarantine_share must be a number in [0, 1), not {share!r}")
    if not isinstance(source.where, str):
        refuse(f"where must be a condition in SQL, not {source.where!r}")
    if not isinstance(source.defaults, dict):
        refuse(f"defaults must map parameters to values, not {source.defaults!r}")


def _check_space(source: SourceContract, roles: Mapping[str, str], refuse: Refuse) -> None:
    """Refuse points without coordinates, and coordinates that the metric does not take."""
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


def _check_runs(source: SourceContract, refuse: Refuse) -> None:
    """Refuse parameters that no run could have, and a condition that cannot be decided."""
    try:
        RunParams.from_json("{}", source.defaults)
    except ArgumentError as error:
        refuse(f"defaults: {error}")
    try:
        for each in (replace(source, optional=()), source):  # its own text first, for the message has that
            _ = each.of_run("2000-01-01").filter
    except UnknownFormError as error:
        refuse(f"where {source.where!r} is not understood: {error}; {FORMS}")
